"""`tamis explain`: which files a condition has to touch, and why. Nothing is read but metadata."""

from __future__ import annotations

from dataclasses import dataclass
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
    TableFormat,
    TableName,
    TableVersion,
    TimeZone,
    Where,
    in_our_words,
    quick_start,
)
from tamis.cli.progress import Watch

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis.sieve.plan import ScanPlan
    from tamis.table import Table

__all__ = ["explain", "funnel", "shown_paths"]


def explain(  # noqa: PLR0913 - an argument an option
    table: TableName,
    where: Where = None,
    *,
    files: Annotated[bool, typer.Option("--files", help="List the files to read.")] = False,
    verdicts: Annotated[
        bool, typer.Option("--verdicts", "--all-files", help="List every file with the reason for its verdict.")
    ] = False,
    kept: Annotated[bool, typer.Option("--kept", help="Of the verdicts, list only the files that are kept.")] = False,
    pruned: Annotated[bool, typer.Option("--pruned", help="Of the verdicts, list only the pruned files.")] = False,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="List at most N files.", show_default=False)
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print the listed files as CSV, and nothing else.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    timing: Annotated[bool, typer.Option("--timing", help="Show how long each step took.")] = False,
    strict: Strict = False,
    snapshot: Snapshot = None,
    ref: Ref = None,
    as_of: AsOf = None,
    table_version: TableVersion = None,
    catalog: Catalog = None,
    table_format: TableFormat = None,
    case_sensitive: CaseSensitive = False,
    time_zone: TimeZone = None,
) -> None:
    """Show which files a condition has to touch, and why. Only metadata is read."""
    state = State(snapshot, ref, as_of, table_version)
    listing = _Listing.of(files=files, verdicts=verdicts, kept=kept, pruned=pruned, limit=limit)
    listing.check(csv=csv, json=json)
    with quick_start():
        import tamis.table
    as_of_ms = state.as_of_ms(time_zone or "UTC")
    with Watch() as watch, in_our_words():
        opened = tamis.table.open(
            table,
            snapshot_id=snapshot,
            ref=ref,
            as_of_ms=as_of_ms,
            version=table_version,
            catalog=catalog,
            format=table_format,
        )
        plan = opened.plan(where, case_sensitive=case_sensitive, time_zone=time_zone, strict=strict, progress=watch)
    if json:
        typer.echo(_json(opened, plan, listing))
        return
    for line in _csv(plan, listing) if csv else _text(opened, plan, listing, timing=timing):
        typer.echo(line)


@dataclass(frozen=True, slots=True)
class _Listing:
    """Which files are listed one by one."""

    files: bool
    verdicts: bool
    kept: bool
    pruned: bool
    limit: int | None

    @classmethod
    def of(cls, *, files: bool, verdicts: bool, kept: bool, pruned: bool, limit: int | None) -> _Listing:
        """As the options say it: one that narrows the verdicts asks for them."""
        return cls(files, verdicts or kept or pruned, kept, pruned, limit)

    def check(self, *, csv: bool, json: bool) -> None:
        """BadParameter for what makes no sense together."""
        if self.kept and self.pruned:
            raise typer.BadParameter("--kept and --pruned leave no file: give one of them", param_hint="--kept")
        if self.limit is not None and not (self.files or self.verdicts):
            raise typer.BadParameter("nothing is listed: add --files or --verdicts", param_hint="--limit")
        if csv and json:
            raise typer.BadParameter("give one of --csv and --json", param_hint="--csv")
        if csv and self.files == self.verdicts:
            raise typer.BadParameter("say which files to list: --files or --verdicts", param_hint="--csv")

    def of_files(self, plan: ScanPlan) -> pa.Table:
        """The files to read, as many as are asked for."""
        return self._limited(shown_paths(plan.files))

    def of_verdicts(self, plan: ScanPlan) -> tuple[pa.Table, int]:
        """The verdicts that are asked for, and how many were considered but are left out."""
        import pyarrow.compute as pc

        considered = plan.verdicts
        chosen = considered
        if self.kept or self.pruned:
            is_pruned = pc.equal(considered["verdict"], "none")
            chosen = considered.filter(is_pruned if self.pruned else pc.invert(is_pruned))
        listed = self._limited(shown_paths(chosen))
        return listed, len(considered) - len(listed)

    def _limited(self, listed: pa.Table) -> pa.Table:
        return listed if self.limit is None else listed.slice(0, self.limit)


def _json(table: Table, plan: ScanPlan, listing: _Listing) -> str:
    from tamis.explain.json import plan_json

    snapshot = table.snapshot_id
    about = {"name": table.name, "format": table.format, "snapshot_id": snapshot}
    # Many readers of JSON keep numbers as doubles, which round an id of 19 digits.
    more: dict[str, Any] = {"table": {**about, "snapshot": None if snapshot is None else str(snapshot)}}
    if listing.files:
        more["files"] = listing.of_files(plan).to_pylist()
    if listing.verdicts:
        more["verdicts"] = listing.of_verdicts(plan)[0].to_pylist()
    return plan_json(plan, more)


def _csv(plan: ScanPlan, listing: _Listing) -> list[str]:
    from tamis.explain.listing import csv_lines

    return csv_lines(listing.of_files(plan) if listing.files else listing.of_verdicts(plan)[0])


def _text(table: Table, plan: ScanPlan, listing: _Listing, *, timing: bool) -> list[str]:
    from tamis.explain.listing import file_lines, verdict_lines
    from tamis.formats.errors import shown

    location = shown(table.location)
    lines = [funnel(table, plan, timing=timing)]
    if listing.files:
        listed = listing.of_files(plan)
        more = plan.stats.kept - len(listed)
        lines += ["", *file_lines(listed, location), *([f"and {more:,} more"] if more else [])]
    if listing.verdicts:
        listed, left_out = listing.of_verdicts(plan)
        lines += ["", *verdict_lines(plan, listed, location, left_out=left_out)]
    return lines


def funnel(table: Table, plan: ScanPlan, *, timing: bool = False) -> str:
    """Which table, and what the plan explains."""
    return "\n".join([*heading(table), plan.explain(timing=timing)])


def heading(table: Table) -> list[str]:
    """Which table, and which state of it."""
    from tamis.explain.words import WIDTH, wrapped
    from tamis.formats import state_of
    from tamis.printable import printable

    name, state = printable(table.name), f"{table.format}, {state_of(table.format, table.snapshot_id)}"
    whole = f"TABLE  {name}: {state}"
    return [whole] if len(whole) <= WIDTH else [f"TABLE  {name}", *wrapped(state, "       ")]


def shown_paths(listed: pa.Table) -> pa.Table:
    """The table with its paths as they may be shown: without credentials."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from tamis.formats.errors import shown

    index = listed.column_names.index("path")
    paths = listed["path"]
    if not pc.any(pc.match_substring_regex(paths, "://.*[@?]")).as_py():
        return listed
    return listed.set_column(index, listed.schema.field(index), pa.array(map(shown, paths.to_pylist()), pa.string()))
