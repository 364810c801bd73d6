"""What a job hands to a format to change a table, and what a table that can be changed gives.

A job writes files first and names them in an `Edit` last. Until `commit` has published it, no reader sees anything of
it. Law: a commit happens whole or not at all, and says which: it returns, or it raises CommitConflict or
CommitRefused (nothing has happened), or CommitStateUnknown (nobody here knows: nothing may be removed).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import pyarrow as pa

from tamis.predicate.arrays import Int64s, Mask
from tamis.sieve.files import FileBatch
from tamis.sieve.outcome import Outcome
from tamis.sieve.plan import DeleteCounts, ScanPlan
from tamis.sieve.sieve import Sieve
from tamis.sieve.transforms import Transform

if TYPE_CHECKING:
    from tamis.formats import FormatTable

__all__ = [
    "DATA_FILE",
    "NULL_IN_REQUIRED",
    "POSITION_DELETES",
    "Cluster",
    "Committed",
    "DeleteStage",
    "Edit",
    "Evolution",
    "Isolation",
    "Marked",
    "Mode",
    "NewDeletes",
    "NewFile",
    "Operation",
    "Planned",
    "Retries",
    "Stage",
    "WritableTable",
    "WriteField",
    "new_snapshot_id",
]

NULL_IN_REQUIRED: Final = "tamis: NULL in the required column "
"""How a task's error begins that met one; the column's name follows, in quotes."""
DATA_FILE: Final = 0
POSITION_DELETES: Final = 1
"""What a file holds: rows of the table, or places of rows that are gone."""
Operation = Literal["append", "overwrite", "delete", "replace"]
Isolation = Literal["serializable", "snapshot"]
"""What a job that read the table must not have missed: any change of what it read, or only changes of its files."""
Distribution = Literal["none", "hash", "range"]
_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that a job has written, and all that the table's metadata will say of it.

    Partition values are plain: dates and times as counts of days and microseconds. Bounds are in the format's own
    encoding. Columns are named by their ids.
    """

    path: str
    size: int
    rows: int
    spec_id: int | None
    """The spec that its partition values are of; None, of writers that knew but one, is spec 0."""
    partition: tuple[object, ...] = ()
    column_sizes: Mapping[int, int] = field(default_factory=dict)
    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_counts: Mapping[int, int] = field(default_factory=dict)
    nan_counts: Mapping[int, int] = field(default_factory=dict)
    lower: Mapping[int, bytes] = field(default_factory=dict)
    upper: Mapping[int, bytes] = field(default_factory=dict)
    split_offsets: tuple[int, ...] = ()
    sort_order_id: int | None = None
    content: int = DATA_FILE
    """DATA_FILE, or POSITION_DELETES: a file of places, or a vector of them that stands in a file."""
    file_format: str = "PARQUET"
    referenced: str | None = None
    """The one data file that these deletes are of; None if they are of several, or this is data."""
    content_offset: int | None = None
    content_size: int | None = None
    """Where a vector begins in its file, and how long it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """Files of the table as a plan has found them, of one spec: some of a batch that was judged."""

    batch: FileBatch
    rows: Int64s
    """Which of the batch."""
    sources: Mapping[int, str] = field(default_factory=dict)
    """The metadata files in which they stand, by the number that the batch has for each."""

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> pa.Array:
        """A column of these files alone: one of the batch, or of what it carries along."""
        array = self.batch.extra[name] if name in self.batch.extra else getattr(self.batch, name)
        return array.take(pa.array(self.rows))


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of a table: files that come, files that go, and what the change rests on."""

    operation: Operation
    base: int | None
    """The snapshot that the job planned with; None if the table had none."""
    schema_id: int
    """The schema that the new files were written with."""
    snapshot_id: int
    """The id of the snapshot to make, the same for every try: a try that was taken for lost can be recognised."""
    added: tuple[NewFile, ...] = ()
    removed: tuple[Planned, ...] = ()
    """Data files that leave the table, and with them whatever deletes rows of them alone."""
    deletes: tuple[NewFile, ...] = ()
    """Files of deletes that come."""
    referenced: tuple[Planned, ...] = ()
    """Data files that these deletes point at: they must still be there."""
    replaced: frozenset[tuple[str, int | None]] = frozenset()
    """Deletes that leave since the new ones say the same and more: the path, and where a vector begins in it."""
    read: Sieve | None = None
    """The condition whose rows the job read; None if it read nothing, as an append."""
    isolation: Isolation = "serializable"
    branch: str = "main"
    properties: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """What the snapshot's summary says beside the format's own counts."""
    moved: bool = False
    """The rows that the deletes take come back changed, in the files that are added: nobody may have deleted them
    meanwhile, or they would be there again."""


@dataclass(frozen=True, slots=True)
class WriteField:
    """A column of the table, or a part of one, as files hold it."""

    id: int
    name: str
    type: pa.DataType
    required: bool = False
    children: tuple[WriteField, ...] = ()
    """The fields of a struct, the element of a list, the key and the value of a map."""
    default: pa.Scalar | None = None
    """What rows get that do not have the column; None for NULL."""
    described: str = ""
    """A type that has no Arrow type, as the metadata spells it."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A value by which rows are brought together: a column, by its path, through a transform."""

    path: tuple[str, ...]
    transform: Transform
    source: pa.DataType
    descending: bool = False
    nulls_last: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """How rows become files of the table: what they look like, how they are spread, and who writes them.

    It goes to executors: it holds no credentials and nothing that cannot be pickled.
    """

    table: str
    fields: tuple[WriteField, ...]
    partition: tuple[Cluster, ...]
    """What tells partitions apart; a file holds rows of one partition."""
    sort: tuple[Cluster, ...]
    """By what rows of one partition are ordered."""
    distribution: Distribution
    task_bytes: int
    """About how many bytes a task should get of Spark's shuffle."""
    write: Callable[[Iterable[pa.RecordBatch], str], Iterator[NewFile]]
    """Batches of the columns, then of the partition values, to files; the text is a part of every file's name."""
    discard: Callable[[str], None]
    """Remove the files with that text in their names, of tasks whose job has failed; as far as they can be listed."""


Mode = Literal["copy-on-write", "merge-on-read"]
"""Whether files that lose rows are written again without them, or deletes are written beside them."""


@dataclass(frozen=True, slots=True)
class Marked:
    """Rows of data files that a task has found to be deleted."""

    paths: tuple[str, ...]
    rows: int
    file: NewFile | None = None
    """The file of deletes that it has written; None if a bitmap goes into one that the driver writes."""
    bitmap: bytes = b""


@dataclass(frozen=True, slots=True)
class NewDeletes:
    """Deletes that are ready to be committed."""

    files: tuple[NewFile, ...]
    replaced: frozenset[tuple[str, int | None]] = frozenset()
    """Deletes of which the new ones say the same and more."""


@dataclass(frozen=True, slots=True)
class DeleteStage:
    """How places of rows become deletes of the table; write goes to executors, finish does not."""

    table: str
    task_bytes: int
    write: Callable[[Iterable[pa.RecordBatch], str], Iterator[Marked]]
    """Batches of (path, place), rows of a file together, to what a task has to tell."""
    discard: Callable[[str], None]
    finish: Callable[[Sequence[Marked], str], NewDeletes]
    """What the tasks have told to deletes, merged with those that were there."""
    whole: frozenset[str] = frozenset()
    """Data files whose new deletes must name every row that is gone, also those that were gone before by deletes of
    another kind: what is told of them are the places of the rows that stay."""


@dataclass(frozen=True, slots=True)
class Evolution:
    """A change of how new files are partitioned: fields as Spark's DDL writes them, or by their names."""

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    replace: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Retries:
    """How often, and how patiently, a lost race is run again."""

    most: int = 4
    min_wait_ms: int = 100
    max_wait_ms: int = 60_000
    total_ms: int = 1_800_000


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that has happened: the table as it is now."""

    table: FormatTable
    snapshot_id: int


def new_snapshot_id() -> int:
    """A random id, positive and of less than 63 bits, as Iceberg's own writers choose them."""
    return secrets.randbits(62) + 1


class WritableTable(Protocol):
    """The newest state of a table, and the one way to change it."""

    @property
    def name(self) -> str:
        """The name that it was opened by."""

    @property
    def schema_id(self) -> int:
        """The schema that new files are written with."""

    @property
    def retries(self) -> Retries:
        """What the table says of lost races."""

    @property
    def branch(self) -> str:
        """The branch to change if none is named: the one that it was opened at, if any."""

    @property
    def audits(self) -> bool:
        """Whether a session may have what is written here audited before it is published."""

    def head(self, branch: str) -> int | None:
        """The snapshot at the head of the branch; None if there is none yet. CommitRefused for no such branch."""

    def mode(self, command: str) -> Mode:
        """How the table wants rows of a command ("delete", "update", "merge") to go."""

    def isolation(self, command: str) -> Isolation:
        """What the table says of changes that come while a command runs."""

    @property
    def lineage(self) -> tuple[str, ...]:
        """The metadata columns of a row that it keeps when it is written to another file."""

    def stage_deletes(self, files: Sequence[Planned], deletes: DeleteCounts | None) -> DeleteStage:
        """How rows of these data files, which are a plan's with those deletes, are marked as gone.

        CommitRefused if the table cannot have such deletes.
        """

    def stage(self, *, moved: bool = False) -> Stage:
        """How new rows are to be written; or, moved, rows of the table, with their lineage behind their columns.

        CommitRefused if the table needs what tamis cannot write.
        """

    def commit(self, edit: Edit) -> Committed:
        """Try once: check what has happened since, write metadata, publish.

        CommitConflict if the race is lost or the table has changed so that the edit no longer fits: retryable says
        which. Files of the edit itself stay; metadata files that this try wrote are removed unless the outcome is
        unknown.
        """

    def evolve(self, wanted: Evolution) -> tuple[FormatTable, int, bool]:
        """Try once to change how new files are partitioned: the table, its spec, and whether that has changed."""

    def evolution(self, wanted: Evolution) -> tuple[FormatTable, int, bool]:
        """What evolve would make of the table as it is now: nothing is changed."""

    def newest(self) -> WritableTable:
        """The table as it is now, read anew."""

    def table(self, branch: str = "main") -> FormatTable:
        """This state of the branch, to be planned over."""

    def planned(self, source: FormatTable, plan: ScanPlan, chosen: Callable[[Outcome], Mask]) -> tuple[Planned, ...]:
        """The files that are chosen of each outcome of a plan of that table."""

    def remove(self, paths: Sequence[str]) -> None:
        """Delete files that nobody refers to; what cannot be deleted is left."""
