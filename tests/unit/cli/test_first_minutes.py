"""What people try first: help, a condition in a file, a pipe into head, a look around in the catalog."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyiceberg.table import Table
from typer.testing import CliRunner

from tamis import cli
from tamis.cli.pipes import CLOSED_PIPE
from tests.making.cli_tables import Ran, events, folder_of, run_process

RUN = CliRunner()
COMMANDS = tuple(command.callback.__name__ for command in cli.app.registered_commands if command.callback)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return events(tmp_path_factory.mktemp("first"))


@pytest.fixture(scope="module")
def configured(table: Table) -> dict[str, str]:
    """The environment of a user whose catalog is called test."""
    uri = str(table.catalog.properties["uri"])
    return {"PYICEBERG_CATALOG__TEST__URI": uri, "PYICEBERG_CATALOG__TEST__TYPE": "sql"}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_a_short_form_and_examples(command: str) -> None:
    short, long = (RUN.invoke(cli.app, [command, option]).stdout for option in ("-h", "--help"))
    assert short == long
    assert "Examples:" in short
    assert f"tamis {command}" in short.partition("Examples:")[2]
    assert "<bool>" not in short
    assert all(len(line) <= 80 for line in short.splitlines())


def test_completion_of_the_shell_is_offered() -> None:
    assert "--install-completion" in RUN.invoke(cli.app, ["--help"]).stdout


def test_condition_comes_from_a_file_or_from_standard_input(table: Table, tmp_path: Path) -> None:
    query = tmp_path / "query.sql"
    query.write_text("region = 'eu'\n  AND id > 3\n", encoding="utf-8")
    from_file = RUN.invoke(cli.app, ["explain", folder_of(table), "--where", f"@{query}"])
    from_input = RUN.invoke(cli.app, ["explain", folder_of(table), "--where", "-"], input="region = 'eu' AND id > 3")
    for found in (from_file, from_input):
        assert found.exit_code == 0
        assert "would read 1 of 4 files" in found.stdout


def test_file_of_a_condition_that_cannot_be_read_is_named(table: Table, tmp_path: Path) -> None:
    binary = tmp_path / "query.bin"
    binary.write_bytes(b"\xff\xfe")
    for name, why in ((tmp_path / "missing.sql", "No such file"), (tmp_path, "directory"), (binary, "UTF-8")):
        found = RUN.invoke(cli.app, ["explain", folder_of(table), "--where", f"@{name}"])
        assert found.exit_code == 2
        assert why in " ".join(found.output.replace("│", " ").split())


def test_reader_that_has_seen_enough_ends_the_command_quietly(table: Table) -> None:
    """As in `tamis explain ... | head -1`."""
    program = [sys.executable, "-c", "from tamis.cli import main; main()", "explain", folder_of(table), "--verdicts"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == ""
        assert running.wait(60) == CLOSED_PIPE


def ls(environment: dict[str, str], *arguments: str) -> Ran:
    return run_process("ls", *arguments, env=environment)


def test_ls_walks_from_catalogs_to_namespaces_to_tables(configured: dict[str, str]) -> None:
    assert "test." in ls(configured).out.split()
    assert ls(configured, "test").out.split() == ["test.db."]
    assert ls(configured, "test.db").out.split() == ["test.db.events"]
    assert json.loads(ls(configured, "test.db", "--json").out) == {
        "version": 1,
        "namespaces": [],
        "tables": ["test.db.events"],
    }


def test_ls_of_what_is_not_there_is_one_message(configured: dict[str, str]) -> None:
    for name in ("nosuch", "test.nosuch"):
        ran = ls(configured, name)
        assert (ran.code, ran.out) == (2, "") or not ran.out
        assert "nosuch" in ran.err
        assert "Traceback" not in ran.err
    assert "has no namespace 'nosuch'. It has db." in ran.err


def test_secret_in_the_query_of_a_catalog_s_uri_is_not_printed() -> None:
    """The client quotes the path and the query of what it could not reach."""
    environment = {
        "PYICEBERG_CATALOG__DOWN__URI": "http://127.0.0.1:1/x?token=s3cr3t-value",
        "PYICEBERG_CATALOG__DOWN__TYPE": "rest",
        "PYICEBERG_CATALOG__DOWN__CREDENTIAL": "client:0th3r-s3cr3t",
    }
    for arguments in (("explain", "down.db.t"), ("ls", "down")):
        ran = run_process(*arguments, env=environment)
        assert ran.code == 2
        assert "s3cr3t" not in ran.err
        assert "Traceback" not in ran.err
