"""What a snapshot is made of, counted from its manifests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import Table

import tamis
from tamis.formats.iceberg.inspection import _deletes
from tamis.formats.inspection import Deletes
from tests.making.cli_tables import SCHEMA, catalog, events, folder_of, rows


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return events(tmp_path_factory.mktemp("events"))


def test_counts_are_those_of_the_manifests(table: Table) -> None:
    found = tamis.open(folder_of(table)).inspect()
    listed = table.inspect.data_files().to_pylist()
    assert found.total.files == len(listed)
    assert found.total.rows == sum(one["record_count"] for one in listed)
    assert found.total.bytes == sum(one["file_size_in_bytes"] for one in listed)
    for spec in found.specs:
        mine = [one["file_size_in_bytes"] for one in listed if one["spec_id"] == spec.spec_id]
        assert (spec.files, spec.bytes, spec.average_bytes) == (len(mine), sum(mine), sum(mine) // len(mine))
    assert [str(field) for spec in found.specs for field in spec.fields] == ["region", "region", "day(ts)"]
    assert [spec.current for spec in found.specs] == [False, True]


def test_value_goes_through_json_unchanged(table: Table) -> None:
    document = tamis.open(folder_of(table)).inspect().to_dict()
    assert json.loads(json.dumps(document)) == json.loads(json.dumps(document, default=str))
    assert document["total"]["deletes"] == {"position": 0, "equality": 0, "vectors": 0, "rows": 0, "bytes": 0}


@pytest.mark.parametrize(
    ("target", "limit", "small"),
    [("1000", 750, 0), ("10000", 7500, 1), (None, 402653184, 1), ("many", 402653184, 1), ("-1", 402653184, 1)],
)
def test_small_is_below_three_quarters_of_the_target(
    tmp_path: Path, target: str | None, limit: int, small: int
) -> None:
    """A target that is no size is as good as none: the default holds."""
    properties = {} if target is None else {"write.target-file-size-bytes": target}
    made = catalog(tmp_path).create_table("db.t", SCHEMA)
    made.append(rows([1, 2], "eu", 1))
    metadata = Path(made.metadata_location.removeprefix("file://"))
    document = json.loads(metadata.read_text(encoding="utf-8"))
    document["properties"] |= properties
    metadata.write_text(json.dumps(document), encoding="utf-8")
    found = tamis.open(str(metadata)).inspect()
    assert (found.small_below, found.total.small_files) == (limit, small)


def test_dropped_column_keeps_its_last_name(tmp_path: Path) -> None:
    made = catalog(tmp_path).create_table("db.t", SCHEMA)
    with made.update_spec() as update:
        update.add_identity("region")
    with made.update_spec() as update:
        update.remove_field("region")
    with made.update_schema() as change:
        change.delete_column("region")
    found = tamis.open(folder_of(made)).inspect()
    (field,) = next(spec for spec in found.specs if spec.fields).fields
    assert (field.source, field.dropped) == ("region", True)
    assert found.columns == 2


def test_kinds_of_deletes_are_told_apart_and_vectors_count_their_own_bytes() -> None:
    """Many vectors lie in one Puffin file, whose size would count for each of them."""

    def one(content: int, offset: int | None = None, size: int | None = None) -> dict[str, Any]:
        return {"content": content, "rows": 10, "size": 1000, "content_offset": offset, "content_size": size}

    schema = pa.schema(
        [("content", pa.int32()), *((n, pa.int64()) for n in ("rows", "size", "content_offset", "content_size"))]
    )
    files = pa.Table.from_pylist([one(1), one(2), one(1, 4, 40), one(1, 44, 60)], schema)
    assert _deletes(files) == Deletes(position=1, equality=1, vectors=2, rows=40, bytes=2100)
    assert _deletes(files.slice(0, 0)) == Deletes()
