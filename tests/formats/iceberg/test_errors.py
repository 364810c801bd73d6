"""Errors of a table carry their facts: a program need not read the message."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyiceberg.table import Table

import tamis
from tamis.errors import (
    NoSuchSnapshotError,
    UnknownSpecError,
    UnreadableMetadataError,
    UnsupportedFormatError,
)
from tamis.formats.errors import unreachable
from tests.making.cli_tables import events, folder_of


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return events(tmp_path)


def manifests(table: Table) -> list[Path]:
    return sorted(Path(folder_of(table), "metadata").glob("*-m0.avro"))


def change(table: Table, **parts: object) -> str:
    path = Path(table.metadata_location.removeprefix("file://"))
    document = json.loads(path.read_text(encoding="utf-8")) | {k.replace("_", "-"): v for k, v in parts.items()}
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("cut", [0, 3, 100, -100, -16, -1])
def test_manifest_that_is_cut_anywhere_is_named(table: Table, cut: int) -> None:
    """Not one entry may be missed in silence: a file would be lost with it."""
    manifest = manifests(table)[0]
    manifest.write_bytes(manifest.read_bytes()[:cut])
    with pytest.raises(UnreadableMetadataError) as caught:
        tamis.open(folder_of(table)).plan("id = 1")
    assert caught.value.path.endswith(manifest.name)
    assert manifest.name in str(caught.value)


def test_manifest_with_a_flipped_byte_is_named(table: Table) -> None:
    manifest = manifests(table)[0]
    data = bytearray(manifest.read_bytes())
    data[-30] ^= 0xFF
    manifest.write_bytes(bytes(data))
    with pytest.raises(UnreadableMetadataError, match=manifest.name):
        tamis.open(folder_of(table)).plan("id = 1")


def test_missing_manifest_says_so_only_if_it_is_needed(table: Table) -> None:
    """A manifest that its summary rules out is not missed: nothing in it could match."""
    opened = tamis.open(folder_of(table))
    for manifest in manifests(table):
        manifest.unlink()
    assert opened.plan("region = 'nowhere'").stats.kept == 0
    with pytest.raises(UnreadableMetadataError, match="No such file"):
        opened.plan("region = 'eu'")


def test_unknown_spec_carries_the_known_ones(table: Table) -> None:
    spec = {"spec-id": 0, "fields": []}
    with pytest.raises(UnknownSpecError) as caught:
        tamis.open(change(table, partition_specs=[spec], default_spec_id=0)).plan("region = 'eu'")
    assert (caught.value.spec_id, caught.value.known) == (1, (0,))


def test_unknown_state_carries_the_known_ones(table: Table) -> None:
    with pytest.raises(NoSuchSnapshotError) as caught:
        tamis.open(folder_of(table), ref="nope")
    assert set(caught.value.known) == {"main", "first", "audit"}


def test_newer_format_version_is_refused_before_anything_is_guessed(table: Table) -> None:
    with pytest.raises(UnsupportedFormatError) as caught:
        tamis.open(change(table, format_version=4))
    assert caught.value.feature == "format version 4"


# -- advice that fits its cause ---------------------------------------------------------------------------------


@contextmanager
def denied(folder: Path) -> Iterator[None]:
    """As a user who may not look into the folder."""
    mode, root = folder.stat().st_mode, os.geteuid() == 0
    folder.chmod(0)
    try:
        if root:
            os.seteuid(65534)
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(mode)


def why(table: Table, change: Callable[[Path], None]) -> UnreadableMetadataError:
    manifest = manifests(table)[0]
    opened = tamis.open(folder_of(table), cache=False)
    change(manifest)
    with pytest.raises(UnreadableMetadataError) as caught:
        opened.plan()
    assert caught.value.path.endswith(manifest.name)
    return caught.value


def replaced(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(manifest: Path) -> None:
        manifest.unlink()
        make(manifest)

    return change


@pytest.mark.parametrize(
    ("make", "reason", "advice"),
    [
        (lambda _: None, "No such file", "Restore the file, or choose a snapshot"),
        (Path.mkdir, "Is a directory", "What names it is damaged"),
        (lambda path: path.symlink_to(path), "symbolic links", "lead back to themselves"),
        (os.mkfifo, "it is not a file, but a pipe", "Restore the file"),
    ],
)
def test_file_that_is_not_handed_out_is_told_by_its_cause(
    table: Table, make: Callable[[Path], object], reason: str, advice: str
) -> None:
    """A pipe is not waited for."""
    error = why(table, replaced(make))
    assert reason in error.reason
    assert advice in error.message


def test_file_that_may_not_be_read_is_not_to_be_restored(table: Table) -> None:
    """It is there: it needs a permission, no backup."""
    folder = Path(folder_of(table), "metadata")
    opened = tamis.open(folder_of(table), cache=False)
    with denied(folder):
        for job in (opened.plan, lambda: tamis.open(table.metadata_location), lambda: tamis.open(folder_of(table))):
            with pytest.raises(UnreadableMetadataError, match=r"Permission denied.*permission to read it") as caught:
                job()
            assert "Restore" not in caught.value.message


def test_name_too_long_for_the_file_system_is_damage(table: Table) -> None:
    path = Path(table.metadata_location.removeprefix("file://"))
    document = json.loads(path.read_bytes())
    document["snapshots"][-1]["manifest-list"] = "/" + "x" * 5000
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(UnreadableMetadataError, match="What names it is damaged") as caught:
        tamis.open(str(path)).plan()
    assert "too long" in caught.value.reason


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TimeoutError("timed out"), "Try again"),
        (ConnectionResetError(104, "Connection reset by peer"), "Try again"),
        (OSError(5, "Input/output error"), "Try again"),
        (OSError(24, "Too many open files"), "ulimit"),
        (FileNotFoundError("no such key"), "Restore"),
        (PermissionError("no"), "permission"),
        (OSError("When reading: AWS Error ACCESS_DENIED during HeadObject operation"), "permission"),
        (RuntimeError("something of a client"), "Check that it is there"),
    ],
)
def test_advice_fits_what_stores_and_systems_raise(error: Exception, expected: str) -> None:
    found = unreachable("s3://bucket/m.avro", error)
    assert expected in found.message
    assert ("Restore" in found.message) == (expected == "Restore")
