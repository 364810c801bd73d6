"""`tamis merge`: rows of a table are updated, deleted and added by those of a source, or it is shown which files."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli.changes import Branch, DryRun, Isolation, Mode, counted, show, tell_files
from tamis.cli.dimension import Dimension
from tamis.cli.options import (
    CaseSensitive,
    Catalog,
    Conf,
    Master,
    Quiet,
    Remote,
    SessionZone,
    Storage,
    TableFormat,
    TableName,
    read_condition,
)
from tamis.cli.progress import SparkWatch
from tamis.cli.sparks import Session

if TYPE_CHECKING:
    from typing import Any

    from tamis.merging import MergeBuilder, MergeOptions
    from tamis.predicate.clause_text import WrittenClause
    from tamis.predicate.schema import Schema

__all__ = ["merge"]

_CLAUSE = "[CONDITION THEN] ACTION"


def merge(  # noqa: PLR0913 - an argument an option
    table: TableName,
    source: Annotated[
        str,
        typer.Option(metavar="SOURCE", help="A table, or Parquet, CSV or JSON files.", show_default=False),
    ],
    on: Annotated[
        str,
        typer.Option(
            metavar="SQL",
            callback=read_condition,
            help="When a row of the table, t, matches one of the source, s: 't.id = s.id'.",
            show_default=False,
        ),
    ],
    *,
    when_matched: Annotated[
        list[str] | None,
        typer.Option(
            metavar=_CLAUSE,
            help="What becomes of rows that match: DELETE, UPDATE SET *, or UPDATE SET a = s.a; may be repeated.",
            show_default=False,
        ),
    ] = None,
    when_not_matched: Annotated[
        list[str] | None,
        typer.Option(
            metavar=_CLAUSE,
            help="What becomes of rows of the source that match none: INSERT *, or INSERT (a) VALUES (s.a).",
            show_default=False,
        ),
    ] = None,
    when_not_matched_by_source: Annotated[
        list[str] | None,
        typer.Option(
            metavar=_CLAUSE,
            help="What becomes of rows of the table that no row matches: DELETE, or UPDATE SET a = 1.",
            show_default=False,
        ),
    ] = None,
    source_where: Annotated[
        str | None,
        typer.Option(
            metavar="SQL",
            callback=read_condition,
            help="WHERE condition on the source (default: all rows).",
            show_default=False,
        ),
    ] = None,
    source_format: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="table (or iceberg, delta, paimon), parquet, csv or json, if the source's name does not tell.",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRun = False,
    mode: Mode = None,
    isolation: Isolation = None,
    branch: Branch = "main",
    storage: Storage = "session",
    quiet: Quiet = False,
    catalog: Catalog = None,
    table_format: TableFormat = None,
    case_sensitive: CaseSensitive = False,
    time_zone: SessionZone = None,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
) -> None:
    """Merge the rows of a source into a table, in one commit. The source's keys prune the table's files.

    Of several clauses for a row the first whose condition is true applies.
    """
    session = Session.of(master, remote, conf or (), time_zone, case_sensitive=case_sensitive)
    clauses = {
        "matched": _clauses(when_matched, "--when-matched", ("update", "delete")),
        "not_matched": _clauses(when_not_matched, "--when-not-matched", ("insert",)),
        "not_matched_by_source": _clauses(
            when_not_matched_by_source, "--when-not-matched-by-source", ("update", "delete")
        ),
    }
    if not any(clauses.values()):
        raise typer.BadParameter("give at least one, such as 'UPDATE SET *'", param_hint="--when-matched")

    import tamis.table
    from tamis.predicate.sql.parse import parse

    opened = tamis.table.open(table, catalog=catalog, format=table_format)
    parse(on)  # a ParseError, before Spark is started for nothing
    _check_columns(clauses, opened.schema, case_sensitive=case_sensitive)
    side = Dimension.of(source, source_format, source_where, catalog)
    if session.shares_files:
        side.require()
    options: MergeOptions = {"mode": mode, "isolation": isolation, "branch": branch, "storage": storage}
    start = perf_counter()
    with session.started() as spark, SparkWatch(spark):
        frame = side.read(spark, "session", shares_files=session.shares_files)
        builder = _built(opened.merge(frame, on, **options), clauses)
        if dry_run:
            typer.echo(f"SOURCE  {side.label}")
            show(opened, builder.plan())
            return
        done = builder.run(spark)
    if not quiet:
        rows = f"{counted(done.rows_updated, 'row')} updated, {done.rows_deleted:,} deleted, "
        rows += f"{done.rows_inserted:,} inserted"
        came, size = (done.files_added, done.delete_files_added), (done.bytes_removed, done.bytes_added)
        tell_files(rows, f"{counted(done.files_rewritten, 'file')} rewritten", came, size, start)
    typer.echo(str(done.snapshot_id))


def _clauses(texts: Sequence[str] | None, option: str, actions: Sequence[str]) -> list[WrittenClause]:
    """What the texts say; BadParameter for an action that such rows cannot have."""
    from tamis.predicate.clause_text import parse_clause

    found = []
    for text in texts or ():
        clause = parse_clause(text)
        if clause.action not in actions:
            raise typer.BadParameter(f"{text!r}: write {' or '.join(map(str.upper, actions))}", param_hint=option)
        found.append(clause)
    return found


def _check_columns(clauses: dict[str, list[WrittenClause]], schema: Schema, *, case_sensitive: bool) -> None:
    """BindError for a column that is not there, before Spark is started for nothing."""
    from tamis.predicate.assigning import assignments

    for clause in (one for each in clauses.values() for one in each):
        if clause.values:
            assignments(clause.values, schema, alias="t", case_sensitive=case_sensitive)


def _built(builder: MergeBuilder[Any], clauses: dict[str, list[WrittenClause]]) -> MergeBuilder[Any]:
    for rows, mine in clauses.items():
        for clause in mine:
            name = f"when_{rows}_{clause.action}"
            if clause.action == "delete":
                builder = getattr(builder, name)(clause.condition)
            elif clause.values is not None:
                builder = getattr(builder, name)(clause.values, clause.condition)
            elif rows == "not_matched_by_source":
                raise typer.BadParameter(
                    "there is no row of the source to take all columns from: write UPDATE SET column = value",
                    param_hint="--when-not-matched-by-source",
                )
            else:
                builder = getattr(builder, f"{name}_all")(clause.condition)
    return builder
