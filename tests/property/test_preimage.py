"""Two suites over every transform and type: a preimage contains what is partitioned to it, and little else.

Contains is the law (a lost value is a lost row); tight is its counterweight: "everything" would contain as well.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.predicate.keys import INT64_MAX, INT64_MIN
from tamis.sieve.order import encode
from tamis.sieve.transforms import Preimage, Transform, apply, parse_transform, preimage
from tamis.sieve.transforms.bucket import bucket_of_keys

INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1
DAY = 86_400_000_000
WIDTHS = [1, 2, 3, 7, 8, 10, 1000, 65_536, (1 << 30) - 1, 1 << 30, (1 << 30) + 1, INT_MAX]
PERIODS = ["year", "month", "day", "hour"]


def near(least: int, greatest: int, *centres: int) -> st.SearchStrategy[int]:
    """Ints anywhere, and many next to the ends and to these centres."""
    edges = [least, greatest, 0, *centres]
    close = st.builds(lambda edge, by: edge + by, st.sampled_from(edges), st.integers(-30, 30))
    return st.one_of(st.integers(least, greatest), close).filter(lambda value: least <= value <= greatest)


TEXTS = st.text(st.sampled_from("a?z\x00é\ud7ff\ue000\uffff😀\U0010ffff"), max_size=6)
BINARIES = st.binary(max_size=3) | st.lists(st.sampled_from([0, 1, 0xFE, 0xFF]), max_size=5).map(bytes)
MOMENTS = (DAY, -DAY, 1_700_000_000_000_000, -946_684_800_000_000)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    return near(-most, most, 1 << 32, 1 << 64, -(1 << 64)).map(lambda number: Decimal(f"{number}E-{scale}"))


VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int32(): near(INT_MIN, INT_MAX, 1 << 30),
    pa.int64(): near(INT64_MIN, INT64_MAX, INT_MIN, INT_MAX),
    pa.date32(): near(INT_MIN, INT_MAX, 365, -365, 19_723),
    pa.timestamp("us"): near(INT64_MIN, INT64_MAX, *MOMENTS),
    pa.timestamp("us", "UTC"): near(INT64_MIN, INT64_MAX, *MOMENTS),
    pa.timestamp("ns"): near(INT64_MIN, INT64_MAX, *(1000 * moment for moment in MOMENTS)),
    # Stored as microseconds: what these cannot hold no Iceberg table holds.
    pa.timestamp("ms"): near(INT64_MIN // 1000 + 1, INT64_MAX // 1000, *(moment // 1000 for moment in MOMENTS)),
    pa.timestamp("s"): near(INT64_MIN // 10**6 + 1, INT64_MAX // 10**6, 86_400, -86_400),
    pa.time64("us"): near(0, DAY - 1),
    pa.decimal128(3, 0): decimals(3, 0),
    pa.decimal128(18, 2): decimals(18, 2),
    pa.decimal128(19, 0): decimals(19, 0),
    pa.decimal128(38, 10): decimals(38, 10),
    pa.string(): TEXTS,
    pa.binary(): BINARIES,
    pa.binary(2): st.binary(min_size=2, max_size=2),
    pa.uuid(): st.binary(min_size=16, max_size=16),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
}


def transforms_of(type_: pa.DataType) -> list[str]:
    """Every transform that takes the type, with small and extreme widths."""
    names = ["identity"]
    if pa.types.is_timestamp(type_):
        names += PERIODS
    if pa.types.is_date32(type_):
        names += PERIODS[:3]
    if type_ in (pa.int32(), pa.int64()) or pa.types.is_decimal(type_):
        names += [f"truncate[{width}]" for width in WIDTHS]
    if type_ in (pa.string(), pa.binary()):
        names += [f"truncate[{width}]" for width in (1, 2, 3, 1000)]
    if not pa.types.is_floating(type_) and not pa.types.is_boolean(type_):
        names += ["bucket[1]", "bucket[3]", "bucket[16]"]
    return names


@dataclass(frozen=True)
class Case:
    """A column's values and a transform of it."""

    type: pa.DataType
    transform: Transform
    values: pa.Array

    @property
    def legacy(self) -> bool:
        """Whether Java up to 0.10 wrote this one too high before 1970."""
        return self.transform.name in PERIODS and not (self.transform.name == "day" and self.type == pa.date32())


@st.composite
def cases(draw: st.DrawFn, least: int = 1) -> Case:
    type_ = draw(st.sampled_from(list(VALUES)))
    transform = parse_transform(draw(st.sampled_from(transforms_of(type_))))
    values = draw(st.lists(VALUES[type_], min_size=least, max_size=6))
    return Case(type_, transform, pa.array(values, type_))


def inside(found: Preimage, entry: int, values: pa.Array, type_: pa.DataType) -> list[bool]:
    """Whether each value lies in the preimage of this entry, asked of the keys one by one."""
    keys = encode(values, type_).keys
    listed = keys.tolist() if isinstance(keys, np.ndarray) else keys.to_pylist()
    buckets = None if found.buckets is None else bucket_of_keys(keys, type_, found.buckets.count)
    return [
        _in_range(found, entry, key) and (buckets is None or _in_bucket(found, entry, int(buckets[place])))
        for place, key in enumerate(listed)
    ]


def _in_range(found: Preimage, entry: int, key: Any) -> bool:  # noqa: ANN401 - int or bytes, as the column has
    if found.range is None:
        return True
    lower, upper = found.range.lower, found.range.upper
    assert lower is not None
    assert upper is not None
    low, high = (
        side.keys[entry] if isinstance(side.keys, np.ndarray) else side.keys[entry].as_py() for side in (lower, upper)
    )
    below = upper.valid[entry] and (key > high or (found.range.upper_open and key == high))
    return not below and not (lower.valid[entry] and key < low)


def _in_bucket(found: Preimage, entry: int, bucket: int) -> bool:
    part = found.buckets
    assert part is not None
    return not part.valid[entry] or bool(part.lower[entry] <= bucket <= part.upper[entry])


def as_old_java(written: pa.Array, values: pa.Array) -> pa.Array:
    """The ordinals of what lies before 1970 one too high, which rounding towards zero makes of them."""
    numbers = written.view(pa.int32()).to_numpy().astype(np.int64)
    return pa.array((numbers + (encode(values, values.type).keys < 0)).astype(np.int32)).view(written.type)


def extremes(written: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The least and the greatest partition value, as a manifest's summary holds them."""
    keys = encode(written, written.type).keys
    listed = keys.tolist() if isinstance(keys, np.ndarray) else keys.to_pylist()
    order = sorted(range(len(listed)), key=lambda place: listed[place])
    return written.take(pa.array(order[:1])), written.take(pa.array(order[-1:]))


# -- contains ----------------------------------------------------------------------------------------------------


@given(cases(), st.booleans())
def test_preimage_of_a_file_contains_its_values(case: Case, old: bool) -> None:
    written = apply(case.transform, case.values)
    if old and case.legacy:
        written = as_old_java(written, case.values)
    found = preimage(case.transform, case.type, written, written)
    for entry in range(len(case.values)):
        assert inside(found, entry, case.values.slice(entry, 1), case.type) == [True]


@given(cases(least=2), st.booleans(), st.booleans(), st.booleans())
def test_preimage_of_a_manifest_contains_the_values_of_its_files(
    case: Case, old: bool, no_lower: bool, no_upper: bool
) -> None:
    written = apply(case.transform, case.values)
    if old and case.legacy:
        written = as_old_java(written, case.values)
    lower, upper = extremes(written)
    if no_lower:
        lower = pa.nulls(1, lower.type)
    if no_upper:
        upper = pa.nulls(1, upper.type)
    found = preimage(case.transform, case.type, lower, upper)
    assert all(inside(found, 0, case.values, case.type))


@given(st.lists(VALUES[pa.int32()], min_size=1, max_size=6), st.sampled_from(WIDTHS), st.booleans())
def test_preimage_of_a_column_that_was_an_int_contains_its_values(values: list[int], width: int, wide: bool) -> None:
    """The manifest was written when ints wrapped at 32 bits; its reader may already see longs."""
    transform = parse_transform(f"truncate[{width}]")
    numbers = pa.array(values, pa.int32())
    written = apply(transform, numbers)
    if wide:
        written = written.cast(pa.int64())
    single = preimage(transform, pa.int64(), written, written)
    spanned = preimage(transform, pa.int64(), *extremes(written))
    for entry in range(len(values)):
        assert inside(single, entry, numbers.slice(entry, 1).cast(pa.int64()), pa.int64()) == [True]
    assert all(inside(spanned, 0, numbers.cast(pa.int64()), pa.int64()))


@given(st.lists(near(-100_000, 100_000), min_size=1, max_size=6), st.sampled_from(PERIODS[:3]))
def test_preimage_of_a_column_that_was_a_date_contains_its_values(values: list[int], name: str) -> None:
    transform = parse_transform(name)
    dates = pa.array(values, pa.date32())
    written = apply(transform, dates)
    stamps = dates.cast(pa.timestamp("us"))
    found = preimage(transform, stamps.type, written, written)
    for entry in range(len(values)):
        assert inside(found, entry, stamps.slice(entry, 1), stamps.type) == [True]


# -- tight -------------------------------------------------------------------------------------------------------


@given(cases(least=2))
def test_preimage_holds_no_value_that_is_partitioned_elsewhere(case: Case) -> None:
    """A trusted partition value keeps its own values and, up to 1970, those of the period before; no others."""
    written = apply(case.transform, case.values)
    found = preimage(case.transform, case.type, written, written)
    trusted = ~np.any([problem.mask for problem in found.problems] or [np.zeros(len(written), np.bool_)], axis=0)
    ours = encode(written, written.type).keys
    listed = ours.tolist() if isinstance(ours, np.ndarray) else ours.to_pylist()
    for entry in np.flatnonzero(trusted):
        own = listed[entry]
        allowed = {own, own - 1} if case.legacy and own <= 0 else {own}
        assert inside(found, int(entry), case.values, case.type) == [key in allowed for key in listed]


@given(st.sampled_from([case for case in VALUES if pa.types.is_timestamp(case)]), st.sampled_from(PERIODS), st.data())
def test_values_next_to_a_period_are_pruned(type_: pa.DataType, name: str, data: st.DataObject) -> None:
    """The last tick before it and the first one after it, for every period after 1970."""
    transform = parse_transform(name)
    value = data.draw(st.integers(1, (1 << 62) // {"s": 10**6, "ms": 1000}.get(type_.unit, 1)))
    written = apply(transform, pa.array([value], type_))
    found = preimage(transform, type_, written, written)
    assert found.range is not None
    assert found.range.lower is not None
    assert found.range.upper is not None
    if not found.range.lower.valid[0] or int(written.view(pa.int32())[0].as_py()) <= 0:
        return
    start, end = int(found.range.lower.keys[0]), int(found.range.upper.keys[0])
    neighbours = apply(transform, pa.array([start - 1, start, end, end + 1], type_)).view(pa.int32()).to_pylist()
    own = written.view(pa.int32())[0].as_py()
    assert neighbours == [own - 1, own, own, own + 1]


@given(st.sampled_from([pa.int32(), pa.int64()]), st.sampled_from([w for w in WIDTHS if w <= 1 << 30]), st.data())
def test_numbers_next_to_a_width_are_pruned(type_: pa.DataType, width: int, data: st.DataObject) -> None:
    least, greatest = (INT_MIN, INT_MAX) if type_ == pa.int32() else (INT64_MIN, INT64_MAX)
    multiple = data.draw(near(-(-least // width), greatest // width)) * width
    found = preimage(parse_transform(f"truncate[{width}]"), type_, *[pa.array([multiple], type_)] * 2)
    assert found.problems == ()
    outside = [value for value in (multiple - 1, multiple + width) if least <= value <= greatest]
    assert not any(inside(found, 0, pa.array(outside, type_), type_))


@given(TEXTS, TEXTS, st.integers(1, 4))
def test_texts_with_another_prefix_are_pruned(text: str, other: str, width: int) -> None:
    transform = parse_transform(f"truncate[{width}]")
    found = preimage(transform, pa.string(), *[pa.array([text[:width]])] * 2)
    for candidate in (other, text + other, text[:width] + other, text[:-1], text + "\x00"):
        kept = inside(found, 0, pa.array([candidate]), pa.string())
        assert kept == [candidate[:width] == text[:width]]


@pytest.mark.parametrize("type_", list(VALUES), ids=str)
def test_every_transform_of_the_type_says_something(type_: pa.DataType) -> None:
    """A transform that quietly says nothing passes the first suite and prunes no file."""
    ordinary = {"string": "abcdef", "binary": b"abcdef", "fixed_size_binary[2]": b"ab", "bool": True}
    value = b"0123456789abcdef" if type_ == pa.uuid() else ordinary.get(str(type_), 500)
    value = Decimal(500) if pa.types.is_decimal(type_) and type_.scale < 10 else value
    for text in transforms_of(type_):
        width = parse_transform(text).width or 0
        if type_ in (pa.int32(), pa.int64()) and width > 1 << 30:
            continue  # Java's own sum overflows: nothing may be said of what an int can be
        values = pa.array([value], type_)
        written = apply(parse_transform(text), values)
        found = preimage(parse_transform(text), type_, written, written)
        assert found.problems == ()
        assert found.null_is_null
        if found.buckets is not None:
            assert found.buckets.valid.all()
        else:
            assert found.range is not None
            assert found.range.lower is not None
            assert found.range.upper is not None
            assert found.range.lower.valid.all()
            assert found.range.upper.valid.all()
