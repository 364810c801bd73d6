"""A Delta table at one version: its columns, and which of its files a predicate has to touch."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter

from tamis.formats.delta.files import FileMaker
from tamis.formats.delta.generated import partition_spec
from tamis.formats.delta.inspection import DeltaInspection, inspect_table
from tamis.formats.delta.log import Log
from tamis.formats.delta.partition_values import is_zoned
from tamis.formats.delta.rewriting import rewrite_terms
from tamis.formats.delta.scan import METADATA_COLUMNS, scan_plan
from tamis.formats.delta.snapshot import THREADS, Snapshot
from tamis.formats.delta.stored import Keeper
from tamis.formats.delta.units import HeldChunks, LogReader, checkpoint_units
from tamis.formats.listing import Held, Listing, Progress, Unit
from tamis.formats.scan import MetadataColumn, Scan
from tamis.formats.storage import Storage
from tamis.formats.storage.access import Access, access_of
from tamis.formats.storage.cache import MetadataCache
from tamis.predicate.schema import Schema
from tamis.rewrite.terms import RewriteTerms
from tamis.sieve.partitions import PartitionSpec
from tamis.sieve.plan import ScanPlan
from tamis.sieve.sieve import Sieve

__all__ = ["DeltaTable"]


@dataclass(frozen=True, slots=True)
class DeltaTable:
    """One version of a Delta table, opened."""

    name: str
    location: str
    """The table's folder."""
    log: Log
    snapshot: Snapshot
    storage: Storage
    cache: MetadataCache | None = None
    """What was decoded of checkpoints by other processes; None if nothing is to be kept."""
    held: HeldChunks = field(default_factory=HeldChunks, repr=False, compare=False)
    """What plans over this version have decoded."""

    @property
    def format(self) -> str:
        """The format and its version, as people name it."""
        protocol = self.snapshot.protocol
        return f"delta (reader version {protocol.reader}, writer version {protocol.writer})"

    @property
    def schema(self) -> Schema:
        """The columns that a predicate may name."""
        return self.snapshot.schema.columns()

    @property
    def specs(self) -> tuple[PartitionSpec, ...]:
        """How the table is partitioned: one way, which has no id."""
        return (
            (partition_spec(self.snapshot.schema, spec_id=None).spec,)
            if self.snapshot.schema.partition_fields
            else ()
        )

    @property
    def metadata_columns(self) -> tuple[MetadataColumn, ...]:
        """What a row may be asked about where it lies."""
        return METADATA_COLUMNS

    @property
    def snapshot_id(self) -> int | None:
        """The version that is planned over."""
        return self.snapshot.version

    def list(self, sieve: Sieve, held: Held | None = None) -> Listing:
        """The checkpoint's files that are left to read, and the commits after it, which have been.

        What a plan over this table has read is not read again, unless it was read in the time zone of a session.
        """
        start = perf_counter()
        snapshot, tail = self.snapshot, self.snapshot.tail
        zoned = any(map(is_zoned, snapshot.schema.partition_fields))
        maker = FileMaker(snapshot.schema, sieve.columns, sieve.zone if zoned else None)
        units = checkpoint_units(snapshot)
        threads = min(THREADS, 4) if len(units) > 1 else 1
        cache, chunks = self.cache, self.held
        if maker.zone is not None:  # whose rules are the session's: what it was asked holds for this job alone
            cache, chunks = None, HeldChunks() if held is None else held.files.setdefault("chunks", HeldChunks())
        keeper = None if cache is None else Keeper(cache, self.storage, snapshot.metadata.id, maker)
        if len(tail.adds):
            commits = snapshot.segment.commits
            locations = tuple(one.location for one in commits)
            units = (*units, Unit(locations, sum(one.size for one in commits), "commits"))
        return Listing(
            self.storage,
            units,
            LogReader(maker, tail.touched, tail, chunks, keeper) if units else None,
            files=snapshot.checkpoint_files + len(tail.adds),
            size=sum(unit.size for unit in units),
            seconds=perf_counter() - start,
            threads=threads,
        )

    @property
    def rewrite_terms(self) -> RewriteTerms:
        """What a rewrite has to know of the table."""
        return rewrite_terms(self)

    def access(self) -> Access:
        """Where the table's store is and who enters it, as it was opened."""
        return access_of(self.storage)

    def scan(self, plan: ScanPlan) -> Scan:
        """The files that the plan keeps, as a reader needs them."""
        return scan_plan(self, plan)

    def inspect(self, progress: Progress | None = None) -> DeltaInspection:
        """Files, rows, bytes, vectors and small files of the version, and what its log is made of."""
        return inspect_table(self, progress)
