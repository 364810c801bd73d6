"""Which columns are read for a condition that Spark gets as text."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
import pytest

from tamis.formats.scan import ReadField
from tamis.spark.asked import Reading


def reading(sql: str, *needed: str) -> Reading:
    """A reading of the column id under that condition."""
    nothing, offered = cast("Any", None), frozenset(needed) | {"id"}
    return Reading(
        reach=nothing,
        scan=nothing,
        columns=("id",),
        metadata_columns=(),
        needed=offered,
        sql=sql,
        asked=offered,
        safe=frozenset(),
        ways=nothing,
        unknown=frozenset(),
    )


def wants(sql: str, name: str, *, holds: bool = False) -> bool:
    return reading(sql, name).wants(ReadField(name, pa.string()), holds=holds)


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("t = 1", "t"),
        ("1 = T", "t"),
        ("x = 1 or(t)is null", "t"),
        ("`t` = 1", "t"),
        ("a.t = 1 and st.q = 2", "t"),
        ("t.q = 2", "t"),
        ("`a``b` = 1", "a`b"),
        ("`a b` = 1", "a b"),
        ("`a.b` = 1", "a.b"),
        ("ÄRGER = 1", "ärger"),
        ("`weiß` = 1", "WEISS"),
    ],
)
def test_column_that_a_condition_may_name_is_read(sql: str, name: str) -> None:
    assert wants(sql, name)
    assert not wants(sql, name, holds=True)


@pytest.mark.parametrize(
    ("sql", "name"), [("true", "t"), ("truet = 1", "t"), ("t_1 = 1 and tt = 2", "t"), ("1t", "t")]
)
def test_part_of_a_word_names_no_column(sql: str, name: str) -> None:
    assert not wants(sql, name)


def test_column_that_is_asked_for_is_read_and_one_that_is_not_offered_is_not() -> None:
    assert wants("true", "id", holds=True)
    assert not reading("t = 1").wants(ReadField("t", pa.string()))
