"""The command line: help, version, the demo, and errors in one line."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tamis
from tamis import cli
from tamis.errors import BindError

RUN = CliRunner()


def test_version_is_the_package_s() -> None:
    found = RUN.invoke(cli.app, ["--version"])
    assert (found.exit_code, found.stdout) == (0, f"tamis {tamis.__version__}\n")


def test_help_names_the_commands() -> None:
    found = RUN.invoke(cli.app, ["--help"])
    assert found.exit_code == 0
    assert "demo" in found.stdout
    assert "--version" in found.stdout


def test_no_arguments_show_the_help() -> None:
    found = RUN.invoke(cli.app, [])
    assert "demo" in found.output
    assert "Usage" in found.output


def test_unknown_command_is_refused() -> None:
    found = RUN.invoke(cli.app, ["frobnicate"])
    assert found.exit_code == 2


def test_demo_shows_a_funnel_and_reasons() -> None:
    found = RUN.invoke(cli.app, ["demo", "--no-spark"])
    assert found.exit_code == 0
    for word in ("WHERE", "partition", "bucket", "statistics", "excludes"):
        assert word in found.stdout
    assert "would read 4 of 72 files" in found.stdout
    assert "hashes to bucket 3, this file is in bucket" in found.stdout


def test_demo_says_the_same_every_time() -> None:
    one, two = (RUN.invoke(cli.app, ["demo", "--no-spark"]).stdout.splitlines() for _ in range(2))
    assert [line for line in one if " ms" not in line] == [line for line in two if " ms" not in line]


def test_demo_without_java_still_plans_and_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The planning part needs no JVM."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = RUN.invoke(cli.app, ["demo"])
    assert found.exit_code == 0
    assert "would read 4 of 72 files" in found.stdout
    assert "left out: Spark needs Java 17" in found.stdout


def test_error_of_the_house_is_one_line_and_code_two(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise BindError("no column x in the table.", column="x", nearest=())

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    assert capsys.readouterr().err == "tamis: no column x in the table.\n"


def test_any_other_error_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(ZeroDivisionError):
        cli.main()


def test_version_and_help_load_nothing_heavy() -> None:
    """They answer at once: no Arrow, no numpy, no JVM."""
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from tamis.cli import app\n"
        "assert CliRunner().invoke(app, ['--version']).exit_code == 0\n"
        "print(sorted({'pyarrow', 'numpy', 'pyspark', 'sqlglot', 'pyiceberg', 'pypaimon'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
