"""Which files an index manifest gives deletion vectors, and what is wrong with one."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import tamis
from tamis.errors import UnreadableMetadataError
from tamis.formats.paimon import sheets
from tamis.formats.paimon.deletions import read_vectors
from tamis.formats.storage.inflate import LIMIT_VARIABLE
from tests.making.paimon_manifests import MadeTable, entry, row, vectors

ID = {"id": 0, "name": "id", "type": "BIGINT"}
P = {"id": 1, "name": "p", "type": "STRING"}


def part(value: str | None) -> bytes:
    return row(p=("STRING", value))


def deleted(table: MadeTable) -> list[tuple[str, int]]:
    """The kept files that have vectors, and how many rows these delete, as a reader is told."""
    opened = tamis.open(table.folder)
    plan = opened.plan()
    scan = opened.source.scan(plan)
    counts = dict(zip(plan.files["path"].to_pylist(), plan.files["deletes"].to_pylist(), strict=True))
    if scan.vectors is None:
        assert not any(counts.values())
        return []
    paths = [scan.files["path"][int(one)].as_py().removeprefix(f"{table.folder}/") for one in scan.vectors.data]
    assert [path for path, count in counts.items() if count] == paths
    assert opened.inspect().specs[0].deletes.vectors == len(paths)
    return [(path, scan.vectors.rows) for path in paths]


def test_vector_is_that_of_one_partition_alone(tmp_path: Path) -> None:
    """Files of one name in two partitions: by the other's vector rows would be lost, and by its own come back."""
    table = MadeTable(tmp_path / "t", [ID, P], partition=["p"])
    files = [entry("f.parquet", partition=part(one)) for one in ("a", "b", None)]
    table.commit(*files, index=[vectors("f.parquet", partition=part("a"))])
    assert deleted(table) == [("p=a/bucket-0/f.parquet", 1)]
    table.commit(
        index=[vectors("f.parquet", partition=part(None)), vectors("f.parquet", "gone", partition=part("b"))]
    )
    assert [path for path, _ in deleted(table)] == [
        "p=b/bucket-0/f.parquet",
        "p=__DEFAULT_PARTITION__/bucket-0/f.parquet",
    ]


def test_vector_is_that_of_one_bucket_alone(tmp_path: Path) -> None:
    table = MadeTable(tmp_path / "t", [ID], options={"bucket": "2", "bucket-key": "id"})
    table.commit(
        entry("f.parquet", total=2), entry("f.parquet", bucket=1, total=2), index=[vectors("f.parquet", bucket=1)]
    )
    assert deleted(table) == [("bucket-1/f.parquet", 1)]


def test_null_of_either_writer_is_one_partition(tmp_path: Path) -> None:
    """Java keeps room for a NULL of a wide type, pypaimon none: an entry of one may name a file of the other."""
    wide = {"id": 1, "name": "p", "type": "DECIMAL(20, 2)"}
    theirs = row(p=("DECIMAL(20, 2)", None))
    java = theirs[:12] + bytes(4) + (16).to_bytes(4, "little") + bytes(16)
    assert len(theirs) == 20
    table = MadeTable(tmp_path / "t", [ID, wide], partition=["p"])
    table.commit(entry("f.parquet", partition=theirs), index=[vectors("f.parquet", partition=java)])
    assert [path for path, _ in deleted(table)] == ["p=__DEFAULT_PARTITION__/bucket-0/f.parquet"]


@pytest.mark.parametrize(
    ("more", "file", "rows"),
    [({}, {}, 1), ({"_CARDINALITY": None}, {}, 10), ({"_CARDINALITY": -1}, {}, 10)],
)
def test_count_that_nobody_gave_is_that_of_the_files_rows(
    tmp_path: Path, more: dict[str, Any], file: dict[str, Any], rows: int
) -> None:
    table = MadeTable(tmp_path / "t", [ID])
    table.commit(entry("f.parquet", **file), index=[vectors("f.parquet", **more)])
    assert deleted(table) == [("bucket-0/f.parquet", rows)]


def test_count_that_nobody_can_tell_may_be_any(tmp_path: Path) -> None:
    """Taken for none, all positions would be sent to every executor."""
    table = MadeTable(tmp_path / "t", [ID])
    table.commit(entry("f.parquet", row_count=-1), index=[vectors("f.parquet", _CARDINALITY=None)])
    ((_, rows),) = deleted(table)
    assert rows > 1 << 30


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ([vectors("f.parquet") | {"_VERSION": 2}], "its entries are of version 2"),
        ([vectors("f.parquet") | {"_KIND": 1}], "its _KIND is 1"),
        ([vectors("f.parquet"), vectors("f.parquet")], "the file f.parquet has two deletion vectors"),
        ([vectors("f.parquet", f1=-1)], "at a negative place"),
        ([vectors("f.parquet", f2=None)], "it is not an index manifest"),
        ([vectors("f.parquet") | {"_FILE_NAME": "../../etc/passwd"}], "which is no file's name"),
    ],
)
def test_damaged_index_manifest_says_what_is_wrong(tmp_path: Path, index: list[dict[str, Any]], said: str) -> None:
    table = MadeTable(tmp_path / "t", [ID])
    table.commit(entry("f.parquet"), index=index)
    plan = tamis.open(table.folder).plan()
    with pytest.raises(UnreadableMetadataError, match=said):
        _ = plan.files


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_index_manifest_that_is_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """A few kilobytes of a column of zeros took gigabytes: manifests had a limit, and index manifests had none."""
    stream = io.BytesIO()
    rows = pa.table({"_VERSION": pa.array(np.ones(1 << 20, np.int64))})
    if kind == "orc":
        orc.write_table(rows, stream, compression="zstd")
        monkeypatch.setattr(sheets, "_MOST_RATIO", 1)
    else:
        pq.write_table(rows, stream, use_dictionary=False)
        monkeypatch.setenv(LIMIT_VARIABLE, "1000000")
    with pytest.raises(UnreadableMetadataError, match=r"cannot read index-manifest-0: .*limit"):
        read_vectors("index-manifest-0", stream.getvalue(), cast("Any", None))


def test_rows_of_no_fields_that_differ_in_their_bytes_are_one_partition(tmp_path: Path) -> None:
    table = MadeTable(tmp_path / "t", [ID])
    table.commit(entry("f.parquet"), entry("g.parquet", partition=bytes(20)), index=[vectors("g.parquet")])
    assert deleted(table) == [("bucket-0/g.parquet", 1)]
