"""`tamis scan`: the rows of a table that match, read by Spark from the files that a plan keeps."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import typer

from tamis.cli.explain import funnel
from tamis.cli.options import (
    AsOf,
    CaseSensitive,
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
    Strict,
    TableFormat,
    TableName,
    TableVersion,
    Types,
    Where,
    in_our_words,
    shown_types,
)
from tamis.cli.output import Output
from tamis.cli.progress import Watch
from tamis.cli.selecting import selected
from tamis.cli.sparks import Session

if TYPE_CHECKING:
    from tamis.table import Table

__all__ = ["check_condition", "scan", "tell"]


def scan(  # noqa: PLR0913 - an argument an option
    table: TableName,
    where: Where = None,
    select: Select = None,
    limit: Limit = None,
    *,
    format_: FormatName = None,
    out: Out = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    strict: Strict = False,
    snapshot: Snapshot = None,
    ref: Ref = None,
    as_of: AsOf = None,
    table_version: TableVersion = None,
    catalog: Catalog = None,
    table_format: TableFormat = None,
    case_sensitive: CaseSensitive = False,
    time_zone: SessionZone = None,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    storage: Storage = "session",
    types: Types = None,
) -> None:
    """Print or write the rows that match. Spark reads only the files that the plan keeps; deletes are applied."""
    output = Output.of(format_, limit, out, overwrite=overwrite)
    session = Session.of(master, remote, conf or (), time_zone, case_sensitive=case_sensitive)
    shown = shown_types(types)
    as_of_ms = State(snapshot, ref, as_of, table_version).as_of_ms(time_zone or "UTC")

    import tamis.table

    with in_our_words():
        opened = tamis.table.open(
            table,
            snapshot_id=snapshot,
            ref=ref,
            as_of_ms=as_of_ms,
            version=table_version,
            catalog=catalog,
            format=table_format,
        )
    check_condition(opened, where, case_sensitive=case_sensitive)
    names = [column.path[0] for column in opened.schema.columns if not column.nested]
    known = [*names, *((column.name for column in opened.source.metadata_columns) if select else ())]
    columns = selected(select, known, case_sensitive=case_sensitive)
    start = perf_counter()
    with session.started() as spark:
        with Watch() as watch:
            plan = opened.plan(
                where,
                case_sensitive=case_sensitive,
                strict=strict,
                progress=watch,
                spark=spark,
                storage=storage,
            )
        if not quiet:
            tell(funnel(opened, plan) + "\n")
        read = list(dict.fromkeys(choice.column for choice in columns))
        frame = plan.read(
            spark,
            columns=[name for name in read if name in names],
            metadata_columns=[name for name in read if name not in names],
            types=shown,
        )
        done = output.write(frame.select(*(choice.name for choice in columns)), shares_files=session.shares_files)
    if not quiet:
        tell(f"{done}, in {perf_counter() - start:.1f} s")


def check_condition(table: Table, where: str | None, *, case_sensitive: bool = False) -> None:
    """ParseError or BindError, before Spark is started for nothing."""
    if where is not None:
        from tamis.predicate.names import called
        from tamis.predicate.where import bind_text

        bind_text(where, table.schema, instant=0, case_sensitive=case_sensitive, names=called(table.name))


def tell(text: str) -> None:
    """Say something that is no row."""
    typer.echo(text, err=True)
