"""An Iceberg table at one snapshot: its columns, and which of its files a predicate has to touch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Final, cast

import numpy as np
import pyarrow as pa

from tamis.formats.iceberg.held import HeldFiles, ReadFiles
from tamis.formats.iceberg.inspection import IcebergInspection, inspect_table
from tamis.formats.iceberg.kept_deletes import KeptDeletes
from tamis.formats.iceberg.manifest_list import DATA, DELETES, Manifest, read_manifest_list
from tamis.formats.iceberg.manifests import THREADS, live_manifests
from tamis.formats.iceberg.metadata import Selection, Snapshot, TableMetadata
from tamis.formats.iceberg.origin import Origin
from tamis.formats.iceberg.pruning import KEPT, PREDICATE, who_prunes
from tamis.formats.iceberg.rewriting import rewrite_terms
from tamis.formats.iceberg.scan import scan_plan
from tamis.formats.iceberg.second_way import reading_notes
from tamis.formats.iceberg.units import ManifestReader, manifest_units
from tamis.formats.listing import Held, Listing, Progress
from tamis.formats.scan import MetadataColumn, Scan
from tamis.formats.storage import Fetch
from tamis.formats.storage.access import Access, access_of
from tamis.formats.storage.cache import MetadataCache
from tamis.predicate.schema import Schema
from tamis.rewrite.terms import RewriteTerms
from tamis.sieve.partitions import PartitionSpec
from tamis.sieve.plan import ScanPlan
from tamis.sieve.sieve import Sieve
from tamis.sieve.stats import Unread

__all__ = ["LINEAGE", "METADATA_COLUMNS", "ROWS_WITHOUT_IDS", "IcebergTable"]

METADATA_COLUMNS: Final = (
    MetadataColumn("_file", "path"),
    MetadataColumn("_pos", None),
    MetadataColumn("_spec_id", "spec_id"),
    MetadataColumn("_partition", "partition"),
)


LINEAGE: Final = (
    MetadataColumn("_row_id", "first_row_id", 2147483540, counted=True),
    MetadataColumn("_last_updated_sequence_number", "sequence_number", 2147483539),
)
"""What rows of version 3 keep when they are written to another file."""
ROWS_WITHOUT_IDS: Final = 2
"""The last format version in which a row is known by its place alone."""


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """One snapshot of an Iceberg table, opened."""

    name: str
    metadata: TableMetadata
    selection: Selection
    fetch: Fetch
    cache: MetadataCache | None = None
    """Where decoded manifests are kept; None to read them anew each time."""
    origin: Origin | None = None
    """Where it was opened from, for commits; None if nobody knows."""
    ref: str | None = None
    """The branch or tag that it was opened at, if it was asked for by name."""

    @property
    def format(self) -> str:
        """The format and its version, as people name it."""
        return f"iceberg v{self.metadata.format_version}"

    @property
    def location(self) -> str:
        """The folder that the metadata names as the table's own."""
        return self.metadata.location

    @property
    def schema(self) -> Schema:
        """The columns that a predicate may name."""
        return self.selection.schema.columns(self.metadata.schemas)

    @property
    def specs(self) -> tuple[PartitionSpec, ...]:
        """Every partition spec that the table has had."""
        return tuple(layout.spec for layout in self.metadata.specs)

    @property
    def metadata_columns(self) -> tuple[MetadataColumn, ...]:
        """As Iceberg's own readers call them."""
        return METADATA_COLUMNS + (LINEAGE if self.metadata.format_version > ROWS_WITHOUT_IDS else ())

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that is planned over; None if the table is empty and never had one."""
        return None if self.selection.snapshot is None else self.selection.snapshot.id

    def list(self, sieve: Sieve, held: Held | None = None) -> Listing:
        """The manifests that are left to read, once the manifest list has been judged."""
        if self.selection.snapshot is None:
            return Listing(self.fetch)
        start = perf_counter()
        listed = self._manifests(self.selection.snapshot, held)
        data, deletes = live_manifests(listed, DATA), live_manifests(listed, DELETES)
        for spec_id in {manifest.spec_id for manifest in deletes}:
            self.metadata.layout(spec_id)  # UnknownSpecError now, not when deletes are read
        deciders = who_prunes(sieve, self.metadata, data)
        numbers = [number for number, decider in enumerate(deciders) if decider == KEPT]
        unread = [
            _unread(manifest, decider) for manifest, decider in zip(data, deciders, strict=True) if decider != KEPT
        ]
        took = perf_counter() - start
        chosen = [data[number] for number in numbers]
        wanted = _wanted(sieve)
        return Listing(
            self.fetch,
            manifest_units(chosen),
            ManifestReader.of(self.metadata, wanted, chosen, self.cache, _held_files(held, wanted, numbers)),
            unread=tuple(unread),
            deletes=KeptDeletes(self.metadata, tuple(deletes), self.fetch, sieve),
            files=sum(manifest.live_files or 0 for manifest in chosen),
            size=sum(manifest.length or 0 for manifest in chosen),
            seconds=took,
            threads=THREADS,
            notes=partial(
                reading_notes,
                self.selection.schema,
                self.metadata.schemas,
                self.metadata.name_mapping,
            ),
        )

    @property
    def rewrite_terms(self) -> RewriteTerms:
        """What a rewrite has to know of the table."""
        return rewrite_terms(self.metadata)

    def access(self) -> Access:
        """Where the table's store is and who enters it, as it was opened."""
        return access_of(self.fetch)

    def scan(self, plan: ScanPlan) -> Scan:
        """The files that the plan keeps, as a reader needs them."""
        return scan_plan(self, plan)

    def inspect(self, progress: Progress | None = None) -> IcebergInspection:
        """Files, rows, bytes, deletes and small files of the snapshot, by spec."""
        return inspect_table(self.name, self.metadata, self.selection, self.fetch, progress)

    def _manifests(self, snapshot: Snapshot, held: Held | None) -> Sequence[Manifest]:
        if held is None:
            return read_manifest_list(snapshot, self.fetch)
        if held.first is None:
            held.first = read_manifest_list(snapshot, self.fetch)
        return cast("Sequence[Manifest]", held.first)


def _wanted(sieve: Sieve) -> dict[int, pa.DataType]:
    """The columns whose statistics are needed."""
    return {column.id: column.type for column in sieve.columns if isinstance(column.id, int)}


def _held_files(held: Held | None, wanted: Mapping[int, pa.DataType], numbers: Sequence[int]) -> HeldFiles | None:
    if held is None:
        return None
    read = held.files.setdefault(frozenset(wanted.items()), ReadFiles())
    return HeldFiles(read, np.array(numbers, np.int32))


def _unread(manifest: Manifest, decider: int) -> Unread:
    runtime_filter = None if decider == PREDICATE else decider
    return Unread(manifest.spec_id, manifest.live_files or 0, runtime_filter=runtime_filter)
