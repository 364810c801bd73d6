"""What the commands that change rows have in common: their options, what a dry run shows, what they say when done."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tamis.cli.explain import heading, shown_paths
from tamis.cli.scan import tell

if TYPE_CHECKING:
    from tamis.merging import MergePlan
    from tamis.results import DeletePlan, UpdatePlan
    from tamis.table import Table

__all__ = ["Branch", "DryRun", "Isolation", "Mode", "counted", "show", "tell_files", "zone_hint"]

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen to which files.")]
Mode = Annotated[
    Literal["copy-on-write", "merge-on-read"] | None,
    typer.Option(help="Rewrite files, or write deletes beside them; as the table's write.*.mode says if not given."),
]
Isolation = Annotated[
    Literal["serializable", "snapshot"] | None,
    typer.Option(help="What must not have changed meanwhile; as write.*.isolation-level says if not given."),
]
Branch = Annotated[str, typer.Option(metavar="NAME", help="The branch to change.")]


def show(table: Table, plan: DeletePlan | UpdatePlan | MergePlan) -> None:
    """What a dry run says: the table, the funnel, what would be done, and each file that would be touched."""
    from tamis.explain.listing import file_lines
    from tamis.formats.errors import shown

    for line in (*heading(table), plan.explain()):
        typer.echo(line)
    files = plan.files
    if len(files):
        typer.echo()
        for line in file_lines(shown_paths(files), shown(table.location), first="action"):
            typer.echo(line)


def counted(count: int, noun: str) -> str:
    """So many of something.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"


def zone_hint() -> None:
    """What a dry run says that has no session to ask for its time zone."""
    tell("\nThe condition depends on the time zone: shown for UTC. Give --time-zone, or it is the session's.")


def tell_files(rows: str, files: str, came: tuple[int, int], size: tuple[int, int], start: float) -> None:
    """What was done, in a line: to rows and files, data files and delete files that came, bytes removed and added."""
    added = f"{counted(came[0], 'data file')} and {counted(came[1], 'delete file')} added"
    sizes = f"{size[0]:,} bytes removed, {size[1]:,} added"
    tell(f"{rows}: {files}, {added}; {sizes}, in {perf_counter() - start:.1f} s")
