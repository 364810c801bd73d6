"""`tamis inspect`: what a table is made of. Nothing is read but metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli.options import AsOf, Catalog, Ref, Snapshot, State, TableFormat, TableName, TimeZone, quick_start
from tamis.cli.progress import Watch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tamis.formats.iceberg.inspection import Inspection, SpecInspection

__all__ = ["inspect"]

MOST_SNAPSHOTS = 10
"""Snapshots to show; JSON has all of them."""
VERSION = 1
"""Of the JSON: it changes if a key is removed or changes its meaning."""


def inspect(  # noqa: PLR0913 - an argument an option
    table: TableName,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    snapshot: Snapshot = None,
    ref: Ref = None,
    as_of: AsOf = None,
    catalog: Catalog = None,
    table_format: TableFormat = None,
    time_zone: TimeZone = "UTC",
) -> None:
    """Show what a table is made of: its schema and snapshots; files, deletes and small files of each spec."""
    state = State(snapshot, ref, as_of)
    with quick_start():
        from tamis.formats import At, open_table
    at = At(snapshot, ref, state.as_of_ms(time_zone))
    with Watch() as watch:
        found = open_table(table, at, catalog, format=table_format).inspect(watch)
    if json:
        from tamis.explain.json import json_text

        typer.echo(json_text({"version": VERSION, **found.to_dict()}))
        return
    for line in _lines(found):
        typer.echo(line)


def _lines(found: Inspection) -> Iterator[str]:
    from tamis.explain.words import aligned

    yield from aligned(list(_facts(found)), left=(0, 1))
    yield ""
    yield from aligned(_spec_rows(found), left=(0, 1))
    if len(found.specs) > 1:
        yield "* the spec that new files are written with"
    yield ""
    yield "schema"
    yield from (f"  {line}" for line in aligned([(one.name, one.type) for one in found.schema], left=(0, 1)))
    if found.history:
        yield ""
        yield from _history(found)
    if found.properties:
        yield ""
        yield "properties"
        yield from (f"  {line}" for line in aligned(list(found.properties.items()), left=(0, 1)))


def _history(found: Inspection) -> Iterator[str]:
    from tamis.explain.words import aligned

    shown = found.history[:MOST_SNAPSHOTS]
    more = len(found.history) - len(shown)
    yield "snapshots, the newest first" + (f" ({more:,} older ones are left out)" if more else "")
    rows: list[Sequence[str]] = [("id", "made at (UTC)", "operation", "files", "refs")]
    rows += [
        (
            str(made.id),
            _time(made.made_ms).removesuffix(" UTC"),
            made.operation or "-",
            _change(made.added_files, made.removed_files),
            ", ".join(made.refs),
        )
        for made in shown
    ]
    yield from (f"  {line}" for line in aligned(rows, left=(0, 1, 2, 3, 4)))


def _change(added: int | None, removed: int | None) -> str:
    """Files added and removed, as `+12 -3`; a dash if the snapshot does not tell."""
    return " ".join(f"{sign}{count:,}" for sign, count in (("+", added), ("-", removed)) if count is not None) or "-"


def _facts(found: Inspection) -> Iterator[Sequence[str]]:
    from tamis.explain.words import readable_bytes, readable_files

    yield "table", found.table
    yield "format", found.format
    yield "location", found.location
    yield "metadata", found.metadata
    yield "snapshot", _snapshot(found)
    branches = f"; branches: {', '.join(found.branches)}" if found.branches else ""
    tags = f"; tags: {', '.join(found.tags)}" if found.tags else ""
    yield "history", f"{_many(found.snapshots, 'snapshot')}{branches}{tags}"
    yield "columns", f"{found.columns:,}"
    manifests = f"{found.data_manifests:,} of data, {found.delete_manifests:,} of deletes"
    yield "manifests", f"{manifests}, {readable_bytes(found.manifest_bytes)}"
    total = found.total
    average = "" if total.average_bytes is None else f", {readable_bytes(total.average_bytes)} on average"
    yield (
        "data",
        f"{readable_files(total.files)}, {_many(total.rows, 'row')}, {readable_bytes(total.bytes)}{average}",
    )
    below = (
        f"below {readable_bytes(found.small_below)}, 75% of the target of {readable_bytes(found.target_file_size)}"
    )
    yield "small", f"{readable_files(total.small_files)} {below}"
    gone = total.deletes
    kinds = f"{gone.position:,} position, {gone.equality:,} equality, {_many(gone.vectors, 'vector')}"
    yield "deletes", f"{kinds}, {readable_bytes(gone.bytes)}" if gone.files else "none"


def _snapshot(found: Inspection) -> str:
    if found.snapshot_id is None:
        return "none: the table is empty"
    by = f" by {found.operation}" if found.operation else ""
    return f"{found.snapshot_id}, made{by} at {_time(found.snapshot_ms or 0)}"


def _time(milliseconds: int) -> str:
    """In UTC; a count of milliseconds where the calendar has no such year."""
    from datetime import UTC, datetime, timedelta

    try:
        found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms since 1970"
    return f"{found:%Y-%m-%d %H:%M:%S} UTC"


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def _spec_rows(found: Inspection) -> list[Sequence[str]]:
    """A row a spec; deletes have columns only if there are some."""
    total = found.total
    header = ("files", "rows", "size", "average", "small", "position deletes", "equality deletes", "vectors")
    width = len(header) if total.deletes.files else len(header) - 3
    rows: list[Sequence[str]] = [("spec", "partitioned by", *header[:width])]
    rows += [
        (f"{spec.spec_id}{' *' if spec.current else ''}", _fields(spec), *_numbers(spec)[:width])
        for spec in found.specs
    ]
    if len(found.specs) > 1:
        rows.append(("all", "", *_numbers(total)[:width]))
    return rows


def _fields(spec: SpecInspection) -> str:
    return ", ".join(f"{field} (dropped)" if field.dropped else str(field) for field in spec.fields) or "nothing"


def _numbers(spec: SpecInspection) -> tuple[str, ...]:
    from tamis.explain.words import readable_bytes

    return (
        f"{spec.files:,}",
        f"{spec.rows:,}",
        readable_bytes(spec.bytes),
        "-" if spec.average_bytes is None else readable_bytes(spec.average_bytes),
        f"{spec.small_files:,}",
        f"{spec.deletes.position:,}",
        f"{spec.deletes.equality:,}",
        f"{spec.deletes.vectors:,}",
    )
