"""Files of deletes as tasks write them: places, bitmaps and vectors, read back by others."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile

import tamis
from tamis.errors import CommitRefused
from tamis.formats.edit import Marked
from tamis.formats.iceberg.puffin import Vector, puffin_file, vector_blob
from tamis.formats.iceberg.vectors import decode_vector
from tamis.formats.roaring import bitmap, positions
from tamis.sieve.partitions import Undecoded
from tests.making.edits import data_file, edit, entries, make_table, planned, position_deletes, writable

PLACES = st.lists(st.one_of(st.integers(0, 200_000), st.integers(0, 2**40)), unique=True)


@settings(max_examples=60, deadline=None)
@given(PLACES, st.integers(0, 70_000), st.integers(0, 9_000))
def test_a_bitmap_says_the_places_that_it_was_made_of(places: list[int], start: int, run: int) -> None:
    """Few places are listed, many are bits: containers of both kinds, under several high halves."""
    every = np.unique(np.array([*places, *range(start, start + run)], np.int64))
    assert positions(bitmap(every)).tolist() == every.tolist()
    assert decode_vector(vector_blob(bitmap(every))).tolist() == every.tolist()


def test_pyiceberg_reads_the_vectors_of_a_puffin_file() -> None:
    made = {"a": np.array([0, 5, 70_000]), "b": np.arange(9_000)}
    vectors = [Vector(path, len(gone), vector_blob(bitmap(gone))) for path, gone in made.items()]
    data, offsets = puffin_file(vectors, "tamis")
    theirs = {one.referenced_data_file: one for one in deletion_vectors_from_puffin_file(PuffinFile(data))}
    for path, gone in made.items():
        assert theirs[path].to_vector().to_pylist() == gone.tolist()
    for one, offset in zip(vectors, offsets, strict=True):
        assert data[offset : offset + len(one.blob)] == one.blob


def batches(*rows: tuple[str, int]) -> list[pa.RecordBatch]:
    """As Spark gives them: in order, cut anywhere."""
    cut = len(rows) // 2
    parts = [rows[:cut], rows[cut:], ()]
    return [
        pa.RecordBatch.from_arrays(
            [pa.array([one[0] for one in part], pa.string()), pa.array([one[1] for one in part], pa.int64())],
            ["_file", "_pos"],
        )
        for part in parts
    ]


@pytest.mark.parametrize("granularity", ["partition", "file"])
def test_position_deletes_lie_in_the_spec_and_partition_of_their_data(tmp_path: Path, granularity: str) -> None:
    """f1 and f4 are of one partition of spec 1, f2 of another spec. Rows are in order, and each stands there once."""
    path = make_table(tmp_path, 2, properties={"write.delete.granularity": granularity})
    files = [data_file(path, 1, 1), data_file(path, 4, 1), data_file(path, 2, 2)]
    table = writable(path)
    table.commit(edit(table, "append", added=tuple(files)))
    table = writable(path)
    plan, mine = planned(table, lambda _: True)
    stage = table.stage_deletes(mine, plan.deletes)
    one, four, two = (file.path for file in files)
    marks = list(stage.write(batches((one, 3), (one, 7), (one, 7), (two, 0), (four, 1), (four, 9)), "00000-token-x"))
    new = stage.finish(marks, "token")
    assert new.replaced == frozenset()
    by_partition = {(file.spec_id, file.partition): file for file in new.files}
    assert set(by_partition) == {(1, ("eu",)), (2, ("us", 2))}
    assert len(new.files) == (2 if granularity == "partition" else 3)
    told = sorted(row for file in new.files for row in map(tuple, _rows(file.path)))
    assert told == [(one, 3), (one, 7), (two, 0), (four, 1), (four, 9)]
    for file in new.files:
        rows = _rows(file.path)
        assert (rows, file.rows, file.size) == (sorted(rows), len(rows), Path(file.path).stat().st_size)
        paths = {row[0] for row in rows}
        assert file.referenced == (next(iter(paths)) if len(paths) == 1 else None)
        ids = pq.read_schema(file.path)
        assert [field.metadata[b"PARQUET:field_id"] for field in ids] == [b"2147483546", b"2147483545"]
    table.commit(edit(table, "delete", deletes=new.files, referenced=mine))
    kept = tamis.open(path, cache=False).plan().files
    assert sorted(zip(kept["path"].to_pylist(), kept["deletes"].to_pylist(), strict=True)) == [
        (one, 1),
        (two, 1),
        (four, 1),
    ]
    stage.discard("token")
    assert not list(tmp_path.rglob("*-deletes.parquet"))


def _rows(path: str) -> list[list[object]]:
    table = pq.ParquetFile(path).read()
    return [list(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


def test_a_vector_takes_over_what_was_said_before(tmp_path: Path) -> None:
    """f1 has a vector; f2 has position deletes from version 2, so that those who stay are told of it; f0 has none."""
    path = make_table(tmp_path, 3)
    files = [data_file(path, number, 1) for number in range(3)]
    table = writable(path)
    table.commit(edit(table, "append", added=tuple(files)))
    table = writable(path)
    plan, mine = planned(table, lambda _: True)
    first = table.stage_deletes(mine, plan.deletes).finish([Marked((files[1].path,), 2, bitmap=_bits(2, 8))], "one")
    old = position_deletes(path, 7, files[2])
    table.commit(edit(table, "delete", deletes=(*first.files, old), referenced=mine))
    table = writable(path)
    plan, mine = planned(table, lambda _: True)
    stage = table.stage_deletes(mine, plan.deletes)
    assert stage.whole == {files[2].path}
    marks = [
        Marked((files[1].path,), 2, bitmap=_bits(2, 5)),
        Marked((files[2].path,), 7, bitmap=_bits(0, 1, 2, 3, 4, 5, 6)),
    ]
    new = stage.finish(marks, "two")
    assert new.replaced == {(first.files[0].path, first.files[0].content_offset), (old.path, None)}
    found = {file.referenced: _gone(file.path, file.content_offset, file.content_size) for file in new.files}
    assert found == {files[1].path: [2, 5, 8], files[2].path: [7, 8, 9]}
    assert {file.referenced: file.rows for file in new.files} == {files[1].path: 3, files[2].path: 3}
    table.commit(edit(table, "delete", deletes=new.files, referenced=mine, replaced=new.replaced))
    live = [one for one in entries(path) if one.content == 1]
    assert sorted((one.referenced, one.rows) for one in live) == [(files[1].path, 3), (files[2].path, 3)]
    # A file of which nobody told any more has lost all of its rows.
    table = writable(path)
    table.commit(edit(table, "delete", deletes=(position_deletes(path, 8, files[0]),)))
    table = writable(path)
    plan, mine = planned(table, lambda name: name == files[0].path)
    gone = table.stage_deletes(mine, plan.deletes).finish([], "three")
    assert _gone(gone.files[0].path, gone.files[0].content_offset, gone.files[0].content_size) == list(range(10))


def _bits(*places: int) -> bytes:
    return bitmap(np.array(places, np.int64))


def _gone(path: str, offset: int | None, size: int | None) -> list[int]:
    assert offset is not None
    assert size is not None
    return list(decode_vector(Path(path).read_bytes()[offset : offset + size]).tolist())


def test_version_1_has_no_deletes(tmp_path: Path) -> None:
    path = make_table(tmp_path, 1)
    with pytest.raises(CommitRefused, match="format version is 1"):
        writable(path).stage_deletes((), None)
    assert writable(path).mode("delete") == "copy-on-write"


@pytest.mark.parametrize("version", [2, 3])
def test_a_file_whose_partition_cannot_be_read_gets_no_deletes(tmp_path: Path, version: int) -> None:
    """They would lie in the partition of NULL, where they take no row, or make the table unreadable."""
    path = make_table(tmp_path, version)
    table = writable(path)
    table.commit(edit(table, "append", added=tuple(data_file(path, number, 1) for number in range(3))))
    table = writable(path)
    plan, (mine,) = planned(table, lambda name: not name.endswith("f0.parquet"))
    for number in range(3):
        fault = Undecoded(0, np.arange(3) == number, "the value cannot be read as string")
        asked = dataclasses.replace(mine, batch=dataclasses.replace(mine.batch, undecoded=(fault,)))
        if number:  # f0 is not to get any
            with pytest.raises(CommitRefused, match=f"f{number}.parquet cannot be read"):
                table.stage_deletes((asked,), plan.deletes)
        else:
            table.stage_deletes((asked,), plan.deletes)


def test_places_of_a_file_that_come_from_two_tasks_are_all_in_its_vector(tmp_path: Path) -> None:
    path = make_table(tmp_path, 3)
    table = writable(path)
    table.commit(edit(table, "append", added=(data_file(path, 1, 1),)))
    table = writable(path)
    plan, mine = planned(table, lambda _: True)
    marks = [Marked((data_file(path, 1, 1).path,), 2, bitmap=_bits(*places)) for places in ((1, 3), (3, 7))]
    (made,) = table.stage_deletes(mine, plan.deletes).finish(marks, "one").files
    assert made.rows == 3
