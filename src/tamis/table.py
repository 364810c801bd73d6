"""The front door: a table, and the jobs that it can be given.

Opening reads the metadata file and nothing else. Planning and explaining need no Spark; only a job that is told to
run reaches for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tamis.formats import At, FormatTable, open_table
from tamis.formats.iceberg.inspection import Inspection
from tamis.predicate.bind import bind
from tamis.predicate.build import Expression
from tamis.predicate.nodes import Constant, Node
from tamis.predicate.schema import Schema
from tamis.sieve.outcome import Sieve
from tamis.sieve.plan import ScanPlan
from tamis.sieve.runtime import RuntimeFilter

__all__ = ["Table", "open"]


@dataclass(frozen=True, slots=True)
class Table:
    """One state of a table, opened: later changes of the table do not change it."""

    source: FormatTable

    @property
    def name(self) -> str:
        """The name that it was opened by."""
        return self.source.name

    @property
    def format(self) -> str:
        """The format and its version."""
        return self.source.format

    @property
    def schema(self) -> Schema:
        """The columns that a predicate may name."""
        return self.source.schema

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that jobs work on; None if the table never had one."""
        return self.source.snapshot_id

    def plan(
        self,
        where: str | Expression | None = None,
        *,
        runtime_filters: Sequence[RuntimeFilter] = (),
        case_sensitive: bool = False,
        time_zone: str = "UTC",
        strict: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> ScanPlan:
        """Which files can hold a row that matches, and why.

        where is SQL as Spark reads it, or a condition built with tamis.col; everything without one. time_zone is that
        of the session that will filter the rows. What cannot be judged is kept and counted, or with strict=True
        an UnevaluableError. progress is told how many of how many files have come in.
        """
        sql = where if isinstance(where, str) else None
        node = where.node if isinstance(where, Expression) else _parsed(sql)
        schema = self.schema
        predicate = bind(node, schema, case_sensitive=case_sensitive, time_zone=time_zone, sql=sql)
        filters = tuple(keys.bind(schema, case_sensitive=case_sensitive) for keys in runtime_filters)
        sieve = Sieve(predicate, self.source.specs, filters, strict=strict)
        return self.source.sift(sieve, progress)

    def inspect(self, progress: Callable[[int, int], None] | None = None) -> Inspection:
        """What the table is made of: specs, files, rows, bytes, deletes and small files, from metadata alone."""
        return self.source.inspect(progress)


def _parsed(sql: str | None) -> Node:
    if sql is None:
        return Constant(value=True)
    from tamis.predicate.parse import parse

    return parse(sql)


def open(
    target: str,
    *,
    snapshot_id: int | None = None,
    ref: str | None = None,
    as_of_ms: int | None = None,
    catalog: str | Mapping[str, str] | None = None,
    cache: bool | None = None,
) -> Table:
    """Open a table: by its folder, its metadata file, or its name `catalog.namespace.table`.

    snapshot_id, ref (a branch or tag) or as_of_ms (milliseconds since 1970) choose an older state. catalog is the
    name of a configured PyIceberg catalog, or its properties; target is then `namespace.table`. cache=False reads
    all metadata anew; otherwise decoded manifests are kept on local disk, unless TAMIS_CACHE=off.
    """
    return Table(open_table(target, At(snapshot_id, ref, as_of_ms), catalog, cache=cache))
