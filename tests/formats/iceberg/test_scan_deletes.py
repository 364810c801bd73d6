"""What a reader is told of deletes, against Iceberg's rules of scope asked for each pair of a file and a delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import UnreadableMetadataError
from tamis.formats.iceberg.deletes import DeleteIndex
from tamis.formats.iceberg.puffin import vector_blob
from tamis.formats.iceberg.scan_deletes import ScanDeletes, deletes_of
from tamis.formats.iceberg.stage_deletes import OldVector, old_positions
from tamis.formats.iceberg.table import IcebergTable
from tamis.formats.roaring import bitmap
from tamis.formats.storage.local import fetch_local
from tamis.sieve.outcome import NO_LAYER, Outcome
from tests.formats.iceberg.test_deletes import BY_ID, EQUALITY, NONE, POSITION, metadata
from tests.formats.iceberg.test_deletes import deletes as delete_batch
from tests.formats.iceberg.test_deletes_never_wrong import SPECS, Row, applies, data, delete_rows, is_vector

COLUMNS = st.sampled_from([[1], [2], [1, 2], [2, 1]])


def table() -> IcebergTable:
    found = metadata()
    return IcebergTable("t", found, found.select(), fetch_local)


def outcome(spec_id: int, files: Sequence[Row], kept: Sequence[bool]) -> Outcome:
    count = len(files)
    none, nobody = np.zeros(count, np.bool_), np.full(count, NO_LAYER)
    chosen = np.array(kept, np.bool_)
    layers = nobody.astype(np.int8)
    return Outcome(data(spec_id, files), chosen, none, layers, nobody.astype(np.int32), none, none, layers)


def told(batches: Sequence[tuple[int, list[Row]]], outcomes: Sequence[Outcome]) -> ScanDeletes | None:
    """What a reader is told, the delete files being called 0, 1 and so on."""
    numbered, made = 0, []
    for spec_id, rows in batches:
        batch = delete_batch(spec_id, *({**row, "path": str(numbered + place)} for place, row in enumerate(rows)))
        files = batch.files.append_column("spec_id", pa.array([spec_id] * len(rows), pa.int32()))
        files = files.append_column("file_format", pa.array(["PARQUET"] * len(rows)))
        made.append(type(batch)(spec_id, files, batch.partition))
        numbered += len(rows)
    return deletes_of(table(), DeleteIndex(metadata(), made), outcomes)


def applied(found: ScanDeletes | None) -> set[tuple[int, int]]:
    """Every pair of a data file and a delete file that a reader would apply: of equality deletes, by their law."""
    if found is None:
        return set()
    pairs: set[tuple[int, int]] = set()
    if found.positions is not None:
        names = found.positions.files["path"].to_pylist()
        places = zip(found.positions.data.tolist(), found.positions.delete.tolist(), strict=True)
        pairs |= {(number, int(names[place])) for number, place in places}
    if found.vectors is not None:
        pairs |= set(zip(found.vectors.data.tolist(), map(int, found.vectors.location), strict=True))
    by_value = set()
    for part in found.equality:
        for file in part.data.to_pylist():
            for group in part.groups:
                for delete in group.files.to_pylist():
                    if delete["scope"] == file["scope"] and file["sequence"] < delete["sequence"]:
                        by_value.add((file["number"], int(delete["path"])))
    assert np.flatnonzero(found.has_positions).tolist() == sorted({number for number, _ in pairs})
    assert np.flatnonzero(found.has_equality).tolist() == sorted({number for number, _ in by_value})
    read = {delete for _, delete in pairs}
    read |= {
        int(path) for part in found.equality for group in part.groups for path in group.files["path"].to_pylist()
    }
    assert sorted(map(int, found.files["path"].to_pylist())) == sorted(read), (
        "each file that is read is compared with its size"
    )
    return pairs | by_value


def row(content: int, sequence: int, at: int | None, **more: Any) -> Row:  # noqa: ANN401 - columns of SCHEMA
    scope = {"path_lower": None, "path_upper": None, "referenced_data_file": None, "equality_ids": [1]}
    return {"content": content, "sequence_number": sequence, "id": at, **scope, **more}


def test_global_and_partition_scoped_deletes_of_the_same_columns_stay_apart() -> None:
    """One scope for both lets the global delete miss a partition, or the partition's delete reach them all."""
    files = [{"path": "a", "id": 1, "sequence": 1}, {"path": "b", "id": 2, "sequence": 1}]
    kept = [outcome(BY_ID, files, [True, True]), outcome(NONE, [{"path": "c", "id": None, "sequence": 1}], [True])]
    for local, everywhere in ((2, 3), (3, 2)):
        batches = [(BY_ID, [row(EQUALITY, local, 1)]), (NONE, [row(EQUALITY, everywhere, None)])]
        for order in (batches, batches[::-1]):
            names = {order.index(batches[0]): {0}, order.index(batches[1]): {0, 1, 2}}
            expected = {(number, place) for place, numbers in names.items() for number in numbers}
            assert applied(told(order, kept)) == expected


def test_position_delete_of_every_kind_is_told() -> None:
    files = [{"path": "a", "id": 1, "sequence": 1}, {"path": "b", "id": 1, "sequence": 1}]
    named = row(POSITION, 2, 1, referenced_data_file="b")
    above = row(POSITION, 2, 1, path_lower="b")
    vector = row(POSITION, 2, 1, referenced_data_file="a", content_offset=4, content_size=40)
    found = told([(BY_ID, [row(POSITION, 2, 1), named, above, vector])], [outcome(BY_ID, files, [True, True])])
    assert applied(found) == {(0, 3), (1, 0), (1, 1), (1, 2)}


def test_vector_that_names_other_rows_than_its_entry_counts_is_an_error() -> None:
    """One file has the vectors of many: at a wrong offset there is a sound one too, of another data file's rows."""
    files = [{"path": "a", "id": 1, "sequence": 1}]
    mine = row(POSITION, 2, 1, referenced_data_file="a", content_offset=4, content_size=40, rows=3)
    found = told([(BY_ID, [mine])], [outcome(BY_ID, files, [True])])
    assert found is not None
    assert found.vectors is not None
    assert found.vectors.positions(0, vector_blob(bitmap(np.array([1, 2, 9])))).tolist() == [1, 2, 9]
    with pytest.raises(ValueError, match="a deletion vector has 2 rows, and the metadata says 3"):
        found.vectors.positions(0, vector_blob(bitmap(np.array([1, 9]))))


def test_vector_that_is_another_s_is_not_merged_into_a_new_one() -> None:
    """Its rows would be gone for good."""
    blob = vector_blob(bitmap(np.array([1, 9])))
    fetch = {"v.puffin": b"PFA1" + blob}.__getitem__
    assert old_positions(fetch, OldVector("v.puffin", 4, len(blob), 2), {}).tolist() == [1, 9]
    for wrong in (OldVector("v.puffin", 4, len(blob), 3), OldVector("v.puffin", 5, len(blob), 2)):
        with pytest.raises(UnreadableMetadataError, match=f"cannot read v.puffin at byte {wrong.offset}: a deletion"):
            old_positions(fetch, wrong, {})


@given(
    st.lists(st.tuples(SPECS, st.lists(st.tuples(delete_rows(), COLUMNS), min_size=1, max_size=6)), max_size=4),
    st.lists(
        st.tuples(
            SPECS,
            st.lists(
                st.fixed_dictionaries(
                    {
                        "path": st.sampled_from(["a", "aa", "b", "é"]),
                        "id": st.sampled_from([1, 2, None]),
                        "sequence": st.none() | st.integers(0, 4),
                        "kept": st.booleans(),
                    }
                ),
                min_size=1,
                max_size=4,
            ),
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_reader_applies_exactly_what_reaches_a_file(
    batches: list[tuple[int, list[tuple[Row, list[int]]]]], data_files: list[tuple[int, list[Row]]]
) -> None:
    """Scopes and sequence numbers must say the same as the pairs that they stand for, over all batches and specs."""
    rows = [(spec_id, [{**one, "equality_ids": ids} for one, ids in listed]) for spec_id, listed in batches]
    outcomes = [outcome(spec_id, files, [one["kept"] for one in files]) for spec_id, files in data_files]
    flat = [(spec_id, one) for spec_id, listed in rows for one in listed]
    kept = [(spec_id, one) for spec_id, files in data_files for one in files if one["kept"]]
    expected = {
        (number, place)
        for number, (spec_id, file) in enumerate(kept)
        for place, (of, one) in enumerate(flat)
        if applies(of, one, spec_id, file, by_vector=False)
    }
    assert not any(is_vector(one) for _, one in flat)
    assert applied(told(rows, outcomes)) == expected
