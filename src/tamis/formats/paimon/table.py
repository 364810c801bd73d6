"""A Paimon table at one snapshot: its columns, and which of its files a predicate has to touch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import cast

from tamis.formats.listing import Held, Listing, Progress
from tamis.formats.paimon.buckets import placement
from tamis.formats.paimon.entries import Deleted, read_deleted
from tamis.formats.paimon.files import FileMaker, partition_spec
from tamis.formats.paimon.inspection import PaimonInspection, inspect_table
from tamis.formats.paimon.kept_vectors import KeptVectors
from tamis.formats.paimon.manifests import Manifest, Manifests, read_manifests
from tamis.formats.paimon.options import Options
from tamis.formats.paimon.pruning import KEPT, PREDICATE, who_prunes
from tamis.formats.paimon.rewriting import rewrite_terms
from tamis.formats.paimon.scan import METADATA_COLUMNS, scan_plan
from tamis.formats.paimon.schema import PaimonSchema
from tamis.formats.paimon.snapshots import Snapshot, State, read_schemas
from tamis.formats.paimon.units import THREADS, ManifestReader, manifest_units
from tamis.formats.scan import MetadataColumn, Scan
from tamis.formats.storage import Storage
from tamis.formats.storage.access import Access, access_of
from tamis.formats.storage.ordered import in_order
from tamis.predicate.schema import Schema
from tamis.rewrite.terms import RewriteTerms
from tamis.sieve.partitions import PartitionSpec
from tamis.sieve.plan import ScanPlan
from tamis.sieve.sieve import Sieve
from tamis.sieve.stats import Unread

__all__ = ["PaimonTable"]


@dataclass(frozen=True, slots=True, eq=False)
class First:
    """The metadata that is always read."""

    manifests: Manifests
    deleted: Deleted
    contents: Mapping[str, bytes]
    """The manifests that delete files, and may add some: they are not fetched again."""


@dataclass(frozen=True, slots=True)
class PaimonTable:
    """One snapshot of a Paimon table, opened."""

    name: str
    location: str
    """The table's folder."""
    state: State
    storage: Storage
    read_optimized: bool = False
    """Whether of a table with a primary key only what a full compaction has made is seen."""

    @property
    def format(self) -> str:
        """The format, and the kind of table."""
        kind = "primary-key" if self.state.schema.primary_keys else "append"
        return f"paimon ({kind} table{', read-optimized' * self.read_optimized})"

    @property
    def table_schema(self) -> PaimonSchema:
        """The schema that the table is read with."""
        return self.state.schema

    @property
    def options(self) -> Options:
        """What the table's options say."""
        return Options.of(self.state.schema)

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that is planned over; None if the table is empty and never had one."""
        return self.state.snapshot

    @property
    def schema(self) -> Schema:
        """The columns that a predicate may name."""
        return self.state.schema.columns()

    @property
    def specs(self) -> tuple[PartitionSpec, ...]:
        """How the table is partitioned: one way, which has no id."""
        return (partition_spec(self.state.schema),) if self.state.schema.partition_keys else ()

    @property
    def metadata_columns(self) -> tuple[MetadataColumn, ...]:
        """What a row may be asked about where it lies; of rows that are merged of several nothing."""
        return () if self.table_schema.primary_keys else METADATA_COLUMNS

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that is planned over."""
        return None if self.snapshot is None else self.snapshot.id

    @property
    def manifest_folder(self) -> str:
        """Where manifests and their lists are, of every branch."""
        return f"{self.location}/manifest"

    @property
    def index_manifest(self) -> str | None:
        """Where the snapshot's deletion vectors are named; None if it has none."""
        name = None if self.snapshot is None else self.snapshot.index_manifest
        return None if name is None else f"{self.manifest_folder}/{name}"

    @property
    def indices_beside_data(self) -> bool:
        """Whether index files lie beside their data files, not in a folder of their own."""
        return self.options.flag("index-file-in-data-file-dir")

    @property
    def home(self) -> str:
        """Where snapshots and schemas of the branch are."""
        return self.state.schema_path.rpartition("/schema/")[0]

    @property
    def schema_folder(self) -> str:
        """Where the schemas of the branch are."""
        return f"{self.home}/schema"

    def list(self, sieve: Sieve, held: Held | None = None) -> Listing:
        """The manifests that are left to read, once their lists have been read, and what was deleted."""
        if self.snapshot is None:
            return Listing(self.storage)
        start = perf_counter()
        first = self.first(held)
        manifests, maker = first.manifests, self.maker(sieve, held)
        buckets = placement(maker.schema, maker.schemas).of(manifests.bucket, manifests.total_buckets)
        deciders = who_prunes(sieve, maker.schema, manifests, first.deleted, buckets).tolist()
        pairs = list(zip(manifests.manifests, deciders, strict=True))
        chosen = [one for one, decider in pairs if decider == KEPT]
        units = manifest_units(chosen, whole=maker.whole_buckets)
        reader = ManifestReader(maker, first.deleted, None if held is None else held.files, first.contents)
        return Listing(
            self.storage,
            units,
            reader if units else None,
            unread=tuple(_unread(one, decider) for one, decider in pairs if decider != KEPT),
            deletes=KeptVectors(
                self.index_manifest,
                self.storage,
                self.state.schema,
                self.location,
                beside=self.indices_beside_data,
            ),
            files=max(sum(one.added for one in chosen), 0),
            size=sum(unit.size for unit in units),
            seconds=perf_counter() - start,
            threads=THREADS,
        )

    def maker(self, sieve: Sieve, held: Held | None = None) -> FileMaker:
        """Makes files with what the sieve wants to know of them."""
        level = self.level
        if not sieve.columns:
            return FileMaker(self.state.schema, level=level)
        schemas = None if held is None else held.files.get("schemas")
        if schemas is None:
            schemas = read_schemas(self.storage, self.schema_folder)
            if held is not None:
                held.files["schemas"] = schemas
        return FileMaker(self.state.schema, schemas, sieve.columns, level)

    @property
    def level(self) -> int | None:
        """The one level of files that is read; None for all."""
        return self.options.top_level if self.read_optimized and self.options.has_key else None

    def first(self, held: Held | None = None) -> First:
        """The metadata that is always read: the lists of manifests, and what manifests delete."""
        if held is not None and held.first is not None:
            return cast("First", held.first)
        assert self.snapshot is not None  # noqa: S101 - for the type checker: whoever asks has looked
        manifests = read_manifests(self.manifest_folder, self.snapshot, self.storage)
        deleting = {one.path: one.deleted for one in manifests.manifests if one.deleted}
        files = list(zip(deleting, in_order(self.storage, [*deleting], THREADS), strict=True))
        found = First(manifests, read_deleted(files, [*deleting.values()]) if files else Deleted({}), dict(files))
        if held is not None:
            held.first = found
        return found

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

    def inspect(self, progress: Progress | None = None) -> PaimonInspection:
        """Files, rows and bytes of the snapshot, its buckets and their skew, levels and merge engine."""
        return inspect_table(self, progress)


def _unread(manifest: Manifest, decider: int) -> Unread:
    return Unread(None, manifest.added, runtime_filter=None if decider == PREDICATE else decider)
