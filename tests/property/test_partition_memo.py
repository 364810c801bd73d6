"""Memo equals no memo: a key has one verdict, however, whenever and beside whatever else it is asked for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tamis.predicate.bind import bind
from tamis.predicate.bound import BoundPredicate
from tamis.sieve.files import FileBatch
from tamis.sieve.partitions import (
    KeyedTrial,
    MultiSpecPartitionFilter,
    PartitionKey,
    PartitionSpec,
    Undecoded,
    plain_values,
)
from tests.making.harness import Table, tables
from tests.making.strategies import predicates

Answer = tuple[bool, bool, bool, bool]
FEW = settings(max_examples=settings().max_examples // 5)
"""A table and a predicate cost more to draw than to judge."""


@st.composite
def cases(draw: DrawFn) -> tuple[Table, BoundPredicate]:
    table = draw(tables())
    node = draw(predicates(table.types, table.rows))
    return table, bind(node, table.schema, case_sensitive=True)


def _answers(found: KeyedTrial) -> list[Answer]:
    """For each file, what both trials say."""
    sides = (found.partition.possible, found.partition.certain, found.bucket.possible, found.bucket.certain)
    return list(zip(*(side[found.codes].tolist() for side in sides), strict=True))


def _ask(
    filter_: MultiSpecPartitionFilter, batch: FileBatch, rows: list[int], bad: list[Undecoded] | None = None
) -> list[Answer]:
    assert batch.spec_id is not None
    taken = None if batch.partition is None else batch.partition.take(pa.array(rows, pa.int64()))
    return _answers(filter_.judge(batch.spec_id, taken, len(rows), bad or ()))


def _alone(bound: BoundPredicate, specs: tuple[PartitionSpec, ...], batch: FileBatch) -> list[Answer]:
    """Every file with a filter of its own: nothing to remember."""
    return [_ask(MultiSpecPartitionFilter(bound, specs), batch, [row])[0] for row in range(len(batch))]


@FEW
@given(cases(), st.data())
def test_one_filter_says_of_every_file_what_a_fresh_one_says(
    case: tuple[Table, BoundPredicate], data: st.DataObject
) -> None:
    table, bound = case
    remembering = MultiSpecPartitionFilter(bound, table.specs)
    for _ in range(3):
        batch = data.draw(st.sampled_from(table.batches))
        rows = data.draw(st.lists(st.integers(0, len(batch) - 1), max_size=5))
        alone = _alone(bound, table.specs, batch)
        assert _ask(remembering, batch, rows) == [alone[row] for row in rows]


@FEW
@given(cases())
def test_matches_says_of_a_key_what_judge_says_of_its_files(case: tuple[Table, BoundPredicate]) -> None:
    table, bound = case
    asked = MultiSpecPartitionFilter(bound, table.specs)
    for batch in table.batches:
        spec = next(spec for spec in table.specs if spec.spec_id == batch.spec_id)
        told = MultiSpecPartitionFilter(bound, table.specs)
        assert batch.spec_id is not None
        found = told.judge(batch.spec_id, batch.partition, len(batch))
        for key, code in zip(_keys(spec, batch), found.codes.tolist(), strict=True):
            assert asked.matches(key) == bool(found.bucket.possible[code])
            assert asked.is_fail_open(key) == told.is_fail_open(key)


def _keys(spec: PartitionSpec, batch: FileBatch) -> list[PartitionKey]:
    """The keys of a batch's files."""
    if batch.partition is None or spec.is_unpartitioned:
        return [PartitionKey.of(spec, None)] * len(batch)
    children = [
        child.storage if isinstance(child, pa.ExtensionArray) else child for child in batch.partition.flatten()
    ]
    return [PartitionKey.of(spec, row) for row in zip(*map(plain_values, children), strict=True)]


@FEW
@given(cases())
def test_counts_do_not_depend_on_how_files_are_batched(case: tuple[Table, BoundPredicate]) -> None:
    table, bound = case
    whole, single, again = (MultiSpecPartitionFilter(bound, table.specs) for _ in range(3))
    for batch in table.batches:
        _ask(whole, batch, list(range(len(batch))))
        for row in reversed(range(len(batch))):
            _ask(single, batch, [row])
        for _ in range(2):
            _ask(again, batch, list(range(len(batch))))
    assert whole.stats == single.stats == again.stats


@FEW
@given(cases(), st.data())
def test_what_could_not_be_decoded_is_judged_without_it(
    case: tuple[Table, BoundPredicate], data: st.DataObject
) -> None:
    """An undecoded value says nothing: the file is judged as if the spec did not have the field; others as before."""
    table, bound = case
    remembering = MultiSpecPartitionFilter(bound, table.specs)
    for batch in table.batches:
        if batch.partition is None:
            continue
        spec = next(spec for spec in table.specs if spec.spec_id == batch.spec_id)
        place = data.draw(st.integers(0, len(spec.fields) - 1))
        mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(batch), max_size=len(batch))))
        bad = [Undecoded(place, mask, "not decoded")] if mask.any() else []
        alone = _alone(bound, table.specs, batch)
        rows = list(range(len(batch)))
        found = _ask(remembering, batch, rows, bad)
        for row in rows:
            lone = [Undecoded(place, np.array([True]), "not decoded")]
            fresh = MultiSpecPartitionFilter(bound, table.specs)
            expected = _ask(fresh, batch, [row], lone)[0] if mask[row] else alone[row]
            if mask[row]:
                # Never dropped, nor taken whole, for a value that nobody could read.
                assert found[row][2] >= alone[row][2]
            assert found[row] == expected
        assert _ask(remembering, batch, rows) == alone
