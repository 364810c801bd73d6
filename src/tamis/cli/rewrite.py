"""`tamis rewrite`: which files are worth rewriting, and which of them together. Nothing is read but metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamis.cli.explain import heading, shown_paths
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
from tamis.cli.rewrite_options import with_rewrite_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.rewrite.plan import RewritePlan
    from tamis.table import Table

__all__ = ["rewrite"]


@with_rewrite_options
def rewrite(  # noqa: PLR0913 - an argument an option
    table: TableName,
    where: Where = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be rewritten, and change nothing.")
    ] = False,
    candidates: Annotated[
        bool, typer.Option("--candidates", help="List every file, and why it is or is not a candidate.")
    ] = False,
    groups: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Show so many groups (default: 20).", show_default=False)
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="List at most N candidates.", show_default=False)
    ] = None,
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
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="An option of the rewrite by any of its names, such as Delta's maxFileSize; may be repeated.",
            show_default=False,
        ),
    ] = None,
    **rewrite_options: str | bool | None,
) -> None:
    """Show which files are worth rewriting, and in which groups. Only metadata is read, and nothing is changed."""
    if not dry_run:
        raise typer.BadParameter(
            "tamis plans rewrites, and does not run them yet. Add --dry-run to see the plan; to run it, give the "
            "same condition and options to Iceberg's rewrite_data_files, or Delta's OPTIMIZE.",
            param_hint="--dry-run",
        )
    if limit is not None and not candidates:
        raise typer.BadParameter("nothing is listed: add --candidates", param_hint="--limit")
    state = State(snapshot, ref, as_of, table_version)
    with quick_start():
        import tamis.jobs.rewrite
        import tamis.table
    options: dict[str, Any] = {name: value for name, value in rewrite_options.items() if value is not None}
    with Watch() as watch, in_our_words():
        opened = tamis.table.open(
            table,
            snapshot_id=snapshot,
            ref=ref,
            as_of_ms=state.as_of_ms(time_zone or "UTC"),
            version=table_version,
            catalog=catalog,
            format=table_format,
        )
        job = opened.rewrite(
            where,
            case_sensitive=case_sensitive,
            time_zone=time_zone,
            strict=strict,
            options=_named(option or ()),
            **options,
        )
        plan = job.plan(watch)
    if json:
        typer.echo(_json(opened, plan, candidates=candidates, limit=limit))
        return
    for line in _text(opened, plan, candidates=candidates, groups=groups, limit=limit, timing=timing):
        typer.echo(line)


def _named(pairs: Sequence[str]) -> dict[str, str]:
    """Options as NAME=VALUE."""
    named = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise typer.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint="--option")
        if name in named:
            raise typer.BadParameter(f"{name} is given twice", param_hint="--option")
        named[name] = value
    return named


def _json(table: Table, plan: RewritePlan, *, candidates: bool, limit: int | None) -> str:
    from tamis.explain.json import json_text
    from tamis.explain.rewrite import rewrite_document

    document = rewrite_document(plan, candidates=candidates)
    if limit is not None:
        document["candidates"] = document["candidates"][:limit]
    snapshot = table.snapshot_id
    # Many readers of JSON keep numbers as doubles, which round an id of 19 digits.
    about: dict[str, Any] = {
        "name": table.name,
        "format": table.format,
        "snapshot_id": snapshot,
        "snapshot": None if snapshot is None else str(snapshot),
    }
    return json_text({"version": document.pop("version"), "table": about, **_without_credentials(document)})


def _without_credentials(document: dict[str, Any]) -> dict[str, Any]:
    """The document with its paths as they may be shown."""
    from tamis.formats.errors import shown

    for group in document["groups"]:
        for name in ("files", "delete_files"):
            group[name] = [shown(path) for path in group[name]]
    for file in document.get("candidates", ()):
        file["path"] = shown(file["path"])
    return document


def _text(
    table: Table, plan: RewritePlan, *, candidates: bool, groups: int | None, limit: int | None, timing: bool
) -> list[str]:
    from tamis.explain.rewrite import MOST_GROUPS, candidate_lines, rewrite_text
    from tamis.formats.errors import shown

    lines = heading(table)
    lines.append(rewrite_text(plan, groups=MOST_GROUPS if groups is None else groups, timing=timing))
    if candidates:
        lines += ["", *candidate_lines(shown_paths(plan.candidates), shown(table.location), limit=limit)]
    return lines
