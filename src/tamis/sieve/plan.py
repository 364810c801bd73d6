"""What a funnel leaves: the files to read, a verdict with its reason for every file, and the counts.

A plan is a frozen value: nothing has run, nothing will change in it. Its tables are made when they are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa

from tamis.errors import MissingDependency
from tamis.predicate.arrays import Mask
from tamis.sieve.join.credit import RuntimeFilterStats
from tamis.sieve.kept import KeptBecause, NotUsed
from tamis.sieve.outcome import Outcome
from tamis.sieve.partitions import PartitionSpec
from tamis.sieve.reasons import partition_texts, reasons
from tamis.sieve.sieve import Sieve
from tamis.sieve.stats import LayerStats, PlanStats, SpecStats, Unread

__all__ = [
    "DeleteCounts",
    "KeptBecause",
    "LayerStats",
    "NotUsed",
    "PlanStats",
    "RuntimeFilterStats",
    "ScanPlan",
    "SpecStats",
    "Unread",
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


class DeleteCounts(Protocol):
    """How many deletes apply to kept files. They may be read when they are first asked for."""

    def count(self, outcome: Outcome) -> pa.Array:
        """For each kept file of a batch, how many delete files or vectors apply."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScanPlan:
    """Which files a scan has to read, and why. A plan equals itself alone: compare `files`, `verdicts` or `stats`."""

    sieve: Sieve
    outcomes: tuple[Outcome, ...]
    stats: PlanStats
    layer_names: tuple[str, ...]
    deletes: DeleteCounts | None = None
    """The deletes of kept files, where the format's batches do not say how many there are."""

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
                "a plan as a DataFrame of Polars needs 'polars': pip install polars", package="polars", extra=None
            ) from error
        return from_arrow(self.files)

    @property
    def files(self) -> pa.Table:
        """A row for each kept file, in the table's order."""
        return _concat([self._files(outcome) for outcome in self.outcomes], FILES_SCHEMA)

    @property
    def verdicts(self) -> pa.Table:
        """A row for each file considered: its verdict, the layer that dropped it, and the reason."""
        return _concat([self.told(outcome) for outcome in self.outcomes], VERDICTS_SCHEMA)

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
            self._deletes(outcome, taken),
            _words(outcome.kept[rows], outcome.certain[rows]),
        ]
        return _table(columns, FILES_SCHEMA)

    def _deletes(self, outcome: Outcome, rows: pa.Array) -> pa.Array:
        if outcome.batch.deletes is not None:
            return outcome.batch.deletes.take(rows)
        return pa.nulls(len(rows), pa.int32()) if self.deletes is None else self.deletes.count(outcome)

    def told(self, outcome: Outcome) -> pa.Table:
        """The verdicts of one batch."""
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


def _words(kept: Mask, certain: Mask) -> pa.Array:
    return pa.array(["none", "some", "all"]).take(pa.array(kept.astype(np.int8) + (kept & certain)))


def _repeat(spec_id: int | None, count: int) -> pa.Array:
    return pa.nulls(count, pa.int32()) if spec_id is None else pa.repeat(pa.scalar(spec_id, pa.int32()), count)


def _table(columns: Sequence[pa.Array], schema: pa.Schema) -> pa.Table:
    cast = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(cast, schema=schema)


def _concat(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables(tables) if tables else schema.empty_table()
