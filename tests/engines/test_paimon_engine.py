"""Paimon's Java core answers: what other tests ask of it works at all."""

from __future__ import annotations

import pytest

from tests.engines.paimon_engine import PaimonEngine, Refusal

pytestmark = pytest.mark.engine


def test_append_table_is_written_planned_read_rescaled_and_asked_for_its_buckets(paimon: PaimonEngine) -> None:
    columns = {"id": "BIGINT", "day": "STRING", "x": "DOUBLE"}
    options = {"bucket": "4", "bucket-key": "id", "write-only": "true"}
    folder = paimon.create("asked_append", columns, partition_keys=["day"], options=options)
    rows = [{"id": row, "day": f"d{row % 2}", "x": row / 3} for row in range(50)]
    paimon("write", "asked_append", rows=rows)
    assert (folder / "snapshot").is_dir()
    eq = {"op": "eq", "field": "id", "value": 7}
    assert paimon("read", "asked_append", predicate=eq)["rows"] == [rows[7]]
    splits = paimon("plan", "asked_append", predicate=eq)["splits"]
    (placed,) = paimon("bucket_of", "asked_append", rows=rows[7:8])["buckets"]
    assert {split["bucket"] for split in splits} == {placed["bucket"]}
    paimon("rescale", "asked_append", buckets=8, partition={"day": "d0"})
    assert {each["total_buckets"] for each in paimon("files", "asked_append")["files"]} == {4, 8}


def test_key_table_is_written_deleted_from_and_compacted(paimon: PaimonEngine) -> None:
    options = {"bucket": "2", "write-only": "true"}
    paimon.create("asked_keys", {"id": "INT NOT NULL", "x": "STRING"}, primary_keys=["id"], options=options)
    paimon("write", "asked_keys", rows=[{"id": row, "x": "old"} for row in range(20)])
    paimon("write", "asked_keys", rows=[{"id": 3, "x": "new"}])
    paimon("delete", "asked_keys", rows=[{"id": 4, "x": None}])
    found = {row["id"]: row["x"] for row in paimon("read", "asked_keys")["rows"]}
    assert len(found) == 19
    assert found[3] == "new"
    assert paimon("compact", "asked_keys")["snapshot"]["commitKind"] == "COMPACT"
    assert len(paimon("read", "asked_keys")["rows"]) == 19


def test_refusal_is_in_paimon_s_own_words(paimon: PaimonEngine) -> None:
    with pytest.raises(Refusal, match="TableNotExistException"):
        paimon("read", "nobody_made_it")
