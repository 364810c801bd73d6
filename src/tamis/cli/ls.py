"""`tamis ls`: the catalogs that are configured, the namespaces of one, the tables of a namespace."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["ls"]

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="CATALOG[.NAMESPACE]",
        help="A catalog of PyIceberg's configuration, or a namespace in it (default: the configured catalogs).",
        show_default=False,
    ),
]


def ls(
    name: Name = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List catalogs, the namespaces of a catalog, or the tables of a namespace."""
    from tamis.formats import list_catalog
    from tamis.printable import printable

    listing = list_catalog(name)
    if json:
        from tamis.explain.json import json_text

        typer.echo(json_text({"version": 1, "namespaces": list(listing.namespaces), "tables": list(listing.tables)}))
        return
    for line in (*(f"{namespace}." for namespace in listing.namespaces), *listing.tables):
        typer.echo(printable(line))
    if not listing.namespaces and not listing.tables:
        typer.echo(listing.empty, err=True)
