"""`tamis inspect`: what a table is made of. Nothing is read but metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli.options import (
    AsOf,
    Catalog,
    Ref,
    Snapshot,
    State,
    TableFormat,
    TableName,
    TableVersion,
    TimeZone,
    in_our_words,
    quick_start,
)
from tamis.cli.progress import Watch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tamis.formats.inspection import DeleteKind, Deletes, Inspection, SpecInspection

__all__ = ["inspect"]

MOST_SNAPSHOTS = 10
"""Snapshots to show; JSON has all of them."""
_SPEC = "spec"
_DELETES = {"position": "position deletes", "equality": "equality deletes", "vectors": "vectors"}
VERSION = 1
"""Of the JSON: it changes if a key is removed or changes its meaning."""


def inspect(  # noqa: PLR0913 - an argument an option
    table: TableName,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    snapshot: Snapshot = None,
    ref: Ref = None,
    as_of: AsOf = None,
    table_version: TableVersion = None,
    catalog: Catalog = None,
    table_format: TableFormat = None,
    time_zone: TimeZone = None,
) -> None:
    """Show what a table is made of: its schema and snapshots; files, deletes and small files of each spec."""
    state = State(snapshot, ref, as_of, table_version)
    with quick_start():
        from tamis.formats import At, open_table
    at = At(snapshot, ref, state.as_of_ms(time_zone or "UTC"), table_version)
    with Watch() as watch, in_our_words():
        inspection = open_table(table, at, catalog, format=table_format).inspect(watch)
    if json:
        from tamis.explain.json import json_text

        typer.echo(json_text({"version": VERSION, **inspection.to_dict()}))
        return
    for line in _lines(inspection):
        typer.echo(line)


def _lines(inspection: Inspection) -> Iterator[str]:
    from tamis.explain.words import aligned

    yield from aligned(list(_facts(inspection)), left=(0, 1))
    yield ""
    rows = _spec_rows(inspection)
    yield from aligned(rows, left=(0, 1) if rows[0][0] == _SPEC else (0,))
    if len(inspection.specs) > 1:
        yield "* the spec that new files are written with"
    yield ""
    yield "schema"
    yield from (
        f"  {line}" for line in aligned([(column.name, column.type) for column in inspection.schema], left=(0, 1))
    )
    if inspection.history:
        yield ""
        yield from _history(inspection)
    if inspection.properties:
        yield ""
        yield "properties"
        yield from (f"  {line}" for line in aligned(list(inspection.properties.items()), left=(0, 1)))


def _history(inspection: Inspection) -> Iterator[str]:
    from tamis.explain.words import aligned
    from tamis.formats import state_word

    shown = inspection.history[:MOST_SNAPSHOTS]
    more = len(inspection.history) - len(shown)
    yield f"{state_word(inspection.format)}s, the newest first" + (
        f" ({more:,} older ones are left out)" if more else ""
    )
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


def _facts(inspection: Inspection) -> Iterator[Sequence[str]]:
    """What every format tells, and behind each of it what this format adds there."""
    from tamis.explain.listing import relative
    from tamis.explain.words import readable_bytes

    location = inspection.location
    for label, text in _common_facts(inspection):
        yield label, text
        for fact in inspection.facts:
            if fact.after == label:
                size = "" if fact.bytes is None else f", {readable_bytes(fact.bytes)}"
                told = relative(relative(fact.text, location), location.removeprefix("file://"))
                yield fact.label, f"{told}{size}"


def _common_facts(inspection: Inspection) -> Iterator[tuple[str, str]]:
    from tamis.explain.words import readable_bytes, readable_files
    from tamis.formats import state_word

    yield "table", inspection.table
    yield "format", inspection.format
    yield "location", inspection.location
    yield state_word(inspection.format), _snapshot(inspection)
    yield "columns", f"{inspection.columns:,}"
    total = inspection.total
    average = "" if total.average_bytes is None else f", {readable_bytes(total.average_bytes)} on average"
    yield (
        "data",
        f"{readable_files(total.files)}, {_many(total.rows, 'row')}, {readable_bytes(total.bytes)}{average}",
    )
    if inspection.small_below is not None and inspection.target_file_size is not None:
        share = f"{inspection.small_below / inspection.target_file_size:.0%}"
        below = f"below {readable_bytes(inspection.small_below)}, {share} of the target of"
        yield "small", f"{readable_files(total.small_files)} {below} {readable_bytes(inspection.target_file_size)}"
    gone = total.deletes
    kinds = ", ".join(_of_kind(gone, kind) for kind in inspection.delete_kinds)
    yield "deletes", f"{kinds}, {readable_bytes(gone.bytes)}" if gone.files else "none"


def _of_kind(gone: Deletes, kind: DeleteKind) -> str:
    return _many(gone.vectors, "vector") if kind == "vectors" else f"{getattr(gone, kind):,} {kind}"


def _snapshot(inspection: Inspection) -> str:
    if inspection.snapshot_id is None:
        return "none: the table is empty"
    by = f" by {inspection.operation}" if inspection.operation else ""
    return f"{inspection.snapshot_id}, made{by} at {_time(inspection.snapshot_ms or 0)}"


def _time(milliseconds: int) -> str:
    """In UTC; a count of milliseconds where the calendar has no such year."""
    from datetime import UTC, datetime, timedelta

    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms since 1970"
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def _spec_rows(inspection: Inspection) -> list[Sequence[str]]:
    """A row a spec. Small files have a column if some size is small, deletes and ids if there are some."""
    total = inspection.total
    small = inspection.small_below is not None
    kinds = inspection.delete_kinds if total.deletes.files else ()
    header = ["files", "rows", "size", "average", *(["small"] * small), *(_DELETES[kind] for kind in kinds)]
    rows: list[Sequence[str]] = [(_SPEC, "partitioned by", *header)]
    rows += [
        (f"{spec.spec_id}{' *' if spec.current else ''}", _fields(spec), *_numbers(spec, kinds, small=small))
        for spec in inspection.specs
    ]
    if len(inspection.specs) > 1:
        rows.append(("all", "", *_numbers(total, kinds, small=small)))
    has_ids = any(spec.spec_id is not None for spec in inspection.specs)
    return rows if has_ids else [row[1:] for row in rows]


def _fields(spec: SpecInspection) -> str:
    return ", ".join(f"{field} (dropped)" if field.dropped else str(field) for field in spec.fields) or "nothing"


def _numbers(spec: SpecInspection, kinds: Sequence[DeleteKind], *, small: bool) -> tuple[str, ...]:
    from tamis.explain.words import readable_bytes

    return (
        f"{spec.files:,}",
        f"{spec.rows:,}",
        readable_bytes(spec.bytes),
        "-" if spec.average_bytes is None else readable_bytes(spec.average_bytes),
        *([f"{spec.small_files:,}"] * small),
        *(f"{getattr(spec.deletes, kind):,}" for kind in kinds),
    )
