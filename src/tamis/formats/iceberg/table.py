"""An Iceberg table at one snapshot: its columns, and which of its files a predicate has to touch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

import numpy as np
import pyarrow as pa

from tamis.formats.iceberg.cache import ManifestCache
from tamis.formats.iceberg.deletes import DeleteIndex
from tamis.formats.iceberg.inspection import Inspection, inspect_table
from tamis.formats.iceberg.manifest_list import DATA, DELETES, Manifest, read_manifest_list
from tamis.formats.iceberg.manifests import live_manifests, read_data_files, read_delete_files
from tamis.formats.iceberg.metadata import Selection, TableMetadata
from tamis.formats.iceberg.pruning import KEPT, PREDICATE, may_match, who_prunes
from tamis.formats.iceberg.reading import Fetch
from tamis.formats.iceberg.scan import scan_plan
from tamis.formats.iceberg.spread import ManifestReader, manifest_units
from tamis.formats.scan import Scan
from tamis.formats.spread import Progress, Spread, whole
from tamis.predicate.schema import Schema
from tamis.sieve.files import FileBatch
from tamis.sieve.funnel import sift
from tamis.sieve.outcome import Outcome, Sieve
from tamis.sieve.partitions import PartitionSpec
from tamis.sieve.plan import ScanPlan, Unread

__all__ = ["IcebergTable"]


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """One snapshot of an Iceberg table, opened."""

    name: str
    metadata: TableMetadata
    selection: Selection
    fetch: Fetch
    cache: ManifestCache | None = None
    """Where decoded manifests are kept; None to read them anew each time."""

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
        return self.selection.schema.columns()

    @property
    def specs(self) -> tuple[PartitionSpec, ...]:
        """Every partition spec that the table has had."""
        return tuple(layout.spec for layout in self.metadata.specs)

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that is planned over; None if the table is empty and never had one."""
        return None if self.selection.snapshot is None else self.selection.snapshot.id

    def sift(self, sieve: Sieve, progress: Progress | None = None) -> ScanPlan:
        """Pass the table's files through the funnel, manifests first."""
        return self.spread(sieve).locally(progress)

    def spread(self, sieve: Sieve) -> Spread:
        """The manifests that are left to read, once the manifest list has been judged."""
        if self.selection.snapshot is None:
            return Spread(lambda _: sift(sieve, ()), whole)
        start = perf_counter()
        listed = read_manifest_list(self.selection.snapshot, self.fetch)
        data = live_manifests(listed, DATA)
        deciders = who_prunes(sieve, self.metadata, data)
        kept = [decider == KEPT for decider in deciders]
        unread = [_unread(one, decider) for one, decider in zip(data, deciders, strict=True) if decider != KEPT]
        took = perf_counter() - start
        chosen = [one for one, keep in zip(data, kept, strict=True) if keep]

        def finish(plan: ScanPlan) -> ScanPlan:
            return self._with_deletes(sieve, plan, live_manifests(listed, DELETES))

        def locally(progress: Progress | None) -> ScanPlan:
            batches = _told(self._batches(sieve, chosen), chosen, progress)
            return finish(sift(sieve, batches, unread=unread, manifest_seconds=took))

        return Spread(
            locally,
            finish,
            partial(manifest_units, chosen),
            ManifestReader.of(self.metadata, _wanted(sieve)),
            files=sum(one.live_files or 0 for one in chosen),
            size=sum(one.length or 0 for one in chosen),
            unread=tuple(unread),
            seconds=took,
        )

    def scan(self, plan: ScanPlan) -> Scan:
        """The files that the plan keeps, as a reader needs them."""
        return scan_plan(self, plan)

    def inspect(self, progress: Progress | None = None) -> Inspection:
        """Files, rows, bytes, deletes and small files of the snapshot, by spec."""
        return inspect_table(self.name, self.metadata, self.selection, self.fetch, progress)

    def delete_index(self, manifests: Sequence[Manifest]) -> DeleteIndex:
        """The live deletes of these manifests."""
        return DeleteIndex(self.metadata, read_delete_files(self.metadata, manifests, self.fetch, {}))

    def _batches(self, sieve: Sieve, manifests: Sequence[Manifest]) -> Iterator[FileBatch]:
        return read_data_files(self.metadata, manifests, self.fetch, _wanted(sieve), cache=self.cache)

    def _with_deletes(self, sieve: Sieve, plan: ScanPlan, manifests: list[Manifest]) -> ScanPlan:
        """The plan, with the deletes of each kept file; deletes of partitions that cannot match are not read."""
        if not manifests or not plan.stats.kept:
            return replace(plan, outcomes=tuple(map(_without_deletes, plan.outcomes)))
        kept = may_match(sieve, self.metadata, manifests)
        index = self.delete_index([one for one, keep in zip(manifests, kept, strict=True) if keep])
        return replace(plan, outcomes=tuple(_counted(outcome, index) for outcome in plan.outcomes))


def _wanted(sieve: Sieve) -> dict[int, pa.DataType]:
    """The columns whose statistics are needed."""
    columns = [*sieve.predicate.columns, *(c for runtime in sieve.runtime_filters for c in runtime.columns)]
    return {column.id: column.type for column in columns if isinstance(column.id, int)}


def _unread(manifest: Manifest, decider: int) -> Unread:
    runtime_filter = None if decider == PREDICATE else decider
    return Unread(manifest.spec_id, manifest.live_files or 0, runtime_filter=runtime_filter)


def _without_deletes(outcome: Outcome) -> Outcome:
    none = pa.array(np.zeros(len(outcome.batch), np.int32))
    return replace(outcome, batch=replace(outcome.batch, deletes=none))


def _counted(outcome: Outcome, index: DeleteIndex) -> Outcome:
    rows = np.flatnonzero(outcome.kept)
    counts = np.zeros(len(outcome.batch), np.int32)
    counts[rows] = index.count(outcome.batch, rows)
    return replace(outcome, batch=replace(outcome.batch, deletes=pa.array(counts)))


def _told(
    batches: Iterable[FileBatch], manifests: Sequence[Manifest], progress: Progress | None
) -> Iterator[FileBatch]:
    """The batches, with whoever watches told how far they have come."""
    total = sum(one.live_files or 0 for one in manifests)
    done = 0
    for batch in batches:
        done += len(batch)
        if progress is not None:
            progress(done, max(done, total))
        yield batch
