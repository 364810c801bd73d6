"""What a table's options say of how it is to be read, as Paimon's own readers take them.

Law: an option that changes which rows a plain read shows is obeyed, or the table is refused by its name; it is never
passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast

from tamis.errors import UnsupportedFormatError
from tamis.formats.errors import shown, unreadable
from tamis.formats.paimon.schema import PaimonSchema

__all__ = ["POSTPONE", "BucketMode", "MergeEngine", "Options"]

MergeEngine = Literal["deduplicate", "partial-update", "aggregation", "first-row"]
BucketMode = Literal["fixed", "dynamic", "unaware", "postpone"]
_ENGINES: Final = ("deduplicate", "partial-update", "aggregation", "first-row")
TRIGGER: Final = "5"
"""How many sorted runs a writer compacts, where the table does not say; there is one level more."""
POSTPONE: Final = -2
"""The bucket of rows that no reader sees until a compaction has placed them; and the option that makes it."""
_TABLES: Final = frozenset({"table", "materialized-table"})
_REFUSED: Final = {
    "data-evolution.enabled": "data evolution",
    "chain-table.enabled": "chain tables",
    "query-auth.enabled": "row filters of a REST catalog",
}
"""Switches: what a plain read of such a table shows is more than its live files."""
_REFUSED_IF_SET: Final = {
    "scan.fallback-branch": "a fallback branch",
    "scan.fallback-snapshot-branch": "a fallback branch",
    "scan.fallback-delta-branch": "a fallback branch",
    "scan.primary-branch": "a primary branch",
    "scan.snapshot-id": "a snapshot in its options",
    "scan.tag-name": "a tag in its options",
    "scan.version": "a version in its options",
    "scan.timestamp": "a timestamp in its options",
    "scan.timestamp-millis": "a timestamp in its options",
    "log.scan.timestamp-millis": "a timestamp in its options",
    "scan.creation-time-millis": "a timestamp in its options",
    "scan.file-creation-time-millis": "a timestamp in its options",
    "scan.watermark": "a watermark in its options",
    "incremental-between": "an incremental scan in its options",
    "incremental-between-timestamp": "an incremental scan in its options",
    "incremental-to-auto-tag": "an incremental scan in its options",
    "blob-field": "blobs",
}
_SWITCHES: Final = (
    *_REFUSED,
    *("deletion-vectors.enabled", "deletion-vectors.merge-on-read", "index-file-in-data-file-dir"),
    *("partition.legacy-name", "ignore-delete"),
)
"""Those on which rows, or where they are found, depend: true or false, in letters of any case."""
_MOST_DIGITS: Final = 10
_WHOLE: Final = frozenset({"default", "latest", "latest-full", "full"})


@dataclass(frozen=True, slots=True)
class Options:
    """A schema's options, asked for what they mean."""

    values: Mapping[str, str]
    has_key: bool
    """Whether the table has a primary key."""

    @classmethod
    def of(cls, schema: PaimonSchema) -> Options:
        """The options of a schema."""
        return cls(schema.options, bool(schema.primary_keys))

    def flag(self, name: str) -> bool:
        """Whether a switch is on; switches are off by default."""
        return self.values.get(name, "").strip().lower() == "true"

    @property
    def bucket(self) -> int:
        """The number of buckets that new files get, -1 or -2 for none that a hash chooses."""
        said = self.values.get("bucket", "-1").strip()
        digits = said.removeprefix("-")
        return int(said) if digits.isdecimal() and digits.isascii() and len(digits) <= _MOST_DIGITS else -1

    @property
    def bucket_mode(self) -> BucketMode:
        """How rows find their bucket."""
        if self.bucket == POSTPONE:
            return "postpone"
        if self.bucket > 0:
            return "fixed"
        return "dynamic" if self.has_key else "unaware"

    @property
    def merge_engine(self) -> MergeEngine | None:
        """How versions of a row become one; None without a primary key."""
        if not self.has_key:
            return None
        said = self.values.get("merge-engine", "deduplicate").strip().lower()
        return cast("MergeEngine", said)

    @property
    def vectors(self) -> bool:
        """Whether writers delete rows by deletion vectors."""
        return self.flag("deletion-vectors.enabled")

    @property
    def skips_level_0(self) -> bool:
        """Whether a batch read passes over files of level 0, which no compaction has looked at yet.

        So Java reads tables with deletion vectors, unless they are merged on read, and those of the first-row engine.
        """
        if not self.has_key:
            return False
        if self.merge_engine == "first-row":
            return True
        return self.vectors and not self.flag("deletion-vectors.merge-on-read")

    @property
    def top_level(self) -> int:
        """The level of files that a full compaction has made: each row is there once, and nothing above it.

        ValueError if the options have no number where one belongs.
        """
        runs = int(self.values.get("num-sorted-run.compaction-trigger", TRIGGER).strip())
        return int(self.values.get("num-levels", runs + 1)) - 1

    @property
    def default_partition(self) -> str:
        """The name of a folder whose partition value is NULL, or blank."""
        return self.values.get("partition.default-name", "__DEFAULT_PARTITION__")

    @property
    def legacy_names(self) -> bool:
        """Whether folders name partition values as Java prints them inside: a date by its number of days."""
        return self.values.get("partition.legacy-name", "true").strip().lower() != "false"

    @property
    def data_folder(self) -> str:
        """The folder below the table's that data lies in; empty for the table's own."""
        return self.values.get("data-file.path-directory", "").strip("/")

    def check(self, table: str, path: str) -> None:
        """UnsupportedFormatError that names what this version does not read."""
        kind = self.values.get("type", "table").strip().lower()
        if kind not in _TABLES:
            raise _unsupported(table, f"a table of type {kind}", f"type={kind}")
        for name in _SWITCHES:
            if (switch := self.values.get(name, "").strip().lower()) not in {"", "true", "false"}:
                reason = f"its option {name} is {switch!r}, which is neither true nor false"
                raise unreadable(path, reason, place=f"options.{name}")
        for name, what in _REFUSED.items():
            if self.flag(name):
                raise _unsupported(table, f"a table with {what} ({name})", name)
        for name, what in _REFUSED_IF_SET.items():
            if self.values.get(name, "").strip():
                raise _unsupported(table, f"a table with {what} ({name})", name)
        mode = self.values.get("scan.mode", self.values.get("log.scan", "default")).strip().lower()
        if mode not in _WHOLE:
            raise _unsupported(table, f"a table with scan.mode={mode} in its options", "scan.mode")
        if self.values.get("batch-scan-mode", "none").strip().lower() != "none":
            raise _unsupported(table, "a table with batch-scan-mode in its options", "batch-scan-mode")
        if self.merge_engine is not None and self.merge_engine not in _ENGINES:
            raise _unsupported(table, f"a table with merge-engine={self.merge_engine}", "merge-engine")
        said = self.values.get("bucket", "-1").strip()
        if str(self.bucket) != said.removeprefix("+"):
            raise unreadable(path, f"its option bucket is {said!r}, which is no number", place="options.bucket")


def _unsupported(table: str, what: str, feature: str) -> UnsupportedFormatError:
    return UnsupportedFormatError(
        f"cannot read {shown(table)}: it is {what}, which this version of tamis does not read. Read it with the "
        "engine that wrote it.",
        path=shown(table),
        feature=feature,
    )
