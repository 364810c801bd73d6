"""A table joined with a DataFrame whose keys prune the table's files: collect, plan, read, join.

Law: the result is that of Spark's own join with every row of the table. A side whose rows are wanted without a match
is never pruned, and then no key is collected either. Where keys cannot prune (their types do not compare exactly with
the table's, or have no order) that is found out from the schemas, before any job, and noted in the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from time import perf_counter
from typing import Final

import pyarrow as pa
from pyarrow import types as pt
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, functions

from tamis.checks import check_flag, check_names, check_type
from tamis.errors import FilterInputError, JoinError
from tamis.formats import FormatTable
from tamis.predicate.names import backticked
from tamis.predicate.schema import Column
from tamis.sieve.join.key_input import column_paths
from tamis.sieve.join.keys import convert
from tamis.sieve.join.runtime import MAX_KEYS, RuntimeFilter
from tamis.sieve.partitions import PartitionSpec
from tamis.spark.keys import (
    LEAST_SAVED,
    Side,
    collect,
    key_types,
    looked_at,
    outlook,
    require_columns,
)
from tamis.spark.session import is_case_sensitive

__all__ = ["Join", "KeyOptions", "join_keys", "joined"]

HOWS: Final = {
    "inner": "inner",
    **dict.fromkeys(("left", "leftouter"), "left"),
    **dict.fromkeys(("right", "rightouter"), "right"),
    **dict.fromkeys(("full", "outer", "fullouter"), "full"),
    **dict.fromkeys(("semi", "leftsemi"), "semi"),
    **dict.fromkeys(("anti", "leftanti"), "anti"),
}
"""Spark's words for a join, without underscores."""
PRESERVED: Final = frozenset({"left", "full", "anti"})
"""Joins that keep rows of the table without a match."""


@dataclass(frozen=True, slots=True)
class KeyOptions:
    """How the keys of a join are collected."""

    max_keys: int = MAX_KEYS
    """Most distinct keys to list; beyond it only their range is used."""
    bloom: bool | None = None
    """Whether more keys than that are put into a bloom filter; None: if a partition of the table can be asked so."""
    pin: bool = True
    """Whether the other side is materialised, so that it cannot change between collecting and joining."""

    def __post_init__(self) -> None:
        """TypeError, or ValueError, for what cannot be meant."""
        check_type("max_keys", self.max_keys, int, expected="a number of keys")
        if self.max_keys < 0:
            raise ValueError(f"max_keys is {self.max_keys}: give 0 or more.")
        check_type("bloom", self.bloom, bool, type(None), expected="True, False or None")
        check_flag("pin", self.pin)


@dataclass(frozen=True, slots=True)
class Join:
    """What is joined by what, checked: pairs of a column of the table and one of the other side."""

    columns: tuple[tuple[str, ...], ...]
    others: tuple[str, ...]
    """As Spark reads them, with backticks where they need them."""
    how: str
    null_safe: bool
    named: bool
    """The keys have the same name on both sides, and stand in the result once."""

    @classmethod
    def of(cls, on: str | Sequence[str] | Mapping[str, str], how: str, *, null_safe: bool) -> Join:
        """The join that a user names as in Spark; JoinError for a kind of join that there is not."""
        kind = HOWS.get(how.lower().replace("_", ""))
        if kind is None:
            why = "a cross join has no keys to prune by" if how.lower() == "cross" else "Spark has no such join"
            raise JoinError(f"cannot join by how={how!r}: {why}. Use one of {', '.join(HOWS)}.", how=how)
        if isinstance(on, Mapping):
            for name in on.values():
                check_type("a value of on", name, str, expected="the name of a column of the other side")
            return cls(column_paths(list(on)), tuple(on.values()), kind, null_safe, named=False)
        check_names("on", on)
        names = [on] if isinstance(on, str) else list(on)
        paths = column_paths([(name,) for name in names])
        return cls(paths, tuple(map(backticked, names)), kind, null_safe, named=True)


def join_keys(
    table: FormatTable, other: DataFrame, join: Join, options: KeyOptions, saved: Callable[[RuntimeFilter], float]
) -> tuple[RuntimeFilter | None, str | None]:
    """The keys of the other side if they can prune the table; else None, and why not.

    saved tells how large a part of the bytes a filter would save. It is asked before a large side is pinned, which
    takes longer than most joins: a filter that saves little is not worth it.
    """
    sensitive = is_case_sensitive(other.sparkSession)
    columns = [table.schema.find(path, case_sensitive=sensitive) for path in join.columns]
    fields = require_columns(other, join.others)
    if join.how in PRESERVED:
        return None, f"no join keys were collected: a {join.how} join keeps rows of the table that have no match"
    if other.isStreaming:
        return None, "no join keys were collected: a stream has no last key"
    try:
        types = key_types(join.others, fields)
    except FilterInputError as error:
        return None, f"no join keys were collected: {error}"
    reasons = [convert(pa.array([], type_), column.type) for type_, column in zip(types, columns, strict=True)]
    if all(isinstance(reason, str) for reason in reasons):
        said = "; ".join(f"{column.name}: {why}" for column, why in zip(columns, reasons, strict=True))
        return None, f"no join keys were collected, for they cannot prune: {said}"
    start = perf_counter()
    bloom = options.bloom
    if bloom is None:
        bloom = len(columns) == 1 and may_look_up(table.specs, columns[0])
    try:
        side = looked_at(other) if options.pin else None
        if options.bloom is None and not (bloom or (side is not None and side.whole)):
            seen = side or Side(other, None, whole=False)
            share, count = outlook(seen, join.others, types, join.columns, options.max_keys, saved)
            if share < LEAST_SAVED:
                return None, (
                    f"no join keys were collected: there are {count}, which save {share:.0%} of the table. "
                    "Give bloom=True to collect them all the same"
                )
        keys = collect(
            other,
            join.others,
            names=join.columns,
            max_keys=options.max_keys,
            null_safe=join.null_safe,
            with_bloom=bloom,
            pin=options.pin,
            side=side,
            types=types,
        )
    except FilterInputError as error:
        return None, f"the join keys cannot prune: {error}"
    if keys.collected is not None:
        keys = replace(keys, collected=replace(keys.collected, seconds=perf_counter() - start))
    return keys, None


def may_look_up(specs: Sequence[PartitionSpec], column: Column) -> bool:
    """Whether some partition of the table says so much of the column that a bloom filter can be asked about it."""
    listable = {"identity", "truncate", *(("year", "month", "day") if pt.is_date32(column.type) else ())}
    return any(
        field.source == column.id and field.transform.name in listable for spec in specs for field in spec.fields
    )


def joined(table: DataFrame, other: DataFrame, join: Join) -> DataFrame:
    """The join of the rows, with the columns that Spark's own join gives."""
    if join.named and not join.null_safe:
        return table.join(other, [path[0] for path in join.columns], join.how)
    if not join.named:
        return table.join(other, _condition(table, other, join.others, join), join.how)
    # Spark has no `using` that compares by <=>: its columns are put together here, under names that cannot clash.
    places = [f"_{place}" for place in range(len(other.columns))]
    renamed = other.toDF(*places)
    keys = [_place(other, path[0]) for path in join.columns]
    found = table.join(renamed, _condition(table, renamed, [places[key] for key in keys], join), join.how)
    return found.select(*_using(table, renamed, other.columns, keys, join))


def _using(
    table: DataFrame, renamed: DataFrame, names: Sequence[str], keys: Sequence[int], join: Join
) -> list[SparkColumn]:
    """The keys once, then the rest of either side."""
    mine = [_place(table, path[0]) for path in join.columns]
    selected = []
    for left, right in zip(mine, keys, strict=True):
        left_key = table[backticked(table.columns[left])]
        right_key = renamed[renamed.columns[right]].alias(names[right])
        if join.how == "full":
            left_key = functions.coalesce(left_key, right_key).alias(table.columns[left])
        selected.append(right_key if join.how == "right" else left_key)
    selected += [table[backticked(name)] for place, name in enumerate(table.columns) if place not in mine]
    if join.how not in {"semi", "anti"}:
        rest = [(place, name) for place, name in enumerate(names) if place not in keys]
        selected += [renamed[renamed.columns[place]].alias(name) for place, name in rest]
    return selected


def _condition(table: DataFrame, other: DataFrame, others: Sequence[str], join: Join) -> SparkColumn:
    pairs = [
        (table[".".join(map(backticked, path))], other[name]) for path, name in zip(join.columns, others, strict=True)
    ]
    return reduce(lambda one, two: one & two, [a.eqNullSafe(b) if join.null_safe else a == b for a, b in pairs])


def _place(df: DataFrame, name: str) -> int:
    """Where a column stands; as it is spelt if that is there, else whatever its capitals."""
    names = df.columns
    return names.index(name) if name in names else [one.lower() for one in names].index(name.lower())
