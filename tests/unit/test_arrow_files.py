"""Rows of files as tasks read them, without those that are deleted by their places."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

from tamis.formats.scan import FileFormat, ReadField
from tamis.predicate.arrays import Int64s
from tamis.spark.arrow_files import ArrowFile, Asked, Bitmap, Deleted, read_files

ASKED = Asked("orc", (ReadField("id", pa.int64(), written_as="id"),), (), ("place",))
ROWS = 40


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ROWS rows in stripes of which none is like another."""
    path = tmp_path_factory.mktemp("rows") / "data.orc"
    with orc.ORCWriter(path, stripe_size=64, batch_size=1) as writer:
        for first, end in ((0, 17), (17, 18), (18, ROWS)):
            writer.write(pa.table({"id": pa.array(range(first, end), pa.int64())}))
    return path


def listing(path: Path, pairs: list[tuple[str | None, int | None]]) -> tuple[str, FileFormat]:
    """A position delete file."""
    files, places = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    pq.write_table(pa.table({"file_path": pa.array(files, pa.string()), "pos": pa.array(places, pa.int64())}), path)
    return str(path), "parquet"


def decoded(vector: bytes) -> Int64s:
    if not vector:
        raise ValueError("nothing is no vector")
    return np.frombuffer(vector, np.uint8).astype(np.int64)


def read(data: Path, deleted: Deleted | None, asked: Asked = ASKED) -> list[dict[str, int]]:
    """The rows that come out."""
    files = [ArrowFile(str(data), None, {}, {}, deleted)]
    batches = read_files([pa.RecordBatch.from_pydict({"id": [0]})], files, asked)
    return [row for batch in batches for row in batch.to_pylist()]


def left(gone: set[int]) -> list[dict[str, int]]:
    return [{"id": row, "place": row} for row in range(ROWS) if row not in gone]


def test_nothing_is_deleted_unless_something_says_so(data: Path) -> None:
    assert read(data, None) == left(set())


def test_lists_name_rows_of_several_files_in_any_order_and_more_than_once(data: Path, tmp_path: Path) -> None:
    one = listing(tmp_path / "one", [("b", 1), ("a", 39), ("c", 2), ("a", 0), ("a", 39)])
    two = listing(tmp_path / "two", [("a", 17), ("a", 16), ("a", 0)])
    none = listing(tmp_path / "none", [])
    assert read(data, Deleted("a", (one, two, none), (), None)) == left({0, 16, 17, 39})
    assert read(data, Deleted("b", (one, two, none), (), None)) == left({1})
    assert read(data, Deleted("d", (one, two, none), (), None)) == left(set())


def test_places_beyond_the_file_name_no_row(data: Path, tmp_path: Path) -> None:
    assert read(data, Deleted("a", (listing(tmp_path / "far", [("a", ROWS), ("a", 3)]),), (), None)) == left({3})


def test_vectors_lie_in_files_and_in_metadata(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(bytes([99, 4, 30, 98]))
    vectors = Bitmap((str(path), 1, 2)), Bitmap(bytes([7, 30]), 2)
    assert read(data, Deleted("a", (), vectors, decoded)) == left({4, 7, 30})


def test_vector_that_cannot_be_decoded_names_its_file_and_place(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(b"12")
    with pytest.raises(ValueError, match=rf"{path}, at byte 1: nothing is no vector"):
        read(data, Deleted("a", (), (Bitmap((str(path), 1, 0)),), decoded))


def test_vector_of_other_rows_than_the_metadata_says_is_refused(data: Path) -> None:
    with pytest.raises(ValueError, match="has 2 rows, and the metadata says 3"):
        read(data, Deleted("a", (), (Bitmap(bytes([1, 2]), 3),), decoded))


@pytest.mark.parametrize("pair", [(None, 3), ("a", None)])
def test_list_without_a_path_or_a_place_is_refused(
    data: Path, tmp_path: Path, pair: tuple[str | None, int | None]
) -> None:
    with pytest.raises(ValueError, match="odd is no position delete file"):
        read(data, Deleted("a", (listing(tmp_path / "odd", [("a", 1), pair]),), (), None))


def test_rows_without_columns_are_counted(data: Path) -> None:
    asked = Asked("orc", (), (), ())
    assert len(read(data, Deleted("a", (), (Bitmap(bytes([0, 1, 20])),), decoded), asked)) == ROWS - 3


@given(gone=st.sets(st.integers(0, ROWS + 3)))
def test_exactly_what_is_named_is_missing(data: Path, gone: set[int]) -> None:
    """Whatever the stripes, and whole ones among it."""
    assert read(data, Deleted("a", (), (Bitmap(bytes(gone)),), lambda blob: np.array(list(blob), np.int64))) == left(
        gone
    )


@pytest.mark.parametrize("gone", [{0}, {ROWS - 1}, {16, 17, 18}, {0, 5, 6, 39}, set(range(ROWS))])
def test_what_lies_between_rows_that_are_far_apart_comes_out_uncopied(
    data: Path, monkeypatch: pytest.MonkeyPatch, gone: set[int]
) -> None:
    """The ends of a file and of a stripe included, and rows that lie side by side."""
    monkeypatch.setattr("tamis.spark.arrow_files.RUN_ROWS", 1)
    vector = Deleted("", (), (Bitmap(bytes(sorted(gone))),), decoded)
    assert read(data, vector) == left(gone)
