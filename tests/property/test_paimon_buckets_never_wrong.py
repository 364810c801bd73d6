"""Never wrong, and must prune: rows in the buckets that Paimon's hash gives them, any predicates and join keys."""

from __future__ import annotations

from dataclasses import replace

import mmh3
import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pypaimon.schema.data_types import AtomicType, DataField
from pypaimon.table.row.generic_row import GenericRow, GenericRowSerializer

from tamis.formats.paimon.bucket_keys import KeyType, key_type
from tamis.formats.paimon.hashing import bucket_hash
from tamis.predicate.bind import bind
from tamis.predicate.nodes import And, Compare, Literal, Ref
from tamis.sieve.file_buckets import FileBuckets
from tamis.sieve.files import rows_of
from tamis.sieve.funnel import sift
from tamis.sieve.join.runtime import RuntimeFilter
from tamis.sieve.partitions import PartitionSpec
from tamis.sieve.sieve import Sieve
from tests.making.harness import Table, arrow
from tests.making.oracle import evaluate
from tests.making.oracle_casts import CastError
from tests.making.strategies import Row, Types, described, predicates, rows
from tests.property.test_buckets_never_wrong import bucketed
from tests.property.test_runtime_never_wrong import filter_of, joins, matches

NAMES = {
    pa.int8(): "TINYINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
    pa.string(): "STRING",
    pa.binary(): "BYTES",
    pa.decimal128(9, 2): "DECIMAL(9, 2)",
    pa.decimal128(25, 3): "DECIMAL(25, 3)",
    pa.timestamp("us"): "TIMESTAMP(6)",
}
COLUMNS = st.lists(st.sampled_from(list(NAMES)), min_size=1, max_size=3).map(
    lambda types: {(f"c{place}",): type_ for place, type_ in enumerate(types)}
)


def by_pypaimon(keys: pa.Table, total: int) -> np.ndarray:
    """Where pypaimon's own writer puts the rows: its serializer, and murmur3 of another library."""
    fields = [DataField(0, name, AtomicType(NAMES[keys.schema.field(name).type])) for name in keys.column_names]
    found = []
    for row in zip(*(column.to_pylist() for column in keys.columns), strict=True):
        hashed = mmh3.hash(GenericRowSerializer.to_bytes(GenericRow(list(row), fields))[4:], 42)
        found.append(abs(hashed) % total)
    return np.array(found, np.int64)


def by_mod(keys: pa.Table, total: int) -> np.ndarray:
    return np.array([(key or 0) % total for key in keys.column(0).to_pylist()], np.int64)


def hashed_as(types: Types, key: list[tuple[str, ...]]) -> tuple[KeyType, ...]:
    found = [key_type(NAMES[types[path]]) for path in key]
    return tuple(type_ for type_ in found if type_ is not None)


@given(st.data(), COLUMNS, st.booleans(), st.booleans())
def test_row_that_matches_and_joins_lies_in_a_kept_bucket(
    data: st.DataObject, types: Types, joined: bool, modulo: bool
) -> None:
    """Through the whole funnel, each row in a bucket of its own total; under mod some rows are placed without it."""
    found = data.draw(rows(types, least=1, most=8))
    key = data.draw(st.lists(st.sampled_from(sorted(types)), min_size=1, max_size=3, unique=True))
    modulo = modulo and len(key) == 1 and types[key[0]] in (pa.int32(), pa.int64())
    groups: dict[tuple[int, int], list[Row]] = {}
    for row in found:
        total = data.draw(st.sampled_from([1, 4, 9]))
        placing = by_mod if modulo and data.draw(st.booleans()) else by_pypaimon
        ((bucket, _),) = bucketed((row,), types, key, total, placing).items()
        groups.setdefault((bucket, total), []).append(row)
    table = Table(
        types, [PartitionSpec(0)], [[data.draw(described(types, tuple(group))) for group in groups.values()]]
    )
    by = bucket_hash("mod" if modulo else "default", [hashed_as(types, key)])
    assert not isinstance(by, str)
    stated = FileBuckets(
        pa.array([bucket for bucket, _ in groups], pa.int32()),
        pa.array([total for _, total in groups], pa.int32()),
        tuple(table.schema.find(path, case_sensitive=True) for path in key),
        by,
    )
    node = data.draw(predicates(types, found))
    filters, asked = [], []
    if joined:
        asked.append(data.draw(joins(table)))
        filters.append(filter_of(*asked[0], null_safe=False).bind(table.schema, case_sensitive=True))
    sieve = Sieve(bind(node, table.schema, case_sensitive=True), table.specs, tuple(filters))
    plan = sift(sieve, [replace(table.batches[0], buckets=(stated,))]).plan
    for file, verdict in zip(table.files, plan.verdicts["verdict"].to_pylist(), strict=True):
        try:
            wanted = [
                evaluate(node, row, types) is True
                and all(matches(row, types, *part, null_safe=False) for part in asked)
                for row in file.rows
            ]
        except CastError:
            continue  # Spark stops the query
        assert verdict != "none" or not any(wanted), file
        assert verdict != "all" or all(wanted), file


@given(st.data(), COLUMNS, st.integers(1, 60))
def test_whole_key_leaves_one_bucket(data: st.DataObject, types: Types, total: int) -> None:
    """Must prune: a key that has no NULL and is laid out alike by all writers lies in one bucket, whoever asks."""
    (row,) = data.draw(
        rows(types, least=1, most=1).filter(lambda found: all(value is not None for value in found[0].values()))
    )
    key = sorted(types)
    table = Table(types, [PartitionSpec(0)], [[data.draw(described(types, (row,)))]])
    columns = tuple(table.schema.find(path, case_sensitive=True) for path in key)
    by = bucket_hash("default", [hashed_as(types, key)])
    assert not isinstance(by, str)
    stated = FileBuckets(pa.array(range(total)), pa.array([total] * total), columns, by)
    one = replace(table.batches[0], stats={})
    batch = replace(rows_of(one, np.zeros(total, np.int64)), buckets=(stated,))
    node = And(tuple(Compare("=", Ref(path), Literal(row[path], types[path])) for path in key))
    arrays = {".".join(path): arrow([row[path]], types[path]) for path in key}
    keys = RuntimeFilter.of([".".join(path) for path in key], pa.table(arrays)).bind(table.schema)
    places = by_pypaimon(pa.table(arrays), total).tolist()
    kept = []
    for condition, filters in ((node, ()), (And(()), (keys,))):
        plan = sift(Sieve(bind(condition, table.schema), table.specs, filters), [batch]).plan
        kept.append(
            [bucket for bucket, verdict in enumerate(plan.verdicts["verdict"].to_pylist()) if verdict != "none"]
        )
    wide = any(type_.is_wide for type_ in hashed_as(types, key))
    for found in kept:
        assert set(places) <= set(found)
        assert len(found) <= (2 if wide else 1)
