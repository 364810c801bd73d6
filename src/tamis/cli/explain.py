"""`tamis explain`: which files a condition has to touch, and why. Nothing is read but metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamis.cli.options import (
    AsOf,
    CaseSensitive,
    Catalog,
    Ref,
    Snapshot,
    State,
    Strict,
    TableName,
    TimeZone,
    Where,
    quick_start,
)
from tamis.cli.progress import Watch

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis.sieve.plan import ScanPlan
    from tamis.table import Table

__all__ = ["explain", "funnel"]


def explain(  # noqa: PLR0913 - an argument an option
    table: TableName,
    where: Where = None,
    *,
    files: Annotated[bool, typer.Option("--files", help="List the files that are kept.")] = False,
    verdicts: Annotated[
        bool, typer.Option("--verdicts", "--all-files", help="List every file, with the reason for its verdict.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    strict: Strict = False,
    snapshot: Snapshot = None,
    ref: Ref = None,
    as_of: AsOf = None,
    catalog: Catalog = None,
    case_sensitive: CaseSensitive = False,
    time_zone: TimeZone = "UTC",
) -> None:
    """Show which files a condition has to touch, and why. Only metadata is read."""
    state = State(snapshot, ref, as_of)
    with quick_start():
        import tamis.table
    as_of_ms = state.as_of_ms(time_zone)
    with Watch() as watch:
        opened = tamis.table.open(table, snapshot_id=snapshot, ref=ref, as_of_ms=as_of_ms, catalog=catalog)
        plan = opened.plan(where, case_sensitive=case_sensitive, time_zone=time_zone, strict=strict, progress=watch)
    if json:
        typer.echo(_json(opened, plan, files=files, verdicts=verdicts))
        return
    for line in _text(opened, plan, files=files, verdicts=verdicts):
        typer.echo(line)


def _json(table: Table, plan: ScanPlan, *, files: bool, verdicts: bool) -> str:
    from tamis.explain.json import plan_json

    more: dict[str, Any] = {"table": {"name": table.name, "format": table.format, "snapshot_id": table.snapshot_id}}
    if files:
        more["files"] = _shown(plan.files).to_pylist()
    if verdicts:
        more["verdicts"] = _shown(plan.verdicts).to_pylist()
    return plan_json(plan, more)


def _text(table: Table, plan: ScanPlan, *, files: bool, verdicts: bool) -> list[str]:
    from tamis.explain.listing import file_lines, verdict_lines

    lines = [funnel(table, plan)]
    if files:
        lines += ["", *file_lines(_shown(plan.files))]
    if verdicts:
        lines += ["", *verdict_lines(plan, _shown(plan.verdicts))]
    return lines


def funnel(table: Table, plan: ScanPlan) -> str:
    """Which table, and what the plan explains."""
    state = "no snapshot yet" if table.snapshot_id is None else f"snapshot {table.snapshot_id}"
    return f"TABLE  {table.name}  ({table.format}, {state})\n{plan.explain()}"


def _shown(listed: pa.Table) -> pa.Table:
    """The table with its paths as they may be shown: without credentials."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from tamis.formats.errors import shown

    place = listed.column_names.index("path")
    paths = listed["path"]
    if not pc.any(pc.match_substring_regex(paths, "://.*[@?]")).as_py():
        return listed
    return listed.set_column(place, listed.schema.field(place), pa.array(map(shown, paths.to_pylist()), pa.string()))
