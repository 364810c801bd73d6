"""The command line: one file a command.

A command imports what it needs when it runs, so that `--version` and `--help` answer at once.
"""

import logging
import re
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

import tamis
from tamis.cli import delete, demo, evolve, explain, inspect, join, ls, merge, rewrite, scan, update
from tamis.cli.pipes import quiet_when_piped
from tamis.errors import BindError, ParseError, TamisError

__all__ = ["app", "main"]

_CREDENTIALS: Final = re.compile(r"""[^\s/'"@:]+:(?!//|\d+/)[^\s'"@]+@""")
"""`user:password@`, wherever it stands."""


class _Flags:
    """Options that take no value are shown without the type of one."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - typer's own
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc] # a command's
        for param in params:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        return params


class _Command(_Flags, TyperCommand):
    """A command."""


class _Group(_Flags, TyperGroup):
    """The program."""


app = typer.Typer(
    name="tamis",
    help="Which files of a lakehouse table a query, a join, a rewrite or a change of rows has to touch, and why.",
    cls=_Group,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,  # tracebacks stay Python's own, for bug reports
)


def _add(command: Callable[..., None], *examples: str) -> None:
    """Add a command under its own name, with examples below its help."""
    lines = "\n\n".join(("Examples:", *examples))
    app.command(name=command.__name__, cls=_Command, epilog=lines)(quiet_when_piped(command))


_add(demo.demo, "tamis demo", "tamis demo --no-spark")
_add(
    explain.explain,
    """tamis explain prod.db.events --where "ts >= timestamp '2024-01-15' AND region = 'eu'\"""",
    "tamis explain /warehouse/db/events --where @query.sql --files",
    "tamis explain prod.db.events --where @query.sql --kept --csv > to_read.csv",
    "tamis explain prod.db.events --as-of 2024-01-15 --json",
)
_add(inspect.inspect, "tamis inspect prod.db.events", "tamis inspect /warehouse/db/events --ref audit --json")
_add(ls.ls, "tamis ls", "tamis ls prod", "tamis ls prod.db")
_add(
    rewrite.rewrite,
    "tamis rewrite prod.db.events --dry-run",
    """tamis rewrite prod.db.events --dry-run --where "ts >= '2024-01-01'" --target-file-size-bytes 256MB --json""",
    "tamis rewrite prod.db.events --dry-run --only-old-specs --max-files-to-rewrite 1000",
)
_add(
    scan.scan,
    'tamis scan prod.db.events --where "customer_id = 77" --select customer_id,amount --limit 5',
    'tamis scan prod.db.events --where "amount > 70" --out rows.csv',
)
_add(
    join.join,
    'tamis join prod.db.events customers.csv --on customer_id --where "amount > 70"',
    "tamis join prod.db.events prod.db.customers --on customer_id=id --out joined.parquet",
)
_add(
    delete.delete,
    """tamis delete prod.db.events --where "ts < timestamp '2023-01-01'" --dry-run""",
    """tamis delete prod.db.events --where "region = 'eu' AND customer_id = 77" --mode merge-on-read""",
)
_add(
    update.update,
    """tamis update prod.db.orders --set "price=price * 1.1" --where "sku = 7" --dry-run""",
    """tamis update prod.db.orders --set state="'closed'" --set info.city=NULL --where "id < 100" """,
)
_add(
    merge.merge,
    """tamis merge prod.db.orders --source changes.parquet --on "t.id = s.id" """
    """--when-matched "UPDATE SET *" --when-not-matched "INSERT *" --dry-run""",
    """tamis merge prod.db.orders --source prod.db.changes --on "t.id = s.id" --when-matched "s.gone THEN DELETE" """
    """--when-matched "UPDATE SET n = t.n + s.n" """,
)
_add(
    evolve.evolve,
    'tamis evolve prod.db.events --add "bucket(16, customer_id)" --drop region',
    'tamis evolve prod.db.events --replace "days(ts)=months(ts)" --dry-run',
)


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
