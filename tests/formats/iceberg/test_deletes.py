"""Which deletes apply to which data files: Iceberg's rules of scope, one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy import typing as npt

from tamis.errors import UnreadableMetadataError
from tamis.formats.iceberg.deletes import EVERYWHERE, DeleteIndex
from tamis.formats.iceberg.manifests import DeleteBatch
from tamis.formats.iceberg.metadata import TableMetadata
from tamis.sieve.files import FileBatch
from tamis.sieve.partitions import Undecoded
from tests.making.manifests import parsed, table_document

POSITION, EQUALITY = 1, 2
BY_ID, OTHER, NONE, VOID = 0, 1, 2, 3
SCHEMA = pa.schema(
    [
        pa.field("content", pa.int32()),
        pa.field("path", pa.string()),
        pa.field("rows", pa.int64()),
        pa.field("size", pa.int64()),
        pa.field("sequence_number", pa.int64()),
        pa.field("equality_ids", pa.list_(pa.int32())),
        pa.field("referenced_data_file", pa.string()),
        pa.field("content_offset", pa.int64()),
        pa.field("content_size", pa.int64()),
        pa.field("path_lower", pa.string()),
        pa.field("path_upper", pa.string()),
    ]
)


def metadata() -> TableMetadata:
    """Partitioned by id, by id again under another spec, by nothing, and by a field that was dropped in version 1."""

    def field(name: str, transform: str) -> dict[str, Any]:
        return {"name": name, "transform": transform, "source-id": 1, "field-id": 1000}

    specs = [
        {"spec-id": BY_ID, "fields": [field("id", "identity")]},
        {"spec-id": OTHER, "fields": [field("id_too", "identity")]},
        {"spec-id": NONE, "fields": []},
        {"spec-id": VOID, "fields": [field("id", "void")]},
    ]
    return parsed(table_document(**{"partition-specs": specs}))


def partition(spec_id: int, ids: Sequence[int | None]) -> pa.StructArray | None:
    if spec_id == NONE:
        return None
    return pa.StructArray.from_arrays([pa.array(ids, pa.int64())], ["id"])


def deletes(spec_id: int, *rows: Mapping[str, Any]) -> DeleteBatch:
    """Delete files of one spec; `id` is the partition."""
    ids = [row.get("id") for row in rows]
    filled = [{"path": f"d{place}", "rows": 1, "size": 1, **row} for place, row in enumerate(rows)]
    files = pa.Table.from_pylist([{k: v for k, v in row.items() if k != "id"} for row in filled], SCHEMA)
    return DeleteBatch(spec_id, files, partition(spec_id, ids))


def found(
    batches: Sequence[DeleteBatch],
    *,
    sequence: int | None = 5,
    spec_id: int = BY_ID,
    path: str = "a",
    at: int | None = 1,
) -> list[str]:
    """The paths of the deletes that apply to one data file."""
    index = DeleteIndex(metadata(), batches)
    batch = FileBatch(
        path=pa.array([path]),
        size=pa.array([1]),
        rows=pa.array([1]),
        spec_id=spec_id,
        partition=partition(spec_id, [at]),
        extra={"sequence_number": pa.array([sequence], pa.int64())},
    )
    (places,) = assigned(index, batch, np.array([0]))
    return [] if index.files is None else [index.files["path"][place].as_py() for place in places]


def assigned(index: DeleteIndex, batch: FileBatch, rows: npt.NDArray[np.int64]) -> list[list[int]]:
    """The places of the deletes of each file: those by position as listed, those by value as their scopes say."""
    by_position = index.positions(batch, rows)
    by_position.validate(full=True)
    assert by_position.type == pa.list_(pa.int32())
    reached, deletes = index.reached(batch, rows), index.equality
    found = []
    files = zip(by_position.to_pylist(), reached.scopes.tolist(), reached.sequences.tolist(), strict=True)
    for places, scope, sequence in files:
        in_reach = np.isin(deletes.scopes, [EVERYWHERE, scope] if scope >= 0 else [EVERYWHERE])
        by_value = np.flatnonzero(in_reach & (deletes.sequences > sequence)).tolist()
        found.append(sorted([*places, *by_value]))
    assert index.count(batch, rows).tolist() == [len(places) for places in found]
    return found


def position(sequence: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - columns of SCHEMA
    return {"content": POSITION, "sequence_number": sequence, "id": 1, **more}


def equality(sequence: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - columns of SCHEMA
    return {"content": EQUALITY, "sequence_number": sequence, "id": 1, "equality_ids": [1], **more}


def vector(sequence: int, of: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - columns of SCHEMA
    scope = {"referenced_data_file": of, "content_offset": 4, "content_size": 40}
    return {"content": POSITION, "sequence_number": sequence, "id": 1, **scope, **more}


def test_no_deletes_apply_where_there_are_none() -> None:
    assert found([]) == []


@pytest.mark.parametrize("make", [position, equality, lambda sequence: vector(sequence, "a")])
def test_partition_that_cannot_be_read_is_an_error_where_deletes_need_it(make: Any) -> None:  # noqa: ANN401 - a maker of rows
    """Taken for NULL, a delete reached no file of its own partition any more, or all of another: rows came back."""
    fault = Undecoded(0, np.array([False, True]), "the value cannot be read as int64")
    batch = deletes(BY_ID, make(9), {**make(9), "referenced_data_file": None, "content_offset": None})
    with pytest.raises(UnreadableMetadataError, match=r"read d1: nobody can tell which deletes reach which .* int64"):
        DeleteIndex(metadata(), [replace(batch, undecoded=(fault,))])
    index = DeleteIndex(metadata(), [deletes(BY_ID, make(9))])
    files = FileBatch(
        path=pa.array(["a", "b"]),
        size=pa.array([1, 1]),
        rows=pa.array([1, 1]),
        spec_id=BY_ID,
        partition=partition(BY_ID, [1, None]),
        undecoded=(fault,),
        extra={"sequence_number": pa.array([5, 5], pa.int64())},
    )
    assert index.count(files, np.arange(2)).tolist() == [1, 0]
    assert assigned(index, files, np.array([0])) == [[0]]
    for ask in (index.positions, index.reached):
        with pytest.raises(UnreadableMetadataError, match="cannot read b: nobody can tell which deletes"):
            ask(files, np.arange(2))
    everywhere = DeleteIndex(metadata(), [deletes(NONE, equality(9, id=None))])
    assert assigned(everywhere, files, np.arange(2)) == [[0], [0]]


@pytest.mark.parametrize(("sequence", "applies"), [(4, False), (5, True), (6, True)])
def test_position_delete_reaches_data_of_its_own_commit_and_older(sequence: int, applies: bool) -> None:
    assert bool(found([deletes(BY_ID, position(sequence))])) == applies


@pytest.mark.parametrize(("sequence", "applies"), [(4, False), (5, False), (6, True)])
def test_equality_delete_reaches_strictly_older_data(sequence: int, applies: bool) -> None:
    """The rows of its own commit are the new versions of what it deletes."""
    assert bool(found([deletes(BY_ID, equality(sequence))])) == applies


def test_sequence_that_nobody_knows_applies() -> None:
    """A delete that is listed needlessly costs a read; one that is missed brings rows back."""
    assert found([deletes(BY_ID, position(None))])  # type: ignore[arg-type] # unknown


@pytest.mark.parametrize("make", [position, equality])
def test_delete_stays_in_its_partition_and_spec(make: Any) -> None:  # noqa: ANN401 - a maker of rows
    batches = [deletes(BY_ID, make(9))]
    assert found(batches) == ["d0"]
    assert found(batches, at=2) == []
    assert found(batches, at=None) == []
    assert found(batches, spec_id=OTHER) == [], "an equal tuple under another spec is another partition"
    assert found(batches, spec_id=NONE) == []


def test_null_partition_is_a_partition() -> None:
    assert found([deletes(BY_ID, position(9, id=None))], at=None) == ["d0"]


@pytest.mark.parametrize("spec_id", [NONE, VOID])
def test_equality_delete_without_a_partition_reaches_all_older_data(spec_id: int) -> None:
    batches = [deletes(spec_id, equality(9, id=None))]
    for of in (BY_ID, OTHER, NONE, VOID):
        assert found(batches, spec_id=of) == ["d0"]
        assert found(batches, spec_id=of, sequence=9) == []


def test_position_delete_without_a_partition_is_not_global() -> None:
    batches = [deletes(NONE, position(9, id=None))]
    assert found(batches, spec_id=NONE) == ["d0"]
    assert found(batches, spec_id=BY_ID) == []


def test_position_delete_that_names_other_files_does_not_apply() -> None:
    named = [position(9, referenced_data_file="a"), position(9, referenced_data_file="b")]
    ranged = [position(9, path_lower="a", path_upper="c"), position(9, path_lower="b", path_upper="c")]
    assert found([deletes(BY_ID, *named)]) == ["d0"]
    assert found([deletes(BY_ID, *ranged)]) == ["d0"]
    assert found([deletes(BY_ID, *ranged)], path="b") == ["d0", "d1"]


def test_one_bound_of_paths_is_open_on_its_other_side() -> None:
    """Writers leave out an upper bound that cannot be cut short: what lies above the lower one is concerned."""
    below, above = position(9, path_upper="c"), position(9, path_lower="c")
    for path, names in (("a", ["d0"]), ("c", ["d0", "d1"]), ("cc", ["d1"]), ("z", ["d1"]), ("\U00010000", ["d1"])):
        assert found([deletes(BY_ID, below, above)], path=path) == names
    lone = deletes(BY_ID, position(9, path_lower="m"))
    assert [path for path in ("a", "lzz", "m", "m/x", "z") if found([lone], path=path)] == ["m", "m/x", "z"]


def test_inverted_bounds_of_paths_say_nothing() -> None:
    """Whoever wrote them has lost its way: the delete may concern every file of its partition, and no other's."""
    lost = deletes(BY_ID, position(9, path_lower="c", path_upper="b"))
    for path in ("a", "b", "bb", "c", "d"):
        assert found([lost], path=path) == ["d0"]
    assert found([lost], at=2) == []


@pytest.mark.parametrize("make", [position, equality])
def test_data_whose_sequence_nobody_knows_is_as_old_as_can_be(make: Any) -> None:  # noqa: ANN401 - a maker of rows
    """A delete that is missed brings rows back: every delete of the file's partition reaches it, also the oldest."""
    assert found([deletes(BY_ID, make(1), make(9))], sequence=None) == ["d0", "d1"]
    assert found([deletes(NONE, make(1, id=None))], sequence=None, spec_id=NONE) == ["d0"]


def test_bounds_of_paths_say_nothing_about_equality_deletes() -> None:
    assert found([deletes(BY_ID, equality(9, path_lower="x", path_upper="z"))]) == ["d0"]


def test_vector_takes_the_place_of_position_deletes_but_not_of_equality_deletes() -> None:
    """A new vector has taken in what position deletes said before."""
    batch = deletes(BY_ID, position(9), vector(7, "a"), equality(9), vector(7, "b"))
    assert found([batch]) == ["d1", "d2"]
    assert found([batch], path="c") == ["d0", "d2"]


def test_vectors_of_one_puffin_file_are_told_apart() -> None:
    batch = deletes(BY_ID, vector(7, "a", path="p"), vector(7, "b", path="p", content_offset=44))
    index = DeleteIndex(metadata(), [batch])
    assert len(index) == 2
    assert found([batch], path="b") == ["p"]


def test_vector_in_another_partition_than_its_file_is_corruption() -> None:
    for batch, of in ((deletes(BY_ID, vector(7, "a", id=2)), BY_ID), (deletes(OTHER, vector(7, "a")), BY_ID)):
        with pytest.raises(UnreadableMetadataError, match="another partition"):
            found([batch], spec_id=of)


def test_vector_older_than_its_file_is_corruption() -> None:
    """Data of a later commit cannot have been deleted before: Java refuses such metadata as well."""
    with pytest.raises(UnreadableMetadataError, match="sequence number 4, less than the file's 5"):
        found([deletes(BY_ID, vector(4, "a"))])


def test_two_vectors_of_one_file_are_corruption() -> None:
    """A new vector takes in the old one, so the old one is gone; which of two holds, nobody can know."""
    with pytest.raises(UnreadableMetadataError, match="not the only one"):
        found([deletes(BY_ID, vector(6, "a"), vector(7, "a"))])


def test_vector_that_names_no_file_is_corruption() -> None:
    """Applied to all data of its partition, it would delete rows of files that it was never made for."""
    with pytest.raises(UnreadableMetadataError, match="names no data file"):
        found([deletes(BY_ID, vector(7, "a", referenced_data_file=None))])


def test_places_go_on_over_batches_of_several_specs() -> None:
    first, second = deletes(OTHER, equality(9)), deletes(BY_ID, position(9, path="mine"), position(1, path="old"))
    third = deletes(NONE, equality(9, id=None, path="global"))
    assert found([first, second, third]) == ["mine", "global"]
