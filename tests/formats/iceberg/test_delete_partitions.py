"""Deletes by metadata alone: of partitions of every type, and of files that have lost rows before."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from pathlib import Path

import pytest

import tamis
from tamis.formats.edit import NewFile
from tests.making.edits import data_file, edit, entries, listed, make_table, planned, vector, writable


def append(path: str, *files: NewFile) -> None:
    table = writable(path)
    table.commit(edit(table, "append", added=files))


def names(path: str) -> list[str]:
    return sorted(Path(one.path).name.removesuffix(".parquet") for one in entries(path) if one.content == 0)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("uuid", bytes(range(240, 256))),
        ("fixed[4]", b"\xff\0ab"),
        ("binary", b""),
        ("time", 5),
        ("boolean", False),
        ("double", -0.0),
        ("float", float("nan")),
        ("decimal(38, 10)", Decimal("-0.0000000001")),
    ],
)
def test_files_leave_partitions_of_every_type(tmp_path: Path, kind: str, value: object) -> None:
    """What stays is summarised anew in the manifest list: Arrow itself has no order of UUIDs."""
    columns = [("id", "long"), ("p", kind)]
    fields = [
        {"id": id_, "name": name, "required": False, "type": type_} for id_, (name, type_) in enumerate(columns, 1)
    ]
    spec = {"spec-id": 3, "fields": [{"name": "p", "transform": "identity", "source-id": 2, "field-id": 1000}]}
    schemas = [{"type": "struct", "schema-id": 0, "fields": fields}]
    path = make_table(tmp_path, 2, **{"schemas": schemas, "partition-specs": [spec]})
    files = [data_file(path, number, 0) for number in range(4)]
    values = (value, None, value, value)
    append(
        path,
        *(dataclasses.replace(file, spec_id=3, partition=(one,)) for file, one in zip(files, values, strict=True)),
    )
    tamis.open(path, cache=False).delete("id < 10")
    assert names(path) == ["f1", "f2", "f3"]
    (summary,) = listed(path)[0]["partitions"]
    assert summary["contains_null"]
    assert summary["lower_bound"] == (value if isinstance(value, bytes) else summary["lower_bound"])
    assert [Path(one).stem for one in tamis.open(path, cache=False).plan("p is null").files["path"].to_pylist()] == [
        "f1"
    ]


def test_rows_that_were_gone_before_are_not_deleted_again(tmp_path: Path) -> None:
    """Vectors say how many rows of a file they take: of the two files 7 and 10 rows are left to be deleted."""
    path = make_table(tmp_path, 3)
    files = [data_file(path, number, 1) for number in range(3)]
    append(path, *files)
    table = writable(path)
    _, referenced = planned(table, lambda one: one == files[1].path)
    table.commit(edit(table, "delete", deletes=(vector(path, 5, files[1]),), referenced=referenced))
    done = tamis.open(path, cache=False).delete("id between 10 and 29")
    assert (done.rows, done.files_dropped, names(path)) == (17, 2, ["f0"])
