"""Paimon tables as pypaimon writes them: opened, listed and planned."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tests.making.paimon_tables import created, written

COLUMNS = pa.schema([pa.field("dt", pa.string()), pa.field("id", pa.int64()), ("v", pa.int32())])


def rows(first: int, count: int) -> list[dict[str, object]]:
    return [{"dt": "ab"[one % 2], "id": one, "v": one * 10} for one in range(first, first + count)]


def on_disk(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("data-*")}


@pytest.mark.parametrize("key", [(), ("dt", "id")])
@pytest.mark.parametrize("bucket", ["-1", "3"])
def test_plan_of_everything_has_every_file_where_it_lies(tmp_path: Path, key: tuple[str, ...], bucket: str) -> None:
    options = {"bucket": bucket} | ({"bucket__key": "id"} if not key and bucket != "-1" else {})
    table = created(tmp_path, COLUMNS, partition=["dt"], key=key, **options)
    for start in (0, 7):
        written(table, rows(start, 7), COLUMNS)
    folder = tmp_path / "db.db" / "t"
    opened = tamis.open(folder)
    assert opened.format == f"paimon ({'primary-key' if key else 'append'} table)"
    assert opened.snapshot_id == 2
    files = opened.plan().files
    assert set(files["path"].to_pylist()) == on_disk(folder)
    assert sum(files["rows"].to_pylist()) == 14
    assert files["size"].to_pylist() == [(folder / path).stat().st_size for path in files["path"].to_pylist()]
    assert set(files["partition"].to_pylist()) == {"dt=a", "dt=b"}
    folders = {path.split("/")[-2] for path in files["path"].to_pylist()}
    assert {f"bucket-{one}" for one in files["bucket"].to_pylist()} == folders


def test_partitions_prune(tmp_path: Path) -> None:
    table = created(tmp_path, COLUMNS, partition=["dt"])
    written(table, rows(0, 8), COLUMNS)
    plan = tamis.open(tmp_path / "db.db" / "t").plan("dt = 'a'")
    assert plan.files["partition"].to_pylist() == ["dt=a"]
    assert plan.files["verdict"].to_pylist() == ["all"]


def test_overwritten_files_are_gone(tmp_path: Path) -> None:
    table = created(tmp_path, COLUMNS, partition=["dt"])
    written(table, rows(0, 8), COLUMNS)
    builder = table.new_batch_write_builder().overwrite({"dt": "a"})
    write = builder.new_write()
    write.write_arrow(pa.Table.from_pylist([{"dt": "a", "id": 99, "v": 1}], schema=COLUMNS))
    builder.new_commit().commit(write.prepare_commit())
    opened = tamis.open(tmp_path / "db.db" / "t")
    assert sorted(opened.plan().files["rows"].to_pylist()) == [1, 4]
    assert sorted(tamis.open(tmp_path / "db.db" / "t", snapshot_id=1).plan().files["rows"].to_pylist()) == [4, 4]


def test_table_without_a_snapshot_is_empty(tmp_path: Path) -> None:
    created(tmp_path, COLUMNS)
    opened = tamis.open(tmp_path / "db.db" / "t")
    assert opened.snapshot_id is None
    assert opened.plan().files.num_rows == 0


def test_hint_of_the_newest_snapshot_is_not_trusted(tmp_path: Path) -> None:
    """A writer that dies between its commit and the hint leaves an old hint."""
    table = created(tmp_path, COLUMNS)
    for start in (0, 3):
        written(table, rows(start, 3), COLUMNS)
    folder = tmp_path / "db.db" / "t"
    (folder / "snapshot" / "LATEST").write_text("1", encoding="utf-8")
    assert tamis.open(folder).snapshot_id == 2


def test_minus_zero_is_found_as_zero(tmp_path: Path) -> None:
    """Pypaimon's own plan of `= 0.0` leaves out a file whose bounds are -0.0."""
    columns = pa.schema([("id", pa.int64()), ("f", pa.float64())])
    table = created(tmp_path, columns, metadata_stats__mode="full")
    for value in (-0.0, 0.0, 1.0):
        written(table, [{"id": 1, "f": value}], columns)
    opened = tamis.open(tmp_path / "db.db" / "t")
    for where in ("f = 0.0D", "f = -0.0D", "f in (0.0D)", "f between -0.5D and 0.5D", "f <= -0.0D"):
        assert len(opened.plan(where).files) == 2, where
    assert len(opened.plan("f >= 0.0D").files) == 3
