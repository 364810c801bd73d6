"""Tables that Paimon's Java core wrote: the same live files as it reads, in the folders where they lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
import pytest

import tamis
from tests.engines.paimon_engine import PaimonEngine

pytestmark = pytest.mark.engine

PARTITIONS: Final[Mapping[str, Sequence[object]]] = {
    "STRING": ["a", "a/b=c%:1?", "x y", "", " ", "\xa0", "é", None],
    "INT": [1, -7, None],
    "BOOLEAN": [True, False, None],
    "DATE": ["2024-01-15", "1969-12-31", None],
    "DOUBLE": [1.0, 1e10, 1.5e-5, 123456.789, -0.0, 100.0, None],
    "FLOAT": [0.1, 3.0e8, None],
    "DECIMAL(10, 2)": ["1.50", "-0.05", None],
    "DECIMAL(20, 10)": ["0.0000000100", "-12345678.0000000001", "0", None],
    "CHAR(4)": ["ab", "a: c", None],
    "TIMESTAMP(3)": ["2024-01-15T00:00:00", "2024-01-15T01:02:03.040", None],
    "TIMESTAMP(6)": ["2024-01-15T00:00:00", "2024-01-15T01:02:03.000004", "1969-12-31T23:59:59.5", None],
}


@pytest.mark.parametrize("legacy", ["true", "false"])
@pytest.mark.parametrize("type_", PARTITIONS)
def test_files_lie_where_the_plan_says(paimon: PaimonEngine, type_: str, legacy: str) -> None:
    name = f"folders_{list(PARTITIONS).index(type_)}_{legacy}"
    options = {"bucket": "-1", "partition.legacy-name": legacy}
    folder = paimon.create(name, {"id": "INT", "p": type_}, partition_keys=["p"], options=options)
    values = PARTITIONS[type_]
    paimon("write", name, rows=[{"id": place, "p": value} for place, value in enumerate(values)])
    files = tamis.open(folder).plan().files
    assert len(files) == len(values)
    assert [path for path in files["path"].to_pylist() if not (folder / path).is_file()] == []


@pytest.fixture(scope="module")
def histories(paimon: PaimonEngine) -> dict[str, Path]:
    """Tables of several kinds, each with a life behind it."""
    columns = {"dt": "STRING", "id": "BIGINT NOT NULL", "v": "INT", "s": "STRING", "f": "DOUBLE"}
    made = {}
    kinds: dict[str, tuple[list[str], dict[str, str]]] = {
        "append": ([], {"bucket": "-1"}),
        "fixed": ([], {"bucket": "3", "bucket-key": "id", "write-only": "true"}),
        "orc": ([], {"bucket": "-1", "manifest.format": "orc"}),
        "parquet": ([], {"bucket": "-1", "manifest.format": "parquet"}),
        "keys": (["dt", "id"], {"bucket": "2", "write-only": "true"}),
        "dynamic": (["dt", "id"], {"bucket": "-1"}),
        "vectors": (["dt", "id"], {"bucket": "2", "deletion-vectors.enabled": "true"}),
        "first": (["dt", "id"], {"bucket": "1", "merge-engine": "first-row"}),
        "postponed": (["dt", "id"], {"bucket": "-2"}),
    }
    for kind, (key, options) in kinds.items():
        name = f"history_{kind}"
        typed = {**columns, "dt": "STRING NOT NULL"} if key else columns
        made[kind] = paimon.create(name, typed, partition_keys=["dt"], primary_keys=key, options=options)
        # Of a dynamic bucket the writer has to be told which.
        told = {"bucket": 0} if kind == "dynamic" else {}
        for turn in range(3):
            paimon("write", name, rows=list(_rows(turn)), **told)
        if kind in {"keys", "vectors"}:
            paimon("delete", name, rows=[{"dt": "a", "id": 4, "v": None, "s": None, "f": None}])
            paimon("compact", name)
            paimon("write", name, rows=[{"dt": "a", "id": 2, "v": 1000, "s": "late", "f": None}])
        if kind in {"append", "fixed"}:
            paimon("write", name, rows=[{"dt": "b", "id": 1, "v": 1, "s": "over", "f": 0.0}], overwrite={"dt": "b"})
        changes = [{"op": "add_column", "name": "n", "type": "INT"}, {"op": "rename_column", "name": "s", "to": "t"}]
        paimon("alter", name, changes=[*changes, {"op": "change_type", "name": "v", "type": "BIGINT"}])
        paimon("write", name, rows=[{"dt": "a", "id": 9, "v": 1 << 40, "t": "wide", "f": -0.0, "n": 5}], **told)
    return made


def _rows(turn: int) -> Iterator[dict[str, object]]:
    for one in range(12):
        number = turn * 4 + one
        yield {
            "dt": "ab"[one % 2],
            "id": number,
            "v": None if one % 5 == 0 else number * 10,
            "s": None if one % 7 == 0 else "xyz"[turn] * (one * 3) + str(one),
            "f": (float(number), "NaN", -0.0, None)[one % 4],
        }


KINDS: Final = ("append", "fixed", "orc", "parquet", "keys", "dynamic", "vectors", "first", "postponed")


@pytest.mark.parametrize("kind", KINDS)
def test_live_files_are_those_that_java_reads(paimon: PaimonEngine, histories: dict[str, Path], kind: str) -> None:
    """Files, sizes, rows, buckets and totals; and of what a batch read does not see, none."""
    splits = paimon("plan", f"history_{kind}")["splits"]
    java = {(split["bucket"], file) for split in splits for file in split["files"]}
    files = tamis.open(histories[kind]).plan().files
    ours = zip(files["bucket"].to_pylist(), files["path"].to_pylist(), strict=True)
    assert {(bucket, path.rpartition("/")[2]) for bucket, path in ours} == java
    for path, size, rows in zip(*(files[name].to_pylist() for name in ("path", "size", "rows")), strict=True):
        assert (histories[kind] / path).stat().st_size == size
        assert pq.read_metadata(histories[kind] / path).num_rows == rows


@pytest.mark.parametrize("kind", KINDS)
def test_older_snapshots_are_those_of_java(paimon: PaimonEngine, histories: dict[str, Path], kind: str) -> None:
    for snapshot in paimon("snapshots", f"history_{kind}")["snapshots"]:
        splits = paimon("plan", f"history_{kind}", snapshot_id=snapshot["id"])["splits"]
        java = {file for split in splits for file in split["files"]}
        files = tamis.open(histories[kind], snapshot_id=snapshot["id"]).plan().files
        assert {path.rpartition("/")[2] for path in files["path"].to_pylist()} == java


def test_vectors_are_counted(paimon: PaimonEngine, histories: dict[str, Path]) -> None:
    """In a plan for each file, and in an inspection all of them."""
    java = paimon("plan", "history_vectors")["splits"]
    table = tamis.open(histories["vectors"])
    files = table.plan().files
    pairs = zip(files["path"].to_pylist(), files["deletes"].to_pylist(), strict=True)
    named = {path.rpartition("/")[2] for path, vectors in pairs if vectors == 1}
    assert table.inspect().total.deletes.vectors == len(named) == sum(files["deletes"].to_pylist())
    assert named == {
        file
        for split in java
        for file, vector in zip(split["files"], split.get("deletion_files") or [None] * 9, strict=False)
        if vector
    }
    assert named
    assert set(tamis.open(histories["keys"]).plan().files["deletes"].to_pylist()) == {0}
