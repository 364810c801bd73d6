"""How Spark reaches the files of a table: by which scheme, with whose settings, and what it lacks if it does not.

Catalogs write `s3://`, and Spark reads that as `s3a://`, if anything. Which schemes a session has is found out by
asking it to read: what is there answers, and a scheme that is not there fails before any request. On request a
table's files are read with what its catalog, or the environment, says of the store.

Hadoop keeps one client for a scheme, a bucket and a user: whoever came first gave it its settings, and the options of
a later reader are ignored. So a table that is read with its own settings gets a scheme of its own, told to be S3's by
an option of the same reader. Law: what is handed on reaches that reader alone, and is in no name or text.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, Literal
from weakref import WeakKeyDictionary

from tamis.errors import SparkStorageError
from tamis.formats import FormatTable
from tamis.formats.errors import shown
from tamis.formats.storage.access import S3, Access, not_handed
from tamis.sieve.plan import ScanPlan
from tamis.spark.lacking import found_lack, is_of
from tamis.spark.session import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Reach", "Store", "reach_of", "storage_of"]

Store = Literal["session", "catalog"]
"""Whose settings a table's files are read with: the session's, or those that the table was opened with."""
INSTEAD: Final = {"s3": "s3a", "s3n": "s3a", "gcs": "gs"}
"""Schemes that a session may not have, and the one that Hadoop's own client of that store goes by."""
ANYWHERE: Final = frozenset({"", "file", "hdfs", "viewfs"})
"""File systems that need no credentials of a store."""
CLIENT: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"
PROVIDERS: Final = "org.apache.hadoop.fs.s3a."
SECRETS: Final = ("access.key", "secret.key", "session.token")
REDACTION: Final = "spark.sql.redaction.string.regex"
"""What Spark takes out of texts that it shows or keeps: the requests to a Connect server are such."""
REDACTED: Final = r'fs[.]s3a[.][^"]*"\s*value: "[^"]*"'
_SCHEME: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*)|/)")
_SALT: Final = secrets.token_bytes(16)
"""Names of schemes tell nothing of what they stand for, and those of two processes differ."""

_instead: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()
"""Of each session the schemes that it does not have, and those that have served instead."""


@dataclass(frozen=True, slots=True)
class Reach:
    """A session, and how it enters the stores in which a table's files are."""

    spark: SparkSession
    access: Access | None = None
    """What is handed to Spark's readers; None if the session's own settings are used."""

    def addresses(self, paths: Sequence[str], instead: dict[str, str]) -> list[str]:
        """Each path as Spark is to be asked for it, with schemes that stand in for others."""
        known = {**_instead.get(self.spark, {}), **instead}
        if self.access is not None:
            known |= dict.fromkeys(S3, self._scheme())
        return [_with(path, known) for path in paths] if known else list(paths)

    def options(self, paths: Iterable[str]) -> dict[str, str]:
        """What a reader of these files is told of their stores. SparkStorageError for what cannot be handed on."""
        stores = {(scheme.lower(), store) for scheme, store in map(_store, paths)}
        if self.access is None or not any(scheme not in ANYWHERE for scheme, _ in stores):
            return {}
        for scheme, store in sorted(stores):
            fault = None if scheme in ANYWHERE else not_handed(f"{scheme}://{store}", self.access)
            if fault is not None:
                raise fault
        if self.access.secret is not None and is_remote(self.spark) and not _is_redacted(self.spark):
            raise _kept(", ".join(sorted(f"{scheme}://{store}" for scheme, store in stores if scheme in S3)))
        told = _settings(self.access)
        buckets = {store for scheme, store in stores if scheme in S3}
        # What a session says of a bucket goes before what is said of all: so this is said of the bucket.
        options = {
            f"fs.s3a.bucket.{bucket}.{name}": value for bucket in sorted(buckets) for name, value in told.items()
        }
        return {f"fs.{self._scheme()}.impl": CLIENT, **options}

    def other(self, error: Exception, instead: dict[str, str]) -> bool:
        """Whether there is another scheme to try after this error; it is noted in instead."""
        lack = found_lack(str(error))
        scheme = "" if lack is None else lack.scheme
        if lack is None or lack.kind != "scheme" or scheme not in INSTEAD or scheme in instead:
            return False
        instead[scheme] = INSTEAD[scheme]
        return True

    def served(self, instead: dict[str, str]) -> None:
        """Remember what has served, so that the session is not asked again."""
        if instead:
            _instead[self.spark] = {**_instead.get(self.spark, {}), **instead}

    def explained(self, error: Exception, paths: Sequence[str]) -> SparkStorageError | None:
        """What the session lacks to read these files, if that is why it failed."""
        far = [path for path in paths if _store(path)[0].lower() not in {"", "file"}]
        lack = found_lack(str(error)) if far else None
        if lack is None:
            return None
        like = [path for path in far if is_of(lack.scheme, path)]
        return lack.explained(self.spark, (like or far)[0], handed=self.access is not None)

    def _scheme(self) -> str:
        """A scheme for this access alone: Hadoop keeps a client for each."""
        access = self.access
        said = repr([getattr(access, field.name) for field in fields(Access)])
        return f"s3a-{hashlib.blake2b(said.encode(), key=_SALT, digest_size=6).hexdigest()}"


def reach_of(spark: SparkSession, table: FormatTable, storage: Store) -> Reach:
    """How the session reads the table's files."""
    return Reach(spark, table.access() if storage == "catalog" else None)


def storage_of(plan: ScanPlan) -> Store:
    """Whose settings the plan's files are read with, as it was made; the session's if it does not say."""
    found: Store = getattr(plan, "storage", "session")
    return found


def _settings(access: Access) -> dict[str, str]:
    """What Hadoop's client for S3 is told, by its own names."""
    told: dict[str, str] = {}
    if access.endpoint is not None:
        told["endpoint"] = access.endpoint
        told["path.style.access"] = "false" if access.virtual_hosts else "true"
        told["connection.ssl.enabled"] = "false" if access.endpoint.startswith("http://") else "true"
    if access.region is not None:
        told["endpoint.region"] = access.region
    if access.anonymous:
        told["aws.credentials.provider"] = f"{PROVIDERS}AnonymousAWSCredentialsProvider"
    elif access.key is not None and access.secret is not None:
        provider = "SimpleAWSCredentialsProvider" if access.token is None else "TemporaryAWSCredentialsProvider"
        told["aws.credentials.provider"] = f"{PROVIDERS}{provider}"
        told |= {"access.key": access.key, "secret.key": access.secret}
        told |= {} if access.token is None else {"session.token": access.token}
    return told


def _is_redacted(spark: SparkSession) -> bool:
    """Whether a Connect server takes credentials out of the requests that it keeps."""
    try:
        regex = re.compile(str(spark.conf.get(REDACTION, "") or "(?!)"))
    except re.error:
        return False
    said = (f'options {{\n  key: "fs.s3a.bucket.b.{name}"\n  value: "{CLIENT}"\n}}' for name in SECRETS)
    return not any(CLIENT in regex.sub("", text) for text in said)


def _kept(store: str) -> SparkStorageError:
    return SparkStorageError(
        f"cannot hand the credentials of {shown(store)} to a Connect server: it shows requests in its UI and writes "
        "them into its event log, with all options of a reader. Give the server its own settings for the store, or "
        f"have it redact them: spark.conf.set({REDACTION!r}, {REDACTED!r}).",
        path=shown(store),
        scheme="s3a",
        package=None,
        settings=(REDACTION,),
        reason="a Connect server keeps requests",
    )


def _store(path: str) -> tuple[str, str]:
    """The scheme of a path and its authority, such as a bucket."""
    found = _SCHEME.match(path)
    return (found[1], found[2] or "") if found else ("", "")


def _with(path: str, known: dict[str, str]) -> str:
    scheme = path.partition("://")[0]
    instead = known.get(scheme.lower())
    return path if instead is None or "://" not in path else instead + path[len(scheme) :]
