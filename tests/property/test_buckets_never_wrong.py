"""Never wrong, and must prune: predicates and join keys against rows that a stand-in writer has put into buckets."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
from hypothesis import given, note
from hypothesis import strategies as st
from pyarrow import types as pt

from tamis.predicate.bind import bind
from tamis.predicate.nodes import And, Compare, In, IsNull, Literal, Node, Or, Ref
from tamis.predicate.schema import Schema
from tamis.sieve.buckets import BucketSelector
from tamis.sieve.domain import ColumnStats, Facts, stats_domain
from tamis.sieve.file_buckets import FileBuckets, bucket_facts
from tamis.sieve.funnel import sift
from tamis.sieve.hashing import ANY_BUCKET, EitherHash
from tamis.sieve.join.runtime import RuntimeFilter
from tamis.sieve.judge import judge
from tamis.sieve.partitions import PartitionSpec
from tamis.sieve.sieve import Sieve
from tests.making.harness import Table, arrow, schema_of
from tests.making.hashes import ValueHash, whole_keys
from tests.making.oracle import evaluate
from tests.making.oracle_casts import CastError
from tests.making.strategies import File, Row, Types, columns, described, predicates, rows
from tests.property.test_runtime_never_wrong import filter_of, joins, matches

LONG = pa.int64()
PlacesRows = Callable[[pa.Table, int], np.ndarray]


def by_bits(keys: pa.Table, total: int) -> np.ndarray:
    """The stand-in writer's hash: of the bits as they are stored, so that -0.0 and 0.0 part; NULL hashes too."""
    return np.array([zlib.crc32(repr(row).encode()) % total for row in zip(*map(_bits, keys.columns), strict=True)])


def _bits(column: pa.ChunkedArray) -> list[object]:
    array = column.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pt.is_timestamp(array.type) or pt.is_time(array.type):
        array = array.view(pa.int64() if array.type.bit_width == 64 else pa.int32())
    return [struct.pack(">d", value) if isinstance(value, float) else value for value in array.to_pylist()]


def by_other_bits(keys: pa.Table, total: int) -> np.ndarray:
    """Another writer's hash of the same bits."""
    return (by_bits(keys, 1 << 20) // 7 + 3) % total


def bucketed(
    found: tuple[Row, ...], types: Types, key: list[tuple[str, ...]], total: int, by: PlacesRows = by_bits
) -> dict[int, list[Row]]:
    """The rows by the bucket that the writer puts them into."""
    if not found:
        return {}
    table = pa.Table.from_arrays(
        [arrow([row[path] for row in found], types[path]) for path in key], [".".join(path) for path in key]
    )
    buckets: dict[int, list[Row]] = {}
    for row, bucket in zip(found, by(table, total).tolist(), strict=True):
        buckets.setdefault(bucket, []).append(row)
    return buckets


def facts_of(files: list[File], schema: Schema) -> Facts:
    """What the files' metadata says."""
    domains = {}
    for column in schema.columns:
        parts = [file.facts[column.path] for file in files]
        counts = (pa.array([getattr(part, name) for part in parts], LONG) for name in COUNTS)
        bounds = (arrow([getattr(part, side) for part in parts], column.type) for side in ("lower", "upper"))
        domains[column.id] = stats_domain(column, ColumnStats(*bounds, *counts), len(files))
    return Facts(len(files), domains)


COUNTS = ("null_count", "nan_count", "value_count")
BY_BITS = ValueHash(by_bits)


def doubtful(keys: pa.Table, total: int) -> np.ndarray:
    """As the writer's, but of every third key it is not known how the writer placed it."""
    found = by_bits(keys, total)
    return np.where(by_bits(keys, 1 << 20) % 3 == 0, ANY_BUCKET, found)


def no_floats(keys: pa.Table, total: int) -> np.ndarray | None:
    """As the writer's, but floats are refused."""
    return None if any(pt.is_floating(column.type) for column in keys.columns) else by_bits(keys, total)


EITHER = EitherHash((ValueHash(by_other_bits), BY_BITS))
HASHES = st.sampled_from([BY_BITS, ValueHash(doubtful), ValueHash(no_floats), EITHER])


@given(st.data(), columns(), st.integers(1, 7))
def test_matching_row_lies_in_a_selected_bucket(data: st.DataObject, types: Types, total: int) -> None:
    """A bucket wrongly left out is silent data loss; whatever the predicate, the types and the number of buckets."""
    found = data.draw(rows(types, least=1, most=8))
    node = data.draw(predicates(types, found))
    schema = schema_of(types)
    key = data.draw(st.lists(st.sampled_from(sorted(types)), min_size=1, max_size=2, unique=True))
    bound = bind(node, schema, case_sensitive=True)
    note(str(bound.root))
    selector = BucketSelector(
        bound, tuple(schema.find(path, case_sensitive=True) for path in key), data.draw(st.sampled_from([3, 1000]))
    )
    buckets = bucketed(found, types, key, total)
    files = [data.draw(described(types, tuple(group))) for group in buckets.values()]
    by = data.draw(HASHES)
    plain = selector.possible(whole_keys(by, selector.columns, list(buckets), total))
    guarded = selector.possible(whole_keys(by, selector.columns, list(buckets), total, facts_of(files, schema)))
    for file, kept, with_facts in zip(files, plain, guarded, strict=True):
        if any(evaluate(node, row, types) is True for row in file.rows):
            assert kept, (file, selector.reason)
            assert with_facts, (file, selector.reason)
        assert kept or not with_facts, "facts can only narrow"


@given(st.data(), columns(), st.booleans(), st.booleans())
def test_row_that_matches_and_joins_lies_in_a_kept_file(
    data: st.DataObject, types: Types, null_safe: bool, joined: bool
) -> None:
    """Through the whole funnel: keys of one and of several columns, NULLs hashed, totals of each file's own."""
    found = data.draw(rows(types, least=1, most=8))
    key = data.draw(st.lists(st.sampled_from(sorted(types)), min_size=1, max_size=3, unique=True))
    groups: dict[tuple[int, int], list[Row]] = {}
    by = data.draw(HASHES)
    for row in found:
        total = data.draw(st.sampled_from([1, 3, 7]))
        placing = by_other_bits if by is EITHER and data.draw(st.booleans()) else by_bits
        ((bucket, _),) = bucketed((row,), types, key, total, placing).items()
        groups.setdefault((bucket, total), []).append(row)
    table = Table(
        types, [PartitionSpec(0)], [[data.draw(described(types, tuple(group))) for group in groups.values()]]
    )
    known = [data.draw(st.integers(0, 5)) > 0 for _ in groups]
    stated = FileBuckets(
        pa.array([bucket if sure else None for (bucket, _), sure in zip(groups, known, strict=True)], pa.int32()),
        pa.array([total for _, total in groups], pa.int32()),
        tuple(table.schema.find(path, case_sensitive=True) for path in key),
        by,
    )
    node = data.draw(predicates(types, found))
    filters, asked = [], []
    if joined:
        keys, key_types = data.draw(joins(table))
        filters.append(filter_of(keys, key_types, null_safe=null_safe).bind(table.schema, case_sensitive=True))
        asked.append((keys, key_types))
    sieve = Sieve(bind(node, table.schema, case_sensitive=True), table.specs, tuple(filters))
    plan = sift(sieve, [replace(table.batches[0], buckets=(stated,))]).plan
    plain = sift(sieve, table.batches).plan
    for file, verdict, without in zip(
        table.files, plan.verdicts["verdict"].to_pylist(), plain.verdicts["verdict"].to_pylist(), strict=True
    ):
        try:
            wanted = [
                evaluate(node, row, types) is True
                and all(matches(row, types, *part, null_safe=null_safe) for part in asked)
                for row in file.rows
            ]
        except CastError:
            continue  # Spark stops the query
        assert verdict != "none" or not any(wanted), file
        assert verdict != "all" or all(wanted), file
        assert without != "none" or verdict == "none", "buckets can only narrow"


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=4, unique=True), st.integers(1, 40), st.booleans())
def test_keys_of_writers_that_disagree_select_just_the_buckets_of_each(
    keys: list[int], total: int, wide: bool
) -> None:
    """Must prune: where two hashes may have placed a key it is looked for in two buckets, not in all."""
    schema = Schema.of(a=LONG, b=LONG) if wide else Schema.of(a=LONG)
    rows = [(key, 1) if wide else (key,) for key in keys]
    stated = FileBuckets(pa.array(range(total)), pa.array([total] * total), schema.columns, EITHER)
    facts, faults = bucket_facts([stated], {column.id: column for column in schema.columns}, np.arange(total))
    assert not faults
    table = pa.Table.from_arrays(
        [pa.array(each, LONG) for each in zip(*rows, strict=True)], ["a", "b"][: len(rows[0])]
    )
    expected = set(by_bits(table, total).tolist()) | set(by_other_bits(table, total).tolist())
    listed = In(Ref(("a",)), tuple(Literal(key, LONG) for key in keys))
    node = And((listed, Compare("=", Ref(("b",)), Literal(1, LONG)))) if wide else listed
    bound = bind(node, schema)
    possible = BucketSelector(bound, schema.columns).possible(facts) if wide else judge(bound.root, facts).possible
    assert set(np.flatnonzero(possible).tolist()) == expected
    names = ["a", "b"] if wide else "a"
    arrays = {"a": pa.array(keys, LONG), "b": pa.array([1] * len(keys), LONG)}
    joined = RuntimeFilter.of(names, pa.table(arrays) if wide else arrays["a"]).bind(schema)
    assert set(np.flatnonzero(joined.possible(facts)).tolist()) == expected
    if not wide:
        nulls = judge(bind(IsNull(Ref(("a",))), schema).root, facts).possible
        none = pa.table({"a": pa.array([None], LONG)})
        places = {*by_bits(none, total).tolist(), *by_other_bits(none, total).tolist()}
        assert set(np.flatnonzero(nulls).tolist()) == places


A, B = ("a",), ("b",)
SMALL: Types = {A: LONG, B: LONG}
KEYS = st.lists(st.integers(0, 3), min_size=1, max_size=3)


def limits(path: tuple[str, ...]) -> st.SearchStrategy[Node]:
    """A condition that leaves a few values of one column, NULL perhaps among them."""
    ref = Ref(path)
    listed = KEYS.map(lambda keys: In(ref, tuple(Literal(key, LONG) for key in keys)))
    run = st.builds(
        lambda low, size: And((Compare(">=", ref, Literal(low, LONG)), Compare("<", ref, Literal(low + size, LONG)))),
        st.integers(0, 3),
        st.integers(0, 3),
    )
    return st.one_of(listed, run, st.just(IsNull(ref)))


PAIRS = st.builds(
    lambda a, b, more: And((a, b, *more)), limits(A), limits(B), st.lists(limits(A) | limits(B), max_size=1)
)


@given(st.lists(PAIRS, min_size=1, max_size=3).map(lambda found: Or(tuple(found))), st.integers(1, 50))
def test_limited_key_selects_exactly_the_buckets_that_can_match(node: Node, total: int) -> None:
    """Must prune: every combination is known, so that one bucket more is one read for nothing."""
    selector = BucketSelector(bind(node, schema_of(SMALL)), schema_of(SMALL).columns)
    universe = [None, *range(7)]
    matching = [
        pair
        for pair in product(universe, universe)
        if evaluate(node, dict(zip((A, B), pair, strict=True)), SMALL) is True
    ]
    assert selector.combinations == len(matching)
    kept = selector.possible(whole_keys(BY_BITS, selector.columns, range(total), total))
    assert set(np.flatnonzero(kept).tolist()) == buckets_of(matching, total)


def buckets_of(pairs: list[tuple[int | None, ...]], total: int) -> set[int]:
    if not pairs:
        return set()
    arrays = [pa.array(side, LONG) for side in zip(*pairs, strict=True)]
    return set(by_bits(pa.Table.from_arrays(arrays, [str(place) for place in range(len(arrays))]), total).tolist())


NUMBERS = st.integers(0, 6)
PLACES = st.tuples(NUMBERS, NUMBERS).map(sorted)


@given(
    st.lists(st.tuples(NUMBERS | st.none(), NUMBERS | st.none()), max_size=6),
    st.lists(st.tuples(st.integers(0, 10), PLACES, PLACES), min_size=1, max_size=8),
    st.booleans(),
)
def test_join_keys_keep_exactly_the_files_whose_bucket_and_ranges_hold_one(
    keys: list[tuple[int | None, int | None]], files: list[tuple[int, list[int], list[int]]], null_safe: bool
) -> None:
    """Must prune: one and the same tuple has to hash into the bucket and to lie in both ranges."""
    total, schema = 11, schema_of(SMALL)
    known = Facts(len(files), {})
    for place, column in enumerate(schema.columns, 1):
        lower, upper = (pa.array([file[place][side] for file in files], LONG) for side in (0, 1))
        stats = ColumnStats(lower, upper, pa.array([0] * len(files), LONG))
        known.domains[column.id] = stats_domain(column, stats, len(files))
    arrays = {name: pa.array([pair[place] for pair in keys], LONG) for place, name in enumerate("ab")}
    found = RuntimeFilter.of(["a", "b"], arrays, null_safe=null_safe).bind(schema)
    expected = [
        any(
            None not in pair and a[0] <= pair[0] <= a[1] and b[0] <= pair[1] <= b[1]
            for pair in keys
            if buckets_of([pair], total) == {bucket}
        )
        for bucket, a, b in files
    ]
    buckets = [bucket for bucket, _, _ in files]
    assert found.possible(whole_keys(BY_BITS, schema.columns, buckets, total, known)).tolist() == expected
    # Of one column the bucket is part of its domain, and the same key has to meet the bucket and the range.
    (single,) = (schema.columns[0],)
    stated = FileBuckets(pa.array(buckets), pa.array([total] * len(files)), (single,), BY_BITS)
    facts, _ = bucket_facts([stated], {single.id: single}, np.arange(len(files)))
    facts = facts.and_also(Facts(len(files), {single.id: known.domains[single.id]}))
    alone = RuntimeFilter.of("a", arrays["a"], null_safe=null_safe).bind(schema)
    assert alone.possible(facts).tolist() == [
        any(
            key is not None and a[0] <= key <= a[1] and buckets_of([(key,)], total) == {bucket}
            for key in arrays["a"].to_pylist()
        )
        for bucket, a, _ in files
    ]


@given(st.lists(NUMBERS | st.none(), max_size=6), st.integers(1, 11))
def test_join_keys_of_one_column_keep_exactly_the_buckets_they_hash_to(keys: list[int | None], total: int) -> None:
    """Must prune: NULL has its bucket too, if the join takes NULL for a key."""
    schema = Schema.of(a=LONG)
    stated = FileBuckets(pa.array(range(total)), pa.array([total] * total), schema.columns, BY_BITS)
    facts, _ = bucket_facts([stated], {1: schema.columns[0]}, np.arange(total))
    found = RuntimeFilter.of("a", pa.array(keys, LONG), null_safe=True).bind(schema)
    assert set(np.flatnonzero(found.possible(facts)).tolist()) == buckets_of([(key,) for key in keys], total)
