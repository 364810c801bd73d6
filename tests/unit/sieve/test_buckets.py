"""Which buckets a predicate needs: the listed cases, and everything that must keep all of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from tamis.predicate.bound import AllOf, AnyOf, Bound, BoundPredicate, Known, Leaf, Unclear
from tamis.predicate.keys import NAN_KEY, decimal_bytes, float_key
from tamis.predicate.schema import Column, Schema
from tamis.predicate.values import ValueSet
from tamis.sieve.buckets import MAX_BRANCHES, BucketSelector
from tamis.sieve.domain import ColumnStats, Facts, stats_domain
from tamis.sieve.file_buckets import MAX_TOTALS, FileBuckets, bucket_facts
from tamis.sieve.hashing import ANY_BUCKET, EitherHash
from tamis.sieve.join.runtime import RuntimeFilter
from tamis.sieve.judge import judge
from tamis.sieve.key_values import is_value, to_values
from tamis.sieve.order import encode
from tests.making.hashes import ValueHash, whole_keys

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
    return BucketSelector(BoundPredicate(root, "test"), columns or (ID,), max_values)


def chosen(
    found: BucketSelector, total: int = 8, by: Callable[[pa.Table, int], np.ndarray | None] = by_sum
) -> list[int]:
    """The buckets that are kept of so many."""
    kept = found.possible(whole_keys(ValueHash(by), found.columns, range(total), total))
    return np.flatnonzero(kept).tolist()


def kept_of(
    root: Bound, buckets: list[int | None], totals: list[int | None], facts: Facts | None = None
) -> list[bool]:
    """The files that are kept of a batch that states these buckets of id."""
    arrays = (pa.array(part, pa.int32()) for part in (buckets, totals))
    stated = FileBuckets(*arrays, (ID,), ValueHash(by_sum))
    known, _ = bucket_facts([stated], {ID.id: ID}, np.arange(len(buckets)))
    return judge(root, known if facts is None else known.and_also(facts)).possible.tolist()


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
    assert not found.possible(Facts(2, {})).any()


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
    found = BucketSelector(BoundPredicate(leaf(ID, 1), ""), ())
    assert found.possible(Facts(3, {})).all()
    assert found.reason == "the table has no bucket key"


def test_key_column_of_another_type_than_the_predicate_keeps_every_bucket() -> None:
    """The keys of another type have another meaning, and another hash."""
    assert chosen(selector(leaf(Column(1, ("id",), pa.int32()), 5))) == EVERY


# -- files ----------------------------------------------------------------------------------------------------


def test_bucket_counts_may_differ_between_files() -> None:
    """A rescaled table has files of both counts: each is hashed with its own."""
    assert kept_of(leaf(ID, 13), [5, 1, 1, 5, 13], [8, 8, 4, 16, 16]) == [True, False, True, False, True]


def test_whole_keys_of_several_totals_are_hashed_with_each_files_own() -> None:
    stated = FileBuckets(pa.array([7, 3, 3, 7]), pa.array([8, 8, 4, 16]), (ID, NAME), ValueHash(by_sum))
    known, faults = bucket_facts([stated], {ID.id: ID, NAME.id: NAME}, np.arange(4))
    root = both(leaf(ID, 10), leaf(NAME, b"abcde"))
    assert selector(root, ID, NAME).possible(known).tolist() == [True, False, True, False]
    assert faults == []


@pytest.mark.parametrize(
    ("bucket", "total"), [(0, 0), (0, -1), (0, None), (None, 8), (-2, 8), (8, 8), (0, -2), (-1, -1)]
)
def test_bucket_that_says_nothing_is_kept(bucket: int | None, total: int | None) -> None:
    assert kept_of(leaf(ID, 5), [bucket], [total]) == [True]


def test_bucket_outside_its_total_is_reported() -> None:
    stated = FileBuckets(pa.array([9, 1]), pa.array([8, 8]), (ID,), ValueHash(by_sum))
    _, faults = bucket_facts([stated], {ID.id: ID}, np.arange(2))
    assert faults == ["buckets of id ignored in 1 files: there is no bucket 9 of 8"]


def test_more_totals_than_a_table_has_keep_the_rest() -> None:
    totals = list(range(10, 10 + MAX_TOTALS + 5))
    stated = FileBuckets(pa.array([0] * len(totals)), pa.array(totals), (ID,), ValueHash(by_sum))
    known, faults = bucket_facts([stated], {ID.id: ID}, np.arange(len(totals)))
    assert len(known.domains[ID.id].buckets) == MAX_TOTALS
    assert faults == ["buckets of id ignored in some files: there are 69 different totals"]


def test_key_hashed_with_another_type_says_nothing() -> None:
    """A Paimon table whose bucket key was widened since: files were placed by the hash of the narrower one."""
    narrow = Column(1, ("id",), pa.int32())
    stated = FileBuckets(pa.array([5]), pa.array([8]), (narrow,), ValueHash(by_sum))
    known, faults = bucket_facts([stated], {ID.id: ID}, np.arange(1))
    assert (known.domains, known.buckets) == ({}, ())
    assert faults == ["buckets of id ignored: id was hashed as int, and is bigint by now"]


def test_key_that_nobody_asks_for_says_nothing() -> None:
    stated = FileBuckets(pa.array([5]), pa.array([8]), (ID, NAME), ValueHash(by_sum))
    known, faults = bucket_facts([stated, FileBuckets(pa.array([5]), pa.array([8]))], {ID.id: ID}, np.arange(1))
    assert (known.domains, known.buckets, faults) == ({}, (), [])


def test_null_has_a_bucket_of_its_own() -> None:
    """NULL is hashed as any value is, so that files of other buckets hold none: there `IS NOT NULL` is certain."""
    stated = FileBuckets(pa.array([0, 1, None]), pa.array([8] * 3), (ID,), ValueHash(by_sum))
    known, _ = bucket_facts([stated], {ID.id: ID}, np.arange(3))
    assert known.domains[ID.id].may_null.tolist() == [False, True, True]
    assert kept_of(leaf(ID, None), [0, 1, None], [8] * 3) == [False, True, True]
    refuses = FileBuckets(pa.array([0, 1]), pa.array([8] * 2), (ID,), ValueHash(nowhere))
    assert bucket_facts([refuses], {ID.id: ID}, np.arange(2))[0].domains[ID.id].may_null.all()


def nowhere(keys: pa.Table, _total: int) -> np.ndarray:
    """A hash that cannot tell of any key."""
    return np.full(len(keys), ANY_BUCKET)


def test_no_files_are_selected_without_asking_the_hash() -> None:
    assert kept_of(leaf(ID, 5), [], []) == []


def test_hash_is_asked_once_for_each_total() -> None:
    asked = []

    def counting(keys: pa.Table, total: int) -> np.ndarray:
        asked.append(total)
        return by_sum(keys, total)

    found = selector(leaf(ID, 5))
    facts = whole_keys(ValueHash(counting), (ID,), [1, 2, 3], 8)
    facts = whole_keys(ValueHash(counting), (ID,), [1, 2, 3], 4, facts)
    for _ in range(3):
        found.possible(facts)
    assert sorted(asked) == [4, 8]


def days(*found: int) -> Facts:
    array = pa.array(found, pa.int32()).cast(pa.date32())
    stats = ColumnStats(array, array, pa.array([0] * len(found)))
    return Facts(len(found), {DAY.id: stats_domain(DAY, stats, len(found))})


def test_guard_that_partitions_disprove_frees_the_branch() -> None:
    """(day 1 and id 5) or (day 2 and id 6) reads one bucket of each day, as Java does by substituting partitions."""
    root = either(both(leaf(DAY, 1), leaf(ID, 5)), both(leaf(DAY, 2), leaf(ID, 6)), leaf(DAY, 3))
    buckets, facts = [5, 6, 5, 6, 0, 5], days(1, 1, 2, 2, 3, 4)
    found = selector(root)
    assert found.possible(whole_keys(ValueHash(by_sum), (ID,), buckets, 8)).all()
    expected = [True, False, False, True, True, False]
    assert found.possible(whole_keys(ValueHash(by_sum), (ID,), buckets, 8, facts)).tolist() == expected
    assert kept_of(root, buckets, [8] * 6, facts) == expected


def test_guard_of_whole_keys_frees_the_branch() -> None:
    one, two = (both(leaf(DAY, day), leaf(ID, day), leaf(NAME, b"xxx")) for day in (1, 2))
    facts = whole_keys(ValueHash(by_sum), (ID, NAME), [4, 5, 4, 5, 4], 8, days(1, 1, 2, 2, 3))
    assert selector(either(one, two), ID, NAME).possible(facts).tolist() == [True, False, False, True, False]


def test_bucket_and_range_must_hold_one_and_the_same_key() -> None:
    """(1, aa) hashes into the file's bucket and (3, bbbb) lies in its range: neither does both."""
    root = either(both(leaf(ID, 1), leaf(NAME, b"aa")), both(leaf(ID, 3), leaf(NAME, b"bbbb")))
    bounds = ColumnStats(pa.array([3, 0]), pa.array([9, 2]), pa.array([0, 0]))
    facts = whole_keys(ValueHash(by_sum), (ID, NAME), [3, 3], 8, Facts(2, {ID.id: stats_domain(ID, bounds, 2)}))
    assert selector(root, ID, NAME).possible(facts).tolist() == [False, True]


# -- the hash -------------------------------------------------------------------------------------------------


def test_value_that_the_hash_cannot_take_keeps_every_bucket() -> None:
    def refusing(_keys: pa.Table, _total: int) -> np.ndarray:
        raise ValueError("NULL keys have no bucket")

    found = selector(leaf(ID, None))
    assert chosen(found, by=refusing) == EVERY
    assert found.reason == "the bucket hash cannot take a value: NULL keys have no bucket"


def test_hash_that_refuses_keeps_every_bucket() -> None:
    found = selector(leaf(ID, 1))
    assert chosen(found, by=lambda *_: None) == EVERY
    assert found.reason == "the bucket hash cannot take these values"


def test_hash_that_refuses_a_type_is_reported_with_the_batch() -> None:
    stated = FileBuckets(pa.array([5]), pa.array([8]), (ID,), ValueHash(lambda *_: None))
    known, faults = bucket_facts([stated], {ID.id: ID}, np.arange(1))
    assert known.domains == {}
    assert faults == ["buckets of id ignored: the bucket hash cannot take these values"]


@pytest.mark.parametrize("wrong", [-2, 8])
def test_hash_outside_the_buckets_keeps_every_bucket(wrong: int) -> None:
    found = selector(leaf(ID, 1))
    assert chosen(found, by=lambda keys, _: np.full(len(keys), wrong)) == EVERY
    assert "outside 0 to 7" in (found.reason or "")


def test_key_that_may_lie_in_any_bucket_keeps_every_bucket_that_may_hold_it() -> None:
    """One key of two cannot be told: a file of any bucket is kept, unless its range leaves that key out."""

    def by_even(keys: pa.Table, total: int) -> np.ndarray:
        number = np.asarray(keys.column(0).fill_null(0))
        return np.where(number % 2, ANY_BUCKET, number % total)

    assert chosen(selector(leaf(ID, 2, 3)), by=by_even) == EVERY
    assert chosen(selector(leaf(ID, 2, 4)), by=by_even) == [2, 4]
    bounds = ColumnStats(pa.array([3, 0, 0]), pa.array([9, 2, 2]), pa.array([0] * 3))
    ranges = Facts(3, {ID.id: stats_domain(ID, bounds, 3)})
    found = whole_keys(ValueHash(by_even), (ID,), [5, 5, 2], 8, ranges)
    assert selector(leaf(ID, 2, 3)).possible(found).tolist() == [True, False, True]
    stated = FileBuckets(pa.array([5, 5, 2]), pa.array([8] * 3), (ID,), ValueHash(by_even))
    known, _ = bucket_facts([stated], {ID.id: ID}, np.arange(3))
    assert judge(leaf(ID, 2, 3), known.and_also(ranges)).possible.tolist() == [True, False, True]
    assert judge(leaf(ID, 2, 3), known).possible.all()


def test_hash_sees_typed_values_in_the_key_order() -> None:
    seen: list[pa.Table] = []

    def recording(keys: pa.Table, _total: int) -> np.ndarray:
        seen.append(keys)
        return np.zeros(len(keys), np.int64)

    root = both(leaf(DAY, 19737, None), leaf(NAME, b"b", b"a"))
    chosen(selector(root, NAME, DAY), by=recording)
    assert seen[0].schema == pa.schema({"0": pa.string(), "1": pa.date32()})
    day = date(2024, 1, 15)
    assert [tuple(row.values()) for row in seen[0].to_pylist()] == [("a", None), ("a", day), ("b", None), ("b", day)]


def by_bits(keys: pa.Table, total: int) -> np.ndarray:
    return np.asarray(keys.column(0).to_numpy()).view(np.int64) % total


def test_zero_may_lie_in_any_bucket() -> None:
    """-0.0 equals 0.0, but a writer hashes its bits: a peer loses such rows."""
    assert chosen(selector(leaf(PRICE, float_key(0.0), float_key(1.5)), PRICE), by=by_bits) == EVERY
    assert len(chosen(selector(leaf(PRICE, float_key(1.5)), PRICE), by=by_bits)) == 1


def test_nan_may_lie_in_any_bucket() -> None:
    assert chosen(selector(leaf(PRICE, NAN_KEY), PRICE), by=by_bits) == EVERY


def test_nan_of_a_float32_keeps_every_bucket() -> None:
    """It equals not even itself as 32 bits: it must not be taken for a key that no float has, and be forgotten."""
    narrow = Column(4, ("price",), pa.float32())
    assert is_value(NAN_KEY, pa.float32())
    for root in (leaf(narrow, NAN_KEY), leaf(narrow, float_key(0.5), NAN_KEY)):
        assert chosen(selector(root, narrow), by=lambda keys, _: np.zeros(len(keys))) == EVERY
    assert chosen(selector(leaf(narrow, float_key(0.1)), narrow)) == []


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


@pytest.mark.parametrize("columns", [(ID,), (ID, NAME)])
def test_key_of_writers_that_disagree_is_looked_for_in_the_bucket_of_each(columns: tuple[Column, ...]) -> None:
    """Whose hash placed a row nobody tells: of eight buckets two are read, and not one or all."""
    threes = ValueHash(lambda keys, total: np.full(len(keys), 3 % total))
    fives = ValueHash(lambda keys, total: np.full(len(keys), 5 % total))
    stated = FileBuckets(pa.array(range(8)), pa.array([8] * 8), columns, EitherHash((threes, fives)))
    known, faults = bucket_facts([stated], {column.id: column for column in columns}, np.arange(8))
    assert not faults
    keys = {"id": pa.array([1, 2], ID.type), "name": pa.array(["x", "y"])}
    names = [column.name for column in columns]
    joined = RuntimeFilter.of(names, pa.table({name: keys[name] for name in names})).bind(Schema(columns))
    assert np.flatnonzero(joined.possible(known)).tolist() == [3, 5]
