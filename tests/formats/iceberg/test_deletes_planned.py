"""Delete manifests of a whole table, read and planned: written by hand, since PyIceberg writes none."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import fastavro
import pytest
from pyiceberg.table import Table

import tamis
from tamis.errors import UnknownSpecError, UnreadableMetadataError
from tamis.formats.iceberg.table import IcebergTable
from tamis.formats.listing import Held, sift_here
from tamis.sieve.join.runtime import RuntimeFilter
from tests.making.cli_tables import events, folder_of
from tests.making.manifests import avro_bytes, entry, entry_schema

REGION = {"name": "region", "type": ["null", "string"], "default": None, "field-id": 1000}
POSITION, EQUALITY = 1, 2


def local(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def with_deletes(table: Table, *manifests: tuple[int, list[dict[str, Any]]]) -> str:
    """A metadata file of the table with more manifests: a spec and its entries each, of sequence number 9."""
    document = json.loads(local(table.metadata_location).read_text(encoding="utf-8"))
    snapshot = next(one for one in document["snapshots"] if one["snapshot-id"] == document["current-snapshot-id"])
    with local(snapshot["manifest-list"]).open("rb") as file:
        reader = fastavro.reader(file)
        schema, listed = reader.writer_schema, cast("list[dict[str, Any]]", list(reader))
    assert isinstance(schema, dict)
    folder = local(table.metadata_location).parent
    for place, (spec_id, entries) in enumerate(manifests):
        path = folder / f"deletes-{place}.avro"
        data = avro_bytes(entry_schema([REGION] if spec_id == 0 else [], version=3), entries)
        path.write_bytes(data)
        more = {"manifest_path": path.as_uri(), "manifest_length": len(data), "partition_spec_id": spec_id}
        counts = {"added_files_count": len(entries), "existing_files_count": 0, "deleted_files_count": 0}
        numbers: dict[str, Any] = {"content": 1, "sequence_number": 9, "min_sequence_number": 9}
        numbers["partitions"] = summary(entries) if spec_id == 0 else None
        listed.append({**listed[0], **more, **counts, **numbers})
    buffer = io.BytesIO()
    fastavro.writer(buffer, schema, listed)
    target = folder / "snap-with-deletes.avro"
    target.write_bytes(buffer.getvalue())
    snapshot |= {"manifest-list": target.as_uri(), "sequence-number": 9}
    document["partition-specs"].append({"spec-id": 7, "fields": []})
    metadata = folder / "00099-0b54a0ba-5bd2-4a3c-b9bb-2c6f93a8a34d.metadata.json"
    metadata.write_text(json.dumps(document), encoding="utf-8")
    return str(metadata)


def summary(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a manifest list says of entries that are partitioned by region."""
    regions = sorted(one["data_file"]["partition"]["region"].encode() for one in entries)
    return [{"contains_null": False, "contains_nan": False, "lower_bound": regions[0], "upper_bound": regions[-1]}]


def delete(content: int, region: str | None, name: str = "d.parquet", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    partition = {} if region is None else {"region": region}
    return entry(name, content=content, partition=partition, snapshot_id=1, **more)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return events(tmp_path)


def counts(metadata: str, where: str | None = None) -> dict[str, int]:
    """How many deletes apply, by partition."""
    return {one["partition"]: one["deletes"] for one in tamis.open(metadata).plan(where).files.to_pylist()}


def test_deletes_are_counted_for_each_kept_file(table: Table) -> None:
    found = with_deletes(
        table,
        (0, [delete(POSITION, "eu"), delete(EQUALITY, "eu", equality_ids=[1]), delete(POSITION, "fr")]),
        (7, [delete(EQUALITY, None, equality_ids=[1])]),
    )
    eu, us, eu_day, uk_day = "region=eu", "region=us", "region=eu/ts_day=2024-01-03", "region=uk/ts_day=2024-01-04"
    assert counts(found) == {eu: 3, us: 1, eu_day: 1, uk_day: 1}
    assert counts(found, "region = 'us'") == {us: 1}


def test_equality_deletes_are_planned_where_pyiceberg_refuses(table: Table) -> None:
    found = with_deletes(table, (7, [delete(EQUALITY, None, equality_ids=[1])]))
    assert set(counts(found).values()) == {1}


def test_vector_is_found_by_the_file_that_it_names(table: Table) -> None:
    files = tamis.open(folder_of(table)).plan("region = 'eu'").files.to_pylist()
    path = next(one["path"] for one in files if one["partition"] == "region=eu")
    vector = delete(POSITION, "eu", "v.puffin", referenced_data_file=path, content_offset=4, content_size_in_bytes=40)
    found = with_deletes(table, (0, [delete(POSITION, "eu"), vector]))
    assert counts(found, "region = 'eu'") == {"region=eu": 1, "region=eu/ts_day=2024-01-03": 0}
    wrong = {**vector, "data_file": {**vector["data_file"], "partition": {"region": "us"}}}
    with pytest.raises(UnreadableMetadataError, match="another partition"):
        _ = tamis.open(with_deletes(table, (0, [wrong]))).plan().files


def test_deletes_are_inspected_by_kind(table: Table) -> None:
    vector = delete(POSITION, "eu", "v", referenced_data_file="x", content_offset=4, content_size_in_bytes=40)
    found = tamis.open(
        with_deletes(
            table,
            (0, [delete(POSITION, "eu"), vector]),
            (7, [delete(EQUALITY, None, equality_ids=[1]), delete(EQUALITY, None, equality_ids=[1])]),
        )
    ).inspect()
    total = found.total.deletes
    assert (total.position, total.equality, total.vectors, total.bytes) == (1, 2, 1, 340)
    assert [spec.deletes.files for spec in found.specs] == [2, 0, 2]
    assert found.total.files == 4, "deletes are no data"
    assert (found.data_manifests, found.delete_manifests) == (4, 2)


def watched(path: str) -> tuple[tamis.Table, list[str]]:
    """The table, without a cache, and the locations that are fetched of it from now on."""
    source = tamis.open(path, cache=False).source
    assert isinstance(source, IcebergTable)
    fetched: list[str] = []

    def fetch(location: str) -> bytes:
        fetched.append(location)
        return source.fetch(location)

    return tamis.Table(replace(source, fetch=fetch)), fetched


def test_delete_manifests_are_read_when_deletes_are_asked_for(table: Table) -> None:
    """An explanation shows no count of deletes; a plan that keeps nothing has none."""
    counted, fetched = watched(with_deletes(table, (7, [delete(EQUALITY, None, equality_ids=[1])])))
    _ = counted.plan("id = 4711").files
    assert not [one for one in fetched if "deletes-" in one]
    plan = counted.plan("id = 1")
    plan.explain()
    assert not [one for one in fetched if "deletes-" in one]
    assert plan.files["deletes"].to_pylist() == [1]
    assert [one for one in fetched if "deletes-" in one]


def test_plan_keeps_what_it_learnt(table: Table) -> None:
    """Whoever asks for its files again, or reads them, fetches no manifest a second time."""
    counted, fetched = watched(with_deletes(table, (7, [delete(EQUALITY, None, equality_ids=[1])])))
    plan = counted.plan()
    for _ in range(2):
        _ = plan.files
        with suppress(UnreadableMetadataError):  # there are no delete files behind these entries
            counted.source.scan(plan)
    metadata = [one for one in fetched if one.endswith(".avro")]
    assert len(set(metadata)) == len(metadata) > 0


def test_delete_manifests_that_cannot_match_are_not_read(table: Table) -> None:
    entries = [(0, [delete(POSITION, "eu")]), (7, [delete(EQUALITY, None, equality_ids=[1])])]
    counted, fetched = watched(with_deletes(table, *entries))
    plan = counted.plan("region = 'us'")
    with suppress(UnreadableMetadataError):
        counted.source.scan(plan)
    assert len([one for one in fetched if "deletes-" in one]) == 1


def test_listings_of_one_job_read_nothing_twice(table: Table) -> None:
    """A join lists for several sets of keys: each manifest is read once, and each plan is as if it were alone."""
    counted, fetched = watched(folder_of(table))
    wheres = (None, "id = 1", "region = 'eu'", "region = 'us' or id = 1", None)
    keys = [RuntimeFilter.of("id", [1, 2]), RuntimeFilter.of("region", ["eu", "us"])]
    sieves = [counted.plan(where, runtime_filters=keys).sieve for where in wheres]
    alone = [sift_here(counted.source.list(sieve), sieve) for sieve in sieves]
    fetched.clear()
    held = Held()
    together = [sift_here(counted.source.list(sieve, held), sieve) for sieve in sieves]
    assert len(set(fetched)) == len(fetched) > 0
    for one, other in zip(alone, together, strict=True):
        assert one.verdicts.equals(other.verdicts)
        assert one.stats.files == other.stats.files
        assert [layer.files_after for layer in one.stats.layers] == [
            layer.files_after for layer in other.stats.layers
        ]


def test_delete_manifest_of_an_unknown_spec_is_corruption(table: Table) -> None:
    with pytest.raises(UnknownSpecError, match="partition spec 5"):
        tamis.open(with_deletes(table, (5, [delete(POSITION, None)]))).plan()
