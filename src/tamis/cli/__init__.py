"""The command line: one file a command.

A command imports what it needs when it runs, so that `--version` and `--help` answer at once.
"""

import sys
from typing import Annotated

import typer

import tamis
from tamis.cli import demo, explain, inspect
from tamis.errors import TamisError

__all__ = ["app", "main"]

app = typer.Typer(
    name="tamis",
    help="Which files of a lakehouse table a query, a join, a rewrite or a DELETE has to touch, and why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # tracebacks stay Python's own, for bug reports
)
app.command(name="demo")(demo.demo)
app.command(name="explain")(explain.explain)
app.command(name="inspect")(inspect.inspect)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer calls it so
    if asked:
        typer.echo(f"tamis {tamis.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Options that stand before a command."""


def main() -> None:
    """Run the command line; an error that tamis raises on purpose is one message and exit code 2."""
    try:
        app()
    except TamisError as error:
        typer.echo(f"tamis: {error}", err=True)
        sys.exit(2)
