"""What a funnel leaves: the files to read, a verdict with its reason for every file, and the counts.

A plan is a frozen value: nothing has run, nothing will change in it. Its tables are made when they are asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import MissingDependency
from tamis.sieve.filterstats import RuntimeFilterStats
from tamis.sieve.kept import KeptBecause, NotUsed
from tamis.sieve.order import Mask
from tamis.sieve.outcome import Outcome, Sieve
from tamis.sieve.partitions import FilterStats, PartitionSpec
from tamis.sieve.reasons import partition_texts, reasons

__all__ = [
    "KeptBecause",
    "LayerStats",
    "NotUsed",
    "PlanStats",
    "RuntimeFilterStats",
    "ScanPlan",
    "SpecStats",
    "Unread",
    "count",
]

FILES_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("size", pa.int64()),
        pa.field("rows", pa.int64()),
        pa.field("spec_id", pa.int32()),
        pa.field("partition", pa.string()),
        pa.field("bucket", pa.int32()),
        pa.field("deletes", pa.int32()),
        pa.field("verdict", pa.string(), nullable=False),
    ]
)
VERDICTS_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("spec_id", pa.int32()),
        pa.field("partition", pa.string()),
        pa.field("verdict", pa.string(), nullable=False),
        pa.field("layer", pa.string()),
        pa.field("reason", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class Unread:
    """Files of a manifest that was pruned without being read."""

    spec_id: int | None
    files: int
    size: int = 0
    """Bytes, where the format tells them for a whole manifest; else 0."""
    runtime_filter: int | None = None
    """The runtime filter that pruned it, by its place, where the predicate alone would not have."""


@dataclass(frozen=True, slots=True)
class LayerStats:
    """Files and bytes before and after a layer, and how long it took."""

    layer: str
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SpecStats:
    """The same funnel for the files of one spec."""

    spec_id: int | None
    files: int
    kept: int
    kept_whole: int
    """Files of which every row matches."""
    bytes: int
    kept_bytes: int
    dropped: Mapping[str, int]
    """Files dropped, by layer."""


@dataclass(frozen=True, slots=True)
class PlanStats:
    """The counts that explain shows."""

    files: int
    kept: int
    kept_whole: int
    bytes: int
    kept_bytes: int
    layers: tuple[LayerStats, ...]
    specs: tuple[SpecStats, ...]
    filter: FilterStats
    notes: tuple[str, ...]
    read_seconds: float = 0.0
    """Waiting for metadata to be read and decoded."""
    filters: tuple[RuntimeFilterStats, ...] = ()
    """What each runtime filter did, in their order."""
    kept_because: tuple[KeptBecause, ...] = ()
    """Why files are kept, in the order of the predicate's parts."""
    not_used: tuple[NotUsed, ...] = ()
    """Parts of the predicate by which no file can be pruned."""

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dicts, numbers and strings, ready for JSON."""
        found = asdict(self)
        for name in ("layers", "specs", "notes", "filters", "kept_because", "not_used"):
            found[name] = list(found[name])
        return found


@dataclass(frozen=True, slots=True, repr=False)
class ScanPlan:
    """Which files a scan has to read, and why."""

    sieve: Sieve
    outcomes: tuple[Outcome, ...]
    stats: PlanStats
    layer_names: tuple[str, ...]

    def __repr__(self) -> str:
        from tamis.explain.brief import plan_line

        return f"<tamis plan: {plan_line(self)}>"

    def _repr_html_(self) -> str:
        """The explanation, for a notebook."""
        from tamis.explain.brief import page_part

        return page_part(self.explain())

    def to_arrow(self) -> pa.Table:
        """The files to read, as plan.files."""
        return self.files

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas is not loaded for its types
        """The files to read, as a DataFrame of pandas."""
        return self.files.to_pandas()

    def to_polars(self) -> Any:  # noqa: ANN401 - as to_pandas
        """The files to read, as a DataFrame of Polars."""
        try:
            from polars import from_arrow
        except ImportError as error:
            raise MissingDependency(
                "a plan as a DataFrame of Polars needs 'polars': pip install polars", package="polars", extra=""
            ) from error
        return from_arrow(self.files)

    @property
    def files(self) -> pa.Table:
        """A row for each kept file, in the table's order."""
        return _concat([self._files(outcome) for outcome in self.outcomes], FILES_SCHEMA)

    @property
    def verdicts(self) -> pa.Table:
        """A row for each file considered: its verdict, the layer that dropped it, and the reason."""
        return _concat([self._verdicts(outcome) for outcome in self.outcomes], VERDICTS_SCHEMA)

    def explain(self, form: Literal["text", "json"] = "text", *, timing: bool = False) -> str:
        """Where the files went and why the rest is kept, for people or for programs.

        timing adds to the text how long each step took; JSON always has it.
        """
        from tamis.explain import render_plan

        return render_plan(self, form, timing=timing)

    def _spec(self, spec_id: int | None) -> PartitionSpec | None:
        return next((spec for spec in self.sieve.specs if spec.spec_id == spec_id), None)

    def _files(self, outcome: Outcome) -> pa.Table:
        batch, rows = outcome.batch, np.flatnonzero(outcome.kept)
        taken = pa.array(rows)
        nothing = pa.nulls(len(rows), pa.int32())
        columns = [
            batch.path.take(taken),
            batch.size.take(taken),
            batch.rows.take(taken),
            _repeat(batch.spec_id, len(rows)),
            partition_texts(batch, self._spec(batch.spec_id), rows),
            nothing if batch.bucket is None else batch.bucket.take(taken),
            nothing if batch.deletes is None else batch.deletes.take(taken),
            _words(outcome.kept[rows], outcome.certain[rows]),
        ]
        return _table(columns, FILES_SCHEMA)

    def _verdicts(self, outcome: Outcome) -> pa.Table:
        batch = outcome.batch
        partition = partition_texts(batch, self._spec(batch.spec_id), np.arange(len(batch)))
        names = pa.array([*self.layer_names, None])  # NO_LAYER, -1, is the last
        columns = [
            batch.path,
            _repeat(batch.spec_id, len(batch)),
            partition,
            _words(outcome.kept, outcome.certain),
            names.take(pa.array(outcome.layer.astype(np.int64) % len(names))),
            reasons(self.sieve, self.layer_names, outcome, partition),
        ]
        return _table(columns, VERDICTS_SCHEMA)


def count(
    seconds: Mapping[str, float],
    outcomes: Sequence[Outcome],
    unread: Sequence[Unread],
    filtered: FilterStats,
    notes: Sequence[str],
) -> PlanStats:
    """The funnel in numbers, in all and for each spec; seconds has the layers in order, the manifest layer first."""
    names = tuple(seconds)[1:]
    by_spec: dict[int | None, tuple[list[Outcome], list[Unread]]] = defaultdict(lambda: ([], []))
    for outcome in outcomes:
        by_spec[outcome.batch.spec_id][0].append(outcome)
    for part in unread:
        by_spec[part.spec_id][1].append(part)
    specs = tuple(_count_spec(spec_id, names, *by_spec[spec_id]) for spec_id in sorted(by_spec, key=_spec_order))
    files, size = sum(spec.files for spec in specs), sum(spec.bytes for spec in specs)
    layers: list[LayerStats] = []
    left, left_bytes = files, size
    for place, name in enumerate(("manifest", *names), -1):
        if name == "manifest":
            gone, gone_bytes = sum(part.files for part in unread), sum(part.size for part in unread)
        else:
            gone, gone_bytes = _sum(outcomes, lambda outcome, place=place: outcome.layer == place)
        took = seconds.get(name, 0.0)
        layers.append(LayerStats(name, left, left - gone, left_bytes, left_bytes - gone_bytes, took))
        left, left_bytes = left - gone, left_bytes - gone_bytes
    whole = sum(spec.kept_whole for spec in specs)
    return PlanStats(files, left, whole, size, left_bytes, tuple(layers), specs, filtered, tuple(notes))


def _count_spec(
    spec_id: int | None, names: Sequence[str], mine: Sequence[Outcome], skipped: Sequence[Unread]
) -> SpecStats:
    unread_files, unread_bytes = sum(part.files for part in skipped), sum(part.size for part in skipped)
    seen, seen_bytes = _sum(mine, lambda outcome: np.ones(len(outcome.batch), np.bool_))
    kept, kept_bytes = _sum(mine, lambda outcome: outcome.kept)
    whole, _ = _sum(mine, lambda outcome: outcome.certain)
    dropped = {"manifest": unread_files} | {
        name: _sum(mine, lambda outcome, place=place: outcome.layer == place)[0] for place, name in enumerate(names)
    }
    return SpecStats(spec_id, seen + unread_files, kept, whole, seen_bytes + unread_bytes, kept_bytes, dropped)


def _sum(outcomes: Sequence[Outcome], chosen: Any) -> tuple[int, int]:  # noqa: ANN401 - a mask of an outcome
    """How many files are chosen, and their bytes."""
    files = size = 0
    for outcome in outcomes:
        mask = chosen(outcome)
        found = int(mask.sum())
        if found:
            sizes = outcome.batch.size if found == len(mask) else outcome.batch.size.filter(pa.array(mask))
            files, size = files + found, size + int(pc.sum(sizes).as_py() or 0)
    return files, size


def _spec_order(spec_id: int | None) -> int:
    return -1 if spec_id is None else spec_id


def _words(kept: Mask, certain: Mask) -> pa.Array:
    return pa.array(["none", "some", "all"]).take(pa.array(kept.astype(np.int8) + (kept & certain)))


def _repeat(spec_id: int | None, count: int) -> pa.Array:
    return pa.nulls(count, pa.int32()) if spec_id is None else pa.repeat(pa.scalar(spec_id, pa.int32()), count)


def _table(columns: Sequence[pa.Array], schema: pa.Schema) -> pa.Table:
    cast = [column.cast(part.type) for column, part in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(cast, schema=schema)


def _concat(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables(tables) if tables else schema.empty_table()
