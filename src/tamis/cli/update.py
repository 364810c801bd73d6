"""`tamis update`: rows that match get new values, or it is shown what would happen to which files."""

from __future__ import annotations

from contextlib import ExitStack
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli.changes import Branch, DryRun, Isolation, Mode, counted, show, tell_files, zone_hint
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
from tamis.cli.scan import check_condition
from tamis.cli.sparks import TIME_ZONE, Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.changing import DeleteOptions

__all__ = ["assigned", "update"]


def update(  # noqa: PLR0913 - an argument an option
    table: TableName,
    set_: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="COLUMN=SQL",
            help="A column, or a field in one, and its new value in Spark SQL; may be repeated.",
            show_default=False,
        ),
    ],
    where: Annotated[
        str,
        typer.Option(
            metavar="SQL",
            callback=read_condition,
            help="The rows to update; 'true' is every row. @FILE reads it from a file, - from standard input.",
        ),
    ],
    *,
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
    """Give rows that match new values, in one commit. Only files that may hold such rows are read.

    Values are of the row as it was: --set a=b --set b=a exchanges two columns.
    """
    session = Session.of(master, remote, conf or (), time_zone, case_sensitive=case_sensitive)
    values = assigned(set_, "--set")

    import tamis.table

    opened = tamis.table.open(table, catalog=catalog, format=table_format)
    check_condition(opened, where, case_sensitive=case_sensitive)
    zone = time_zone or session.conf.get(TIME_ZONE)
    options: DeleteOptions = {
        "mode": mode,
        "isolation": isolation,
        "branch": branch,
        "storage": storage,
        "case_sensitive": case_sensitive,
        "time_zone": zone,
    }
    plan = opened.plan_update(values, where=where, **options)
    unknown = zone is None and plan.plan.sieve.predicate.zone_dependent
    if dry_run:
        show(opened, plan)
        if unknown:
            zone_hint()
        return
    start = perf_counter()
    with ExitStack() as sessions:
        spark = sessions.enter_context(session.started()) if plan.plan.stats.kept or unknown else None
        if spark is not None:
            sessions.enter_context(SparkWatch(spark))
        done = opened.update(values, where=where, spark=spark, **options)
    if not quiet:
        came, size = (done.files_added, done.delete_files_added), (done.bytes_removed, done.bytes_added)
        tell_files(
            f"{counted(done.rows, 'row')} updated",
            f"{counted(done.files_rewritten, 'file')} rewritten",
            came,
            size,
            start,
        )
    typer.echo(str(done.snapshot_id))


def assigned(texts: Sequence[str], option: str) -> dict[str, object]:
    """Columns and the SQL of their values; BadParameter for what is no assignment, or a column named twice."""
    found: dict[str, object] = {}
    for text in texts:
        column, equals, value = (part.strip() for part in text.partition("="))
        if not (column and equals and value):
            raise typer.BadParameter(f"{text!r}: write column=value, such as price=price*2", param_hint=option)
        if column in found:
            raise typer.BadParameter(f"{column} is set twice", param_hint=option)
        found[column] = value
    return found
