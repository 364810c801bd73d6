"""`tamis scan` before Spark: what makes no sense is refused in one message, and no JVM is started for it."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from pyiceberg.table import Table

from tamis.cli.failures import explained, not_started
from tamis.cli.output import Format, Output, OutputError
from tamis.cli.selecting import Selected, selected
from tamis.cli.sparks import Session, _interruptible
from tamis.errors import BindError, MissingFileError
from tests.making.cli_tables import Ran, Tamis, events, folder_of, run


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return events(tmp_path_factory.mktemp("events"))


@pytest.fixture
def tamis(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tamis:
    """The command line, on a machine where Spark cannot be started: nothing here may need it."""

    def fail(self: Session, log: Path) -> None:
        pytest.fail(f"{self} was started, and would print to {log}")

    monkeypatch.setattr(Session, "_start", fail)
    return lambda *arguments: run(capsys, monkeypatch, *arguments)


def refused(ran: Ran, *words: str) -> None:
    """Code 2, these words on standard error, and nothing else anywhere."""
    said = " ".join(ran.err.replace("│", " ").split())
    assert (ran.code, ran.out) == (2, ""), ran
    assert "Traceback" not in said
    for word in words:
        assert word in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--select", "id,nope"], ["'nope'", "id, region, ts, _file, _pos, _spec_id, _partition"]),
        (["--select", "id,,ts"], ["empty name"]),
        (["--select", "id,ID"], ["two columns", "only one"]),
        (["--where", "id >"], ["line 1, column"]),
        (["--where", "idd = 1"], ["no column idd", "id?"]),
        (["--time-zone", "Mars"], ["no time zone 'Mars'"]),
        (["--format", "xml"], ["'xml'", "table, csv, json, parquet"]),
        (["--format", "parquet"], ["--out"]),
        (["--overwrite"], ["--out"]),
        (["--out", "rows"], ["csv, json or parquet"]),
        (["--out", "rows.csv", "--format", "table"], ["terminal"]),
        (["--out", "/no/such/folder/rows.csv"], ["/no/such/folder", "Make it first"]),
        (["--limit", "-1"], ["--limit"]),
        (["--conf", "spark.x"], ["name=value"]),
        (["--type", "time"], ["--type", "type=shown"]),
        (["--type", "time=string", "--type", "time=bigint"], ["time is named twice"]),
        (["--type", "date=string"], ["'date'", "'time'"]),
        (["--type", "time=int"], ["'int'", "'bigint' or 'string'"]),
        (["--master", "local[2]", "--remote", "sc://host"], ["only one"]),
        (["--ref", "main", "--snapshot", "5"], ["only one"]),
        (["--ref", "nope"], ["no branch or tag 'nope'"]),
    ],
)
def test_what_makes_no_sense_is_refused_before_spark_starts(
    tamis: Tamis, table: Table, arguments: list[str], words: list[str]
) -> None:
    """Nobody wants to wait ten seconds for a JVM to hear of a typing error."""
    refused(tamis("scan", folder_of(table), *arguments), *words)


def test_table_that_is_not_there_is_named(tamis: Tamis) -> None:
    refused(tamis("scan", "/no/such/table"), "/no/such/table")


def test_file_that_exists_is_not_replaced_unasked(tamis: Tamis, table: Table, tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    out.write_text("mine", encoding="utf-8")
    refused(tamis("scan", folder_of(table), "--out", str(out)), "exists", "--overwrite")
    assert out.read_text(encoding="utf-8") == "mine"


def test_folder_with_anything_else_in_it_is_never_replaced(tamis: Tamis, table: Table, tmp_path: Path) -> None:
    """`--out . --overwrite` must not empty somebody's home, nor the table itself."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years", encoding="utf-8")
    for target in (mine, Path(folder_of(table))):
        ran = tamis("scan", folder_of(table), "--out", f"{target}/", "--format", "csv", "--overwrite")
        refused(ran, "will not replace")
    assert (mine / "thesis.txt").exists()


def test_folder_of_an_earlier_run_may_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    for name in ("part-00000-1.csv", ".part-00000-1.csv.crc", "_SUCCESS", "._SUCCESS.crc"):
        (tmp_path / "rows" / name).touch()
    assert Output.of("csv", None, f"{tmp_path}/rows/", overwrite=True).format is Format.CSV
    with pytest.raises(OutputError):
        Output.of("csv", None, f"{tmp_path}/rows/", overwrite=False)


@pytest.mark.parametrize(
    ("out", "found"),
    [("a.csv", Format.CSV), ("a.JSONL", Format.JSON), ("a.json", Format.JSON), ("a.parquet", Format.PARQUET)],
)
def test_ending_of_the_output_tells_its_format(
    out: str, found: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Output.of(None, None, out, overwrite=False).format is found


def test_no_java_is_one_message_with_the_remedy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, table: Table, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    refused(run(capsys, monkeypatch, "scan", folder_of(table)), "Java 17", str(tmp_path), "JAVA_HOME")


def test_no_pyspark_is_one_message_with_the_remedy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, table: Table
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "pyspark" or name.startswith("tamis.spark")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    refused(run(capsys, monkeypatch, "scan", folder_of(table)), "pip install 'tamis[spark]'")
    refused(run(capsys, monkeypatch, "join", folder_of(table), "d.csv", "--on", "id"), "pip install 'tamis[spark]'")


def test_server_that_does_not_answer_is_found_out_at_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, table: Table
) -> None:
    """PySpark itself would try for ten minutes."""
    refused(run(capsys, monkeypatch, "scan", folder_of(table), "--remote", "sc://localhost:1"), "localhost:1")
    refused(run(capsys, monkeypatch, "scan", folder_of(table), "--remote", "http://localhost:1"), "sc://host:port")


def test_option_is_stronger_than_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
    assert Session.of(None, None).remote == "sc://elsewhere"
    assert Session.of("local[1]", None).remote is None
    assert Session.of(None, "sc://here").remote == "sc://here"


def test_time_zone_is_a_setting_of_the_session() -> None:
    found = Session.of(None, None, ["spark.sql.session.timeZone=UTC", "a=b=c"], "Europe/Paris", case_sensitive=True)
    assert found.conf["spark.sql.session.timeZone"] == "Europe/Paris"
    assert found.conf["spark.sql.caseSensitive"] == "true"
    assert found.conf["a"] == "b=c"


def test_select_finds_columns_by_any_case_and_fields_by_dots() -> None:
    known = ["id", "Name", "a.b", "s"]
    assert selected(None, known) == tuple(Selected(name) for name in known)
    assert selected(["NAME , s.x", "`a.b`"], known) == (Selected("Name"), Selected("s", ("x",)), Selected("a.b"))
    with pytest.raises(BindError, match="may be any of"):
        selected(["ID"], ["id", "Id"])
    with pytest.raises(BindError, match="is none of"):
        selected(["name"], known, case_sensitive=True)


class _PySparkError(Exception):
    pass


_PySparkError.__module__ = "pyspark.errors.exceptions.captured"


def test_error_of_spark_is_told_in_its_own_innermost_words(tmp_path: Path) -> None:
    """A Java trace of a hundred lines has one that matters."""
    log = tmp_path / "spark.log"
    log.write_text("WARN noise", encoding="utf-8")
    trace = (
        "Job aborted due to stage failure: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered "
        "error while reading file f. SQLSTATE: KD001\n\tat a.b.C\nCaused by: x.Y: [DIVIDE_BY_ZERO] Division by zero. "
        "SQLSTATE: 22012\n\tat d.e.F"
    )
    said = str(explained(_PySparkError(trace), log))
    assert said == f"Spark failed: [DIVIDE_BY_ZERO] Division by zero. Spark's output is in {log}."


def test_file_that_vanishes_while_it_is_read_is_named(tmp_path: Path) -> None:
    text = "Encountered error while reading file file:///t/a.parquet. File does not exist. It is possible"
    found = explained(_PySparkError(f"[FAILED_READ_FILE.FILE_NOT_EXIST] {text}"), tmp_path / "none.log")
    assert isinstance(found, MissingFileError)
    assert found.facts["path"] == "file:///t/a.parquet"


def test_error_that_is_not_spark_s_stays_as_it_is(tmp_path: Path) -> None:
    """A bug of ours keeps its traceback."""
    for error in (ZeroDivisionError(), BindError("no", column="x", nearest=()), BrokenPipeError()):
        assert explained(error, tmp_path / "none.log") is error


def test_interrupt_stays_one_whatever_py4j_makes_of_it() -> None:
    """Ctrl-C is code 130, not a failure of Spark's with a log to read."""
    before = signal.getsignal(signal.SIGINT)

    def work() -> None:
        with _interruptible():
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt as error:
                raise _PySparkError("An error occurred while calling o1.toPythonIterator") from error

    with pytest.raises(KeyboardInterrupt):
        work()
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("printed", "word"),
    [
        ("java.lang.UnsupportedClassVersionError: x", "Java 17"),
        ("\t:: a#b;1: not found\n", "cannot resolve a#b;1"),
        ('Exception in thread "main" org.apache.spark.SparkException: no such master\n\tat a.b', "no such master"),
        ("", "ended at once"),
    ],
)
def test_spark_that_does_not_start_tells_why(printed: str, word: str, tmp_path: Path) -> None:
    """PySpark only knows that there is no JVM: what it printed has the reason."""
    log = tmp_path / "spark.log"
    log.write_text(printed, encoding="utf-8")
    assert word in str(not_started(_PySparkError("[JAVA_GATEWAY_EXITED] Java gateway process exited"), log))
