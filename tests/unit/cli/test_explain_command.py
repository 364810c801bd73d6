"""`tamis explain` as its user sees it."""

from __future__ import annotations

import datetime as dt
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyiceberg.table import Table

from tests.unit.cli.tables import SCHEMA, Tamis, catalog, events, folder_of, run, run_process

WHERE = "region = 'eu' AND id > 3"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return events(tmp_path_factory.mktemp("events"))


@pytest.fixture
def tamis(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tamis:
    return lambda *arguments: run(capsys, monkeypatch, *arguments)


def test_explain_shows_the_table_the_condition_and_the_funnel(tamis: Tamis, table: Table) -> None:
    ran = tamis("explain", folder_of(table), "--where", WHERE)
    lines = ran.out.splitlines()
    current = table.metadata.current_snapshot_id
    assert (ran.code, ran.err) == (0, "")
    assert lines[0] == f"TABLE  {folder_of(table)}  (iceberg v2, snapshot {current})"
    assert lines[1] == f"WHERE  {WHERE}"
    assert lines[3].startswith("reads 1 of 4 files (25.0%), 1 of them whole: ")
    assert "of at least" in lines[3], "the manifests that were pruned unread do not tell their bytes"
    assert [line.split()[0] for line in lines[5:11]] == [
        "layer",
        "manifest",
        "partition",
        "bucket",
        "stats",
        "runtime",
    ]


def test_explain_without_a_condition_reads_every_file(tamis: Tamis, table: Table) -> None:
    ran = tamis("explain", folder_of(table))
    assert "reads 4 of 4 files (100.0%), 4 of them whole" in ran.out
    assert "at least" not in ran.out


def test_files_lists_the_kept_ones_alone(tamis: Tamis, table: Table) -> None:
    lines = tamis("explain", folder_of(table), "--where", WHERE, "--files").out.splitlines()
    header, only = lines[-2:]
    assert header.split() == ["verdict", "rows", "size", "deletes", "spec", "partition", "path"]
    assert re.match(r"all\s+2\s+[\d.]+ KiB\s+[-0]\s+1\s+region=eu/ts_day=2024-01-03\s+file:///.*\.parquet$", only)


def test_verdicts_lists_every_file_with_its_reason_and_counts_the_unread(tamis: Tamis, table: Table) -> None:
    for option in ("--verdicts", "--all-files"):
        lines = tamis("explain", folder_of(table), "--where", WHERE, option).out.splitlines()
        *_, header, kept, dropped, unread = lines
        assert header.split() == ["verdict", "layer", "spec", "partition", "reason", "path"]
        assert "every row matches" in kept
        assert dropped.startswith("none     stats ")
        assert "id > 3 excludes id in [1, 3]" in dropped
        assert unread == "and 2 files in manifests that were pruned unread"


def test_columns_of_a_listing_stand_below_each_other(tamis: Tamis, table: Table) -> None:
    lines = tamis("explain", folder_of(table), "--files").out.splitlines()[-5:]
    assert len({line.index(word) for line, word in zip(lines, ["path"] + ["file://"] * 4, strict=True)}) == 1


def test_json_has_the_stable_keys_and_lists_only_what_is_asked_for(tamis: Tamis, table: Table) -> None:
    plain = json.loads(tamis("explain", folder_of(table), "--where", WHERE, "--json").out)
    assert list(plain) == ["version", "predicate", "runtime_filters", "stats", "table"]
    assert plain["version"] == 1
    assert plain["table"] == {
        "name": folder_of(table),
        "format": "iceberg v2",
        "snapshot_id": table.metadata.current_snapshot_id,
    }
    assert (plain["stats"]["files"], plain["stats"]["kept"]) == (4, 1)
    full = json.loads(tamis("explain", folder_of(table), "--where", WHERE, "--json", "--files", "--verdicts").out)
    assert [one["verdict"] for one in full["files"]] == ["all"]
    assert list(full["files"][0]) == [
        *("path", "size", "rows", "spec_id", "partition", "bucket", "deletes", "verdict")
    ]
    assert sorted(one["verdict"] for one in full["verdicts"]) == ["all", "none"]
    assert list(full["verdicts"][0]) == ["path", "spec_id", "partition", "verdict", "layer", "reason"]


def test_older_states_are_found_by_snapshot_ref_and_time(tamis: Tamis, table: Table) -> None:
    first, second = (entry for entry in table.history()[:2])
    folder = folder_of(table)
    for option, value, files in (
        ("--snapshot", str(first.snapshot_id), 1),
        ("--ref", "first", 1),
        ("--ref", "audit", 2),
        ("--as-of", str(second.timestamp_ms), 2),
        ("--as-of", "2999-01-01T00:00:00+02:00", 4),
        ("--as-of", "2999-01-01", 4),
    ):
        ran = tamis("explain", folder, option, value, "--json")
        assert json.loads(ran.out)["stats"]["files"] == files, (option, value)


def test_a_time_without_a_zone_is_of_the_given_zone(tamis: Tamis, table: Table) -> None:
    """Far enough west, an hour before the first commit by the clock in UTC is after it."""
    made = dt.datetime.fromtimestamp(table.history()[0].timestamp_ms / 1000, dt.UTC)
    before = (made - dt.timedelta(hours=1)).replace(tzinfo=None).isoformat()
    assert tamis("explain", folder_of(table), "--as-of", before).code == 2
    assert tamis("explain", folder_of(table), "--as-of", before, "--time-zone", "-10:00").code == 0


def test_case_of_names_matters_only_on_request(tamis: Tamis, table: Table) -> None:
    assert tamis("explain", folder_of(table), "--where", "REGION = 'eu'").code == 0
    strict = tamis("explain", folder_of(table), "--where", "REGION = 'eu'", "--case-sensitive")
    assert (strict.code, strict.out) == (2, "")
    assert "region" in strict.err


def test_empty_table_explains_itself(tamis: Tamis, tmp_path: Path) -> None:
    table = catalog(tmp_path).create_table("db.empty", SCHEMA)
    ran = tamis("explain", folder_of(table), "--where", "id = 1", "--files", "--verdicts")
    assert ran.code == 0
    assert "(iceberg v2, no snapshot yet)" in ran.out
    assert "reads 0 of 0 files: 0 B of 0 B" in ran.out
    assert "no file is kept" in ran.out


def test_piped_output_is_plain_and_standard_error_is_silent(table: Table) -> None:
    """Also where the environment asks for colour: what is piped is read by programs."""
    ran = run_process(
        "explain", folder_of(table), "--where", WHERE, "--files", "--verdicts", env={"TERM": "xterm-256color"}
    )
    assert (ran.code, ran.err) == (0, "")
    assert "\x1b" not in ran.out
    assert ran.out.startswith("TABLE  ")


def test_explaining_loads_no_pandas_and_no_spark(table: Table) -> None:
    """Each of them costs more than the whole command."""
    program = (
        "import sys\nfrom tamis.cli import main\n"
        f"sys.argv = ['tamis', 'explain', {folder_of(table)!r}, '--where', \"id > 1\"]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert not loaded & {"pandas", "pyspark", "pyiceberg", "rich", "duckdb", "polars"}
