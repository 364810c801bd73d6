"""Who may enter S3, and where it is: the same for every client that is told of it, and nothing left out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from pyarrow import fs

from tamis.errors import SparkStorageError
from tamis.formats.errors import advice, is_denied, unwritable
from tamis.formats.storage import objects, s3
from tamis.formats.storage.access import environment_access, not_handed, s3_access
from tamis.formats.storage.conditional import s3_endpoint
from tamis.formats.storage.local import is_local, local_path
from tamis.formats.storage.objects import EnvironmentStorage
from tamis.formats.storage.sinks import DataStore

GIVEN = {"s3.access-key-id": "key", "s3.secret-access-key": "secret"}


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that says nothing of S3."""
    for name in ("ENDPOINT_URL", "ENDPOINT_URL_S3", "REGION", "DEFAULT_REGION", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """What Arrow's client is told, each time that one is made; its buckets lie in eu-north-1."""
    found: list[dict[str, Any]] = []

    def client(**options: object) -> fs.FileSystem:
        found.append(options)
        return fs.LocalFileSystem()

    s3.bucket_region.cache_clear()
    monkeypatch.setattr(s3.fs, "S3FileSystem", client)
    monkeypatch.setattr(s3.fs, "resolve_s3_region", lambda _: "eu-north-1")
    yield found
    s3.bucket_region.cache_clear()


@pytest.mark.parametrize(
    ("endpoint", "whole"),
    [
        ("http://here:9000/s3", "http://here:9000/s3"),
        ("https://here", "https://here"),
        ("here:9000", "https://here:9000"),
    ],
)
def test_an_endpoint_is_told_whole(monkeypatch: pytest.MonkeyPatch, endpoint: str, whole: str) -> None:
    """With a part of it left out, files would be sought in another store: Amazon's, if all of it is."""
    access = s3_access({**GIVEN, "s3.endpoint": endpoint})
    assert access.endpoint == whole
    assert access.for_arrow()["endpoint_override"] == whole
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    assert environment_access().endpoint == whole
    assert s3_endpoint() == {"s3.endpoint": whole, "s3.region": "us-east-1"}


@pytest.mark.parametrize("endpoint", ["http://here:9000/s3", "https://here:9000"])
@pytest.mark.parametrize("is_handed", [True, False])
def test_executors_write_to_the_endpoint_that_is_read(
    told: list[dict[str, Any]], endpoint: str, *, is_handed: bool
) -> None:
    access = s3_access({**GIVEN, "s3.endpoint": endpoint})
    DataStore({"s3.endpoint": endpoint}, access.for_arrow() if is_handed else {})._system("s3://lake/x")
    EnvironmentStorage(given=access)._of("s3://lake/x")
    assert [one["endpoint_override"] for one in told] == [endpoint, endpoint]
    assert [one["region"] for one in told] == ["us-east-1", "us-east-1"]


def test_a_bucket_of_amazons_is_asked_for_its_region_before_a_write(told: list[dict[str, Any]]) -> None:
    """Arrow takes that of its machine, if any, and a bucket of another refuses what is written."""
    DataStore({}, s3_access(GIVEN).for_arrow())._system("s3://lake/x")
    DataStore()._system("s3://lake/x")
    DataStore({"s3.region": "eu-west-1"})._system("s3://lake/x")
    assert [one["region"] for one in told] == ["eu-north-1", "eu-north-1", "eu-west-1"]


def test_the_environments_region_serves_where_amazon_cannot_be_asked(
    told: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: str) -> str:
        raise OSError("no route")

    monkeypatch.setattr(s3.fs, "resolve_s3_region", fails)
    with pytest.raises(OSError, match="no route"):
        DataStore()._system("s3://lake/x")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-3")
    DataStore()._system("s3://lake/x")
    assert told[-1]["region"] == "eu-west-3"


@pytest.mark.parametrize("name", ["s3.profile-name", "client.profile-name", "s3.role-arn", "s3.signer"])
def test_who_enters_by_a_name_that_only_the_catalogs_client_knows_is_not_taken_for_another(name: str) -> None:
    """What the environment has instead may be somebody else's."""
    fault = not_handed("s3://lake/x", s3_access({name: "prod"}))
    assert isinstance(fault, SparkStorageError)
    assert name in str(fault)


@pytest.mark.parametrize(
    "said",
    [
        "AWS Error UNKNOWN (HTTP status 400): Unable to parse ExceptionName: ExpiredToken Message: The token",
        "The provided token has expired.",
        "ExpiredTokenException: The security token included in the request is expired",
    ],
)
def test_credentials_that_have_ended_are_told_as_such(said: str) -> None:
    """A store that answers so has done nothing: to try again with the same ones does not help."""
    assert advice(OSError(said)) == "The credentials for its store have ended: open the table anew for others."
    assert "open the table anew" in str(unwritable("s3://lake/x", OSError(said)))
    assert is_denied(OSError(said))


@pytest.mark.parametrize("scheme", ["abfs", "abfss", "wasb", "wasbs"])
def test_files_of_azure_are_sought_in_their_container(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    accounts: list[str] = []

    def client(account: str, **_: object) -> fs.FileSystem:
        accounts.append(account)
        return fs.LocalFileSystem()

    monkeypatch.setattr(objects.fs, "AzureFileSystem", client, raising=False)
    _, path = EnvironmentStorage()._of(f"{scheme}://box@acc.host.core.windows.net/w/a b%20.avro")
    assert (accounts, path) == (["acc"], "box/w/a b%20.avro")


def test_googles_store_is_not_waited_for_a_quarter_of_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow's client asks on for that long where nobody answers."""
    told: list[dict[str, timedelta]] = []

    def client(**options: timedelta) -> fs.FileSystem:
        told.append(options)
        return fs.LocalFileSystem()

    monkeypatch.setattr(objects.fs, "GcsFileSystem", client, raising=False)
    EnvironmentStorage()._of("gs://box/x")
    assert told == [{"retry_time_limit": timedelta(seconds=60)}]


@pytest.mark.parametrize("location", ["hdfs:/w/a b%20.avro", "hdfs:///w/a b%20.avro"])
def test_a_path_of_hdfs_without_a_host_is_not_one_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    """Hadoop writes it with one slash; both lie in the default file system."""
    hosts: list[str] = []

    def client(host: str, _: int) -> fs.FileSystem:
        hosts.append(host)
        return fs.LocalFileSystem()

    monkeypatch.setattr(objects.fs, "HadoopFileSystem", client, raising=False)
    assert not is_local(location)
    assert local_path(location) is None
    _, path = EnvironmentStorage()._of(location)
    assert (hosts, path) == (["default"], "/w/a b%20.avro")
