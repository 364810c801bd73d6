"""Random deletes and data files against Iceberg's rules of scope, asked for each pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import UnreadableMetadataError
from tamis.formats.iceberg import deletes as under_test
from tamis.formats.iceberg.deletes import DeleteIndex
from tamis.formats.iceberg.manifests import DeleteBatch
from tamis.sieve.files import FileBatch
from tests.formats.iceberg.test_deletes import (
    BY_ID,
    EQUALITY,
    NONE,
    OTHER,
    POSITION,
    SCHEMA,
    VOID,
    assigned,
    deletes,
    metadata,
    partition,
)

Row = dict[str, Any]

# Beyond 16 bits UTF-16 and UTF-8 differ in order: paths are compared as UTF-8.
PATHS = ("a", "aa", "b", "c/d", "é", "\uffee", "\U00010000")
NEWEST = 4
SPECS = st.sampled_from([BY_ID, OTHER, NONE, VOID])
IDS = st.sampled_from([1, 2, None])
SEQUENCES = st.none() | st.integers(0, NEWEST + 1)


def test_delete_table_without_rows_deletes_nothing() -> None:
    index = DeleteIndex(metadata(), [DeleteBatch(NONE, SCHEMA.empty_table())])
    assert len(index) == 0
    assert assigned(index, data(NONE, [{"path": "a", "id": None, "sequence": 1}]), np.array([0])) == [[]]


def test_bound_that_is_no_text_is_compared_by_its_bytes() -> None:
    """Its column is one of bytes then, in this batch but not in the next."""
    sound = deletes(NONE, {"content": POSITION, "sequence_number": 9, "path_lower": "b", "path_upper": "c"})
    odd = pa.table(
        {
            name: pa.array([b"a\xff"]) if name in {"path_lower", "path_upper"} else sound.files[name]
            for name in SCHEMA.names
        }
    ).set_column(SCHEMA.get_field_index("path_upper"), "path_upper", pa.array([b"b\xff"]))
    index = DeleteIndex(metadata(), [sound, DeleteBatch(NONE, odd)])
    files = data(NONE, [{"path": path, "id": None, "sequence": 1} for path in ("a", "b", "bb", "c")])
    assert assigned(index, files, np.arange(4)) == [[], [0, 1], [0, 1], [0]]


@st.composite
def delete_rows(draw: st.DrawFn) -> Row:
    row: Row = {"content": draw(st.sampled_from([POSITION, POSITION, EQUALITY])), "id": draw(IDS)}
    row["sequence_number"] = draw(SEQUENCES)
    path = st.none() | st.sampled_from(PATHS)
    row["path_lower"], row["path_upper"] = draw(st.tuples(path, path) | path.map(lambda one: (one, one)))
    row["referenced_data_file"] = draw(st.none() | path)
    return row


@st.composite
def vector_rows(draw: st.DrawFn) -> list[tuple[int, Row]]:
    """At most one for a file, and not older than it, as the specification asks of writers."""
    found = []
    for path in draw(st.lists(st.sampled_from(PATHS), unique=True, max_size=2)):
        row = {"content": POSITION, "id": draw(IDS), "sequence_number": NEWEST, "referenced_data_file": path}
        found.append((draw(SPECS), row | {"content_offset": 4, "content_size": 40}))
    return found


DATA = st.lists(
    st.fixed_dictionaries(
        {"path": st.sampled_from(PATHS), "id": IDS, "sequence": st.none() | st.integers(0, NEWEST)}
    ),
    max_size=8,
)


@given(
    st.lists(st.tuples(SPECS, st.lists(delete_rows(), min_size=1, max_size=6)), max_size=4),
    vector_rows(),
    SPECS,
    DATA,
    st.randoms(use_true_random=False),
    st.sampled_from([1, 3, under_test.MOST_PAIRS]),
)
def test_each_file_has_exactly_the_deletes_that_apply_to_it(
    batches: list[tuple[int, list[Row]]],
    vectors: list[tuple[int, Row]],
    spec_id: int,
    files: list[Row],
    random: Any,  # noqa: ANN401 - Hypothesis's generator
    most: int,
) -> None:
    """A delete that is missed brings rows back, one too many takes rows away; whatever is looked at together.

    The helper that asks the index also compares its counts with what it lists.
    """
    batches = [*batches, *((of, [row]) for of, row in vectors)]
    random.shuffle(batches)
    chosen = random.sample(range(len(files)), random.randint(0, len(files)))
    flat = [(of, row) for of, rows in batches for row in rows]
    index = DeleteIndex(metadata(), [deletes(of, *rows) for of, rows in batches])
    with patch.object(under_test, "MOST_PAIRS", most):
        if any(is_corrupt(flat, spec_id, files[row]) for row in chosen):
            with pytest.raises(UnreadableMetadataError, match="another partition"):
                index.count(data(spec_id, files), np.array(chosen, np.int64))
            with pytest.raises(UnreadableMetadataError, match="another partition"):
                index.positions(data(spec_id, files), np.array(chosen, np.int64))
            return
        found = assigned(index, data(spec_id, files), np.array(chosen, np.int64))
    assert found == [expected(flat, spec_id, files[row]) for row in chosen]


def data(spec_id: int, files: Sequence[Row]) -> FileBatch:
    return FileBatch(
        path=pa.array([one["path"] for one in files], pa.string()),
        size=pa.array([1] * len(files), pa.int64()),
        rows=pa.array([1] * len(files), pa.int64()),
        spec_id=spec_id,
        partition=partition(spec_id, [one["id"] for one in files]),
        extra={"sequence_number": pa.array([one["sequence"] for one in files], pa.int64())},
    )


def expected(rows: Sequence[tuple[int, Row]], spec_id: int, file: Mapping[str, Any]) -> list[int]:
    """The places of the deletes that apply, each asked by itself."""
    by_vector = any(is_vector(row) and row["referenced_data_file"] == file["path"] for _, row in rows)
    return [place for place, (of, row) in enumerate(rows) if applies(of, row, spec_id, file, by_vector)]


def applies(of: int, row: Row, spec_id: int, file: Mapping[str, Any], by_vector: bool) -> bool:
    # What has no number may be newer than everything.
    number = float("inf") if row["sequence_number"] is None else row["sequence_number"]
    sequence = file["sequence"] or 0  # and data that has none may be the oldest
    if row["content"] == EQUALITY:
        return sequence < number and (of in {NONE, VOID} or in_scope(of, row, spec_id, file))
    if by_vector and not is_vector(row):
        return False
    return sequence <= number and in_scope(of, row, spec_id, file) and names(row, file["path"])


def in_scope(of: int, row: Row, spec_id: int, file: Mapping[str, Any]) -> bool:
    """The same spec and, where that has partitions, the same one: null is one, and void has none."""
    return of == spec_id and (of in {NONE, VOID} or row["id"] == file["id"])


def names(row: Row, path: str) -> bool:
    if row["referenced_data_file"] is not None:
        return bool(row["referenced_data_file"] == path)
    low, high = row["path_lower"], row["path_upper"]
    if low is not None and high is not None and low.encode() > high.encode():
        return True
    return (low is None or low.encode() <= path.encode()) and (high is None or path.encode() <= high.encode())


def is_vector(row: Row) -> bool:
    return row["content"] == POSITION and "content_offset" in row


def is_corrupt(rows: Sequence[tuple[int, Row]], spec_id: int, file: Mapping[str, Any]) -> bool:
    """Whether a vector names the file but lies in another partition."""
    return any(
        is_vector(row) and row["referenced_data_file"] == file["path"] and not in_scope(of, row, spec_id, file)
        for of, row in rows
    )
