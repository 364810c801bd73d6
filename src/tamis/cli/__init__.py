"""The command line: one file a command.

A command imports what it needs when it runs, so that `--version` and `--help` answer at once.
"""

import logging
import re
import sys
import warnings
from typing import Annotated, Final

import typer

import tamis
from tamis.cli import demo, explain, inspect, join, scan
from tamis.errors import BindError, ParseError, TamisError

__all__ = ["app", "main"]

_CREDENTIALS: Final = re.compile(r"""[^\s/'"@:]+:(?!//|\d+/)[^\s'"@]+@""")
"""`user:password@`, wherever it stands."""

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
app.command(name="scan")(scan.scan)
app.command(name="join")(join.join)


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
    # What libraries warn their callers of is nothing that a user of the command line can act on.
    logging.getLogger().addHandler(logging.NullHandler())
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    try:
        app()
    except TamisError as error:
        typer.echo(f"tamis: {_without_credentials(error)}", err=True)
        sys.exit(2)
    except OSError as error:
        # A folder that may not be listed, a disk that fails: the system's own words say which and why.
        typer.echo(f"tamis: {_without_credentials(error)}", err=True)
        sys.exit(2)


def _without_credentials(error: Exception) -> str:
    """The message. Errors blot out what they know for a URI; a client's own words may quote half of one."""
    if isinstance(error, ParseError | BindError):
        return str(error)  # quotes the condition, in which any `a:b@c` is the user's own value
    return _CREDENTIALS.sub("…@", str(error))
