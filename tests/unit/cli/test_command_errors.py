"""What a user sees when something is wrong: one message on standard error, code 2, no traceback, no credential."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import fastavro
import pytest
from pyiceberg.table import Table

from tests.making.cli_tables import Ran, Tamis, events, folder_of, run, run_process


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return events(tmp_path_factory.mktemp("events"))


@pytest.fixture
def tamis(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tamis:
    return lambda *arguments: run(capsys, monkeypatch, *arguments)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The folder of a table that the test may damage."""
    return Path(folder_of(events(tmp_path)))


def refused(ran: Ran, *words: str) -> None:
    """One message with these words on standard error, nothing else anywhere."""
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("tamis: ")
    assert "Traceback" not in ran.err
    for word in words:
        assert word in ran.err


@pytest.mark.parametrize("command", ["explain", "inspect"])
@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("/no/such/folder", ["/no/such/folder", "no table"]),
        ("a.b", ["'a.b'", "catalog.namespace.table"]),
    ],
)
def test_table_that_is_not_there_is_named(tamis: Tamis, command: str, target: str, words: list[str]) -> None:
    refused(tamis(command, target), *words)


def test_folder_of_another_format_is_recognised(tamis: Tamis, tmp_path: Path) -> None:
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    (tmp_path / "paimon" / "schema").mkdir(parents=True)
    (tmp_path / "paimon" / "schema" / "schema-0").write_text("{}", encoding="utf-8")
    (tmp_path / "plain").mkdir()
    refused(tamis("explain", str(tmp_path / "delta")), "is not a Delta table", "no version")
    refused(tamis("explain", str(tmp_path / "paimon")), "schema-0 at fields: it is missing")
    refused(tamis("explain", str(tmp_path / "plain")), "is not a table", "metadata.json")


def test_folder_of_two_formats_is_opened_as_the_chosen_one(tamis: Tamis, own: Path) -> None:
    (own / "_delta_log").mkdir()
    for command in ("explain", "inspect"):
        refused(tamis(command, str(own)), "Iceberg", "Delta", "--table-format")
        assert tamis(command, str(own), "--table-format", "iceberg").code == 0
        refused(tamis(command, str(own), "--table-format", "delta"), "is not a Delta table", "no version")
        assert tamis(command, str(own), "--table-format", "hudi").code == 2


def test_condition_that_does_not_parse_is_shown_with_the_place(tamis: Tamis, table: Table) -> None:
    ran = tamis("explain", folder_of(table), "--where", "id > 1 AND (region = 'eu'")
    refused(ran, "line 1, column 12", "    id > 1 AND (region = 'eu'\n               ^")


def test_condition_in_an_error_is_quoted_as_it_is_written(tamis: Tamis, table: Table) -> None:
    """A value that looks like a credential is the user's own."""
    refused(tamis("explain", folder_of(table), "--where", "region = 'a:b@c' AND ("), "region = 'a:b@c' AND (")


def test_unknown_column_is_answered_with_the_nearest(tamis: Tamis, table: Table) -> None:
    refused(tamis("explain", folder_of(table), "--where", "regon = 'eu'"), "no column regon", "region?")


def test_unknown_state_is_answered_with_the_known_ones(tamis: Tamis, table: Table) -> None:
    known = [str(entry.snapshot_id) for entry in table.history()]
    refused(tamis("explain", folder_of(table), "--snapshot", "5"), "no snapshot 5", *known)
    refused(tamis("inspect", folder_of(table), "--ref", "nope"), "no branch or tag 'nope'", "first", "audit", "main")
    refused(tamis("explain", folder_of(table), "--as-of", "2020-01-01"), "as of")
    refused(tamis("explain", folder_of(table), "--time-zone", "Mars", "--where", "id = 1"), "no time zone 'Mars'")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [(["--as-of", "yesterday"], "yesterday"), (["--as-of", "5", "--ref", "main"], "only one")],
)
def test_options_that_make_no_sense_are_refused(tamis: Tamis, table: Table, arguments: list[str], word: str) -> None:
    ran = tamis("explain", folder_of(table), *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert word in ran.err


def test_version_of_an_iceberg_table_is_answered_with_its_options(tamis: Tamis, table: Table) -> None:
    ran = tamis("explain", folder_of(table), "--table-version", "3")
    assert (ran.code, ran.out) == (2, "")
    said = " ".join(ran.err.replace("│", " ").split())
    assert "no versions, but snapshots: give --snapshot, --ref or --as-of" in said


def test_truncated_manifest_is_named(tamis: Tamis, own: Path) -> None:
    manifest = next(iter(sorted((own / "metadata").glob("*-m0.avro"))))
    data = manifest.read_bytes()
    manifest.write_bytes(data[: len(data) - 40])
    refused(tamis("explain", str(own)), manifest.name, "at byte ")
    refused(tamis("inspect", str(own)), manifest.name, "at byte ")


def test_manifest_that_is_gone_is_named(tamis: Tamis, own: Path) -> None:
    manifest = next(iter(sorted((own / "metadata").glob("*-m0.avro"))))
    manifest.unlink()
    refused(tamis("explain", str(own)), manifest.name, "No such file")


def test_manifest_list_that_is_no_avro_is_named(tamis: Tamis, own: Path) -> None:
    for listed in (own / "metadata").glob("snap-*.avro"):
        listed.write_bytes(b"PAR1 is another format")
    refused(tamis("explain", str(own)), "snap-")


def test_metadata_file_that_is_cut_off_is_named(tamis: Tamis, own: Path) -> None:
    (newest,) = (own / "metadata").glob("00006-*.metadata.json")
    newest.write_bytes(newest.read_bytes()[:200])
    refused(tamis("explain", str(own)), newest.name, "it is not JSON")


def test_spec_that_the_metadata_does_not_know_is_corruption(tamis: Tamis, own: Path) -> None:
    """Never guess how a file is partitioned: a wrong guess prunes files that match."""
    (newest,) = (own / "metadata").glob("00006-*.metadata.json")
    document = json.loads(newest.read_text(encoding="utf-8"))
    document["partition-specs"] = document["partition-specs"][:1]
    document["default-spec-id"] = 0
    newest.write_text(json.dumps(document), encoding="utf-8")
    for command in ("explain", "inspect"):
        refused(tamis(command, str(own)), "partition spec 1", "knows only (0,)")


def test_format_version_of_the_future_is_refused(tamis: Tamis, own: Path) -> None:
    (newest,) = (own / "metadata").glob("00006-*.metadata.json")
    text = newest.read_text(encoding="utf-8").replace('"format-version":2', '"format-version":4')
    newest.write_text(text, encoding="utf-8")
    refused(tamis("explain", str(own)), "format version 4")


# -- credentials ----------------------------------------------------------------------------------------------

SECRETS = ("AKIAKEY", "s3cr3t", "t0k3n", "us3r", "p4ss")


@pytest.mark.parametrize(
    "target",
    [
        "s3://AKIAKEY:s3cr3t@bucket/t",
        "s3://AKIAKEY:s3cr3t@bucket/t/metadata/v1.metadata.json",
        "nosuch://host/t/metadata/v1.metadata.json?X-Amz-Signature=s3cr3t",
        "nosuch://us3r:s3cr3t@host/t/v1.metadata.json",
    ],
)
def test_credential_in_a_uri_is_never_shown(target: str) -> None:
    ran = run_process("explain", target)
    refused(ran)
    assert not [secret for secret in SECRETS if secret in ran.err]


def test_catalog_that_is_not_reached_shows_neither_password_nor_token() -> None:
    env = {
        "PYICEBERG_CATALOG__PROD__TYPE": "rest",
        "PYICEBERG_CATALOG__PROD__URI": "http://us3r:p4ss@localhost:1/",
        "PYICEBERG_CATALOG__PROD__TOKEN": "t0k3n",
        "PYICEBERG_CATALOG__PROD__CREDENTIAL": "us3r:s3cr3t",
    }
    for arguments in (["explain", "prod.db.t"], ["inspect", "db.t", "--catalog", "prod"]):
        ran = run_process(*arguments, env=env)
        refused(ran, "catalog 'prod'", "reachable")
        assert not [secret for secret in SECRETS if secret in ran.err]


def rewrite(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change every record of an Avro file."""
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        schema, records = reader.writer_schema, cast("list[dict[str, Any]]", list(reader))
    assert schema is not None
    for record in records:
        change(record)
    with path.open("wb") as file:
        fastavro.writer(file, schema, records)


def test_paths_with_credentials_are_listed_without_them(tamis: Tamis, own: Path) -> None:
    """Some writers put the whole URI into the metadata."""

    def name(record: dict[str, Any]) -> None:
        record["data_file"]["file_path"] = "s3://AKIAKEY:s3cr3t@bucket/data/a.parquet?sig=t0k3n"

    def measure(record: dict[str, Any]) -> None:
        record["manifest_length"] = Path(record["manifest_path"].removeprefix("file://")).stat().st_size

    for manifest in (own / "metadata").glob("*-m0.avro"):
        rewrite(manifest, name)
    for listed in (own / "metadata").glob("snap-*.avro"):
        rewrite(listed, measure)
    for option in ((), ("--json",)):
        ran = tamis("explain", str(own), "--where", "id > 3", "--files", "--verdicts", *option)
        assert ran.code == 0
        assert "s3://…@bucket/data/a.parquet" in ran.out
        assert not [secret for secret in SECRETS if secret in ran.out]


# -- the end, before the end ----------------------------------------------------------------------------------


def test_interrupt_ends_with_130_and_without_a_traceback() -> None:
    program = (
        "import signal, tamis.cli, tamis.table\n"
        # Whoever runs the tests in the background has told their children to ignore it.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def wait(*_, **__):\n    import time\n    print('opening', flush=True)\n    time.sleep(60)\n"
        "tamis.table.open = wait\ntamis.cli.main()"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", program, "explain", "t"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline() == "opening\n"
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 130
        assert "Traceback" not in running.stderr.read()
