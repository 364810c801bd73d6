"""Ordinary is said of a column only where statistics prove it, and is said then: push-down depends on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.formats.iceberg.ordinary import MOST_KINDS, Ordinary, ordinary_columns
from tamis.predicate.bind import bind
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.sieve.domain import ColumnStats
from tamis.sieve.files import FileBatch
from tamis.sieve.outcome import Outcome
from tamis.sieve.sieve import Sieve

SCHEMA = Schema.of(d=pa.float64(), e=pa.float64(), g=pa.float64(), f=pa.float32(), t=pa.date32(), id=pa.int32())
NAN = float("nan")


def found(where: str, stats: Mapping[str, Sequence[Mapping[str, Any]]], file_format: str = "PARQUET") -> Ordinary:
    """Of files whose statistics are given by column, a mapping for each file."""
    count = len(next(iter(stats.values())))
    columns = {}
    for name, files in stats.items():
        column = SCHEMA.find((name,))
        parts: dict[str, pa.Array] = {"value_count": pa.array([10] * count, pa.int64())}
        for part in ("lower", "upper", "null_count", "nan_count"):
            type_ = column.type if part in {"lower", "upper"} else pa.int64()
            parts[part] = pa.array([one.get(part) for one in files], pa.int32() if type_ == pa.date32() else type_)
            parts[part] = parts[part].cast(type_)
        columns[column.id] = ColumnStats(**parts)
    ones, no = np.ones(count, np.bool_), np.zeros(count, np.bool_)
    none = np.full(count, -1)
    batch = FileBatch(
        path=pa.array([f"/{place}" for place in range(count)]),
        size=pa.array([1] * count),
        rows=pa.array([10] * count),
        stats=columns,
        extra={"file_format": pa.array([file_format] * count)},
    )
    outcome = Outcome(batch, ones, no, none.astype(np.int8), none.astype(np.int32), no, no, none.astype(np.int8))
    return ordinary_columns(Sieve(bind(parse(where), SCHEMA)), [outcome])


def is_ordinary(
    where: str, path: str, stats: Sequence[Mapping[str, Any]], file_format: str = "PARQUET"
) -> list[bool]:
    known = found(where, {path: stats}, file_format)
    return [(path,) in known.columns[kind] for kind in known.kinds.tolist()]


@pytest.mark.parametrize("column", ["d", "f"])
def test_floats_are_ordinary_where_no_nan_is_counted_and_bounds_leave_zero_out(column: str) -> None:
    """NaN is in no bound, and a zero at a bound may be of either sign."""
    sound = {"null_count": 0, "nan_count": 0}
    files = [
        {"lower": 1.0, "upper": 2.0, **sound},
        {"lower": -2.0, "upper": -1.0, **sound},
        {"lower": 1.0, "upper": 2.0, "null_count": 0},  # nobody counted NaN
        {"lower": 1.0, "upper": 2.0, "null_count": 0, "nan_count": 1},
        {"lower": 0.0, "upper": 2.0, **sound},
        {"lower": -1.0, "upper": -0.0, **sound},
        {"lower": -1.0, "upper": 1.0, **sound},
        {"lower": 2.0, "upper": 1.0, **sound},  # contradicts itself
        {"lower": 1.0, **sound},
        {"lower": 1.0, "upper": NAN, **sound},
        sound,
        {"null_count": 10, "nan_count": 0},  # NULL throughout
    ]
    expected = [True, True, *[False] * 9, True]
    assert is_ordinary(f"{column} > 1.5", column, files) == expected


def test_dates_of_orc_files_are_ordinary_from_the_gregorian_calendars_first_day_on() -> None:
    files = [
        {"lower": -141427, "upper": 0, "null_count": 0},
        {"lower": -141428, "upper": 0, "null_count": 0},
        {"upper": 0, "null_count": 0},
    ]
    assert is_ordinary("t > date'2020-01-01'", "t", files, "ORC") == [True, False, False]
    assert is_ordinary("t > date'2020-01-01'", "t", files) == [False, False, False]


def test_column_that_the_condition_does_not_name_is_not_known_to_be_ordinary() -> None:
    sound = {"lower": 1.0, "upper": 2.0, "null_count": 0, "nan_count": 0}
    assert is_ordinary("id > 1", "d", [sound, sound]) == [False, False]


def test_many_kinds_of_files_become_one_in_which_a_column_is_ordinary_if_it_is_so_in_all() -> None:
    """Each kind is read on its own: three columns could make eight of them."""
    good = {"lower": 1.0, "upper": 2.0, "null_count": 0, "nan_count": 0}
    bad = {"lower": 1.0, "upper": 2.0, "null_count": 0}
    places = range(MOST_KINDS * 2)
    stats = {name: [good if place >> bit & 1 else bad for place in places] for bit, name in enumerate("deg")}
    known = found("d > 1 and e > 1 and g > 1", stats)
    assert set(known.kinds.tolist()) == {0}
    assert known.columns == (frozenset(),)
    two = {name: [good, bad] for name in "deg"}
    known = found("d > 1 and e > 1 and g > 1", two)
    assert [len(known.columns[kind]) for kind in known.kinds.tolist()] == [3, 0]
