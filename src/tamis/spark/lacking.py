"""What Spark lacks to read the files of a store, told by its errors: a package, a setting, credentials.

Hadoop answers with a page of Java. Here it becomes one message, with the package that fits the running Spark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tamis.errors import SparkStorageError
from tamis.formats.errors import shown
from tamis.formats.storage.access import S3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Lack", "found_lack", "is_of"]

HADOOP: Final = "3.4.2"
"""Of Spark 4.1, for a session that does not say its own."""
CLOUD: Final = "org.apache.spark:spark-hadoop-cloud_2.13:{spark}"
_AZURE: Final = ("spark.hadoop.fs.azure.account.auth.type.ACCOUNT", "spark.hadoop.fs.azure.account.key.ACCOUNT")
_S3_KEYS: Final = ("spark.hadoop.fs.s3a.access.key", "spark.hadoop.fs.s3a.secret.key")
_S3_PLACE: Final = ("spark.hadoop.fs.s3a.endpoint", "spark.hadoop.fs.s3a.endpoint.region")
_S3_ALL: Final = (*_S3_KEYS, *_S3_PLACE)
_OSS: Final = ("impl", "endpoint", "accessKeyId", "accessKeySecret")
_GS: Final = ("spark.hadoop.fs.gs.auth.type", "spark.hadoop.fs.gs.auth.service.account.json.keyfile")
_HDFS: Final = ("spark.hadoop.fs.defaultFS",)
_STORES: Final[dict[str, tuple[str | None, tuple[str, ...]]]] = {
    **dict.fromkeys(S3, ("org.apache.hadoop:hadoop-aws:{hadoop}", _S3_ALL)),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), ("org.apache.hadoop:hadoop-azure:{hadoop}", _AZURE)),
    "gs": (CLOUD, _GS),
    "gcs": (CLOUD, _GS),
    "oss": ("org.apache.hadoop:hadoop-aliyun:{hadoop}", tuple(f"spark.hadoop.fs.oss.{name}" for name in _OSS)),
    "hdfs": (None, _HDFS),
}
"""By scheme the package that brings its client, and the settings that it is told the store by."""
_CLASSES: Final = {
    "org.apache.hadoop.fs.s3a.": "s3a",
    "software.amazon.awssdk.": "s3a",
    "org.apache.hadoop.fs.azurebfs.": "abfs",
    "org.apache.hadoop.fs.azure.": "wasb",
    "com.microsoft.azure.": "wasb",
    "com.google.cloud.hadoop.": "gs",
    "org.apache.hadoop.fs.aliyun.": "oss",
    "com.aliyun.": "oss",
}
_NO_SCHEME: Final = re.compile(r'No FileSystem for scheme:? "?([A-Za-z][A-Za-z0-9+.-]*)')
_NO_CLASS: Final = re.compile(r"(?:ClassNotFoundException: (?:Class )?|NoClassDefFoundError: )([\w./$]+)")
_REFUSED: Final = (
    ("NoAuthWithAWSException", "s3a", "it was given no credentials"),
    ("AccessDeniedException", "s3a", "the store refuses who enters"),
    ("Invalid configuration value detected for fs.azure.account.key", "abfs", "it was given no credentials"),
    ("Incomplete HDFS URI, no host", "hdfs", "no name node is set for paths without one"),
    # A request for a file's size is answered without a reason: a token that has ended, or another region.
    ("ExpiredToken", "s3a", "the credentials have ended"),
    ("AWSBadRequestException", "s3a", "the store calls the request a bad one: credentials may have ended"),
)
_WRONG: Final = (
    ("UnknownStoreException", "s3a", "there is no such bucket"),
    ("NoSuchBucket", "s3a", "there is no such bucket"),
    ("AWSRedirectException", "s3a", "its bucket is in another region than the reader was told"),
)
_NO_ANSWER: Final = re.compile(r"Unable to execute HTTP request: (.+?)(?::? {2,}|\n|\Z)")
_NO_NODE: Final = re.compile(r"Call From \S+ to (\S+) failed on ([^:\n]+)")
_NO_HOST: Final = re.compile(r"UnknownHostException: ([^\s:]+)")
_IN_CLIENT: Final = "when attempting to interact with a service"
"""Of a host that Amazon's client does not find: a cause further down names it."""
_VERSION: Final = "select java_method('org.apache.hadoop.util.VersionInfo', 'getVersion')"


@dataclass(frozen=True, slots=True)
class Lack:
    """What a session does not have, or may not do."""

    kind: Literal["scheme", "class", "entry", "answer"]
    scheme: str
    reason: str

    def explained(self, spark: SparkSession, path: str, *, handed: bool) -> SparkStorageError:
        """The error for a file that is not read for it. handed: with settings that tamis has given to the reader."""
        mine = path.partition("://")[0].lower()
        has_client = self.kind in {"entry", "answer"}
        scheme = mine if has_client and mine in _STORES else self.scheme
        package, settings = _STORES.get(scheme, (None, (f"spark.hadoop.fs.{scheme}.impl",)))
        if self.kind == "answer" and scheme in S3:
            settings = _S3_PLACE
        if has_client:
            package = None
        elif package is not None:
            package = package.format(hadoop=_hadoop(spark), spark=spark.version)
        settings = tuple(name.replace("ACCOUNT", _account(path)) for name in settings)
        cures = [] if package is None else [f"start it with spark.jars.packages={package}"]
        if self.kind == "answer":
            told = "what the table was opened with" if handed else ", ".join(settings)
            cures.append(f"check where the store is, by {told}, and that Spark's machines reach it")
        elif handed and self.kind == "entry":
            cures.append("open the table anew: credentials that a catalog gives end")
        elif not handed:
            cures.append(f"give it what the store needs of {', '.join(settings)}")
        text = f"{', and '.join(cures)}."
        if not handed and scheme in S3:
            text += " With storage='catalog' its reader gets what the table was opened with."
        what = "Spark cannot read" if has_client else "Spark has no client to read"
        return SparkStorageError(
            f"{what} {shown(path)}: {self.reason}. {text[0].upper()}{text[1:]}",
            path=shown(path),
            scheme=scheme,
            package=package,
            settings=() if handed else settings,
            reason=self.reason,
        )


def found_lack(text: str) -> Lack | None:
    """What a session lacks, by an error's text; None if it is another error."""
    if found := _NO_SCHEME.search(text):
        return Lack("scheme", found[1].lower(), f'no file system for the scheme "{found[1].lower()}"')
    for found in _NO_CLASS.finditer(text):
        name = found[1].replace("/", ".")
        scheme = next((scheme for prefix, scheme in _CLASSES.items() if name.startswith(prefix)), None)
        if scheme is not None:
            return Lack("class", scheme, f"the class {name} is not there")
    for mark, scheme, reason in _REFUSED:
        if mark in text:
            return Lack("entry", scheme, reason)
    return _unanswered(text)


def _unanswered(text: str) -> Lack | None:
    """A store that is not where the session seeks it."""
    for mark, scheme, reason in _WRONG:
        if mark in text:
            return Lack("answer", scheme, reason)
    hosts = [found[1] for found in _NO_HOST.finditer(text)]
    if _IN_CLIENT in text and hosts:
        return Lack("answer", "s3a", f"there is no host {hosts[-1]!r}")
    if found := _NO_ANSWER.search(text):
        return Lack("answer", "s3a", f"its store does not answer: {found[1]}")
    if found := _NO_NODE.search(text):
        return Lack("answer", "hdfs", f"its name node does not answer: {found[1]}, {found[2]}")
    return Lack("answer", "hdfs", f"there is no host {hosts[0]!r}") if hosts else None


def is_of(scheme: str, path: str) -> bool:
    """Whether a path is of a store that the same client reads."""
    mine = path.partition("://")[0].lower()
    return mine == scheme or _STORES.get(mine, mine) == _STORES.get(scheme, scheme)


def _hadoop(spark: SparkSession) -> str:
    """The version of Hadoop that the session runs. Where it may not be asked, that of the Spark that tamis is for."""
    try:
        row = spark.sql(_VERSION).first()
    except Exception:  # noqa: BLE001 - a server may refuse to call Java, by whatever error: the message still helps
        return HADOOP
    return HADOOP if row is None else str(row[0])


def _account(path: str) -> str:
    """The host of an Azure account in a path: CONTAINER@ACCOUNT.dfs.core.windows.net."""
    authority = path.partition("://")[2].partition("/")[0]
    return authority.rpartition("@")[2] or "ACCOUNT"
