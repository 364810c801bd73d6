"""`tamis join` before Spark: keys, the kind of join, and what the other side is."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.table import Table

from tamis.cli.dimension import Dimension
from tamis.cli.sparks import Session
from tests.making.cli_tables import Ran, Tamis, events, folder_of, run


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return events(tmp_path_factory.mktemp("events"))


@pytest.fixture
def tamis(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tamis:
    """The command line, on a machine where Spark cannot be started."""

    def fail(self: Session, log: Path) -> None:
        pytest.fail(f"{self} was started, and would print to {log}")

    monkeypatch.setattr(Session, "_start", fail)
    return lambda *arguments: run(capsys, monkeypatch, *arguments)


def refused(ran: Ran, *words: str) -> None:
    said = " ".join(ran.err.replace("│", " ").split())
    assert (ran.code, ran.out) == (2, ""), ran
    assert "Traceback" not in said
    for word in words:
        assert word in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["--on"]),
        (["--on", "=id"], ["fact_column=dim_column"]),
        (["--on", "id="], ["fact_column=dim_column"]),
        (["--on", "id=a", "--on", "id=b"], ["named twice"]),
        (["--on", "idd"], ["no column idd", "id?"]),
        (["--on", "id", "--how", "sideways"], ["how='sideways'", "inner, left"]),
        (["--on", "id", "--how", "cross"], ["cross"]),
        (["--on", "id", "--where", "nope = 1"], ["no column nope"]),
        (["--on", "id", "--dim-format", "xml"], ["'xml'", "parquet, csv, json"]),
        (["--on", "id", "--format", "parquet"], ["--out"]),
        (["--on", "id", "--time-zone", "Mars"], ["Mars"]),
    ],
)
def test_what_makes_no_sense_is_refused_before_spark_starts(
    tamis: Tamis, table: Table, arguments: list[str], words: list[str]
) -> None:
    refused(tamis("join", folder_of(table), "dim.csv", *arguments), *words)


def test_other_side_that_is_neither_files_nor_a_table_is_named(tamis: Tamis, table: Table) -> None:
    for name in ("/no/such/dim", "/no/such/dim.csv"):
        refused(tamis("join", folder_of(table), name, "--on", "id"), name)


def test_condition_on_a_table_of_the_other_side_is_checked(tamis: Tamis, table: Table) -> None:
    folder = folder_of(table)
    refused(tamis("join", folder, folder, "--on", "id", "--dim-where", "nope = 1"), "no column nope")


def test_other_side_is_recognised_by_its_ending_or_by_what_is_in_it(table: Table, tmp_path: Path) -> None:
    """What Spark writes is a folder of any name: its files tell."""
    for name in ("written", "mixed", "packed.csv"):
        (tmp_path / name).mkdir()
    for name in ("_SUCCESS", "part-0.snappy.parquet", ".part-0.snappy.parquet.crc"):
        (tmp_path / "written" / name).touch()
    (tmp_path / "packed.csv" / "part-0.csv.gz").touch()
    for target, kind in {
        "d.csv": "csv",
        "d.csv.gz": "csv",
        "s3://bucket/d.jsonl": "json",
        str(tmp_path / "written"): "parquet",
        str(tmp_path / "packed.csv"): "csv",
        folder_of(table): "table",
    }.items():
        assert Dimension.of(target, None, None, None).kind == kind, target
