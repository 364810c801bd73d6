"""Actions that are not what the protocol says: an error that names the file, never a traceback or a silent loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis.errors import UnreadableFileError, UnreadableMetadataError
from tests.making.delta_logs import DeltaLog, add, inline_vector, metadata, protocol, remove

DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    made = DeltaLog(tmp_path / "t")
    made.begin(add("1"), add("2", "b"))
    return made


def _write(log: DeltaLog, content: bytes) -> Path:
    path = log.folder / f"{len(log.history):020d}.json"
    path.write_bytes(content)
    log.history.append([])
    return path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "parquet"}, 'format of its metaData action is the text "parquet"'),
        ({"format": [1]}, "format of its metaData action is a list"),
        ({"format": {"provider": "orc"}}, "its data files are orc files"),
        ({"configuration": [1]}, "configuration of its metaData action is a list"),
        ({"schemaString": {}}, "schemaString of its metaData action is an object"),
        ({"schemaString": None}, "schemaString of its metaData action is null"),
        ({"partitionColumns": "part"}, 'partitionColumns of its metaData action is the text "part"'),
    ],
)
def test_metadata_of_another_shape_is_named(log: DeltaLog, change: dict[str, Any], said: str) -> None:
    action = metadata()
    action["metaData"] |= change
    log.commit(action)
    with pytest.raises(UnreadableMetadataError, match=said) as raised:
        tamis.open(log.root)
    assert raised.value.path.endswith(f"{1:020d}.json")


def test_a_protocol_without_its_list_of_features_is_an_error(log: DeltaLog) -> None:
    """Nobody knows what a reader has to know: delta-spark 4.4 reads no such table. An empty list says: nothing."""
    versions = {"minReaderVersion": 3, "minWriterVersion": 7}
    log.commit({"protocol": {**versions, "readerFeatures": [], "writerFeatures": []}})
    assert len(tamis.open(log.root).plan().files) == 2
    log.checkpoint(1)
    assert len(tamis.open(log.root).plan().files) == 2
    log.commit({"protocol": versions})
    with pytest.raises(UnreadableMetadataError, match="does not list the readerFeatures") as raised:
        tamis.open(log.root)
    assert raised.value.path.endswith(f"{2:020d}.json")


@pytest.mark.parametrize("name", ["metaData", "protocol", "domainMetadata"])
@pytest.mark.parametrize("value", [5, "x", [], True])
def test_an_action_that_is_no_object_is_an_error_and_not_passed_over(log: DeltaLog, name: str, value: object) -> None:
    """It was one: with the older action in its place a reader takes the table for what it no longer is."""
    log.commit({name: value})
    with pytest.raises(UnreadableMetadataError, match=f"line 1 has a {name} action that is none") as raised:
        tamis.open(log.root)
    assert raised.value.path.endswith(f"{1:020d}.json")


def test_a_line_with_two_file_actions_is_an_error(log: DeltaLog) -> None:
    """Spark takes the add alone, others both: whether the removed file is there nobody can tell."""
    log.commit({**add("3"), **remove("1")})
    with pytest.raises(UnreadableMetadataError, match="both an add and a remove"):
        tamis.open(log.root)


@pytest.mark.parametrize(
    "line",
    [b'{"domainMetadata":' + DEEP + b"}", b'{"add":{"path":"3","size":1e1,"tags":' + DEEP + b"}}"],
)
def test_json_that_is_nested_beyond_measure_is_an_error_that_names_the_line(log: DeltaLog, line: bytes) -> None:
    _write(log, b'{"commitInfo":{}}\n' + line + b"\n")
    with pytest.raises(UnreadableMetadataError, match="line 2 is no JSON") as raised:
        tamis.open(log.root)
    assert raised.value.path.endswith(f"{1:020d}.json")


@pytest.mark.parametrize("content", [b'{"commitInfo":' + DEEP + b"}\n", b'["commitInfo"]\n', b'{"commitInfo": 5}\n'])
def test_history_is_told_though_a_commit_says_nothing_sensible_of_itself(log: DeltaLog, content: bytes) -> None:
    """Whoever reads the table needs none of it: a checkpoint stands for that commit."""
    _write(log, content)
    log.checkpoint(1)
    found = tamis.open(log.root).inspect()
    assert [(one.id, one.operation) for one in found.history] == [(1, None), (0, None)]


@pytest.mark.parametrize("hint", [DEEP, b'{"version":' + b"9" * 5000 + b"}"])
def test_a_hint_that_breaks_a_parser_does_no_harm(log: DeltaLog, hint: bytes) -> None:
    log.hint(hint)
    assert len(tamis.open(log.root).plan().files) == 2


def test_properties_with_endless_numbers_say_nothing(tmp_path: Path) -> None:
    digits = "9" * 5000
    log = DeltaLog(tmp_path)
    on = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": digits,
        "delta.targetFileSize": digits,
    }
    info = {"inCommitTimestamp": 1000, "operation": "WRITE", "operationMetrics": {"numFiles": digits}}
    log.commit({"commitInfo": info}, protocol(), metadata(**on))
    found = tamis.open(tmp_path).inspect()
    assert found.target_file_size == 1 << 30
    assert [(one.operation, one.added_files) for one in found.history] == [("WRITE", None)]
    assert tamis.open(tmp_path, as_of_ms=1000).snapshot_id == 0


@pytest.mark.parametrize("how", ["null", "missing", "in a checkpoint"])
def test_a_file_without_partition_values_is_kept_and_is_an_error_to_read(log: DeltaLog, how: str) -> None:
    """A map without the key says NULL; no map at all says nothing, so that no partition may leave the file out."""
    odd = add("odd")
    odd["add"]["partitionValues"] = None
    if how != "null":
        del odd["add"]["partitionValues"]
    log.commit(odd)
    if how == "in a checkpoint":
        log.checkpoint(1)
    table = tamis.open(log.root)
    assert sorted(table.plan("part = 'b'").files["path"].to_pylist()) == ["2", "odd"]
    assert table.plan("part is null").files["path"].to_pylist() == ["odd"]
    with pytest.raises(UnreadableFileError, match="odd"):
        table.source.scan(table.plan("part = 'b'"))


def test_a_path_that_is_no_utf8_is_planned_and_refused_when_it_is_read(log: DeltaLog) -> None:
    log.commit(add("%FF%FE.parquet", "c"))
    table = tamis.open(log.root)
    assert table.plan("part = 'c'").files["path"].to_pylist() == ["%FF%FE.parquet"]
    with pytest.raises(UnreadableFileError, match=r"%FF%FE\.parquet: its path is no UTF-8"):
        table.source.scan(table.plan())
    assert len(table.source.scan(table.plan("part = 'b'")).files) == 1


@pytest.mark.parametrize("name", ["storageType", "pathOrInlineDv"])
@pytest.mark.parametrize("where", ["commit", "checkpoint"])
def test_a_vector_that_does_not_say_where_it_is_is_an_error(log: DeltaLog, name: str, where: str) -> None:
    """One flipped bit in the field's name: the file had no vector any more, and its deleted rows came back."""
    log.commit(protocol(3, 7, ["deletionVectors"]))
    log.commit(remove("1"), add("1", dv=inline_vector([0])))
    assert sorted(tamis.open(log.root).plan().files["deletes"].to_pylist()) == [0, 1]
    log.commit(remove("1", dv=inline_vector([0])), add("1", dv=inline_vector([0]) | {name: None}))
    if where == "checkpoint":
        log.checkpoint(3)
    with pytest.raises(UnreadableMetadataError, match=f"a deletion vector in it has no {name}"):
        tamis.open(log.root).plan()


def test_a_vector_of_which_nothing_stands_is_none(log: DeltaLog) -> None:
    """Some writers of Parquet give a struct of nulls to files without a vector."""
    log.commit(add("3", dv=dict.fromkeys(inline_vector([0]))))
    assert tamis.open(log.root).plan().files["deletes"].to_pylist() == [0, 0, 0]
    log.checkpoint(1)
    assert tamis.open(log.root).plan().files["deletes"].to_pylist() == [0, 0, 0]
