"""Sets of values: made, asked, combined; and that two ways to say one set are equal."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.predicate.keys import INT64_MAX, INT64_MIN, KeySpan, decimal_bytes, key_span
from tamis.predicate.values import ValueSet

BYTE = key_span(pa.int8())
LONG = key_span(pa.int64())
TEXT = key_span(pa.string())


def ints(*keys: int) -> ValueSet:
    return ValueSet.of_keys(keys)


def listed(found: Any) -> list[Any] | None:  # noqa: ANN401 - an array or None
    return None if found is None else found.tolist()


def test_the_four_constants_differ_in_what_they_hold() -> None:
    nothing, null, some, everything = (
        ValueSet.nothing(),
        ValueSet.null(),
        ValueSet.not_null(),
        ValueSet.everything(),
    )
    assert [(s.holds(5), s.nulls) for s in (nothing, null, some, everything)] == [
        (False, False),
        (False, True),
        (True, False),
        (True, True),
    ]
    assert [s.is_empty for s in (nothing, null, some, everything)] == [True, False, False, False]
    assert [s.is_everything for s in (nothing, null, some, everything)] == [False, False, False, True]


def test_range_holds_its_start_and_not_its_end() -> None:
    found = ValueSet.between(3, 5)
    assert [found.holds(key) for key in (2, 3, 4, 5)] == [False, True, True, False]


@pytest.mark.parametrize(("start", "end"), [(5, 5), (6, 5)])
def test_range_that_ends_before_it_starts_is_empty(start: int, end: int) -> None:
    assert ValueSet.between(start, end).is_empty


def test_range_without_ends_is_every_value_but_null() -> None:
    assert ValueSet.between(None, None) == ValueSet.not_null()


def test_keys_side_by_side_become_one_run() -> None:
    """A thousand consecutive ids are one range: two cuts, not two thousand."""
    assert ints(3, 1, 2, 2).cuts.tolist() == [1, 4]
    assert ints(1, 2, 4).cuts.tolist() == [1, 3, 4, 5]


def test_greatest_key_of_all_has_nothing_above_it() -> None:
    """INT64_MAX + 1 would wrap to the least key and turn the set inside out."""
    found = ints(INT64_MAX, INT64_MAX - 1, INT64_MIN)
    assert [found.holds(key) for key in (INT64_MIN, INT64_MIN + 1, 0, INT64_MAX - 2, INT64_MAX - 1, INT64_MAX)] == [
        True, False, False, False, True, True,
    ]  # fmt: skip


def test_text_keys_with_trailing_nuls_are_not_the_same() -> None:
    """Numpy's own byte strings would drop them."""
    found = ValueSet.of_keys([b"a", b"a\x00\x00"])
    assert [found.holds(key) for key in (b"a", b"a\x00", b"a\x00\x00", b"a\x00\x00\x00")] == [
        True,
        False,
        True,
        False,
    ]


def test_empty_key_is_a_value() -> None:
    assert ValueSet.of_keys([b""]).holds(b"")
    assert not ValueSet.of_keys([b""]).holds(b"\x00")


def test_no_keys_are_the_empty_set() -> None:
    assert ValueSet.of_keys([]).is_empty
    assert ValueSet.of_keys(np.empty(0, np.int64)).is_empty
    assert ValueSet.of_keys(np.empty(0, object)).is_empty


def test_complement_turns_every_answer_round_also_for_null() -> None:
    found = ints(1, 5)
    other = found.complement()
    assert all(found.holds(key) != other.holds(key) for key in range(-1, 8))
    assert (found.nulls, other.nulls) == (False, True)
    assert other.complement() == found


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (ValueSet.between(None, 5), ValueSet.between(5, None)),
        (ints(1, 2, 3), ints(3, 4)),
        (ValueSet.not_null(), ints(1)),
        (ValueSet.nothing(), ints(1)),
        (ValueSet.null(), ints(1)),
        (ValueSet.everything(), ints(1)),
        (ints(1).complement(), ints(2).complement()),
        (ValueSet.between(0, 10), ValueSet.between(3, 4).complement()),
    ],
)
def test_union_and_intersection_answer_key_by_key(left: ValueSet, right: ValueSet) -> None:
    for key in range(-1, 12):
        assert left.union(right).holds(key) == (left.holds(key) or right.holds(key))
        assert left.intersect(right).holds(key) == (left.holds(key) and right.holds(key))
    assert left.union(right).nulls == (left.nulls or right.nulls)
    assert left.intersect(right).nulls == (left.nulls and right.nulls)


def test_two_halves_join_without_a_cut_between_them() -> None:
    """`a < 5 OR a >= 5` must be seen to be every value but NULL."""
    assert ValueSet.between(None, 5).union(ValueSet.between(5, None)) == ValueSet.not_null()
    assert ValueSet.between(5, None).intersect(ValueSet.between(None, 5)).is_empty


def test_sets_of_text_combine_with_sets_without_cuts() -> None:
    """A set without cuts has the dtype of numbers: it must not turn bytes into something else."""
    text = ValueSet.of_keys([b"a", b"b"])
    assert ValueSet.not_null().intersect(text) == text
    assert text.intersect(ValueSet.not_null()) == text
    assert ValueSet.nothing().union(text) == text
    assert text.union(ValueSet.null()).holds(b"b")


def test_cuts_outside_a_type_go() -> None:
    assert ValueSet.between(None, 1000).clip(BYTE) == ValueSet.not_null()
    assert ValueSet.between(1000, None).clip(BYTE).is_empty
    assert ValueSet.between(-128, 128).clip(BYTE) == ValueSet.not_null()
    assert ValueSet.between(127, 128).clip(BYTE) == ValueSet.between(127, None)
    assert ValueSet.of_keys([-129, 5]).clip(BYTE) == ValueSet.of_keys([5])


def test_clipping_keeps_null() -> None:
    assert ValueSet.between(1000, None).union(ValueSet.null()).clip(BYTE) == ValueSet.null()


def test_points_lists_the_keys_of_a_finite_set() -> None:
    assert listed(ints(7, 3, 4).points(10, LONG)) == [3, 4, 7]
    assert listed(ValueSet.between(120, None).points(10, BYTE)) == list(range(120, 128))
    assert listed(ValueSet.between(None, -126).points(10, BYTE)) == [-128, -127]
    assert listed(ValueSet.of_keys([b"b", b"a"]).points(10, TEXT)) == [b"a", b"b"]


@pytest.mark.parametrize("found", [ValueSet.nothing(), ValueSet.null()])
@pytest.mark.parametrize("span", [LONG, BYTE, TEXT])
def test_points_of_a_set_without_values_are_none_of_them(found: ValueSet, span: KeySpan) -> None:
    points = found.points(10, span)
    assert points is not None
    assert len(points) == 0


def test_too_many_points_are_not_listed() -> None:
    assert ValueSet.between(0, 11).points(10, LONG) is None
    assert listed(ValueSet.between(0, 10).points(10, LONG)) == list(range(10))
    assert ValueSet.not_null().points(10, LONG) is None
    assert ValueSet.between(INT64_MIN, None).points(10**6, LONG) is None
    assert ints(*range(0, 40, 2)).points(10, LONG) is None


def test_texts_that_differ_in_trailing_nuls_are_points_all_the_same() -> None:
    """`a` and `a` NUL are neighbours: their runs join, and are still two values to hash."""
    found = ValueSet.of_keys([b"", b"\x00", b"a", b"a\x00", b"a\x00\x00", b"b"])
    assert listed(found.points(10, TEXT)) == [b"", b"\x00", b"a", b"a\x00", b"a\x00\x00", b"b"]
    assert found.points(5, TEXT) is None


def test_a_range_of_text_has_no_points() -> None:
    assert ValueSet.between(b"a", b"b").points(10, TEXT) is None
    assert ValueSet.between(b"a", None).points(10, TEXT) is None


def test_points_at_both_ends_of_sixty_four_bits() -> None:
    assert listed(ints(INT64_MIN, INT64_MAX).points(10, LONG)) == [INT64_MIN, INT64_MAX]


def test_one_wide_decimal_is_one_point() -> None:
    """`d = 5` on decimal(20, 2) reaches from 5.00 to just below 5.01: a single value, whose bucket is known."""
    span = key_span(pa.decimal128(20, 2))
    five = ValueSet.between(decimal_bytes(500), decimal_bytes(501))
    assert listed(five.points(10, span)) == [decimal_bytes(500)]
    assert listed(ValueSet.between(decimal_bytes(500), decimal_bytes(503)).points(10, span)) == [
        decimal_bytes(number) for number in (500, 501, 502)
    ]


def test_one_uuid_is_one_point() -> None:
    span = key_span(pa.uuid())
    start, end = ((7).to_bytes(16, "big"), (8).to_bytes(16, "big"))
    assert listed(ValueSet.between(start, end).points(10, span)) == [start]
    last = b"\xff" * 16
    assert listed(ValueSet.between(last, None).points(10, span)) == [last]


def test_equal_sets_are_equal_and_hash_alike() -> None:
    left, right = ints(1, 2), ValueSet.between(1, 3)
    assert left == right
    assert hash(left) == hash(right)
    assert left != right.complement()
    assert left != ValueSet.between(1, 4)
    assert ValueSet.null() != ValueSet.nothing()
    assert left != "a set"


def test_without_null_only_null_goes() -> None:
    assert ValueSet.everything().without_null() == ValueSet.not_null()
    assert ints(1).without_null() == ints(1)
