"""Must prune: files that hold no matching row, by construction, and whose facts say so. Keeping one is a bug.

The other half of test_never_wrong.py: a sieve that keeps every file is never wrong. Here also ALL must be said where
the facts prove it.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from pyarrow import types as pt

from tamis.predicate.bind import bind
from tamis.predicate.nodes import And, Compare, In, IsNull, Like, Literal, Node, Not, Operator, Or, Ref, StartsWith
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.sieve.domain import ColumnStats
from tamis.sieve.files import FileBatch
from tamis.sieve.funnel import sift
from tamis.sieve.join.runtime import RuntimeFilter
from tamis.sieve.order import encode
from tamis.sieve.partitions import PartitionField, PartitionSpec
from tamis.sieve.sieve import Sieve
from tamis.sieve.transforms import apply, parse_transform, preimage
from tamis.sieve.transforms.bucket import bucket_of_keys, can_hash
from tests.making.harness import arrow
from tests.making.oracle import order, read
from tests.making.strategies import TYPES, values

X = Ref(("x",))
BELOW: dict[Operator, str] = {
    "=": "none",
    "<=>": "none",
    "<": "none",
    "<=": "none",
    ">": "all",
    ">=": "all",
    "!=": "all",
}
"""Verdicts where the literal is below the least value of a file."""
ABOVE: dict[Operator, str] = {
    "=": "none",
    "<=>": "none",
    ">": "none",
    ">=": "none",
    "<": "all",
    "<=": "all",
    "!=": "all",
}
OPERATORS: SearchStrategy[Operator] = st.sampled_from(list(BELOW))
HALF = settings(max_examples=settings().max_examples // 2)
FEW = settings(max_examples=settings().max_examples // 8)


def verdict(
    node: Node,
    type_: pa.DataType,
    bounds: tuple[object, object] | None = None,
    partition: tuple[str, pa.Array] | None = None,
    runtime: RuntimeFilter | None = None,
) -> str:
    """The verdict on one file without NULL or NaN: by the bounds of x, or by its partition."""
    schema = Schema.of(x=type_)
    zero = pa.array([0], pa.int64())
    stats, spec, struct = {}, PartitionSpec(0), None
    if bounds is not None:
        stats = {1: ColumnStats(arrow([bounds[0]], type_), arrow([bounds[1]], type_), zero, zero, pa.array([5]))}
    if partition is not None:
        spec = PartitionSpec(0, (PartitionField("p", 1, parse_transform(partition[0])),))
        struct = pa.StructArray.from_arrays([partition[1]], ["p"])
    file = FileBatch(pa.array(["f"]), pa.array([1]), pa.array([5]), 0, struct, stats)
    filters = () if runtime is None else (runtime.bind(schema),)
    plan = sift(Sieve(bind(node, schema), (spec,), filters), [file]).plan
    (found,) = plan.verdicts["verdict"].to_pylist()
    return str(found)


def _values(type_: pa.DataType) -> SearchStrategy[object]:
    """Values that a literal can hold and whose bounds are trusted: no NaN; no nanoseconds but whole microseconds."""
    if pt.is_timestamp(type_) and type_.unit == "ns":
        zone = UTC if type_.tz else None
        return st.datetimes(datetime(1678, 1, 1), datetime(2261, 1, 1)).map(
            lambda moment: moment.replace(tzinfo=zone)
        )
    if pt.is_time(type_) and type_.unit == "ns":
        return st.times()
    if type_ == pa.uuid():
        # Halves without a sign, and low halves of zero: there all orders of uuids agree.
        return st.integers(0, 2**63 - 1).map(lambda high: UUID(int=high << 64))
    return values(type_).filter(lambda value: value == value)  # noqa: PLR0124 - NaN is no bound


def _literal(value: object, type_: pa.DataType) -> Literal:
    if isinstance(value, bytes):
        return Literal(value, pa.binary())
    if isinstance(value, UUID):
        return Literal(str(value), pa.string())
    return Literal(value, type_)


def _compare(one: object, two: object, type_: pa.DataType) -> int:
    def plain(value: object) -> object:
        if isinstance(value, UUID):
            return value.int
        if isinstance(value, (datetime, date, time)):
            return encode(arrow([value], type_), type_).keys[0].item()
        return read(value, type_)

    left, right = plain(one), plain(two)
    return order(left, right) if not isinstance(left, int) else (left > right) - (left < right)  # type: ignore[operator]


@st.composite
def _apart(draw: DrawFn) -> tuple[pa.DataType, object, object, object, bool]:
    """A type, a least and a greatest value, and one outside: whether it is below."""
    type_ = draw(st.sampled_from(TYPES))
    three = [draw(_values(type_)) for _ in range(3)]
    if _compare(three[0], three[1], type_) > 0:
        three[0], three[1] = three[1], three[0]
    below, above = (_compare(three[2], bound, type_) for bound in three[:2])
    assume(below < 0 or above > 0)
    return type_, three[0], three[1], three[2], below < 0


# -- bounds ---------------------------------------------------------------------------------------------------


@given(_apart(), OPERATORS)
def test_value_outside_the_bounds_decides(
    case: tuple[pa.DataType, object, object, object, bool], operator: Operator
) -> None:
    type_, low, high, value, below = case
    expected = (BELOW if below else ABOVE)[operator]
    assert verdict(Compare(operator, X, _literal(value, type_)), type_, (low, high)) == expected
    negated = {"none": "all", "all": "none"}[expected]
    assert verdict(Not(Compare(operator, X, _literal(value, type_))), type_, (low, high)) == negated


@HALF
@given(_apart())
def test_lists_contradictions_and_join_keys_outside_the_bounds_decide(
    case: tuple[pa.DataType, object, object, object, bool],
) -> None:
    type_, low, high, value, _ = case
    listed = In(X, (_literal(value, type_),))
    assert verdict(listed, type_, (low, high)) == "none"
    assert verdict(Not(listed), type_, (low, high)) == "all"
    both = And((Compare("=", X, _literal(value, type_)), Compare("=", X, _literal(low, type_))))
    assert verdict(both, type_) == "none"
    keys = RuntimeFilter.of("x", arrow([value], type_))
    assert verdict(parse("true"), type_, (low, high), runtime=keys) == "none"


@HALF
@given(st.sampled_from(TYPES), st.data(), OPERATORS)
def test_single_value_decides_everything(type_: pa.DataType, data: st.DataObject, operator: Operator) -> None:
    """Equal bounds and no NULL are as good as a partition: nothing is left to read."""
    value = data.draw(_values(type_))
    expected = "all" if operator in {"=", "<=>", "<=", ">="} else "none"
    assert verdict(Compare(operator, X, _literal(value, type_)), type_, (value, value)) == expected
    assert verdict(Not(IsNull(X)), type_, (value, value)) == "all"


@FEW
@given(
    st.lists(st.integers(0, 4000), min_size=201, max_size=400, unique=True), st.integers(0, 4000), st.integers(0, 30)
)
def test_list_of_more_than_two_hundred_prunes_by_bounds(listed: list[int], low: int, width: int) -> None:
    inside = [value for value in listed if low <= value <= low + width]
    node = In(X, tuple(Literal(value, pa.int32()) for value in listed))
    found = verdict(node, pa.int32(), (low, low + width))
    assert found == ("none" if not inside else "all" if len(inside) == width + 1 else "some")


@HALF
@given(
    st.text("ab😀\ufffdé", min_size=1, max_size=4), st.text("ab😀\ufffdé", max_size=4), st.text("ab😀é", max_size=4)
)
def test_prefix_outside_the_bounds_drops_a_file(prefix: str, low: str, tail: str) -> None:
    high = low + tail
    assume(not low.startswith(prefix) and not high.startswith(prefix) and (prefix < low or prefix > high))
    for node in (Like(X, prefix + "%"), Like(X, prefix + "%z"), StartsWith(X, Literal(prefix, pa.string()))):
        assert verdict(node, pa.string(), (low, high)) == "none"
    assert verdict(Not(Like(X, prefix + "%")), pa.string(), (low, high)) == "all"
    assert verdict(Like(X, prefix + "%"), pa.string(), (prefix + low, prefix + high)) == "all"


@HALF
@given(st.dates(date(1900, 1, 1), date(2100, 1, 1)), st.integers(1, 40), st.integers(0, 86_399), st.booleans())
def test_day_outside_the_bounds_drops_a_file(day: date, gap: int, second: int, later: bool) -> None:
    """date(ts), year(ts) and date_trunc become ranges: as sharp as comparing the column itself."""
    start = datetime.combine(day, time()) + timedelta(seconds=second)
    other = day + timedelta(days=gap if later else -gap)
    type_ = pa.timestamp("us")
    assert verdict(parse(f"date(x) = '{other}'"), type_, (start, start)) == "none"
    assert verdict(parse(f"date(x) = '{day}'"), type_, (start, start)) == "all"
    assert verdict(parse(f"date_trunc('day', x) = '{other}'"), type_, (start, start)) == "none"
    assert verdict(parse(f"date_trunc('hour', x) {'>' if later else '<'} '{other}'"), type_, (start, start)) == "none"
    assert verdict(parse(f"year(x) = {day.year + (1 if later else -1)}"), type_, (start, start)) == "none"
    assert verdict(parse(f"year(x) = {day.year}"), type_, (start, start)) == "all"


# -- partitions -----------------------------------------------------------------------------------------------

PERIODS = ("year", "month", "day", "hour")


def _transforms(type_: pa.DataType) -> list[str]:
    found = ["identity"]
    if can_hash(type_):
        found += ["bucket[7]", "bucket[1000]"]
    if pt.is_integer(type_) or pt.is_decimal(type_) or pt.is_string(type_) or pt.is_binary(type_):
        found += ["truncate[1]", "truncate[3]", "truncate[10]"]
    if pt.is_date(type_) or pt.is_timestamp(type_):
        found += PERIODS[:3] if pt.is_date(type_) else PERIODS
    return found


CASES = [(type_, text) for type_ in TYPES for text in _transforms(type_)]


def _ordinal(part: pa.Array) -> int:
    return int((part.view(pa.int32()) if pt.is_date32(part.type) else part)[0].as_py())


def _partition(text: str, type_: pa.DataType, value: object) -> pa.Array:
    part = apply(parse_transform(text), arrow([value], type_))
    # A value that its writer may have wrapped is not trusted, and rightly kept.
    assume(not preimage(parse_transform(text), type_, part, part).problems)
    return part


def _hashed_by_all(value: object) -> bool:
    """Iceberg up to 0.13 hashed characters beyond 16 bits wrongly: such text may lie in any bucket."""
    return not isinstance(value, str) or max(value, default="") < "\U00010000"


def _same(one: pa.Array, two: pa.Array) -> bool:
    plain = [part.storage if isinstance(part, pa.ExtensionArray) else part for part in (one, two)]
    return bool(plain[0].equals(plain[1]))


@given(st.sampled_from(CASES), st.data())
def test_partition_of_another_value_is_dropped(case: tuple[pa.DataType, str], data: st.DataObject) -> None:
    """Every transform: a value's own partition is kept, and any other one is dropped."""
    type_, text = case
    inside, value = data.draw(_values(type_)), data.draw(_values(type_))
    part, other = _partition(text, type_, inside), _partition(text, type_, value)
    if text in PERIODS:
        # Old writers rounded up before 1970: there a period reaches one period back.
        assume(not (_ordinal(part) <= 0 and _ordinal(other) == _ordinal(part) - 1))
    assume(not text.startswith("bucket") or _hashed_by_all(value))
    equal = Compare("=", X, _literal(value, type_))
    if _same(part, other) or _compare(inside, value, type_) == 0:
        assert verdict(equal, type_, partition=(text, part)) != "none"
        return
    assert verdict(equal, type_, partition=(text, part)) == "none"
    assert verdict(Not(equal), type_, partition=(text, part)) == "all"
    assert verdict(In(X, (_literal(value, type_),)), type_, partition=(text, part)) == "none"


@HALF
@given(st.sampled_from([case for case in CASES if not case[1].startswith("bucket")]), st.data(), OPERATORS)
def test_value_beyond_a_partition_decides(
    case: tuple[pa.DataType, str], data: st.DataObject, operator: Operator
) -> None:
    """Transforms but buckets keep the order: a value of a later partition is above all of an earlier one."""
    type_, text = case
    inside, value = data.draw(_values(type_)), data.draw(_values(type_))
    part, other = _partition(text, type_, inside), _partition(text, type_, value)
    assume(not _same(part, other) and _compare(inside, value, type_) != 0)
    below = _compare(value, inside, type_) < 0
    if text in PERIODS:
        assume(not (below and _ordinal(part) <= 0 and _ordinal(other) == _ordinal(part) - 1))
    expected = (BELOW if below else ABOVE)[operator]
    assert verdict(Compare(operator, X, _literal(value, type_)), type_, partition=(text, part)) == expected


@HALF
@given(st.sampled_from(CASES), st.data(), OPERATORS)
def test_null_partition_holds_null_and_nothing_else(
    case: tuple[pa.DataType, str], data: st.DataObject, operator: Operator
) -> None:
    type_, text = case
    nothing = apply(parse_transform(text), arrow([None], type_))
    literal = _literal(data.draw(_values(type_)), type_)
    assert verdict(Compare(operator, X, literal), type_, partition=(text, nothing)) == "none"
    assert verdict(Not(In(X, (literal,))), type_, partition=(text, nothing)) == "none"
    assert verdict(IsNull(X), type_, partition=(text, nothing)) == "all"
    assert verdict(Not(IsNull(X)), type_, partition=(text, nothing)) == "none"


@HALF
@given(st.sampled_from(CASES), st.data())
def test_partition_with_a_value_has_no_null(case: tuple[pa.DataType, str], data: st.DataObject) -> None:
    type_, text = case
    part = _partition(text, type_, data.draw(_values(type_)))
    assert verdict(IsNull(X), type_, partition=(text, part)) == "none"
    assert verdict(Not(IsNull(X)), type_, partition=(text, part)) == "all"


@given(st.sampled_from([type_ for type_ in TYPES if can_hash(type_)]), st.data(), st.sampled_from([2, 16, 1000]))
def test_list_that_hashes_elsewhere_drops_a_bucket(type_: pa.DataType, data: st.DataObject, count: int) -> None:
    listed = data.draw(st.lists(_values(type_).filter(_hashed_by_all), min_size=1, max_size=8))
    hashed = bucket_of_keys(encode(arrow(listed, type_), type_).keys, type_, count)
    assert hashed is not None
    bucket = data.draw(st.integers(0, count - 1))
    node = In(X, tuple(_literal(value, type_) for value in listed))
    expected = "some" if bucket in hashed else "none"
    assert verdict(node, type_, partition=(f"bucket[{count}]", pa.array([bucket], pa.int32()))) == expected


# -- several columns ------------------------------------------------------------------------------------------


@HALF
@given(
    st.sampled_from(["eu", "us", "asia"]),
    st.integers(0, 200),
    st.integers(0, 200),
    st.lists(
        st.tuples(st.sampled_from(["eu", "us", "asia"]), st.integers(0, 200), st.booleans()), min_size=1, max_size=4
    ),
)
def test_or_over_a_partition_and_bounds_is_decided_by_both(
    region: str, low: int, width: int, branches: list[tuple[str, int, bool]]
) -> None:
    """(region = 'eu' AND amount > 100) OR (region = 'us' AND amount < 5): eu with amount <= 50 is dropped."""
    high = low + width
    schema = Schema.of(region=pa.string(), amount=pa.int32())
    node = Or(
        tuple(
            And(
                (
                    Compare("=", Ref(("region",)), Literal(name, pa.string())),
                    Compare(">" if above else "<", Ref(("amount",)), Literal(limit, pa.int32())),
                )
            )
            for name, limit, above in branches
        )
    )
    spec = PartitionSpec(0, (PartitionField("region", 1, parse_transform("identity")),))
    stats = {2: ColumnStats(pa.array([low], pa.int32()), pa.array([high], pa.int32()), pa.array([0]))}
    file = FileBatch(
        pa.array(["f"]),
        pa.array([1]),
        pa.array([5]),
        0,
        pa.StructArray.from_arrays([pa.array([region])], ["region"]),
        stats,
    )
    (found,) = sift(Sieve(bind(node, schema), (spec,)), [file]).plan.verdicts["verdict"].to_pylist()
    matching = [
        any(name == region and (amount > limit if above else amount < limit) for name, limit, above in branches)
        for amount in range(low, high + 1)
    ]
    # A run of amounts is known exactly, so that the verdict is: also two branches may cover a file together,
    # which are judged apart, since each holds a condition on the region.
    assert (found == "none") == (not any(matching))
    if found == "all":
        assert all(matching)


@HALF
@given(st.integers(0, 10_000), st.sets(st.integers(0, 10_000), min_size=1, max_size=300), st.integers(1, 500))
def test_runtime_keys_prune_by_truncation(low: int, keys: set[int], width: int) -> None:
    start = low // width * width
    expected = any(start <= key < start + width for key in keys)
    found = verdict(
        parse("true"),
        pa.int64(),
        partition=(f"truncate[{width}]", pa.array([start], pa.int64())),
        runtime=RuntimeFilter.of("x", pa.array(sorted(keys), pa.int64())),
    )
    assert (found != "none") == expected


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_every_type_has_a_case(type_: pa.DataType) -> None:
    """A type that nothing here covers would be pruned by luck."""
    assert any(case[0] == type_ for case in CASES)
    assert np.asarray(encode(arrow([None], type_), type_).valid).tolist() == [False]
