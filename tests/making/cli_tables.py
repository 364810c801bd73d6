"""Small Iceberg tables in a SQLite catalog, written by PyIceberg; and the command line as a user runs it."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType, TimestampType

from tamis.cli import main

__all__ = ["Ran", "Tamis", "catalog", "events", "folder_of", "rows", "run", "run_process"]

SCHEMA = Schema(
    NestedField(1, "id", LongType()), NestedField(2, "region", StringType()), NestedField(3, "ts", TimestampType())
)
BY_REGION = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "region"))


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run of the command line ended."""

    code: int
    out: str
    err: str


Tamis = Callable[..., Ran]
"""The command line, given its arguments."""


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Ran:
    """Run the command line in this process, as the installed program does."""
    monkeypatch.setattr(sys, "argv", ["tamis", *arguments])
    # For a process that ends with the command. Tests that come later in this one hand pandas data to pyarrow.
    monkeypatch.setattr("tamis.formats.lean.spare_pandas", lambda: None)
    capsys.readouterr()
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    said = capsys.readouterr()
    return Ran(code, said.out, said.err)


def run_process(*arguments: str, env: Mapping[str, str] | None = None) -> Ran:
    """Run the command line in a process of its own, its output piped."""
    program = [sys.executable, "-c", "from tamis.cli import main; main()", *arguments]
    done = subprocess.run(program, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})})
    return Ran(done.returncode, done.stdout, done.stderr)


def catalog(folder: Path) -> SqlCatalog:
    """A catalog in a SQLite file, its warehouse beside it, with a namespace db."""
    folder.mkdir(parents=True, exist_ok=True)
    found = SqlCatalog("test", uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=(folder / "warehouse").as_uri())
    found.create_namespace_if_not_exists("db")
    return found


def rows(ids: Sequence[int], region: str | None, day: int) -> pa.Table:
    """Rows of one region and one day of January 2024."""
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "region": pa.array([region] * len(ids), pa.string()),
            "ts": pa.array([dt.datetime(2024, 1, day, 12)] * len(ids), pa.timestamp("us")),
        }
    )


def events(folder: Path) -> Table:
    """By region, then by region and day. Four files of one commit each; tag `first`, branch `audit` at the second."""
    table = catalog(folder).create_table("db.events", SCHEMA, partition_spec=BY_REGION)
    table.append(rows([1, 2, 3], "eu", 1))
    table.append(rows([4, 5, 6], "us", 2))
    second = table.metadata.current_snapshot_id
    assert second is not None
    with table.update_spec() as update:
        update.add_field("ts", DayTransform(), "ts_day")
    table.append(rows([7, 8], "eu", 3))
    table.append(rows([9], "uk", 4))
    first = table.history()[0].snapshot_id
    table.manage_snapshots().create_tag(first, "first").create_branch(second, "audit").commit()
    return table


def folder_of(table: Table) -> str:
    """Where the table lies."""
    return table.location().removeprefix("file://")
