"""What Spark lacks to enter a store, told from Java's errors: as Spark 4.1 and Hadoop 3.4.2 word them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark.sql")
from tamis.errors import SparkStorageError
from tamis.formats.errors import shown
from tamis.formats.storage.access import Access, environment_access, s3_access
from tamis.spark.lacking import found_lack
from tamis.spark.stores import REDACTED, REDACTION, Reach, _is_redacted

TRACE = "\n\tat org.apache.hadoop.fs.FileSystem.get(FileSystem.java:557)"
NO_SCHEME = 'org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "{}"'
NO_CLASS = "java.lang.RuntimeException: java.lang.ClassNotFoundException: Class {} not found"


class _Spark:
    """Of a session its version alone: it may not be asked for Hadoop's."""

    version = "4.1.4"


@pytest.mark.parametrize(
    ("text", "path", "package", "setting"),
    [
        (NO_SCHEME.format("s3"), "s3://b/x", "org.apache.hadoop:hadoop-aws:3.4.2", "spark.hadoop.fs.s3a.access.key"),
        (
            NO_CLASS.format("org.apache.hadoop.fs.s3a.S3AFileSystem"),
            "s3://b/x",
            "org.apache.hadoop:hadoop-aws:3.4.2",
            "spark.hadoop.fs.s3a.endpoint",
        ),
        (
            "java.lang.NoClassDefFoundError: software/amazon/awssdk/transfer/s3/model/CompletedFileUpload",
            "s3a://b/x",
            "org.apache.hadoop:hadoop-aws:3.4.2",
            "spark.hadoop.fs.s3a.secret.key",
        ),
        (
            NO_CLASS.format("org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem"),
            "abfss://box@acc.dfs.core.windows.net/x",
            "org.apache.hadoop:hadoop-azure:3.4.2",
            "spark.hadoop.fs.azure.account.key.acc.dfs.core.windows.net",
        ),
        (
            NO_CLASS.format("org.apache.hadoop.fs.azure.NativeAzureFileSystem$Secure"),
            "wasbs://box@acc.blob.core.windows.net/x",
            "org.apache.hadoop:hadoop-azure:3.4.2",
            "spark.hadoop.fs.azure.account.key.acc.blob.core.windows.net",
        ),
        (
            NO_SCHEME.format("gs"),
            "gs://b/x",
            "org.apache.spark:spark-hadoop-cloud_2.13:4.1.4",
            "spark.hadoop.fs.gs.auth.type",
        ),
        (NO_SCHEME.format("oss"), "oss://b/x", "org.apache.hadoop:hadoop-aliyun:3.4.2", "spark.hadoop.fs.oss.impl"),
        (NO_SCHEME.format("cosn"), "cosn://b/x", None, "spark.hadoop.fs.cosn.impl"),
        ("Incomplete HDFS URI, no host: hdfs:///x", "hdfs:///x", None, "spark.hadoop.fs.defaultFS"),
        ("Incomplete HDFS URI, no host: hdfs:/x", "hdfs:/x", None, "spark.hadoop.fs.defaultFS"),
        ("java.lang.IllegalArgumentException: java.net.UnknownHostException: nn", "hdfs://nn/x", None, "defaultFS"),
        (
            "java.nio.file.AccessDeniedException: s3a://b/x: org.apache.hadoop.fs.s3a.auth.NoAuthWithAWSException",
            "s3a://b/x",
            None,
            "spark.hadoop.fs.s3a.access.key",
        ),
    ],
)
def test_a_page_of_java_is_one_message_with_its_cure(text: str, path: str, package: str | None, setting: str) -> None:
    found = Reach(_Spark()).explained(RuntimeError(text + TRACE), ["/local", path])  # type: ignore[arg-type]
    assert isinstance(found, SparkStorageError)
    assert (found.path, found.package) == (shown(path), package)
    assert any(one.endswith(setting) for one in found.settings)
    assert all(one in str(found) for one in found.settings)
    assert package is None or package in str(found)
    assert "\n" not in str(found)
    assert "java" not in str(found)


SDK = "software.amazon.awssdk.core.exception.SdkClientException: "
GONE = "java.net.UnknownHostException"
SERVICE = "attempting to interact with a service. See cause for the exact endpoint that is failing to resolve."
HTTP = f"getFileStatus on s3a://b/x: {SDK}Unable to execute HTTP request: {{0}}:    {SDK}{{0}}: {{0}}"


@pytest.mark.parametrize(
    ("text", "path", "reason"),
    [
        (
            "java.net.ConnectException: "
            + HTTP.format("Connect to here:1 [here/127.0.0.1] failed: Connection refused"),
            "s3://b/x",
            "its store does not answer: Connect to here:1 [here/127.0.0.1] failed: Connection refused",
        ),
        (
            "javax.net.ssl.SSLException: " + HTTP.format("Unsupported or unrecognized SSL message"),
            "s3://b/x",
            "its store does not answer: Unsupported or unrecognized SSL message",
        ),
        (
            f"{GONE}: getFileStatus on s3a://b/x: {SDK}Received an {GONE} when {SERVICE}\nCaused by: {GONE}: gone",
            "s3://b/x",
            "there is no host 'gone'",
        ),
        (
            "org.apache.hadoop.fs.s3a.UnknownStoreException: `s3a://b/x': getFileStatus on s3a://b/x: NoSuchBucket",
            "s3://b/x",
            "there is no such bucket",
        ),
        (
            "org.apache.hadoop.fs.s3a.AWSRedirectException: Received permanent redirect response to region eu-west-1",
            "s3://b/x",
            "its bucket is in another region than the reader was told",
        ),
        (
            "java.net.ConnectException: Call From vm/127.0.0.1 to nn:8020 failed on connection exception: java.net",
            "hdfs://nn:8020/x",
            "its name node does not answer: nn:8020, connection exception",
        ),
    ],
)
@pytest.mark.parametrize("is_handed", [True, False])
def test_a_store_that_is_not_where_it_is_sought_is_not_one_that_wants_credentials(
    text: str, path: str, reason: str, *, is_handed: bool
) -> None:
    access = Access("https://here", "us-east-1", "key", "secret") if is_handed else None
    found = Reach(_Spark(), access).explained(RuntimeError(text + TRACE), [path])  # type: ignore[arg-type]
    assert isinstance(found, SparkStorageError)
    assert (found.reason, found.package) == (reason, None)
    assert str(found).startswith(f"Spark cannot read {path}: {reason}. Check where the store is, by ")
    assert not [word for word in ("open the table anew", "access.key", "secret") if word in str(found)]
    assert "\n" not in str(found)


@pytest.mark.parametrize(
    "text",
    [
        "The provided token has expired. (Service: S3, Status Code: 400):ExpiredToken",
        "org.apache.hadoop.fs.s3a.AWSBadRequestException: getFileStatus on s3a://b/x: (Status Code: 400)",
    ],
)
def test_credentials_that_have_ended_are_told_as_such(text: str) -> None:
    """A store answers them with 400, not with 403 as it does wrong ones."""
    access = Access("https://here", "us-east-1", "key", "secret", "token")
    found = Reach(_Spark(), access).explained(RuntimeError(text + TRACE), ["s3://b/x"])  # type: ignore[arg-type]
    assert isinstance(found, SparkStorageError)
    assert "have ended" in str(found)
    assert "Open the table anew" in str(found)


@pytest.mark.parametrize("text", ["Path does not exist: s3a://b/x", "Unable to infer schema", "a bug"])
def test_other_errors_are_left_as_they_are(text: str) -> None:
    assert found_lack(text + TRACE) is None
    local = RuntimeError("java.nio.file.AccessDeniedException: /w/a")
    assert Reach(_Spark()).explained(local, ["/w/a"]) is None  # type: ignore[arg-type]


def test_a_token_of_the_environment_is_not_given_to_a_key_of_the_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        monkeypatch.setenv(name, name.lower())
    assert s3_access({"s3.access-key-id": "a", "s3.secret-access-key": "b"}) == Access(
        "https://aws_endpoint_url", environment_access().region, "a", "b"
    )
    found = environment_access()
    assert (found.key, found.secret, found.token) == (
        "aws_access_key_id",
        "aws_secret_access_key",
        "aws_session_token",
    )


def test_settings_are_said_of_the_bucket_under_a_scheme_of_their_own() -> None:
    """A session's word on a bucket goes before its word on all; and Hadoop keeps a client by scheme and bucket."""
    given = Access("http://here:1", "us-east-1", "key", "secret", "token")
    reach = Reach(_Spark(), given)  # type: ignore[arg-type]
    paths = ["s3://lake/a", "s3n://lake/b", "s3a://other/c", "/w/local"]
    (scheme,) = {address.partition("://")[0] for address in reach.addresses(paths, {})[:3]}
    assert reach.addresses(paths, {})[3] == "/w/local"
    options = reach.options(paths)
    assert options[f"fs.{scheme}.impl"] == "org.apache.hadoop.fs.s3a.S3AFileSystem"
    provider = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
    for bucket in ("lake", "other"):
        told = {name.rpartition(f"bucket.{bucket}.")[2]: value for name, value in options.items() if bucket in name}
        assert told == {
            "endpoint": "http://here:1",
            "path.style.access": "true",
            "connection.ssl.enabled": "false",
            "endpoint.region": "us-east-1",
            "aws.credentials.provider": provider,
            "access.key": "key",
            "secret.key": "secret",
            "session.token": "token",
        }
    assert not any(word in scheme for word in ("key", "secret", "token"))
    other = Reach(_Spark(), Access("http://here:1", "us-east-1", "key", "other"))  # type: ignore[arg-type]
    assert other.addresses(paths[:1], {}) != reach.addresses(paths[:1], {})
    assert Reach(_Spark(), given).options(["/w/local", "hdfs://nn/x"]) == {}  # type: ignore[arg-type]


def test_what_cannot_be_handed_on_is_an_error_and_not_left_out() -> None:
    reach = Reach(_Spark(), Access("https://here"))  # type: ignore[arg-type]
    with pytest.raises(SparkStorageError, match="cannot hand the access to gs://box to Spark"):
        reach.options(["gs://box/x"])


@pytest.mark.parametrize(
    ("regex", "is_safe"),
    [(REDACTED, True), (".*", True), ("key", False), ("secret", False), ("(", False), (None, False)],
)
def test_a_server_is_asked_whether_it_redacts_credentials(regex: str | None, *, is_safe: bool) -> None:
    spark = SimpleNamespace(conf=SimpleNamespace(get={REDACTION: regex}.get))
    assert _is_redacted(spark) == is_safe  # type: ignore[arg-type]
