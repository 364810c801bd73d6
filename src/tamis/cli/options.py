"""What commands have in common: which table, at which state, and how a time is written."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from tamis.printable import printable

__all__ = [
    "AsOf",
    "CaseSensitive",
    "Catalog",
    "Conf",
    "FormatName",
    "Limit",
    "Master",
    "Out",
    "Overwrite",
    "Quiet",
    "Ref",
    "Remote",
    "Select",
    "SessionZone",
    "Snapshot",
    "State",
    "Storage",
    "Strict",
    "TableFormat",
    "TableName",
    "TimeZone",
    "Types",
    "Where",
    "in_our_words",
    "quick_start",
    "read_condition",
    "shown_types",
]


def read_condition(text: str | None) -> str | None:
    """The condition as it is written, or what the file has that it names; BadParameter if there is no such file."""
    if text is None or (text != "-" and not text.startswith("@")):
        return text
    name = printable(text[1:])
    try:
        if text == "-":
            return sys.stdin.read()
        return Path(text[1:]).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"cannot read {name}: {error.strerror}", param_hint="--where") from error
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{name or 'standard input'} is not UTF-8 text", param_hint="--where") from error


TableName = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A table's folder, its metadata file, or its name: catalog.namespace.table.",
        show_default=False,
    ),
]
Snapshot = Annotated[
    int | None, typer.Option(metavar="ID", help="Read the table at this snapshot.", show_default=False)
]
TableVersion = Annotated[
    int | None, typer.Option(metavar="N", help="Read a Delta table at this version.", show_default=False)
]
Ref = Annotated[
    str | None, typer.Option(metavar="NAME", help="Read the table at this branch or tag.", show_default=False)
]
AsOf = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Read the table as it was at this time: ISO 8601 (2024-01-15T12:00:00Z), or milliseconds since 1970.",
        show_default=False,
    ),
]
Catalog = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="A catalog of PyIceberg's configuration; TABLE is then namespace.table.",
        show_default=False,
    ),
]


def _table_format(text: str) -> str:
    from tamis.formats import format_names

    if text.lower() not in format_names():
        raise typer.BadParameter(f"{text!r} is none of {', '.join(format_names())}")
    return text.lower()


TableFormat = Annotated[
    str | None,
    typer.Option(
        parser=_table_format,
        metavar="NAME",
        help="As what a folder is opened that is a table of several formats: iceberg, delta or paimon.",
        show_default=False,
    ),
]


def _storage(text: str) -> Literal["session", "catalog"]:
    match text.lower():
        case "session":
            return "session"
        case "catalog":
            return "catalog"
    raise typer.BadParameter(f"{text!r} is none of session, catalog")


Storage = Annotated[
    Any,
    typer.Option(
        "--storage",
        parser=_storage,
        metavar="WHOSE",
        help="Whose settings of an object store Spark uses: session, or catalog, those the table is opened by.",
    ),
]
TimeZone = Annotated[
    str | None,
    typer.Option(
        metavar="ZONE",
        help="Time zone of times written without one (default: UTC in conditions).",
        show_default=False,
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        metavar="SQL",
        callback=read_condition,
        help="WHERE condition in Spark SQL (default: all rows). @FILE reads it from a file, - from standard input.",
        show_default=False,
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Fail if a file would be kept only because it cannot be evaluated.")
]
CaseSensitive = Annotated[bool, typer.Option("--case-sensitive", help="Match column names case-sensitively.")]

# -- commands that run on Spark -------------------------------------------------------------------------------

Select = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMNS", help="Columns to show, separated by commas (default: all).", show_default=False),
]
Limit = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        help="Maximum number of rows (default: all; 20 for a table in the terminal).",
        show_default=False,
    ),
]
FormatName = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="table, csv, json (one object per line) or parquet (default: from the name of --out, else table).",
        show_default=False,
    ),
]
Out = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Write the rows to this file; to a folder if it ends in a slash, or for parquet.",
        show_default=False,
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what exists at --out.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not print the explanation.")]
SessionZone = Annotated[
    str | None,
    typer.Option(
        "--time-zone",
        metavar="ZONE",
        help="Time zone of the session, and of times written without one (default: the session's).",
        show_default=False,
    ),
]
Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="The Spark master (default: local[*]).", show_default=False),
]
Remote = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="A Spark Connect server, sc://host:port (default: SPARK_REMOTE).",
        show_default=False,
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="A Spark configuration setting; may be repeated.", show_default=False),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="TYPE=SHOWN",
        help="As what columns of a type are shown that Spark does not have: time=bigint, time=string, "
        "timestamp_ns=timestamp_ntz, timestamptz_ns=timestamp. May be repeated.",
        show_default=False,
    ),
]


def shown_types(given: Sequence[str] | None) -> dict[str, str]:
    """The types by name; BadParameter for one that is not shown so, or that is given twice."""
    found: dict[str, str] = {}
    for text in given or ():
        name, equals, shown = (part.strip() for part in text.partition("="))
        if not equals:
            raise typer.BadParameter(f"{text!r}: write type=shown, as in time=string", param_hint="--type")
        if name in found:
            raise typer.BadParameter(f"{name} is named twice", param_hint="--type")
        found[name] = shown
    from tamis.formats.scan import check_shown

    try:
        check_shown(found)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--type") from None
    return found


_WORDS: Final = {
    "snapshot_id=": "--snapshot",
    "ref=": "--ref",
    "as_of=": "--as-of",
    "version=": "--table-version",
    "snapshot_id": "--snapshot",
    "as_of": "--as-of",
}
"""What errors of states call the options."""


@dataclass(frozen=True, slots=True)
class State:
    """Which state of the table, as the command line says it: at most one of these."""

    snapshot: int | None
    ref: str | None
    as_of: str | None
    version: int | None = None

    def as_of_ms(self, time_zone: str) -> int | None:
        """The time in milliseconds since 1970. Also checks that one state is asked for, not two."""
        if sum(one is not None for one in (self.snapshot, self.ref, self.as_of, self.version)) > 1:
            hint = "--snapshot, --ref, --as-of, --table-version"
            raise typer.BadParameter("give only one of them", param_hint=hint)
        return None if self.as_of is None else _milliseconds(self.as_of, time_zone)


@contextmanager
def in_our_words() -> Iterator[None]:
    """BadParameter for a state that the table's format does not have: only the opened table can tell."""
    from tamis.formats.opening import StateError

    try:
        yield
    except StateError as error:
        words = re.compile("|".join(map(re.escape, _WORDS)))
        said = words.sub(lambda found: _WORDS[found[0]], str(error))
        raise typer.BadParameter(said) from None


def _milliseconds(text: str, time_zone: str) -> int:
    from datetime import UTC, timedelta

    from tamis.predicate.compare.zones import python_rules

    if text.strip().lstrip("-").isdigit():
        return int(text)
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a time: write 2024-01-15, 2024-01-15T12:00:00+01:00, or milliseconds since 1970",
            param_hint="--as-of",
        ) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=python_rules(time_zone))
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


@contextmanager
def quick_start() -> Iterator[None]:
    """Import what planning needs, fast: without pandas, and without searching new modules for garbage."""
    gc.disable()
    try:
        from tamis.formats.lean import spare_pandas

        spare_pandas()
        yield
    finally:
        gc.freeze()
        gc.enable()
