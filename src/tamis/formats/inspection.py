"""What one state of a table is made of, in numbers: the same facts for every format, and what a format adds to them.

Facts of the metadata alone; no data file is opened. What a writer left out is not counted. A format that has more to
tell derives a value of its own from `Inspection`: its fields are in the document, and its `facts` in the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

__all__ = [
    "DELETE_KINDS",
    "ColumnInspection",
    "DeleteKind",
    "Deletes",
    "Fact",
    "Inspection",
    "SnapshotInspection",
    "SpecField",
    "SpecInspection",
]

DeleteKind = Literal["position", "equality", "vectors"]
DELETE_KINDS: Final[tuple[DeleteKind, ...]] = ("position", "equality", "vectors")


@dataclass(frozen=True, slots=True)
class SpecField:
    """One field of a partition spec."""

    name: str
    transform: str
    source: str | None
    """The column's name: today's, or its last one if it was dropped; None if no schema knows it."""
    dropped: bool = False
    """Whether the column is gone from the schema."""

    def __str__(self) -> str:
        source = self.source or "?"
        return source if self.transform == "identity" else f"{self.transform}({source})"


@dataclass(frozen=True, slots=True)
class Deletes:
    """Live delete files and deletion vectors, and the rows that they list."""

    position: int = 0
    equality: int = 0
    vectors: int = 0
    rows: int = 0
    """Positions and keys listed; one may be listed twice, and a key may delete any number of rows."""
    bytes: int = 0

    @property
    def files(self) -> int:
        """How many of any kind."""
        return self.position + self.equality + self.vectors

    def __add__(self, other: Deletes) -> Deletes:
        return Deletes(
            self.position + other.position,
            self.equality + other.equality,
            self.vectors + other.vectors,
            self.rows + other.rows,
            self.bytes + other.bytes,
        )


@dataclass(frozen=True, slots=True)
class SpecInspection:
    """The live files of one spec."""

    spec_id: int | None
    """None if the format has no ids: then the table has one way to be partitioned."""
    current: bool
    """Whether new files are written with it."""
    fields: tuple[SpecField, ...]
    files: int = 0
    rows: int = 0
    bytes: int = 0
    small_files: int = 0
    deletes: Deletes = Deletes()

    @property
    def average_bytes(self) -> int | None:
        """Of a data file; None if there is none."""
        return self.bytes // self.files if self.files else None


@dataclass(frozen=True, slots=True)
class ColumnInspection:
    """One column of the schema."""

    name: str
    type: str
    """As Spark's SQL names it."""


@dataclass(frozen=True, slots=True)
class SnapshotInspection:
    """One snapshot of the history, as its summary tells."""

    id: int
    made_ms: int
    operation: str | None
    added_files: int | None
    removed_files: int | None
    refs: tuple[str, ...]
    """The branches and tags that point at it."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact of the format's own, ready to be shown."""

    label: str
    text: str
    after: str
    """The label of the fact that it follows: one of those that every format has."""
    bytes: int | None = None
    """A size that belongs to it, shown behind the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """One state of a table, in numbers."""

    table: str
    format: str
    location: str
    snapshot_id: int | None
    snapshot_ms: int | None
    operation: str | None
    """What made the snapshot, in the format's words, such as append or overwrite."""
    columns: int
    target_file_size: int | None
    """Bytes that writers aim at; None if the table has no aim."""
    small_below: int | None
    """Bytes: files smaller than this are counted as small."""
    specs: tuple[SpecInspection, ...]
    """One for each partition spec; a single one where the format knows no more."""
    properties: Mapping[str, str]
    schema: tuple[ColumnInspection, ...] = ()
    history: tuple[SnapshotInspection, ...] = ()
    """All snapshots, the newest first."""

    @property
    def facts(self) -> tuple[Fact, ...]:
        """What the format adds."""
        return ()

    @property
    def delete_kinds(self) -> tuple[DeleteKind, ...]:
        """The kinds of deletes that the format has."""
        return DELETE_KINDS

    @property
    def total(self) -> SpecInspection:
        """All specs together, as if they were one."""
        return SpecInspection(
            None,
            current=False,
            fields=(),
            files=sum(spec.files for spec in self.specs),
            rows=sum(spec.rows for spec in self.specs),
            bytes=sum(spec.bytes for spec in self.specs),
            small_files=sum(spec.small_files for spec in self.specs),
            deletes=sum((spec.deletes for spec in self.specs), Deletes()),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dicts, numbers and strings, ready for JSON: all fields, the format's own among them."""
        total = self.total
        document = asdict(self)
        document["properties"] = dict(self.properties)
        # Many readers of JSON keep numbers as doubles, which round an id of 19 digits.
        document["snapshot"] = None if self.snapshot_id is None else str(self.snapshot_id)
        for entry, made in zip(document["history"], self.history, strict=True):
            entry["snapshot"] = str(made.id)
        document["total"] = {
            "files": total.files,
            "rows": total.rows,
            "bytes": total.bytes,
            "average_bytes": total.average_bytes,
            "small_files": total.small_files,
            "deletes": asdict(total.deletes),
        }
        for entry, spec in zip(document["specs"], self.specs, strict=True):
            entry["average_bytes"] = spec.average_bytes
        return document
