"""The deletes of a rewrite: how many files and rows they are for each data file, and which of them a group has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.formats.iceberg import kept_deletes as module
from tamis.formats.iceberg.deletes import DeleteIndex
from tamis.formats.iceberg.kept_deletes import KeptDeletes
from tamis.formats.iceberg.manifests import DeleteBatch
from tamis.predicate.arrays import Int64s
from tamis.sieve.files import FileBatch
from tamis.sieve.outcome import Outcome
from tests.formats.iceberg.test_deletes import BY_ID, NONE, deletes, equality, metadata, partition, position, vector


def kept_deletes(*batches: DeleteBatch) -> KeptDeletes:
    """Deletes that have been read."""
    unused: Any = None
    found = KeptDeletes(metadata(), (unused,), unused, unused)
    found._index = DeleteIndex(metadata(), batches)
    return found


def outcome(
    files: Sequence[tuple[str, int | None, int]], spec_id: int = BY_ID, kept: list[bool] | None = None
) -> Outcome:
    """Files by path, partition and sequence number."""
    paths, ids, sequences = zip(*files, strict=True)
    count = len(files)
    batch = FileBatch(
        path=pa.array(paths),
        size=pa.array([1] * count),
        rows=pa.array([10] * count),
        spec_id=spec_id,
        partition=partition(spec_id, ids),
        extra={"sequence_number": pa.array(sequences, pa.int64())},
    )
    chosen = np.ones(count, np.bool_) if kept is None else np.array(kept)
    none, layer = np.zeros(count, np.bool_), np.full(count, -1, np.int8)
    return Outcome(batch, chosen, none, layer, layer.astype(np.int32), none, none, layer)


def numbers(*values: int) -> Int64s:
    return np.array(values, np.int64)


def test_rows_are_counted_of_deletes_that_concern_one_file_alone() -> None:
    """A delete of a whole partition, or of keys, does not say how many rows of a file it removes."""
    index = kept_deletes(
        deletes(
            BY_ID,
            position(9, path="own", rows=3, path_lower="a", path_upper="a"),
            position(9, path="named", rows=4, referenced_data_file="a"),
            position(9, path="wide", rows=100),
            position(9, path="range", rows=100, path_lower="a", path_upper="c"),
            equality(9, path="keys", rows=100),
            vector(9, "b", path="puffin", rows=5),
        )
    )
    first, second = index.weigh([outcome([("a", 1, 5), ("b", 1, 5)]), outcome([("c", 1, 5), ("a", 2, 5)])])
    assert (first.files.tolist(), first.rows.tolist()) == ([5, 2], [7, 5])
    assert (second.files.tolist(), second.rows.tolist()) == ([3, 0], [0, 0])


def test_weights_are_those_of_kept_files_in_the_order_of_batches() -> None:
    index = kept_deletes(deletes(BY_ID, position(9, rows=2, referenced_data_file="b")), deletes(NONE, equality(9)))
    weights = index.weigh(
        [
            outcome([("a", 1, 5), ("b", 1, 5)], kept=[False, True]),
            outcome([("x", None, 1)], NONE),
            outcome([("b", 1, 9)]),
        ]
    )
    assert [one.files.tolist() for one in weights] == [[2], [1], [1]]
    assert [one.rows.tolist() for one in weights] == [[2], [0], [2]]


def test_weights_are_the_same_however_many_files_are_looked_up_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of a million files is looked up in several calls, side by side."""
    index = kept_deletes(
        deletes(BY_ID, position(9, path="own", rows=2, referenced_data_file="b"), equality(9)),
        deletes(NONE, equality(7)),
    )
    outcomes = [
        outcome([("a", 1, 5), ("b", 1, 5)], kept=[False, True]),
        *(outcome([("b", number % 3, number)]) for number in range(20)),
        outcome([("x", None, 1)], NONE),
        outcome([("b", 1, 9), ("c", 1, 3)]),
    ]

    def told() -> list[tuple[list[int], list[int]]]:
        return [(one.files.tolist(), one.rows.tolist()) for one in index.weigh(outcomes)]

    together = told()
    assert any(rows for _, (*rows,) in together)
    for most in (1, 2, 5):
        monkeypatch.setattr(module, "MERGED_FILES", most)
        assert told() == together


def test_no_deletes_weigh_nothing() -> None:
    unused: Any = None
    index = KeptDeletes(metadata(), (), unused, unused)
    assert [one.files.tolist() for one in index.weigh([outcome([("a", 1, 5)])])] == [[0]]
    assert len(index.listed([outcome([("a", 1, 5)])], [numbers(0)]).groups) == 0


def test_group_has_the_deletes_of_its_files_each_once() -> None:
    """A delete of keys without a partition reaches every group with data that is older than it."""
    index = kept_deletes(
        deletes(
            BY_ID,
            position(9, path="wide1"),
            position(9, id=2, path="wide2"),
            position(9, path="of-b", referenced_data_file="b"),
            equality(6, path="keys1"),
        ),
        deletes(NONE, equality(4, path="everywhere")),
    )
    files = [outcome([("a", 1, 5), ("b", 1, 3)]), outcome([("c", 2, 8), ("d", 1, 7)])]
    listed = index.listed(files, [numbers(0, 0), numbers(1, 2)])
    pairs = sorted(zip(listed.groups.tolist(), listed.paths.to_pylist(), strict=True))
    assert pairs == [(0, "everywhere"), (0, "keys1"), (0, "of-b"), (0, "wide1"), (1, "wide2"), (2, "wide1")]
    assert listed.groups.tolist() == sorted(listed.groups.tolist())


def test_vectors_in_one_file_are_listed_as_that_file() -> None:
    index = kept_deletes(deletes(BY_ID, vector(9, "a", path="p"), vector(9, "b", path="p", content_offset=9)))
    listed = index.listed([outcome([("a", 1, 5), ("b", 1, 5)])], [numbers(0, 0)])
    assert (listed.groups.tolist(), listed.paths.to_pylist()) == ([0], ["p"])
