"""Arrays as keys, and ranks among cuts: one comparison a cut, or windows of eight bytes, with one result."""

import math
from bisect import bisect_left, bisect_right
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tamis.predicate.keys import NAN_KEY, decimal_bytes, float_key
from tamis.sieve.order import FEW_CUTS, MANY_CUTS, KeyArray, encode, from_words, mask_of, ranks, windows


def keys(found: KeyArray) -> list[object]:
    listed = found.keys.tolist() if isinstance(found.keys, np.ndarray) else found.keys.to_pylist()
    return [key if valid else None for key, valid in zip(listed, found.valid, strict=True)]


def binary(*values: bytes | None) -> KeyArray:
    return encode(pa.array(values, pa.large_binary()), pa.binary())


@pytest.mark.parametrize(
    ("array", "type_", "expected"),
    [
        (pa.array([1, None, -1], pa.int32()), pa.int64(), [1, None, -1]),
        (pa.array([True, False, None]), pa.bool_(), [1, 0, None]),
        (pa.array([0.5, None], pa.float32()), pa.float64(), [float_key(0.5), None]),
        (pa.array([math.nan, -0.0, -1.5]), pa.float64(), [NAN_KEY, 0, float_key(-1.5)]),
        (pa.array([date(1969, 12, 31), None]), pa.date32(), [-1, None]),
        (pa.array([1], pa.date32()), pa.timestamp("us"), [86_400_000_000]),
        (pa.array([-1], pa.timestamp("ms")), pa.timestamp("us"), [-1000]),
        (pa.array([1], pa.timestamp("us", "UTC")), pa.timestamp("us", "UTC"), [1]),
        (pa.array([3], pa.time32("s")), pa.time32("s"), [3]),
        (pa.array([3], pa.time64("ns")), pa.time64("ns"), [3]),
        (pa.array([Decimal("-1.50"), None]), pa.decimal128(5, 2), [-150, None]),
        (pa.array([Decimal("1.5")], pa.decimal128(3, 1)), pa.decimal128(18, 2), [150]),
        (pa.array([Decimal("-1.50")]), pa.decimal128(20, 2), [decimal_bytes(-150)]),
        (pa.array([Decimal(10**37)]), pa.decimal128(38, 0), [decimal_bytes(10**37)]),
        (pa.array(["é", "", None]), pa.string(), [b"\xc3\xa9", b"", None]),
        (pa.array(["a"], pa.large_string()), pa.string(), [b"a"]),
        (pa.array([b"\x00\xff"], pa.binary(2)), pa.binary(2), [b"\x00\xff"]),
        (pa.array([b"u" * 16], pa.uuid()), pa.uuid(), [b"u" * 16]),
        (pa.array([b"u" * 16], pa.binary(16)), pa.uuid(), [b"u" * 16]),
        (pa.array([None, None]), pa.string(), [None, None]),
        (pa.array([None, None]), pa.int32(), [None, None]),
        (pa.array([None, None]), pa.decimal128(20, 2), [None, None]),
        (pa.chunked_array([[1], [2, None]]), pa.int64(), [1, 2, None]),
        (pa.chunked_array([], pa.int64()), pa.int64(), []),
    ],
)
def test_values_become_keys(array: pa.Array, type_: pa.DataType, expected: list[object]) -> None:
    assert keys(encode(array, type_)) == expected


@pytest.mark.parametrize(
    "type_",
    [
        pa.int8(),
        pa.decimal128(5, 2),
        pa.decimal128(38, 2),
        pa.string(),
        pa.uuid(),
        pa.float32(),
        pa.binary(3),
        pa.timestamp("ns"),
        pa.bool_(),
    ],
)
def test_no_files_have_no_keys(type_: pa.DataType) -> None:
    """A layer may have dropped every file before the statistics are read."""
    empty = pa.array([], type_) if type_ != pa.uuid() else pa.array([], pa.binary(16))
    assert len(encode(empty, type_)) == 0
    some = pa.nulls(2, type_ if type_ != pa.uuid() else pa.binary(16))
    assert len(encode(some.take(pa.array([], pa.int64())), type_)) == 0


@pytest.mark.parametrize("type_", [pa.decimal128(5, 2), pa.decimal128(20, 2), pa.string(), pa.int16()])
def test_slice_of_an_array_has_its_own_keys(type_: pa.DataType) -> None:
    """Buffers are shared: an offset that is forgotten reads a neighbour's value."""
    values: list[object] = ["a", "bb", "ccc", None] if type_ == pa.string() else [1, 2, 3, None]
    if pa.types.is_decimal(type_):
        values = [None if value is None else Decimal(str(value)) for value in values]
    whole = pa.array(values, type_)
    assert keys(encode(whole.slice(1, 3), type_)) == keys(encode(whole, type_))[1:]


@pytest.mark.parametrize(
    ("array", "type_"),
    [
        (pa.array([1 << 40]), pa.int32()),
        (pa.array([Decimal("1.234")]), pa.decimal128(5, 2)),
        (pa.array([[1]]), pa.int32()),
        (pa.array([1 << 30], pa.int32()).view(pa.date32()), pa.timestamp("us")),
        (pa.array([1], pa.timestamp("ns")), pa.timestamp("us")),
        (pa.array([(1 << 53) + 1]), pa.float64()),
    ],
)
def test_value_that_does_not_fit_the_type_is_an_arrow_error(array: pa.Array, type_: pa.DataType) -> None:
    """Never a wrapped number: the caller widens, and says so."""
    with pytest.raises((pa.ArrowInvalid, pa.ArrowNotImplementedError)):
        encode(array, type_)


def test_taken_and_masked_keys_keep_their_order() -> None:
    for found in (encode(pa.array([1, None, 3]), pa.int64()), binary(b"1", None, b"3")):
        one, _, three = keys(found)
        assert keys(found.take(np.array([2, 0, 0, 1]))) == [three, one, one, None]
        assert keys(found.keep(np.array([False, True, True]))) == [None, None, three]


def test_above_is_false_where_either_is_unknown() -> None:
    left, right = binary(b"b", None, b"b", b"a"), binary(b"a", b"a", None, b"a")
    assert left.above(right).tolist() == [True, False, False, False]
    ints = encode(pa.array([2, None, 2]), pa.int64()), encode(pa.array([1, 0, None]), pa.int64())
    assert ints[0].above(ints[1]).tolist() == [True, False, False]


# -- ranks ----------------------------------------------------------------------------------------------------


def check(cuts: list[bytes], values: list[bytes]) -> None:
    """The ranks of bytes agree with Python's bisection, on both sides."""
    array = np.empty(len(cuts), object)
    array[:] = cuts
    found = binary(*values)
    assert ranks(found, array, "right").tolist() == [bisect_right(cuts, value) for value in values]
    assert ranks(found, array, "left").tolist() == [bisect_left(cuts, value) for value in values]


@pytest.mark.parametrize("count", [1, 2, FEW_CUTS, FEW_CUTS + 1, 50])
def test_ranks_of_numbers_at_and_between_cuts(count: int) -> None:
    cuts = np.arange(0, 10 * count, 10)
    values = [*range(-1, 10 * count + 1), -(1 << 63), (1 << 63) - 1]
    found = encode(pa.array(values, pa.int64()), pa.int64())
    assert ranks(found, cuts, "right").tolist() == [bisect_right(cuts.tolist(), value) for value in values]
    assert ranks(found, cuts, "left").tolist() == [bisect_left(cuts.tolist(), value) for value in values]


@pytest.mark.parametrize("count", [MANY_CUTS, MANY_CUTS + 1, 2 * MANY_CUTS + 3])
def test_ranks_above_many_cuts_are_exact_on_both_sides(count: int) -> None:
    """Beyond so many cuts keys are sorted first: each rank must come back to the file that it belongs to."""
    cuts = np.arange(count, dtype=np.int64) * 3 - count
    near = np.concatenate([cuts[:: count // 97], cuts[:: count // 89] + 1, cuts[-1:] + 1, cuts[:1] - 1])
    values = np.random.default_rng(count).permutation(np.concatenate([near, [-(1 << 63), (1 << 63) - 1]]))
    found = encode(pa.array(values, pa.int64()), pa.int64())
    listed = cuts.tolist()
    assert ranks(found, cuts, "right").tolist() == [bisect_right(listed, value) for value in values.tolist()]
    assert ranks(found, cuts, "left").tolist() == [bisect_left(listed, value) for value in values.tolist()]


@pytest.mark.parametrize("count", [MANY_CUTS + 1, 2 * MANY_CUTS + 3])
def test_ranks_of_text_above_many_cuts_are_exact_on_both_sides(count: int) -> None:
    cuts = [f"k{2 * place:08d}".encode() for place in range(count)]
    values = [f"k{place:08d}".encode() for place in range(0, 2 * count + 2, 371)]
    check(cuts, [b"", b"k", *values, *(value + b"\x00" for value in values), cuts[-1], cuts[-1] + b"\x00", b"l"])


def test_no_cuts_have_one_rank() -> None:
    assert ranks(binary(b"a", b""), np.empty(0, np.int64), "right").tolist() == [0, 0]


@pytest.mark.parametrize("count", [3, FEW_CUTS, FEW_CUTS + 1, 40])
def test_ranks_of_text_at_and_between_cuts(count: int) -> None:
    cuts = [f"k{place:03d}".encode() for place in range(0, 2 * count, 2)]
    values = [f"k{place:03d}".encode() for place in range(2 * count + 1)]
    check(cuts, [b"", b"j", b"k", *values, *(value + b"\x00" for value in values), b"l", b"\xff"])


def test_ranks_of_text_that_ties_in_its_first_eight_bytes() -> None:
    """The window cannot tell them apart: whole strings decide."""
    cuts = sorted(b"12345678" + bytes([place]) for place in range(65, 65 + 20))
    cuts = sorted([*cuts, b"0", b"2"])
    check(cuts, [*cuts, b"12345678", b"12345678A\x00", b"12345678Z", b"1234567", b"12345679", b"12345678\x00"])


def test_ranks_of_text_with_a_long_common_prefix() -> None:
    prefix = b"s3://bucket/warehouse/table/"
    cuts = [prefix + bytes([place]) for place in range(65, 65 + 20)]
    values = [
        prefix,
        prefix[:-1],
        prefix[:5],
        b"",
        prefix + b"A",
        prefix + b"A0",
        prefix + b"\xff",
        b"s3://bucket/x",
        b"a",
    ]
    check(cuts, [*values, *cuts])


def test_ranks_of_text_that_differs_in_nuls_only() -> None:
    """Zeros pad a window: `a` and `a` NUL look alike in it."""
    cuts = [b"a" + b"\x00" * place for place in range(FEW_CUTS + 6)]
    check(cuts, [b"", b"a", *cuts, b"a" + b"\x00" * 40, b"a\x00\x01", b"b", b"\x00"])


def test_ranks_where_the_first_cut_is_a_prefix_of_all_others() -> None:
    cuts = [b"ab", *(b"ab" + bytes([place]) for place in range(20))]
    check(cuts, [b"a", b"ab", b"ab\x00", b"ab\x00\x00", b"ab\x13", b"ab\x14", b"ac", b""])


def test_ranks_where_a_cut_is_empty() -> None:
    check([b"", *(bytes([place]) for place in range(1, 20))], [b"", b"\x00", b"\x01", b"\xff"])


def test_ranks_of_bytes_that_are_no_text() -> None:
    cuts = [b"\xff\xfe" + bytes([place]) for place in range(0, 40, 2)]
    check(cuts, [b"\xff", b"\xff\xfe", b"\xff\xfe\x01", b"\xff\xff", b"\xfe", *cuts])


def test_ranks_of_wide_decimals_around_zero() -> None:
    numbers = [-(10**30), -1000, -256, -1, 0, 1, 255, 256, 65_536, 10**20, 10**30]
    check(
        [decimal_bytes(number) for number in numbers],
        [decimal_bytes(n + step) for n in numbers for step in (-1, 0, 1)],
    )


def test_rank_of_what_is_unknown_disturbs_no_other() -> None:
    cuts = np.empty(20, object)
    cuts[:] = [bytes([place]) for place in range(65, 85)]
    assert ranks(binary(b"A", None, b"C"), cuts, "right")[[0, 2]].tolist() == [1, 3]
    nothing = encode(pa.nulls(2), pa.string())
    assert len(ranks(nothing, cuts, "right")) == 2


def test_windows_are_big_endian_and_end_with_zeros() -> None:
    found = windows(pa.array([b"\x01", b"", b"123456789", None], pa.large_binary()), 0)
    assert found[:3].tolist() == [1 << 56, 0, int.from_bytes(b"12345678", "big")]
    assert windows(pa.array([b"123456789", b"1"], pa.large_binary()), 8).tolist() == [ord("9") << 56, 0]
    assert windows(pa.array([b"x", b"ab"], pa.large_binary()).slice(1), 1).tolist() == [ord("b") << 56]
    assert windows(pa.array([], pa.large_binary()), 0).tolist() == []


def test_words_make_keys_of_sixteen_bytes() -> None:
    made = from_words(np.array([1], np.uint64), np.array([2], np.uint64))
    assert made.to_pylist() == [(1 << 64 | 2).to_bytes(16, "big")]


def test_masks_come_from_arrays_and_chunks() -> None:
    assert mask_of(pa.array([True, False])).tolist() == [True, False]
    assert mask_of(pa.chunked_array([[True], [False]])).tolist() == [True, False]
