"""`tamis evolve`: new files are partitioned otherwise, and files that there are stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli.options import Catalog, Quiet, TableFormat, TableName
from tamis.cli.scan import tell

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
        bool, typer.Option("--dry-run", help="Show what is partitioned how, and change nothing.")
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
        _show(opened)
        for word, texts in (("add", add or ()), ("drop", drop or ()), ("replace", replace or ())):
            for text in texts:
                typer.echo(f"would {word} {text}")
        return
    done = opened.evolve(add=add or (), drop=drop or (), replace=pairs)
    if not quiet:
        tell(f"new files have spec {done.spec_id}" if done.changed else f"nothing to change: spec {done.spec_id}")
    typer.echo(str(done.spec_id))


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not equals or not old.strip() or not new.strip():
        raise typer.BadParameter(f"{text!r} is not OLD=NEW", param_hint="--replace")
    return old.strip(), new.strip()


def _show(table: Table) -> None:
    """Every spec, with the files that it has."""
    counts = {spec.spec_id: spec.files for spec in table.plan().stats.specs}
    for spec in table.source.specs:
        fields = ", ".join(f"{field.name} ({field.transform})" for field in spec.fields) or "unpartitioned"
        typer.echo(f"spec {spec.spec_id}: {fields}; {counts.get(spec.spec_id, 0):,} files")
