"""Manifests judged by their summaries: what a summary leaves out, or gets wrong, never prunes."""

from __future__ import annotations

import math
import struct
from typing import Any

import pyarrow as pa
import pytest

from tamis.formats.iceberg.manifest_list import DATA, Manifest
from tamis.formats.iceberg.pruning import may_match
from tamis.predicate.bind import bind
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.sieve.join.runtime import RuntimeFilter
from tamis.sieve.sieve import Sieve
from tests.formats.iceberg.test_manifests_odd import with_spec
from tests.making.manifests import parsed

Summary = tuple[bool | None, bool | None, bytes | None, bytes | None]
SCHEMA = Schema.of(c1=pa.int64(), c2=pa.string(), c3=pa.float64())
METADATA = parsed(with_spec((1, "identity", "p"), (3, "identity", "q"), types=("long", "string", "double")))
ANY: Summary = (True, True, struct.pack("<d", -1e300), struct.pack("<d", 1e300))


def longs(lower: int | None, upper: int | None, nulls: bool | None = False) -> Summary:
    return nulls, None, *(None if end is None else struct.pack("<q", end) for end in (lower, upper))


def doubles(lower: float | None, upper: float | None, nans: bool | None, nulls: bool | None = False) -> Summary:
    return nulls, nans, *(None if end is None else struct.pack("<d", end) for end in (lower, upper))


def kept(where: str, p: Summary | None = None, q: Summary = ANY, **more: Any) -> bool:  # noqa: ANN401 - of Sieve
    """Whether a manifest with these summaries of c1 and c3 is kept."""
    manifest = Manifest("m", 1, 0, DATA, summaries=(p or longs(-(2**62), 2**62, nulls=True), q))
    sieve = Sieve(bind(parse(where), SCHEMA), tuple(one.spec for one in METADATA.specs), **more)
    (found,) = may_match(sieve, METADATA, [manifest])
    return found


@pytest.mark.parametrize(("nans", "may"), [(None, True), (True, True), (False, False)])
def test_summary_that_does_not_say_whether_nan_occurs_may_hold_it(nans: bool | None, may: bool) -> None:
    """Version 1 has no contains_nan, and many writers leave it out."""
    bounds = doubles(1.0, 2.0, nans)
    assert kept("c3 = double('NaN')", q=bounds) is may
    assert kept("c3 > 1e9", q=bounds) is may, "NaN is greater than every number"
    assert kept("c3 < 0", q=bounds) is False
    keys = RuntimeFilter.of("c3", [float("nan")]).bind(SCHEMA)
    assert kept("true", q=bounds, runtime_filters=(keys,)) is may


@pytest.mark.parametrize(("nulls", "may"), [(None, True), (True, True), (False, False)])
def test_summary_that_does_not_say_whether_null_occurs_may_hold_it(nulls: bool | None, may: bool) -> None:
    assert kept("c1 is null", longs(3, 9, nulls)) is may


def test_summary_with_one_bound_is_open_on_its_other_side() -> None:
    for lower, upper in ((5, None), (None, 5)):
        assert kept("c1 = 5", longs(lower, upper))
        assert kept("c1 is not null", longs(lower, upper))
    assert kept(f"c1 = {2**62}", longs(5, None))
    assert kept(f"c1 = {-(2**62)}", longs(None, 5))
    assert kept("c3 > 1e200", q=doubles(5.0, None, nans=False))
    assert kept("c3 < -1e200", q=doubles(None, 5.0, nans=False))


@pytest.mark.parametrize("where", ["c1 = 5", "c1 = 3", "c1 = 9", "c1 = 100", "c1 is null", "c1 is not null"])
def test_inverted_summary_says_nothing(where: str) -> None:
    """Whoever wrote it has lost its way: neither its bounds nor its flags are worth anything."""
    assert kept(where, longs(9, 3, nulls=False))
    assert kept(where.replace("c1", "c3"), q=doubles(9.0, 3.0, nans=False))


def test_unreadable_summary_says_nothing() -> None:
    short: Summary = (False, False, b"\x01", struct.pack("<q", 3))
    for where in ("c1 = 100", "c1 is null", "c1 is not null"):
        assert kept(where, short)


def test_summary_that_is_whole_prunes() -> None:
    assert not kept("c1 = 10", longs(3, 9))
    assert not kept("c1 = 2", longs(3, 9))
    assert kept("c1 = 9", longs(3, 9))
    assert kept("c1 = 3", longs(3, 9))
    assert not kept("c1 is not null", longs(None, None, nulls=True))


@pytest.mark.parametrize("where", ["c1 = 5", "c1 is null", "c1 is not null"])
def test_summary_without_bounds_that_denies_null_says_nothing(where: str) -> None:
    """A bound is absent only where all values are NULL or NaN: whoever denies both has lost its way."""
    assert kept(where, longs(None, None, nulls=False))


def test_summary_with_nan_as_a_bound_may_hold_nan() -> None:
    """DuckDB writes NaN as a bound beside a flag that denies it."""
    for bounds in (doubles(1.0, math.nan, nans=False), doubles(math.nan, math.nan, nans=False)):
        assert kept("c3 = double('NaN')", q=bounds)
        assert kept("c3 = 100", q=bounds)
