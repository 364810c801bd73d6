"""Checkpoints as other writers lay them out, and those that are none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.errors import UnreadableMetadataError
from tests.making.delta_logs import DeltaLog, add, inline_vector, metadata, protocol

Change = Callable[[pa.Array], pa.Array]


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    """Three files; the last has a vector."""
    made = DeltaLog(tmp_path / "t")
    made.begin(*(add(str(n), "abc"[n], inline_vector([7]) if n == 2 else None, stats=_stats(n)) for n in range(3)))
    return made


def _stats(value: int) -> str:
    bounds = {"id": value}
    return json.dumps({"numRecords": 10, "minValues": bounds, "maxValues": bounds, "nullCount": {"id": 0}})


def _checkpoint(log: DeltaLog, column: str, change: Change) -> Path:
    """A checkpoint with that column changed, and no commit beside it."""
    (path,) = log.checkpoint(0)
    table = pq.read_table(path)
    place = table.column_names.index(column)
    pq.write_table(table.set_column(place, column, change(table[column].combine_chunks())), path)
    (log.folder / f"{0:020d}.json").unlink()
    return path


def _field(name: str, change: Change) -> Change:
    """The struct with one of its fields changed, or left out where that gives None."""

    def changed(struct: pa.StructArray) -> pa.StructArray:
        fields = {one.name: struct.field(one.name) for one in struct.type}
        fields[name] = change(fields[name])
        kept = {key: values for key, values in fields.items() if values is not None}
        return pa.StructArray.from_arrays([*kept.values()], names=[*kept], mask=struct.is_null())

    return changed


def _cast(name: str, type_: pa.DataType) -> Change:
    return _field(name, lambda values: values.cast(type_))


@pytest.mark.parametrize(
    "change",
    [
        _cast("path", pa.large_string()),
        _cast("path", pa.binary()),
        _field("path", lambda values: values.dictionary_encode()),
        _cast("size", pa.int32()),
        _cast("size", pa.float64()),
        _cast("stats", pa.large_string()),
        _cast("stats", pa.binary()),
        _field("stats", lambda values: values.dictionary_encode()),
        _cast("partitionValues", pa.map_(pa.large_string(), pa.large_string())),
    ],
)
def test_a_checkpoint_of_other_types_that_hold_the_same_is_read_as_any(log: DeltaLog, change: Change) -> None:
    """Polars writes large strings, Arrow dictionaries, old writers bytes that do not say that they are text."""
    before = tamis.open(log.root)
    expected = {where: before.plan(where).files for where in ("true", "part = 'b'", "id > 0")}
    _checkpoint(log, "add", change)
    table = tamis.open(log.root)
    assert {where: table.plan(where).files for where in expected} == expected
    assert table.source.scan(table.plan()).files == before.source.scan(before.plan()).files
    assert table.inspect().total.bytes == 30


@pytest.mark.parametrize(
    ("column", "change", "message"),
    [
        ("add", lambda column: pa.array([5] * len(column)), "its column add is int64"),
        ("add", _field("path", lambda _: None), "its files have no path"),
        ("add", _field("path", lambda values: pa.nulls(len(values), pa.string())), "an add action in it has no path"),
        ("add", _field("size", lambda values: pa.array(["x"] * len(values))), "no checkpoint that Parquet readers"),
        ("add", _field("partitionValues", lambda values: pa.array(["x"] * len(values))), "its partitionValues are"),
        ("add", _field("deletionVector", lambda values: pa.array(["x"] * len(values))), "its deletionVector is"),
        ("protocol", lambda column: pa.array([5] * len(column)), "its column protocol is int64"),
        ("sidecar", lambda column: pa.array(["x"] * len(column)), "its column sidecar is string"),
        ("metaData", lambda column: pa.nulls(len(column)), "no action up to version 0 is the table's metaData"),
    ],
)
def test_a_checkpoint_whose_actions_are_none_is_an_error_that_says_so(
    log: DeltaLog, column: str, change: Change, message: str
) -> None:
    path = _checkpoint(log, column, change)
    for job in (lambda: tamis.open(log.root).plan(), lambda: tamis.open(log.root).inspect()):
        with pytest.raises(UnreadableMetadataError, match=message) as raised:
            job()
        assert raised.value.path in {str(path), str(log.folder)}


def test_a_column_of_nothing_but_nulls_has_no_actions(log: DeltaLog) -> None:
    """Arrow writes a column that was never filled without a type."""
    expected = tamis.open(log.root).plan().files
    _checkpoint(log, "sidecar", lambda column: pa.nulls(len(column)))
    assert tamis.open(log.root).plan().files == expected


@pytest.mark.parametrize("kind", ["classic", "multi-part", "v2-parquet", "v2-json"])
@pytest.mark.parametrize("hinted", [False, True])
def test_an_empty_checkpoint_is_passed_over(log: DeltaLog, kind: str, *, hinted: bool) -> None:
    """A writer died before it had written anything. Spark passes it over as well: the commits are all there."""
    log.commit(add("3"))
    expected = tamis.open(log.root).plan().files
    paths = log.checkpoint(0, kind)
    paths[-1].write_bytes(b"")
    if hinted:
        log.hint({"version": 0})
    assert tamis.open(log.root).plan().files == expected


@pytest.mark.parametrize("rows", [0, 1])
def test_a_checkpoint_without_rows_is_an_error_though_later_commits_describe_the_table(
    log: DeltaLog, rows: int
) -> None:
    """With all that is asked of it told elsewhere, it would be one that has no files: the table would lose them."""
    (path,) = log.checkpoint(0)
    (log.folder / f"{0:020d}.json").unlink()
    log.commit(protocol(), metadata(), add("3"))
    assert len(tamis.open(log.root).plan().files) == 4
    pq.write_table(pq.read_table(path).slice(0, rows), path)
    with pytest.raises(UnreadableMetadataError, match="no protocol or no metaData action") as raised:
        tamis.open(log.root)
    assert raised.value.path == str(path)


def test_a_misspelt_sidecar_of_a_checkpoint_in_json_is_an_error(log: DeltaLog) -> None:
    """A bit that flips in the name would lose all files of the sidecar."""
    (path,) = log.checkpoint(0, "v2-json")
    assert len(tamis.open(log.root).plan().files) == 3
    path.write_bytes(path.read_bytes().replace(b'"sidecar"', b'"sidecaz"', 1))
    with pytest.raises(UnreadableMetadataError, match="where sidecar must be meant") as raised:
        tamis.open(log.root)
    assert raised.value.path == str(path)


def test_an_empty_checkpoint_is_named_where_the_commits_before_it_are_gone(log: DeltaLog) -> None:
    log.commit(add("3"))
    (path,) = log.checkpoint(0)
    path.write_bytes(b"")
    (log.folder / f"{0:020d}.json").unlink()
    with pytest.raises(UnreadableMetadataError, match=f"version 0 is missing .* and {path.name} is empty"):
        tamis.open(log.root)
