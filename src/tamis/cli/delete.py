"""`tamis delete`: rows that match leave the table, or it is shown what would happen to which files."""

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
from tamis.cli.scan import check_condition
from tamis.cli.sparks import TIME_ZONE, Session

if TYPE_CHECKING:
    from tamis.changing import DeleteOptions

__all__ = ["delete"]


def delete(  # noqa: PLR0913 - an argument an option
    table: TableName,
    where: Annotated[
        str,
        typer.Option(
            metavar="SQL",
            callback=read_condition,
            help="The rows to delete: a condition in Spark SQL. @FILE reads it from a file, - from standard input.",
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
    """Delete the rows that match, in one commit. Files of which every row matches go unread, without Spark.

    A condition that depends on the time zone is read in the session's, so that Spark is started for it, unless
    --time-zone names one.
    """
    session = Session.of(master, remote, conf or (), time_zone, case_sensitive=case_sensitive)

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
    plan = opened.plan_delete(where, **options)
    # What a condition means that depends on the time zone, and nobody has named one, only the session can tell: also
    # whether a file goes whole.
    unknown = zone is None and plan.plan.sieve.predicate.zone_dependent
    if dry_run:
        show(opened, plan)
        if unknown:
            zone_hint()
        return
    start = perf_counter()
    with ExitStack() as sessions:
        read = plan.plan.stats.kept - plan.plan.stats.kept_whole
        spark = sessions.enter_context(session.started()) if read or unknown else None
        done = opened.delete(where, spark=spark, **options)
    if not quiet:
        touched = f"{counted(done.files_dropped, 'file')} dropped, {done.files_rewritten:,} rewritten"
        came, size = (done.files_added, done.delete_files_added), (done.bytes_removed, done.bytes_added)
        tell_files(f"{counted(done.rows, 'row')} deleted", touched, came, size, start)
    typer.echo(str(done.snapshot_id))
