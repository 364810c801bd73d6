"""Small tables for one question each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa

from tests.contract.history import ID, ROW, Append, Delete, History, Step
from tests.contract.maker import Maker
from tests.making.oracle import Path
from tests.making.strategies import PartitionField, Types

__all__ = ["REGION", "plain", "table_of"]

REGION: Final[Path] = ("region",)


def table_of(
    types: Types, *appends: Iterable[Mapping[Path, object]], partition: tuple[PartitionField, ...] = ()
) -> History:
    """A table of these appends; rows get their numbers, from 0."""
    count, steps = 0, []
    for rows in appends:
        found = []
        for row in rows:
            found.append({ID: count, ROW: count, **row})
            count += 1
        steps.append(Append(tuple(found)))
    return History({ID: pa.int64(), ROW: pa.int64(), **types}, tuple(steps), partition)


def plain(maker: Maker) -> History:
    """Nine rows of three regions, in three appends; partitioned and with a deleted row where the format can."""
    rows = [{REGION: region} for region in ("eu", "us", None)]
    able = "identity" in maker.transforms(REGION, pa.string())
    found = table_of(
        {REGION: pa.string()}, rows, rows, rows, partition=(PartitionField(REGION, "identity"),) if able else ()
    )
    more: tuple[Step, ...] = (Delete(frozenset({4}), way=1),) if "delete" in maker.steps else ()
    return History(found.types, (*found.steps, *more), found.partition)
