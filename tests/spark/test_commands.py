"""`tamis scan`, `tamis join` and `tamis demo` as a user runs them: a process each, with a Spark of its own.

Law: standard output has the rows and nothing else, whatever Spark has to say.
"""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from tamis.cli.output import Output
from tamis.cli.rows import table_lines
from tests.making.cli_tables import Ran, events, folder_of, run_process

NOISE = re.compile(r"WARN|Setting default log level|Ivy|log4j|:: |Using Spark|incubator|Traceback|\tat ")
LOCAL = ("--master", "local[2]", "--time-zone", "UTC")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return events(tmp_path_factory.mktemp("events"))


def tamis(*arguments: str, code: int = 0) -> Ran:
    """Run it: the exit code, and no noise of Spark's, are checked."""
    ran = run_process(*arguments)
    assert ran.code == code, ran.err
    assert not NOISE.search(ran.out + ran.err), ran.err
    return ran


def test_scan_prints_exactly_the_rows_and_tells_the_funnel_apart(table: Table) -> None:
    ran = tamis("scan", folder_of(table), "--where", "id > 6", "--select", "ts,id", "--format", "csv", *LOCAL)
    header, *rows = ran.out.splitlines()
    assert header == "ts,id"
    assert sorted(rows) == [
        "2024-01-03T12:00:00.000000,7",
        "2024-01-03T12:00:00.000000,8",
        "2024-01-04T12:00:00.000000,9",
    ]
    assert "WHERE  id > 6" in ran.err
    assert "would read 2 of 4 files (50.0%)" in ran.err
    assert re.search(r"^3 rows, in [\d.]+ s$", ran.err, re.MULTILINE)


def test_join_prints_the_rows_and_what_the_keys_removed(table: Table, tmp_path: Path) -> None:
    """The other side is a CSV file, one of whose columns the table has, too."""
    dim = tmp_path / "regions.csv"
    dim.write_text("code,name,id\neu,Europe,10\nuk,Kingdom,20\n", encoding="utf-8")
    arguments = ("--on", "region=code", "--dim-where", "name like 'K%'", "--format", "json")
    ran = tamis("join", folder_of(table), str(dim), *arguments, *LOCAL)
    assert [json.loads(line) for line in ran.out.splitlines()] == [
        {
            "id": 9,
            "region": "uk",
            "ts": "2024-01-04T12:00:00.000000",
            "code": "uk",
            "name": "Kingdom",
            "dim_id": 20,
        }
    ]
    assert "JOIN   region in 1 join key" in ran.err
    assert re.search(r"^join keys of region \(1 key, collected in [\d.]+ m?s\) prune", ran.err, re.MULTILINE)
    assert "would read 1 of 4 files" in ran.err


def test_folder_is_whole_and_alone(table: Table, tmp_path: Path) -> None:
    """Written under another name, and renamed: who finds it finds all of it."""
    out = tmp_path / "rows"
    arguments = ("--select", "id,_file,_spec_id", "--format", "parquet", "--out", str(out), "--quiet")
    ran = tamis("scan", folder_of(table), *arguments, *LOCAL)
    assert (ran.out, ran.err) == ("", "")
    found = pq.read_table(out)
    assert found.column_names == ["id", "_file", "_spec_id"]
    assert sorted(found["id"].to_pylist()) == list(range(1, 10))
    assert set(found["_spec_id"].to_pylist()) == {0, 1}
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


def test_job_that_fails_leaves_nothing_and_names_the_log(table: Table, tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    where = "1 div (id - 9) < 5"
    ran = tamis("scan", folder_of(table), "--where", where, "--out", str(out), "--quiet", *LOCAL, code=2)
    said = re.fullmatch(r"tamis: Spark failed: (.+) Spark's output is in (\S+)\.\n", ran.err)
    assert said, ran.err
    assert "[DIVIDE_BY_ZERO]" in said[1]
    log = Path(said[2])
    assert "DIVIDE_BY_ZERO" in log.read_text(encoding="utf-8")
    log.unlink()
    assert list(tmp_path.iterdir()) == []


def test_file_that_is_listed_but_gone_is_named(tmp_path: Path) -> None:
    table = events(tmp_path)
    gone = min(Path(folder_of(table)).rglob("*.parquet"))
    gone.unlink()
    ran = tamis("scan", folder_of(table), "--quiet", *LOCAL, code=2)
    assert ran.err.startswith("tamis: the table lists a file that is not there: ")
    assert gone.name in ran.err
    assert ran.err.count("\n") == 1
    assert ran.out == ""


def test_demo_explains_reads_and_joins() -> None:
    ran = tamis("demo")
    assert max(map(len, ran.out.splitlines())) <= 100
    assert ran.err == ""
    for title in ("1. An Iceberg table", "2. Which of its files", "3. Read the rows", "4. Join"):
        assert f"\n{title}" in ran.out
    assert "36 by bucket" in ran.out
    assert len(re.findall(r"Oslo$", ran.out, re.MULTILINE)) == 6


# -- values, on the session of all tests ----------------------------------------------------------------------

VALUES = r"""
SELECT ' x\n"q",y ' AS text, '' AS empty, CAST(NULL AS string) AS missing, array(1, NULL) AS list,
  named_struct('a', timestamp '2024-01-15 10:00:00.123456') AS struct, X'00FF' AS bytes,
  timestamp '2024-01-15 10:00:00.123456' AS ts, timestamp_ntz '2024-01-15 10:00:00.1' AS ntz,
  CAST('NaN' AS double) AS nan, 1.50 AS dec, '\u001b[31mred' AS colour, repeat('é', 50) AS long
"""
"""What text formats are known to lose: blanks, quotes, line breaks, NULL, microseconds."""


@pytest.mark.parametrize("name", ["rows.csv", "rows/"])
def test_csv_keeps_every_value(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """One file or a folder: the same text."""
    output = Output.of("csv", None, f"{tmp_path}/{name}", overwrite=False)
    output.write(spark.sql(VALUES), shares_files=True)
    (path,) = [tmp_path / name] if name.endswith(".csv") else (tmp_path / name).glob("part-*.csv")
    header, row = csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline=""))
    found = dict(zip(header, row, strict=True))
    assert found["text"] == ' x\n"q",y '
    assert (found["empty"], found["missing"]) == ("", "")
    assert ',"",,' in path.read_text(encoding="utf-8"), "an empty text and NULL are written differently"
    assert json.loads(found["list"]) == [1, None]
    assert json.loads(found["struct"]) == {"a": "2024-01-15T10:00:00.123456Z"}
    assert (found["bytes"], found["ts"], found["ntz"]) == (
        "AP8=",
        "2024-01-15T10:00:00.123456Z",
        "2024-01-15T10:00:00.100000",
    )
    assert (found["nan"], found["dec"]) == ("NaN", "1.50")


@pytest.mark.parametrize("name", ["rows.json", "rows/"])
def test_json_has_nulls_and_microseconds(spark: SparkSession, tmp_path: Path, name: str) -> None:
    output = Output.of("json", None, f"{tmp_path}/{name}", overwrite=False)
    output.write(spark.sql(VALUES), shares_files=True)
    (path,) = [tmp_path / name] if name.endswith(".json") else (tmp_path / name).glob("part-*.json")
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["missing"] is None
    assert found["text"] == ' x\n"q",y '
    assert found["struct"] == {"a": "2024-01-15T10:00:00.123456Z"}
    assert found["bytes"] == "AP8="


def test_table_for_the_terminal_is_aligned_cut_and_harmless(spark: SparkSession) -> None:
    """A value with an escape sequence must not paint the reader's terminal."""
    shown = table_lines(spark.sql(f"{VALUES} UNION ALL {VALUES}").select("dec", "missing", "colour", "long"), 1)
    assert shown.more
    assert shown.count == 1
    header, rule, row = shown.lines
    assert header.split() == ["dec", "missing", "colour", "long"]
    assert rule == " ".join(["----", "-------", "-----------", "-" * 40]).replace(" ", "  ")
    assert row == rf"1.50  NULL     \x1b[31mred  {'é' * 39}…"


def test_empty_result_still_has_its_header(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    said = Output.of(None, None, str(out), overwrite=False).write(spark.range(0), shares_files=True)
    assert out.read_text(encoding="utf-8") == "id\n"
    assert said == f"wrote 0 rows to {out}"


def test_overwrite_replaces_a_folder_and_a_file_whole(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("rows/", "rows.csv"):
        for count in (50, 3):
            output = Output.of("csv", None, f"{tmp_path}/{name}", overwrite=count == 3)
            output.write(spark.range(count), shares_files=True)
        files = [tmp_path / name] if name.endswith(".csv") else (tmp_path / name).glob("part-*.csv")
        lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
        assert sorted(line for line in lines if line != "id") == ["0", "1", "2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows", "rows.csv"]


def test_limit_holds_for_every_output(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Output.of("csv", 2, f"{tmp_path}/rows.csv", overwrite=False).write(spark.range(9), shares_files=True)
    assert len((tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()) == 3
    assert Output.of("json", 2, None, overwrite=False).write(spark.range(9), shares_files=True) == "2 rows"
    said = Output.of(None, None, None, overwrite=False).write(spark.range(50), shares_files=True)
    assert said.startswith("the first 20 rows: more with --limit")
    assert len(capsys.readouterr().out.splitlines()) == 2 + 22


def test_scan_that_is_interrupted_while_spark_starts_leaves_no_jvm_behind(table: Table) -> None:
    """A JVM whose start is broken off waits for ever, with all its memory."""
    program = [sys.executable, "-c", "from tamis.cli import main; main()", "scan", folder_of(table), *LOCAL]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        jvm = _first_java_below(running.pid)
        running.send_signal(signal.SIGINT)
        assert running.wait(120) == 130
        assert "Traceback" not in running.stderr.read()
    deadline = monotonic() + 60
    while Path(f"/proc/{jvm}").exists() and monotonic() < deadline:
        sleep(0.2)
    assert not Path(f"/proc/{jvm}").exists(), "the JVM is still there"


def _first_java_below(pid: int) -> int:
    """The first Java process that pid has started, itself or through a script."""
    deadline = monotonic() + 60
    while monotonic() < deadline:
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                number, name, _, parent = stat.read_text(encoding="ascii").split()[:4]
            except (OSError, ValueError):
                continue  # it has ended meanwhile, or its name has a blank
            if name == "(java)" and int(parent) == pid:
                return int(number)
        sleep(0.05)
    pytest.fail("no JVM was started")


def test_update_and_merge_change_a_table_and_say_what_they_did(tmp_path: Path) -> None:
    """A process each; the source is a CSV file. A metadata file alone has no catalog to commit to."""
    changing = events(tmp_path / "changing")
    path = f"{folder_of(changing)}/metadata"
    newest = str(max(Path(path).glob("*.metadata.json")))
    refused = tamis("update", newest, "--set", "region='x'", "--where", "id = 1", *LOCAL, code=2)
    assert "cannot" in refused.err
    env = {
        "PYICEBERG_CATALOG__TEST__TYPE": "sql",
        "PYICEBERG_CATALOG__TEST__URI": f"sqlite:///{tmp_path / 'changing' / 'catalog.db'}",
        "PYICEBERG_CATALOG__TEST__WAREHOUSE": (tmp_path / "changing" / "warehouse").as_uri(),
    }
    done = run_process(
        *("update", "test.db.events", "--set", "region=upper(region)", "--where", "id in (1, 9)", *LOCAL), env=env
    )
    assert done.code == 0, done.err
    assert re.search(r"^2 rows updated: 2 files rewritten, \d data files? and 0 delete", done.err, re.MULTILINE)
    source = tmp_path / "changes.csv"
    source.write_text("id,region\n2,merged\n3,gone\n77,new\n", encoding="utf-8")
    merged = run_process(
        *("merge", "test.db.events", "--source", str(source), "--on", "t.id = s.id"),
        *("--when-matched", "s.region = 'gone' THEN DELETE", "--when-matched", "UPDATE SET region = s.region"),
        *("--when-not-matched", "INSERT (id, region, ts) VALUES (s.id, s.region, now())", *LOCAL),
        env=env,
    )
    assert merged.code == 0, merged.err
    assert "1 row updated, 1 deleted, 1 inserted: 1 file rewritten" in merged.err
    table = changing.refresh()
    assert merged.out.strip() == str(table.metadata.current_snapshot_id)
    rows = {row["id"]: row["region"] for row in table.scan().to_arrow().to_pylist()}
    assert {id_: rows[id_] for id_ in (1, 2, 9, 77)} == {1: "EU", 2: "merged", 9: "UK", 77: "new"}
    assert 3 not in rows
