"""Never wrong, and must prune: the bucket selector against rows that a stand-in writer has put into buckets."""

from __future__ import annotations

import struct
import zlib
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
from tests.harness import arrow, schema_of
from tests.oracle import evaluate
from tests.strategies import File, Row, Types, columns, described, predicates, rows

LONG = pa.int64()


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


def bucketed(found: tuple[Row, ...], types: Types, key: list[tuple[str, ...]], total: int) -> dict[int, list[Row]]:
    """The rows by the bucket that the writer puts them into."""
    if not found:
        return {}
    table = pa.Table.from_arrays(
        [arrow([row[path] for row in found], types[path]) for path in key], [".".join(path) for path in key]
    )
    buckets: dict[int, list[Row]] = {}
    for row, bucket in zip(found, by_bits(table, total).tolist(), strict=True):
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
        bound,
        tuple(schema.find(path, case_sensitive=True) for path in key),
        by_bits,
        data.draw(st.sampled_from([3, 1000])),
    )
    buckets = bucketed(found, types, key, total)
    files = [data.draw(described(types, tuple(group))) for group in buckets.values()]
    asked = pa.array(list(buckets)), pa.array([total] * len(buckets))
    plain, guarded = selector.select(*asked), selector.select(*asked, facts_of(files, schema))
    for file, kept, with_facts in zip(files, plain, guarded, strict=True):
        if any(evaluate(node, row, types) is True for row in file.rows):
            assert kept, (file, selector.reason, selector.chosen)
            assert with_facts, (file, selector.reason, selector.chosen)
        assert kept or not with_facts, "facts can only narrow"


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
    selector = BucketSelector(bind(node, schema_of(SMALL)), schema_of(SMALL).columns, by_bits)
    universe = [None, *range(7)]
    matching = [
        pair
        for pair in product(universe, universe)
        if evaluate(node, dict(zip((A, B), pair, strict=True)), SMALL) is True
    ]
    assert selector.combinations == len(matching)
    expected = set()
    if matching:
        table = pa.Table.from_arrays([pa.array(side, LONG) for side in zip(*matching, strict=True)], ["a", "b"])
        expected = set(by_bits(table, total).tolist())
    kept = selector.select(pa.array(range(total)), pa.array([total] * total))
    assert set(np.flatnonzero(kept).tolist()) == expected
