"""A Delta table in a real object store: opened by its folder's URL, at its versions, and planned."""

from __future__ import annotations

import json

import pytest

import tamis
from tests.engines.servers import ObjectStore
from tests.making.delta_logs import DeltaLog, add, remove

pytestmark = pytest.mark.engine


def _stats(low: int, high: int) -> str:
    return json.dumps({"numRecords": 9, "minValues": {"id": low}, "maxValues": {"id": high}, "nullCount": {"id": 0}})


@pytest.mark.parametrize("kind", [None, "classic", "v2-json"])
def test_a_table_is_opened_by_its_url(store: ObjectStore, kind: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", store.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", store.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", store.secret)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    log = DeltaLog(store.folder / "lake" / f"table-{kind}")
    log.begin(add("1", "a", stats=_stats(0, 9)), add("part=b%20b/2", "b b", stats=_stats(10, 19)))
    log.commit(remove("1"), add("3", "a", stats=_stats(20, 29)))
    if kind is not None:
        log.checkpoint(0, kind)
        log.hint({"version": 0})
    url = f"s3://lake/table-{kind}"
    table = tamis.open(url)
    assert (table.snapshot_id, table.location) == (1, url)
    assert table.plan("part = 'a'").files["path"].to_pylist() == ["3"]
    assert table.plan("id < 15").files["path"].to_pylist() == ["part=b%20b/2"]
    assert sorted(tamis.open(f"{url}/", version=0).plan().files["path"].to_pylist()) == ["1", "part=b%20b/2"]
    assert table.inspect().total.files == 2
    assert tamis.open(url, as_of_ms=10**14).snapshot_id == 1
