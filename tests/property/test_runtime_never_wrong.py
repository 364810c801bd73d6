"""Never wrong, and must prune: runtime filters against files whose every row is known."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key

import numpy as np
import pyarrow as pa
from hypothesis import assume, given, note
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tamis.predicate.bound import BoundPredicate, Known
from tamis.predicate.schema import Schema
from tamis.sieve.domain import ColumnStats, Facts, stats_domain
from tamis.sieve.funnel import sift
from tamis.sieve.join.bloom import Bloom
from tamis.sieve.join.runtime import RuntimeFilter
from tamis.sieve.judge import may_hold
from tamis.sieve.order import encode
from tamis.sieve.sieve import Sieve
from tests.making.harness import Table, arrow, tables
from tests.making.oracle import Incomparable, Path, Row, _wider, kind_of, order, read
from tests.making.oracle_casts import CastError, cast
from tests.making.strategies import TYPES, Types, values

Keys = dict[Path, list[object]]


def equal(value: object, type_: pa.DataType, key: object, key_type: pa.DataType, *, null_safe: bool) -> bool:
    """Whether Spark finds a column's value equal to a join key of perhaps another type."""
    if value is None or key is None:
        return null_safe and value is key
    kinds = kind_of(type_), kind_of(key_type)
    common = _wider(*kinds)
    both = [
        cast(read(one, t), kind, common, "UTC")
        for one, t, kind in zip((value, key), (type_, key_type), kinds, strict=True)
    ]
    return None not in both and order(*both) == 0


def matches(row: Row, types: Types, keys: Keys, key_types: Types, *, null_safe: bool) -> bool:
    """Whether the row equals any of the key tuples."""
    count = len(next(iter(keys.values())))
    return any(
        all(equal(row[path], types[path], keys[path][i], key_types[path], null_safe=null_safe) for path in keys)
        for i in range(count)
    )


def key_values(type_: pa.DataType, near: Sequence[object]) -> SearchStrategy[object]:
    """Join keys of a type: often a value that the files hold, sometimes NULL."""
    known = [value for value in near if value is not None]
    return st.one_of(st.none(), values(type_), *([st.sampled_from(known)] * 2 if known else []))


@st.composite
def joins(draw: DrawFn, table: Table, *, most: int = 3, same_type: bool = False) -> tuple[Keys, Types]:
    """Keys for one to three of the table's columns, of their types or of others that Spark compares them with."""
    paths = draw(st.lists(st.sampled_from(sorted(table.types)), min_size=1, max_size=most, unique=True))
    count = draw(st.integers(0, 5))
    keys, key_types = {}, {}
    for path in paths:
        type_ = table.types[path]
        key_type = type_ if same_type or draw(st.booleans()) else draw(st.sampled_from(_comparable(type_)))
        near = [row[path] for row in table.rows] if key_type == type_ else []
        keys[path] = draw(st.lists(key_values(key_type, near), min_size=count, max_size=count))
        key_types[path] = key_type
    return keys, key_types


def _comparable(type_: pa.DataType) -> list[pa.DataType]:
    found = []
    for other in TYPES:
        try:
            _wider(kind_of(type_), kind_of(other))
        except Incomparable:
            continue
        found.append(other)
    return found


def filter_of(keys: Keys, key_types: Types, *, null_safe: bool) -> RuntimeFilter:
    arrays = {str(path): arrow(column, key_types[path]) for path, column in keys.items()}
    return RuntimeFilter.of(list(keys), arrays, null_safe=null_safe)


def kept(table: Table, *filters: RuntimeFilter) -> list[bool]:
    """Whether each file of the table is kept by all, from partitions, buckets and statistics together."""
    bound = tuple(runtime.bind(table.schema, case_sensitive=True) for runtime in filters)
    note(str([(each.text, each.notes) for each in bound]))
    everything = BoundPredicate(Known(value=True), "true")
    plan = sift(Sieve(everything, table.specs, bound), table.batches).plan
    return [verdict != "none" for verdict in plan.verdicts["verdict"].to_pylist()]


@given(st.data(), tables(), st.booleans())
def test_file_with_a_joining_row_is_never_dropped(data: st.DataObject, table: Table, null_safe: bool) -> None:
    """Whatever the types, the specs, the statistics and the number of columns."""
    keys, key_types = data.draw(joins(table))
    answers = kept(table, filter_of(keys, key_types, null_safe=null_safe))
    for file, keep in zip(table.files, answers, strict=True):
        try:
            joined = any(matches(row, table.types, keys, key_types, null_safe=null_safe) for row in file.rows)
        except CastError:
            continue  # Spark stops the query
        assert keep or not joined, file


@given(st.data(), tables(), st.booleans())
def test_file_that_joins_the_range_or_the_bloom_filter_is_never_dropped(
    data: st.DataObject, table: Table, null_safe: bool
) -> None:
    keys, key_types = data.draw(joins(table, most=1, same_type=True))
    ((path, column),) = keys.items()
    type_ = key_types[path]
    by_order = cmp_to_key(lambda a, b: order(read(a, type_), read(b, type_)))
    known = sorted((key for key in column if key is not None), key=by_order)
    assume(known)
    low, high = arrow(known, type_)[0], arrow(known, type_)[-1]
    bloom = Bloom.of(encode(arrow(known, type_), type_).keys)
    filters = (
        RuntimeFilter.of_range(path, low, high, null_safe=null_safe),
        RuntimeFilter.of_bloom(path, bloom, null_safe=null_safe),
        RuntimeFilter.of_bloom(path, Bloom.from_bytes(bloom.to_bytes()), low, high, type=type_, null_safe=null_safe),
    )
    for file, keep in zip(table.files, kept(table, *filters), strict=True):
        joined = any(matches(row, table.types, keys, key_types, null_safe=null_safe) for row in file.rows)
        assert keep or not joined, file


# -- must prune -----------------------------------------------------------------------------------------------

AXES: dict[pa.DataType, list[object]] = {
    pa.int64(): [-(2**63), -1, 0, 1, 2, 3, 2**63 - 1],
    pa.string(): ["", "a", "a\0", "abcdefgh1", "abcdefgh2", "b", "é", "\U0010ffff"],
    pa.float64(): [float("-inf"), -1.5, 0.0, 1.5, 2.0, float("inf")],
    pa.decimal128(38, 2): [arrow([n], pa.int32()).cast(pa.decimal128(38, 2))[0].as_py() for n in range(-3, 4)],
}
"""Values in ascending order; a file's bounds and a key are places among them."""


@given(st.data(), st.lists(st.sampled_from(list(AXES)), min_size=1, max_size=3))
def test_exactly_the_files_with_a_tuple_in_their_box_are_kept(data: st.DataObject, types: list[pa.DataType]) -> None:
    """Bounds are all that is known, so that one file more than that is one read for nothing."""
    schema = Schema.of(**{f"c{i}": type_ for i, type_ in enumerate(types)})
    places = [st.integers(0, len(AXES[type_]) - 1) for type_ in types]
    boxes = data.draw(st.lists(st.tuples(*(st.tuples(place, place).map(sorted) for place in places)), max_size=6))
    keys = data.draw(st.lists(st.tuples(*places), max_size=8))
    domains, columns = {}, {}
    none = pa.array([0] * len(boxes), pa.int64())
    for i, (type_, column) in enumerate(zip(types, schema.columns, strict=True)):
        lower, upper = (pa.array([AXES[type_][box[i][side]] for box in boxes], type_) for side in (0, 1))
        domains[column.id] = stats_domain(column, ColumnStats(lower, upper, none, none), len(boxes))
        columns[column.name] = pa.array([AXES[type_][key[i]] for key in keys], type_)
    expected = [
        any(all(low <= place <= high for place, (low, high) in zip(key, box, strict=True)) for key in keys)
        for box in boxes
    ]
    found = RuntimeFilter.of([*columns], columns).bind(schema)
    assert found.possible(Facts(len(boxes), domains)).tolist() == expected
    if found.tuples is None:
        return
    # The budget decides which files are tested as a whole; each column alone is always tested.
    facts = Facts(len(boxes), domains)
    alone = [may_hold(accepted, column, facts.of(column)) for column, accepted in found.accepted]
    short, untested = found.tuples.possible(facts, budget=data.draw(st.integers(0, 10)))
    short &= np.logical_and.reduce(alone)
    assert all(keep or not wanted for keep, wanted in zip(short, expected, strict=True))
    assert sum(bool(keep) and not wanted for keep, wanted in zip(short, expected, strict=True)) <= untested


@given(
    st.lists(st.integers(0, 60), max_size=8), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 5)), max_size=8)
)
def test_bloom_filter_drops_every_listed_run_without_a_key(keys: list[int], runs: list[tuple[int, int]]) -> None:
    schema = Schema.of(x=pa.int64())
    none = pa.array([0] * len(runs), pa.int64())
    lower, upper = (pa.array([low + size * side for low, size in runs], pa.int64()) for side in (0, 1))
    facts = Facts(len(runs), {1: stats_domain(schema.columns[0], ColumnStats(lower, upper, none, none), len(runs))})
    bloom = Bloom.of(np.array(keys, np.int64), false_positives=1e-9)
    expected = [any(low <= key <= low + size for key in keys) for low, size in runs]
    assert RuntimeFilter.of_bloom("x", bloom).bind(schema).possible(facts).tolist() == expected
