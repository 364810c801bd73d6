"""`tamis explain` as its user sees it."""

from __future__ import annotations

import csv
import datetime as dt
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyiceberg.table import Table

from tamis.explain.words import WIDTH
from tests.making.cli_tables import BY_REGION, SCHEMA, Tamis, catalog, events, folder_of, rows, run, run_process

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
    assert " ".join(ran.out.split()).startswith(f"TABLE {folder_of(table)} iceberg v2, snapshot {current} ")
    assert f"WHERE  {WHERE}" in lines
    assert "would read 1 of 4 files (25.0%): " in ran.out
    assert "of at least" in ran.out, "the manifests that were pruned unread do not tell their bytes"
    assert "  - 2 in manifests whose partition summaries rule them out" in lines
    assert "    1  every row matches" in lines
    assert "time" not in ran.out
    assert max(map(len, lines[2:])) <= WIDTH


def test_times_are_shown_on_request(tamis: Tamis, table: Table) -> None:
    assert re.search(r"^reading +[\d.]+ m?s$", tamis("explain", folder_of(table), "--timing").out, re.MULTILINE)


def test_explain_without_a_condition_reads_every_file(tamis: Tamis, table: Table) -> None:
    ran = tamis("explain", folder_of(table))
    assert "would read 4 of 4 files (100.0%)" in ran.out
    assert "    4  every row matches" in ran.out
    assert "at least" not in ran.out


def test_files_lists_the_kept_ones_alone(tamis: Tamis, table: Table) -> None:
    lines = tamis("explain", folder_of(table), "--where", WHERE, "--files").out.splitlines()
    header, only, path = lines[-3:]
    assert header.split() == ["verdict", "rows", "size", "deletes", "spec", "partition"]
    assert re.match(r"all\s+2\s+[\d.]+ KiB\s+[-0]\s+1\s+region=eu/ts_day=2024-01-03$", only)
    assert re.match(r"    data/.*\.parquet$", path), "relative to the table"


def test_verdicts_lists_every_file_with_its_reason_and_counts_the_unread(tamis: Tamis, table: Table) -> None:
    for option in ("--verdicts", "--all-files"):
        lines = tamis("explain", folder_of(table), "--where", WHERE, option).out.splitlines()
        *_, header, kept, why, _, dropped, why_not, path, unread = lines
        assert header.split() == ["verdict", "pruned", "by", "spec", "partition"]
        assert kept.split()[:2] == ["all", "-"]
        assert why == "    every row matches"
        assert dropped.split()[:2] == ["none", "stats"]
        assert why_not == "    id > 3 excludes id in [1, 3]"
        assert path.startswith("    data/")
        assert unread == "and 2 files in manifests that were pruned unread"


def test_verdicts_are_narrowed_to_kept_or_pruned_and_to_a_number(tamis: Tamis, table: Table) -> None:
    explain = ("explain", folder_of(table), "--where", WHERE)
    kept = tamis(*explain, "--kept").out
    assert "every row matches" in kept.split("verdict")[1]
    assert "excludes" not in kept
    pruned = tamis(*explain, "--verdicts", "--pruned").out.split("verdict")[1]
    assert "excludes id in [1, 3]" in pruned
    assert "every row matches" not in pruned
    limited = tamis("explain", folder_of(table), "--files", "--limit", "1").out.splitlines()
    assert (sum(line.startswith("    data/") for line in limited), limited[-1]) == (1, "and 3 more")


def test_verdicts_as_csv_are_nothing_but_csv(tamis: Tamis, table: Table) -> None:
    ran = tamis("explain", folder_of(table), "--where", WHERE, "--verdicts", "--csv")
    rows = list(csv.DictReader(ran.out.splitlines()))
    assert [row["verdict"] for row in rows] == ["all", "none"]
    assert rows[1]["reason"] == "id > 3 excludes id in [1, 3]"
    assert list(rows[0]) == ["path", "spec_id", "partition", "verdict", "layer", "reason"]
    files = list(csv.DictReader(tamis("explain", folder_of(table), "--files", "--csv").out.splitlines()))
    assert len(files) == 4


@pytest.mark.parametrize(
    "options",
    [
        ["--csv"],
        ["--csv", "--files", "--verdicts"],
        ["--csv", "--json", "--files"],
        ["--kept", "--pruned"],
        ["--limit", "3"],
        ["--files", "--limit", "-1"],
    ],
)
def test_listing_options_that_make_no_sense_together_are_refused(
    tamis: Tamis, table: Table, options: list[str]
) -> None:
    ran = tamis("explain", folder_of(table), *options)
    assert (ran.code, ran.out) == (2, "")
    assert options[0] in ran.err or "--limit" in ran.err


def test_names_and_values_of_a_hostile_table_are_escaped(tamis: Tamis, tmp_path: Path) -> None:
    """Whoever can write a table must not be able to write on the terminal of who looks at it."""
    made = catalog(tmp_path).create_table("db.hostile", SCHEMA, partition_spec=BY_REGION)
    made.append(rows([1], "eu\x1b]0;owned\x07\n\u202emoc", 1))
    folder = folder_of(made)
    for options in (["--files"], ["--verdicts"], ["--verdicts", "--csv"], ["--verdicts", "--json"]):
        ran = tamis("explain", folder, "--where", "region > 'a'", *options)
        assert ran.code == 0
        assert not set(ran.out) & {"\x1b", "\x07", "\u202e"}, options
        assert "owned" in ran.out
    wrong = tamis("explain", folder, "--where", "`a\x1b]0;x\x07` = 1")
    assert wrong.code == 2
    assert "\x1b" not in wrong.err


def test_condition_that_cannot_prune_is_named_counted_and_refused_by_strict(tamis: Tamis, table: Table) -> None:
    condition = ("--where", "upper(region) = 'EU' AND id > 3")
    text = tamis("explain", folder_of(table), *condition).out
    assert "not used for pruning: upper(region) = 'EU' (function of a column)" in text
    stats = json.loads(tamis("explain", folder_of(table), *condition, "--json").out)["stats"]
    assert stats["not_used"] == [{"part": "upper(region) = 'EU'", "why": "function of a column"}]
    strict = tamis("explain", folder_of(table), *condition, "--strict")
    assert (strict.code, strict.out) == (2, "")
    assert "upper(region) = 'EU' is not used for pruning (function of a column)" in strict.err


def test_json_has_the_stable_keys_and_lists_only_what_is_asked_for(tamis: Tamis, table: Table) -> None:
    plain = json.loads(tamis("explain", folder_of(table), "--where", WHERE, "--json").out)
    assert list(plain) == ["version", "predicate", "runtime_filters", "stats", "table"]
    assert plain["version"] == 1
    assert plain["table"] == {
        "name": folder_of(table),
        "format": "iceberg v2",
        "snapshot_id": table.metadata.current_snapshot_id,
        "snapshot": str(table.metadata.current_snapshot_id),
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
    assert "iceberg v2, no snapshot yet" in ran.out
    assert "would read 0 of 0 files: 0 B of 0 B" in ran.out
    assert "no file is kept" in ran.out
    assert "no file is listed" in ran.out


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
