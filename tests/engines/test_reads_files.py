"""Files that are not what the metadata says: folders, files that were replaced, one file by two names."""

from __future__ import annotations

import io
import re
from pathlib import Path

import fastavro
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.errors import UnreadableFileError, UnreadableMetadataError
from tamis.formats.iceberg import scan
from tamis.spark import deletes
from tests.engines.conftest import Warehouse
from tests.engines.reading import Java, delete_rows, make, tamis_rows

pytestmark = pytest.mark.engine

ROWS = "insert into {t} select id, 'v' || id from range(0, 10, 1, 1)"


def added(warehouse: Warehouse, name: str, path: str) -> None:
    """The table's one file once more, under another path."""
    java = Java(warehouse.spark)
    loaded, file = java.load(name), java.data_file(name)
    copy = java.iceberg.DataFiles.builder(loaded.spec()).copy(file).withPath(path).build()
    loaded.newAppend().appendFile(copy).commit()


def only_file(warehouse: Warehouse, name: str) -> Path:
    (path,) = tamis.open(warehouse.path(name)).plan().files["path"].to_pylist()
    return Path(path.removeprefix("file:"))


def replace(path: Path) -> None:
    """Other rows under the same name."""
    rows = pq.ParquetFile(path).read()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    pq.write_table(rows.slice(3, 2), path)


def test_one_file_under_several_spellings_counts_each_time(warehouse: Warehouse) -> None:
    """Spark lists a file once, however it is spelled; the table counts its rows as often as it names it."""
    make(warehouse, "spelled", "id bigint, s string", ROWS)
    path = only_file(warehouse, "spelled")
    for other in (f"file:{path}", f"file://{path}", f"{path.parent}//{path.name}", f"{path.parent}/./{path.name}"):
        added(warehouse, "spelled", other)
    assert tamis_rows(warehouse, "spelled").count() == 50
    assert tamis_rows(warehouse, "spelled", "id < 3 and s <> ''").count() == 15
    files = {row._file for row in tamis_rows(warehouse, "spelled", metadata_columns=["_file"]).collect()}
    assert len(files) == 5


def test_a_folder_is_no_file(warehouse: Warehouse) -> None:
    """Spark would read all that is in it, at any depth."""
    make(warehouse, "folder", "id bigint, s string", ROWS)
    path = only_file(warehouse, "folder")
    inside = path.with_name("folder.parquet") / "below"
    inside.mkdir(parents=True)
    (inside / path.name).write_bytes(path.read_bytes())
    added(warehouse, "folder", str(inside.parent))
    with pytest.raises(UnreadableMetadataError, match=r"folder\.parquet: it is a folder"):
        tamis_rows(warehouse, "folder")


@pytest.mark.parametrize("where", [None, "id >= 0", "id % 2 = 0"])
def test_a_file_that_was_replaced_is_refused(warehouse: Warehouse, where: str | None) -> None:
    """Verdict ALL leaves its rows unfiltered: those of another file came through."""
    name = f"replaced_{len(where or '')}"
    make(warehouse, name, "id bigint, s string", ROWS)
    path = only_file(warehouse, name)
    replace(path)
    with pytest.raises(UnreadableMetadataError, match=rf"{re.escape(path.name)}: it has [\d,]+ bytes, and .* says"):
        tamis_rows(warehouse, name, where)


def test_a_delete_file_that_was_replaced_is_refused(warehouse: Warehouse) -> None:
    """Deleted rows would come back, or others go."""
    make(warehouse, "replaced_deletes", "id bigint, s string", ROWS, "delete from {t} where id in (1, 5)")
    (path,) = Path(warehouse.path("replaced_deletes")).rglob("*-deletes.parquet")
    replace(path)
    with pytest.raises(UnreadableMetadataError, match=r"-deletes\.parquet: it has"):
        tamis_rows(warehouse, "replaced_deletes")


def test_files_that_only_spark_can_see_are_compared_by_spark(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session far away, a store that this process cannot ask: the rows' own file says how long it is."""
    monkeypatch.setattr(scan, "size_of", lambda _fetch, _location: None)
    make(warehouse, "far", "id bigint, s string", ROWS, "delete from {t} where id = 4")
    assert tamis_rows(warehouse, "far").count() == 9
    assert tamis_rows(warehouse, "far", "id > 6 and s <> ''", metadata_columns=["_pos"]).count() == 3
    replace(only_file(warehouse, "far"))
    with pytest.raises(Exception, match="it is not the file that was written"):
        tamis_rows(warehouse, "far").collect()
    make(warehouse, "far_folder", "id bigint, s string", ROWS)
    path = only_file(warehouse, "far_folder")
    inside = path.with_name("folder.parquet") / "below"
    inside.mkdir(parents=True)
    (inside / path.name).write_bytes(path.read_bytes())
    added(warehouse, "far_folder", str(inside.parent))
    with pytest.raises(UnreadableFileError, match=r"Spark does not list .*folder\.parquet"):
        tamis_rows(warehouse, "far_folder")


@pytest.mark.parametrize(
    ("kind", "version", "file_format", "few"),
    [
        ("position", 2, "parquet", True),
        ("position", 2, "avro", True),
        ("value", 2, "parquet", True),
        ("vector", 3, "parquet", True),
        ("vector", 3, "parquet", False),
    ],
)
def test_delete_files_that_only_spark_can_see_are_compared_as_they_are_read(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, kind: str, version: int, file_format: str, few: bool
) -> None:
    """Another file under the name of a delete file brings rows back, or takes others away."""
    monkeypatch.setattr(scan, "size_of", lambda _fetch, _location: None)
    if not few:
        monkeypatch.setattr(deletes, "MOST_LOCAL", 0)
    name = f"far_{kind}_{file_format}_{few}"
    make(warehouse, name, "id bigint, s string", ROWS, version=version, write_delete_format_default=file_format)
    if kind == "value":
        delete_rows(warehouse, name, [{"s": "v1"}, {"s": "v5"}])
    else:
        warehouse.spark.sql(f"delete from ice.db.{name} where id in (1, 5)")  # noqa: S608 - a name of ours
    assert tamis_rows(warehouse, name).count() == 8
    assert tamis_rows(warehouse, name, "id < 6 and s <> ''", metadata_columns=["_pos"]).count() == 4
    written = Path(warehouse.path(name)).rglob("*")
    (path,) = (one for one in written if re.fullmatch(r"(?!\.)(.*-deletes\.\w+|equality-.*\.parquet)", one.name))
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    if kind == "vector":
        path.write_bytes(path.read_bytes() + b"\0")
    elif file_format == "parquet":
        pq.write_table(pq.read_table(path), path, compression="none", write_statistics=False)
    else:
        records = [*fastavro.reader(io.BytesIO(path.read_bytes()))]
        schema = fastavro.reader(io.BytesIO(path.read_bytes())).writer_schema
        with path.open("wb") as stream:
            fastavro.writer(stream, schema, records[:1])
    with pytest.raises(Exception, match=r"it is not the file that was written|it has [\d,]+ bytes, and the table's"):
        tamis_rows(warehouse, name).collect()
