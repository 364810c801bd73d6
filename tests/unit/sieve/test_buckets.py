"""Which buckets a predicate needs: the listed cases, and everything that must keep all of them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from tamis.predicate.bound import AllOf, AnyOf, Bound, BoundPredicate, Known, Leaf, Unclear
from tamis.predicate.keys import NAN_KEY, decimal_bytes, float_key
from tamis.predicate.schema import Column
from tamis.predicate.values import ValueSet
from tamis.sieve.buckets import MAX_BRANCHES, BucketSelector
from tamis.sieve.domain import ColumnStats, Facts, stats_domain
from tamis.sieve.inverse import is_value, to_values
from tamis.sieve.order import encode

ID = Column(1, ("id",), pa.int64())
NAME = Column(2, ("name",), pa.string())
DAY = Column(3, ("day",), pa.date32())
PRICE = Column(4, ("price",), pa.float64())


def leaf(column: Column, *keys: int | bytes | None) -> Leaf:
    """The column is one of these keys; None is NULL."""
    known = ValueSet.of_keys([key for key in keys if key is not None])
    accepted = ValueSet(known.cuts, known.inside_first, None in keys)
    return Leaf(column, accepted, accepted, f"{column.name} in {keys}")


def ranged(column: Column, start: int | None, end: int | None) -> Leaf:
    accepted = ValueSet.between(start, end)
    return Leaf(column, accepted, accepted, f"{column.name} in [{start}, {end})")


def both(*operands: Bound) -> AllOf:
    return AllOf(operands, "and")


def either(*operands: Bound) -> AnyOf:
    return AnyOf(operands, "or")


def by_sum(keys: pa.Table, total: int) -> np.ndarray:
    """A hash that a reader can follow: numbers and lengths added up, NULL counting 1."""
    numbers = [[1 if v is None else len(v) if isinstance(v, str) else v for v in c.to_pylist()] for c in keys.columns]
    return np.array([sum(row) % total for row in zip(*numbers, strict=True)])


def selector(root: Bound, *columns: Column, max_values: int = 1000) -> BucketSelector:
    return BucketSelector(BoundPredicate(root, "test"), columns or (ID,), by_sum, max_values)


def chosen(found: BucketSelector, total: int = 8) -> list[int]:
    """The buckets that are kept of so many."""
    kept = found.select(pa.array(range(total)), pa.array([total] * total))
    return np.flatnonzero(kept).tolist()


EVERY = list(range(8))


# -- the predicate's shape ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (leaf(ID, 5), [5]),
        (leaf(ID, 5, 13, 6), [5, 6]),
        (either(leaf(ID, 1), leaf(ID, 2)), [1, 2]),
        (ranged(ID, 3, 6), [3, 4, 5]),
        (both(ranged(ID, 3, None), ranged(ID, None, 5)), [3, 4]),
        (both(leaf(ID, 1, 2, 3), leaf(ID, 2, 3, 4)), [2, 3]),
        (both(leaf(ID, 1, 2), either(leaf(ID, 2), leaf(NAME, b"x"))), [1, 2]),
        (both(leaf(ID, 4), Unclear("udf(x)")), [4]),
        (both(leaf(ID, 4), leaf(NAME, b"x")), [4]),
        (both(leaf(ID, 4), Known(value=True)), [4]),
        (either(leaf(ID, 4), Known(value=False)), [4]),
        (leaf(ID, None), [1]),
        (leaf(ID, 4, None), [1, 4]),
    ],
)
def test_finite_key_chooses_its_buckets(root: Bound, expected: list[int]) -> None:
    assert chosen(selector(root)) == expected


@pytest.mark.parametrize(
    "root",
    [
        leaf(NAME, b"x"),
        ranged(ID, 3, None),
        Unclear("udf(id)", (ID,)),
        Known(value=True),
        either(leaf(ID, 1), leaf(NAME, b"x")),
        either(leaf(ID, 1), Unclear("udf(x)")),
        either(leaf(ID, 1), ranged(ID, 5, None)),
        Leaf(ID, leaf(ID, 5).outer.complement(), ValueSet.nothing(), "id != 5"),
    ],
)
def test_unlimited_key_keeps_every_bucket(root: Bound) -> None:
    """One branch that any id can satisfy may match in any bucket."""
    found = selector(root)
    assert chosen(found) == EVERY
    assert found.combinations is None
    assert found.reason == "id is not limited to at most 1,000 values"


@pytest.mark.parametrize(
    "root",
    [
        both(leaf(ID, 1), leaf(ID, 2)),
        both(either(leaf(ID, 1), leaf(ID, 2)), leaf(ID, 3)),
        both(leaf(ID, 1), Leaf(NAME, ValueSet.nothing(), ValueSet.nothing(), "name in ()")),
        Known(value=False),
        either(both(leaf(ID, 1), leaf(ID, 2)), both(leaf(ID, 3), leaf(ID, 4))),
    ],
)
def test_contradiction_needs_no_bucket(root: Bound) -> None:
    """Peers fall back to a full scan here, and read 30 files of 40 for nothing."""
    found = selector(root)
    assert chosen(found) == []
    assert found.combinations == 0
    assert not found.select(pa.array([None, 5], pa.int32()), pa.array([0, None], pa.int32())).any()


def test_several_key_columns_combine_per_branch() -> None:
    """(id 1, name aa) and (id 3, name bbbb): two combinations, not the four of the product."""
    root = either(both(leaf(ID, 1), leaf(NAME, b"aa")), both(leaf(ID, 3), leaf(NAME, b"bbbb")))
    found = selector(root, ID, NAME)
    assert found.combinations == 2
    assert chosen(found) == [3, 7]


def test_key_columns_limited_apart_give_the_product() -> None:
    found = selector(both(leaf(ID, 1, 3), leaf(NAME, b"a", b"aaa")), ID, NAME)
    assert found.combinations == 4
    assert chosen(found) == [2, 4, 6]


def test_one_key_column_left_open_keeps_every_bucket() -> None:
    found = selector(leaf(ID, 1), ID, NAME)
    assert chosen(found) == EVERY
    assert found.reason == "name is not limited to at most 1,000 values"


def test_many_ored_values_are_one_branch() -> None:
    found = selector(either(*(leaf(ID, key) for key in range(0, 800, 8))))
    assert found.combinations == 100
    assert chosen(found) == [0]


def test_ored_pairs_are_limited_by_the_number_of_combinations_alone() -> None:
    pairs = [both(leaf(ID, 8 * i), leaf(NAME, b"x" * (8 * i))) for i in range(40)]
    found = selector(either(*pairs), ID, NAME)
    assert found.combinations == 40
    assert chosen(found) == [0]


def test_anded_ors_do_not_explode() -> None:
    """Twenty ORs of two columns would be a million branches; what is left out can only narrow."""
    ors = [either(leaf(ID, i, 100), leaf(NAME, b"x" * i, b"y")) for i in range(20)]
    assert chosen(selector(both(leaf(ID, 5), leaf(NAME, b"xxxxx"), *ors), ID, NAME)) in ([2], [])
    assert chosen(selector(both(*ors), ID, NAME)) == EVERY


def _pairs(count: int, bucket: int) -> AnyOf:
    """So many branches, none of which can be merged with another, that all hash to one bucket of eight."""
    return either(*(both(leaf(ID, 8 * i), leaf(NAME, b"x" * (8 * i + bucket))) for i in range(count)))


def test_and_beyond_the_branch_limit_keeps_every_bucket_of_its_matches() -> None:
    """40 branches with 40 are more than the limit: the second OR is left out, and the first still chooses."""
    assert MAX_BRANCHES < 40 * 40
    found = selector(both(_pairs(40, 3), _pairs(40, 3)), ID, NAME)
    assert chosen(found) == [3]
    assert found.combinations == 40


def test_and_beyond_the_branch_limit_drops_only_what_the_branches_so_far_exclude() -> None:
    """No row matches both, but that is past the limit: what is known by then, one bucket, is kept."""
    assert chosen(selector(both(_pairs(40, 3), _pairs(41, 5)), ID, NAME)) == [3]


def test_and_within_the_branch_limit_is_followed_to_its_contradiction() -> None:
    assert MAX_BRANCHES > 30 * 31
    assert chosen(selector(both(_pairs(30, 3), _pairs(31, 5)), ID, NAME)) == []


def test_or_beyond_the_branch_limit_keeps_every_bucket() -> None:
    at, beyond = (
        either(*(both(leaf(ID, i, -i - 1), leaf(NAME, b"%d" % i, b"%dx" % i)) for i in range(count)))
        for count in (MAX_BRANCHES, MAX_BRANCHES + 1)
    )
    assert selector(at, ID, NAME, max_values=10**6).combinations == 4 * MAX_BRANCHES
    found = selector(beyond, ID, NAME, max_values=10**6)
    assert found.combinations is None
    assert chosen(found) == EVERY


def test_more_combinations_than_the_limit_keep_every_bucket() -> None:
    assert selector(leaf(ID, *range(1000))).combinations == 1000
    found = selector(leaf(ID, *range(1001)))
    assert chosen(found) == EVERY
    assert "1,000" in (found.reason or "")
    wide = selector(both(leaf(ID, *range(4)), leaf(NAME, b"a", b"b", b"c")), ID, NAME, max_values=11)
    assert chosen(wide) == EVERY
    assert wide.reason == "more than 11 combinations of bucket-key values match"


def test_table_without_a_bucket_key_keeps_every_bucket() -> None:
    found = BucketSelector(BoundPredicate(leaf(ID, 1), ""), (), by_sum)
    assert chosen(found) == EVERY
    assert found.reason == "the table has no bucket key"


def test_key_column_of_another_type_than_the_predicate_keeps_every_bucket() -> None:
    """The keys of another type have another meaning, and another hash."""
    assert chosen(selector(leaf(Column(1, ("id",), pa.int32()), 5))) == EVERY


# -- files ----------------------------------------------------------------------------------------------------


def test_bucket_counts_may_differ_between_files() -> None:
    """A rescaled table has files of both counts: each is hashed with its own."""
    found = selector(leaf(ID, 13))
    kept = found.select(pa.array([5, 1, 1, 5]), pa.array([8, 8, 4, 16]))
    assert kept.tolist() == [True, False, True, False]
    assert found.chosen == {4: (1,), 8: (5,), 16: (13,)}


@pytest.mark.parametrize(
    ("bucket", "total"), [(0, 0), (0, -1), (0, None), (None, 8), (-2, 8), (8, 8), (0, -2), (-1, -1)]
)
def test_bucket_that_says_nothing_is_kept(bucket: int | None, total: int | None) -> None:
    kept = selector(leaf(ID, 5)).select(pa.array([bucket], pa.int32()), pa.array([total], pa.int32()))
    assert kept.tolist() == [True]


def test_no_files_are_selected_without_asking_the_hash() -> None:
    assert selector(leaf(ID, 5)).select(pa.array([], pa.int32()), pa.array([], pa.int32())).tolist() == []


def test_hash_is_asked_once_for_each_total() -> None:
    asked = []

    def counting(keys: pa.Table, total: int) -> np.ndarray:
        asked.append(total)
        return by_sum(keys, total)

    found = BucketSelector(BoundPredicate(leaf(ID, 5), ""), (ID,), counting)
    for _ in range(3):
        found.select(pa.array([1, 2, 3]), pa.array([8, 4, 8]))
    assert sorted(asked) == [4, 8]


def test_guard_that_partitions_disprove_frees_the_branch() -> None:
    """(day 1 and id 5) or (day 2 and id 6) reads one bucket of each day, as Java does by substituting partitions."""
    root = either(both(leaf(DAY, 1), leaf(ID, 5)), both(leaf(DAY, 2), leaf(ID, 6)), leaf(DAY, 3))
    days = pa.array([1, 1, 2, 2, 3, 4], pa.int32()).cast(pa.date32())
    facts = Facts(6, {DAY.id: stats_domain(DAY, ColumnStats(days, days, pa.array([0] * 6)), 6)})
    buckets, totals = pa.array([5, 6, 5, 6, 0, 5]), pa.array([8] * 6)
    found = selector(root)
    assert found.select(buckets, totals).all()
    assert found.select(buckets, totals, facts).tolist() == [True, False, False, True, True, False]


# -- the hash -------------------------------------------------------------------------------------------------


def test_value_that_the_hash_cannot_take_keeps_every_bucket() -> None:
    def refusing(_keys: pa.Table, _total: int) -> np.ndarray:
        raise ValueError("NULL keys have no bucket")

    found = BucketSelector(BoundPredicate(leaf(ID, None), ""), (ID,), refusing)
    assert chosen(found) == EVERY
    assert found.reason == "the bucket hash cannot take a value: NULL keys have no bucket"
    assert found.chosen == {8: None}


def test_hash_that_answers_none_keeps_every_bucket() -> None:
    found = BucketSelector(BoundPredicate(leaf(ID, 1), ""), (ID,), lambda *_: None)
    assert chosen(found) == EVERY
    assert found.reason == "the bucket hash cannot take these values"


@pytest.mark.parametrize("wrong", [-1, 8])
def test_hash_outside_the_buckets_keeps_every_bucket(wrong: int) -> None:
    found = BucketSelector(BoundPredicate(leaf(ID, 1), ""), (ID,), lambda keys, _: np.full(len(keys), wrong))
    assert chosen(found) == EVERY
    assert "outside 0 to 7" in (found.reason or "")


def test_hash_sees_typed_values_in_the_key_order() -> None:
    seen: list[pa.Table] = []

    def recording(keys: pa.Table, _total: int) -> np.ndarray:
        seen.append(keys)
        return np.zeros(len(keys), np.int64)

    root = both(leaf(DAY, 19737, None), leaf(NAME, b"b", b"a"))
    chosen(BucketSelector(BoundPredicate(root, ""), (NAME, DAY), recording))
    assert seen[0].schema == pa.schema({"name": pa.string(), "day": pa.date32()})
    day = date(2024, 1, 15)
    assert [tuple(row.values()) for row in seen[0].to_pylist()] == [("a", None), ("a", day), ("b", None), ("b", day)]


def test_zero_is_hashed_with_both_signs() -> None:
    """-0.0 equals 0.0, but a writer hashes its bits: a peer loses such rows."""
    bits = []

    def recording(keys: pa.Table, _total: int) -> np.ndarray:
        bits.extend(np.signbit(keys.column(0).to_numpy()).tolist())
        return np.zeros(len(keys), np.int64)

    chosen(BucketSelector(BoundPredicate(leaf(PRICE, float_key(0.0), float_key(1.5)), ""), (PRICE,), recording))
    assert sorted(bits) == [False, False, True]


def test_nan_keeps_every_bucket() -> None:
    found = selector(leaf(PRICE, NAN_KEY), PRICE)
    assert chosen(found) == EVERY
    assert "NaN" in (found.reason or "")


def test_nan_of_a_float32_keeps_every_bucket() -> None:
    """It equals not even itself as 32 bits: it must not be taken for a key that no float has, and be forgotten."""
    narrow = Column(4, ("price",), pa.float32())
    assert is_value(NAN_KEY, pa.float32())
    for root in (leaf(narrow, NAN_KEY), leaf(narrow, float_key(0.5), NAN_KEY)):
        found = selector(root, narrow)
        assert chosen(found) == EVERY
        assert "NaN" in (found.reason or "")
    assert chosen(BucketSelector(BoundPredicate(leaf(narrow, float_key(0.1)), ""), (narrow,), by_sum)) == []


# -- keys back to values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array",
    [
        pa.array([True, False, None]),
        pa.array([-128, 127, None], pa.int8()),
        pa.array([-(2**63), 2**63 - 1, None]),
        pa.array([0.0, -1.5, float("inf"), float("-inf"), 5e-324, None]),
        pa.array([0.5, -0.25, None], pa.float32()),
        pa.array([Decimal("-9.99"), Decimal("0.01"), None], pa.decimal128(3, 2)),
        pa.array([Decimal(10**38 - 1), Decimal(-(10**38) + 1), Decimal(-1), None], pa.decimal128(38, 0)),
        pa.array([Decimal("0.1"), None], pa.decimal128(38, 38)),
        pa.array([-1, 2**31 - 1, None], pa.int32()).view(pa.date32()),
        pa.array([0, 86_399, None], pa.int32()).view(pa.time32("s")),
        pa.array([0, 86_399_999_999_999, None]).view(pa.time64("ns")),
        pa.array([-(2**63), 0, 2**63 - 1, None]).view(pa.timestamp("ns", "UTC")),
        pa.array(["", "é", "\U0010ffff", None]),
        pa.array(["a", None], pa.large_string()),
        pa.array([b"", b"\xff", None]),
        pa.array([b"ab", None], pa.binary(2)),
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([UUID(int=7).bytes, None], pa.binary(16))),
    ],
    ids=lambda array: str(array.type),
)
def test_keys_give_back_the_values_that_they_came_from(array: pa.Array) -> None:
    encoded = encode(array, array.type)
    keys = encoded.keys.tolist() if isinstance(encoded.keys, np.ndarray) else encoded.keys.to_pylist()
    restored = to_values([key if ok else None for key, ok in zip(keys, encoded.valid, strict=True)], array.type)
    assert restored.type == array.type
    assert restored.equals(array)
    assert all(is_value(key, array.type) for key, ok in zip(keys, encoded.valid, strict=True) if ok)


@pytest.mark.parametrize(
    ("key", "type_"),
    [
        (float_key(0.1), pa.float32()),
        (float_key(1e300), pa.float32()),
        (float_key(float("inf")) + 1, pa.float64()),
        (b"abc", pa.binary(4)),
        (decimal_bytes(5) + b"\0", pa.decimal128(38, 0)),
        (b"short", pa.uuid()),
    ],
)
def test_key_between_two_values_is_none(key: int | bytes, type_: pa.DataType) -> None:
    assert not is_value(key, type_)


def test_bytes_that_are_no_text_are_refused() -> None:
    """Spark's strings may hold them, a hash function's need not: the selector then keeps every bucket."""
    with pytest.raises(pa.ArrowInvalid):
        to_values([b"\xff"], pa.string())
    found = selector(leaf(NAME, b"\xff"), NAME)
    assert chosen(found) == EVERY
