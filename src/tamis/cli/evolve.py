"""`tamis evolve`: new files are partitioned otherwise, and files that there are stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tamis.checks import shown
from tamis.cli.options import Catalog, Quiet, TableFormat, TableName
from tamis.cli.scan import tell
from tamis.printable import printable

if TYPE_CHECKING:
    from tamis.table import Table

__all__ = ["evolve"]

Fields = list[str] | None


def evolve(  # noqa: PLR0913 - an argument an option
    table: TableName,
    *,
    add: Annotated[
        Fields,
        typer.Option(
            metavar="FIELD", help="A field to add: region, bucket(8, id), days(ts) as day. May be repeated."
        ),
    ] = None,
    drop: Annotated[
        Fields, typer.Option(metavar="FIELD", help="A field to drop, by its name or as it is made. May be repeated.")
    ] = None,
    replace: Annotated[
        Fields, typer.Option(metavar="OLD=NEW", help="A field to replace by another. May be repeated.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show how new files would be partitioned, and change nothing.")
    ] = False,
    quiet: Quiet = False,
    catalog: Catalog = None,
    table_format: TableFormat = None,
) -> None:
    """Change how new files are partitioned. Nothing is rewritten. Prints the id of the spec of new files."""
    pairs = dict(_pair(text) for text in replace or ())
    if not (add or drop or pairs):
        raise typer.BadParameter("give --add, --drop or --replace")

    import tamis.table

    opened = tamis.table.open(table, catalog=catalog, format=table_format)
    if dry_run:
        planned = opened.plan_evolve(add=add or (), drop=drop or (), replace=pairs)
        _show(opened)
        fields = printable(", ".join(planned.fields)) or "unpartitioned"
        would = "new files would have" if planned.changed else "nothing to change: new files have"
        typer.echo(f"{would} spec {planned.spec_id}: {fields}")
        return
    done = opened.evolve(add=add or (), drop=drop or (), replace=pairs)
    if not quiet:
        tell(f"new files have spec {done.spec_id}" if done.changed else f"nothing to change: spec {done.spec_id}")
    typer.echo(str(done.spec_id))


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not equals or not old.strip() or not new.strip():
        raise typer.BadParameter(f"{shown(text)} is not OLD=NEW", param_hint="--replace")
    return old.strip(), new.strip()


def _show(table: Table) -> None:
    """Every spec, with the files that it has."""
    from tamis.explain.words import readable_files

    counts = {spec.spec_id: spec.files for spec in table.plan().stats.specs}
    for spec in table.source.specs:
        fields = ", ".join(f"{field.name} ({field.transform})" for field in spec.fields) or "unpartitioned"
        typer.echo(f"spec {spec.spec_id}: {printable(fields)}; {readable_files(counts.get(spec.spec_id, 0))}")
