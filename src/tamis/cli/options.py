"""What commands have in common: which table, at which state, and how a time is written."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import typer

__all__ = ["AsOf", "Catalog", "Ref", "Snapshot", "State", "TableName", "TimeZone", "quick_start"]

TableName = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A table's folder, its metadata file, or its name: catalog.namespace.table.",
        show_default=False,
    ),
]
Snapshot = Annotated[int | None, typer.Option(metavar="ID", help="The table at this snapshot.", show_default=False)]
Ref = Annotated[str | None, typer.Option(metavar="NAME", help="The table at this branch or tag.", show_default=False)]
AsOf = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="The table as it was at this time: ISO 8601 (2024-01-15T12:00:00Z), or milliseconds since 1970.",
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
TimeZone = Annotated[str, typer.Option(metavar="ZONE", help="The time zone of times that are written without one.")]


@dataclass(frozen=True, slots=True)
class State:
    """Which state of the table, as the command line says it: at most one of these."""

    snapshot: int | None
    ref: str | None
    as_of: str | None

    def as_of_ms(self, time_zone: str) -> int | None:
        """The time in milliseconds since 1970. Also checks that one state is asked for, not two."""
        if sum(one is not None for one in (self.snapshot, self.ref, self.as_of)) > 1:
            raise typer.BadParameter("give only one of them", param_hint="--snapshot, --ref, --as-of")
        return None if self.as_of is None else _milliseconds(self.as_of, time_zone)


def _milliseconds(text: str, time_zone: str) -> int:
    from datetime import UTC, timedelta

    from tamis.predicate.zones import find_zone

    if text.strip().lstrip("-").isdigit():
        return int(text)
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no time: write 2024-01-15, 2024-01-15T12:00:00+01:00, or milliseconds since 1970",
            param_hint="--as-of",
        ) from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=find_zone(time_zone).rules)
    return (found - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


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
