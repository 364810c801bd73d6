"""`tamis join`: a table joined with another, or with files; the other side's keys prune the table's files."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tamis.cli.dimension import Dimension
from tamis.cli.explain import funnel
from tamis.cli.options import (
    AsOf,
    Catalog,
    Conf,
    FormatName,
    Limit,
    Master,
    Out,
    Overwrite,
    Quiet,
    Ref,
    Remote,
    Select,
    SessionZone,
    Snapshot,
    State,
    Storage,
    TableFormat,
    TableVersion,
    Types,
    Where,
    in_our_words,
    read_condition,
    shown_types,
)
from tamis.cli.output import Output
from tamis.cli.progress import SparkWatch
from tamis.cli.scan import check_condition, tell
from tamis.cli.selecting import Selected, selected
from tamis.cli.sparks import Session
from tamis.predicate.names import backticked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["join"]

ONE_SIDED: Final = frozenset({"semi", "anti"})
"""Joins whose rows have the table's columns alone."""
PREFIX: Final = "dim_"
"""What a column of the other side is called, if the table has one of its name."""

Fact = Annotated[
    str,
    typer.Argument(
        metavar="FACT",
        help="The table whose files are pruned: its folder, metadata file, or catalog.namespace.table.",
        show_default=False,
    ),
]
Dim = Annotated[
    str,
    typer.Argument(metavar="DIM", help="The other side: a table, or Parquet, CSV or JSON files.", show_default=False),
]
On = Annotated[
    list[str],
    typer.Option(
        metavar="COLUMN[=COLUMN]",
        help="The key: a column of both, or one of FACT and one of DIM; may be repeated.",
        show_default=False,
    ),
]


def join(  # noqa: PLR0913 - an argument an option
    fact: Fact,
    dim: Dim,
    on: On,
    where: Where = None,
    *,
    dim_where: Annotated[
        str | None,
        typer.Option(
            metavar="SQL",
            callback=read_condition,
            help="WHERE condition on DIM (default: all rows).",
            show_default=False,
        ),
    ] = None,
    dim_format: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="table (or iceberg, delta, paimon), parquet, csv or json, if DIM's name does not tell.",
            show_default=False,
        ),
    ] = None,
    how: Annotated[str, typer.Option(metavar="KIND", help="inner, left, right, full, semi or anti.")] = "inner",
    select: Select = None,
    limit: Limit = None,
    format_: FormatName = None,
    out: Out = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    snapshot: Snapshot = None,
    ref: Ref = None,
    as_of: AsOf = None,
    table_version: TableVersion = None,
    catalog: Catalog = None,
    table_format: TableFormat = None,
    time_zone: SessionZone = None,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    storage: Storage = "session",
    types: Types = None,
) -> None:
    """Join a table with a smaller side, whose keys prune the table's files, and print or write the rows."""
    output = Output.of(format_, limit, out, overwrite=overwrite)
    session = Session.of(master, remote, conf or (), time_zone)
    shown = shown_types(types)
    as_of_ms = State(snapshot, ref, as_of, table_version).as_of_ms(time_zone or "UTC")
    keys = _keys(on)

    import tamis.table
    from tamis.sieve.join.key_input import column_paths
    from tamis.spark.join import Join

    kind = Join.of(list(keys), how, null_safe=False).how
    with in_our_words():
        opened = tamis.table.open(
            fact,
            snapshot_id=snapshot,
            ref=ref,
            as_of_ms=as_of_ms,
            version=table_version,
            catalog=catalog,
            format=table_format,
        )
    check_condition(opened, where)
    for path in column_paths(list(keys)):
        opened.schema.find(path)
    dimension = Dimension.of(dim, dim_format, dim_where, catalog)
    if session.shares_files:
        dimension.require()
    start = perf_counter()
    with session.started() as spark:
        names = [column.path[0] for column in opened.schema.columns if not column.nested]
        side, keys = _renamed(dimension.read(spark, storage, shares_files=session.shares_files), names, keys)
        rest = [] if kind in ONE_SIDED else [name for name in side.columns if name not in _once(keys)]
        columns = selected(select, [*names, *rest])
        side = side.select(*_needed(side, keys, columns))
        with SparkWatch(spark):
            plan = opened.plan_join(side, _on(keys), where=where, how=how, storage=storage)
        if not quiet:
            tell(f"{funnel(opened, plan.plan)}\n\nDIM    {dimension.label}\n")
        own = [name for name in dict.fromkeys(choice.column for choice in columns) if name in names]
        frame = plan.read(columns=own, types=shown).select(*(choice.name for choice in columns))
        done = output.write(frame, shares_files=session.shares_files)
    if not quiet:
        tell(f"{done}, in {perf_counter() - start:.1f} s")


def _keys(on: Sequence[str]) -> dict[str, str]:
    """The table's key columns, and the other side's; BadParameter if one is empty, or named twice."""
    keys: dict[str, str] = {}
    for text in on:
        fact, equals, dim = (name.strip() for name in text.partition("="))
        if not fact or (equals and not dim):
            raise typer.BadParameter(
                f"{text!r}: write a column of both, or fact_column=dim_column", param_hint="--on"
            )
        if fact in keys:
            raise typer.BadParameter(f"{fact} is named twice", param_hint="--on")
        keys[fact] = dim or fact
    return keys


def _once(keys: dict[str, str]) -> frozenset[str]:
    """Key columns that stand in the result once: all of them, if all have one name on both sides."""
    return frozenset(keys) if all(fact == dim for fact, dim in keys.items()) else frozenset()


def _on(keys: dict[str, str]) -> list[str] | dict[str, str]:
    return list(keys) if _once(keys) else keys


def _renamed(side: DataFrame, names: Sequence[str], keys: dict[str, str]) -> tuple[DataFrame, dict[str, str]]:
    """The other side without a name that the table has as well, but for keys that stand in the result once."""
    from tamis.spark.keys import require_columns

    require_columns(side, list(keys.values()))
    taken = {name.lower() for name in names}
    once = {name.lower() for name in _once(keys)}
    new: dict[str, str] = {}
    for name in side.columns:
        fresh = name
        while fresh.lower() in taken and name.lower() not in once:
            fresh = PREFIX + fresh
        taken.add(fresh.lower())
        new[name] = fresh
    by_folded = {name.lower(): fresh for name, fresh in new.items()}
    return side.toDF(*new.values()), {fact: by_folded.get(dim.lower(), dim) for fact, dim in keys.items()}


def _needed(side: DataFrame, keys: dict[str, str], columns: Sequence[Selected]) -> list[str]:
    """The columns of the other side that the join or the output wants: all that is selected is materialised."""
    wanted = {key.lower() for key in keys.values()} | {choice.column.lower() for choice in columns}
    return [backticked(name) for name in side.columns if name.lower() in wanted]
