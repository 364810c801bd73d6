"""Table metadata of every version and age is read, and nothing newer is guessed at."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, StructType, TimestampType

from tamis.errors import NoSuchSnapshotError, UnknownSpecError, UnreadableMetadataError, UnsupportedFormatError
from tamis.formats.iceberg.parsing import parse_metadata
from tamis.formats.iceberg.types import arrow_type
from tests.making.manifests import create, metadata_of, parsed, table_document

HISTORY = {
    "snapshots": [
        {"snapshot-id": 1, "timestamp-ms": 100, "manifest-list": "/l1", "schema-id": 0},
        {"snapshot-id": 2, "timestamp-ms": 200, "manifest-list": "/l2", "schema-id": 1, "parent-snapshot-id": 1},
    ],
    "current-snapshot-id": 2,
    "snapshot-log": [{"timestamp-ms": 100, "snapshot-id": 1}, {"timestamp-ms": 200, "snapshot-id": 2}],
    "refs": {
        "main": {"snapshot-id": 2, "type": "branch"},
        "audit": {"snapshot-id": 1, "type": "branch"},
        "old": {"snapshot-id": 1, "type": "tag"},
    },
    "schemas": [
        {"schema-id": 0, "fields": [{"id": 1, "name": "id", "required": True, "type": "int"}]},
        {"schema-id": 1, "fields": [{"id": 1, "name": "key", "required": True, "type": "long"}]},
    ],
    "current-schema-id": 1,
}


def test_table_of_pyiceberg_is_read_as_pyiceberg_reads_it(tmp_path: Path) -> None:
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "ts", TimestampType()),
        NestedField(
            3, "place", StructType(NestedField(4, "lat", DoubleType()), NestedField(5, "city", StringType()))
        ),
    )
    table = create(tmp_path, schema, PartitionSpec(PartitionField(2, 1000, DayTransform(), "ts_day")))
    with table.update_schema() as update:
        update.rename_column("id", "key")
    with table.update_spec() as update:
        update.add_identity("key")
    found = metadata_of(table)
    assert found.format_version == table.format_version
    assert found.uuid == str(table.metadata.table_uuid)
    assert [one.schema_id for one in found.schemas] == [0, 1]
    columns = {column.path: (column.id, column.type) for column in found.schema.columns().columns}
    assert columns[("key",)] == (1, pa.int64())
    assert columns[("place", "lat")] == (4, pa.float64())
    assert [len(one.spec.fields) for one in found.specs] == [1, 2]
    assert found.layout(found.default_spec_id).types == (pa.date32(), pa.int64())
    assert found.select().snapshot is None


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("timestamptz", pa.timestamp("us", "UTC")),
        ("timestamp_ns", pa.timestamp("ns")),
        ("decimal(38,10)", pa.decimal128(38, 10)),
        ("fixed[3]", pa.binary(3)),
        ("uuid", pa.uuid()),
        ("time", pa.time64("us")),
        ("variant", pa.null()),
        ("geography(srid:4326, spherical)", pa.null()),
        ("decimal(99,0)", pa.null()),
        ({"type": "list", "element-id": 3, "element": "int", "element-required": False}, pa.list_(pa.int32())),
        (
            {"type": "map", "key-id": 1, "key": "string", "value-id": 2, "value": "long", "value-required": True},
            pa.map_(pa.string(), pa.int64()),
        ),
        ({"type": "something new"}, pa.null()),
    ],
)
def test_type_becomes_its_arrow_type(text: object, type_: pa.DataType) -> None:
    assert arrow_type(text) == type_


def test_version_1_without_lists_has_one_schema_and_one_spec() -> None:
    """The oldest tables have `schema` and `partition-spec`, and partition fields without ids."""
    found = parsed(
        {
            "format-version": 1,
            "location": "/t",
            "schema": {"fields": [{"id": 1, "name": "ts", "required": False, "type": "timestamptz"}]},
            "partition-spec": [
                {"source-id": 1, "transform": "day", "name": "ts_day"},
                {"source-id": 1, "transform": "void", "name": "gone"},
            ],
            "current-snapshot-id": -1,
        }
    )
    assert found.format_version == 1
    assert found.specs[0].field_ids == (1000, 1001)
    assert found.specs[0].types == (pa.date32(), pa.timestamp("us", "UTC"))
    assert found.select().snapshot is None


def test_dropped_source_is_found_in_an_older_schema_and_a_promoted_one_is_wide() -> None:
    document = table_document(
        **{
            "schemas": [
                {"schema-id": 0, "fields": [_field(1, "a", "int"), _field(2, "b", "string")]},
                {"schema-id": 1, "fields": [_field(1, "a", "long")]},
            ],
            "current-schema-id": 1,
            "partition-specs": [
                {
                    "spec-id": 0,
                    "fields": [
                        {"source-id": 1, "field-id": 1000, "transform": "identity", "name": "a"},
                        {"source-id": 2, "field-id": 1001, "transform": "truncate[3]", "name": "b_trunc"},
                        {"source-id": 9, "field-id": 1002, "transform": "identity", "name": "lost"},
                        {"source-id": 9, "field-id": 1003, "transform": "bucket[8]", "name": "lost_bucket"},
                        {"source-ids": [1, 2], "field-id": 1004, "transform": "zorder", "name": "z"},
                        {"source-ids": [1], "field-id": 1005, "transform": "hour", "name": "h"},
                    ],
                }
            ],
        }
    )
    (layout,) = parsed(document).specs
    assert [field.source for field in layout.spec.fields] == [1, 2, None, None, None, 1]
    assert layout.types == (pa.int64(), pa.string(), None, pa.int32(), None, pa.int32())
    assert layout.field_ids == (1000, 1001, 1002, 1003, 1004, 1005)


def test_snapshots_are_selected_by_id_branch_tag_and_time() -> None:
    found = parsed(table_document(**HISTORY))
    ids = [
        found.select(**how).snapshot
        for how in ({}, {"snapshot_id": 1}, {"ref": "audit"}, {"ref": "old"}, {"as_of_ms": 199}, {"as_of_ms": 200})
    ]
    assert [one.id for one in ids if one] == [2, 1, 1, 1, 1, 2]


def test_older_state_has_the_schema_of_its_time_and_a_branch_the_current_one() -> None:
    found = parsed(table_document(**HISTORY))
    assert found.select(snapshot_id=1).schema.schema_id == 0
    assert found.select(ref="old").schema.schema_id == 0
    assert found.select(as_of_ms=150).schema.schema_id == 0
    assert found.select(ref="audit").schema.schema_id == 1


@pytest.mark.parametrize("how", [{"snapshot_id": 7}, {"ref": "nope"}, {"as_of_ms": 99}])
def test_missing_snapshot_is_a_clear_error(how: dict[str, object]) -> None:
    with pytest.raises(NoSuchSnapshotError, match="/warehouse/t has no "):
        parsed(table_document(**HISTORY)).select(**how)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("as_of_ms", "shown"),
    [
        (99, "1970-01-01T00:00:00.099Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"),
        (-(10**15), "-1000000000000000 ms"),
        (-(10**30), f"-{10**30} ms"),
    ],
)
def test_time_before_the_table_is_shown_as_a_time(as_of_ms: int, shown: str) -> None:
    """Nobody reads milliseconds; only beyond the calendar's years they are all there is."""
    with pytest.raises(NoSuchSnapshotError) as caught:
        parsed(table_document(**HISTORY)).select(as_of_ms=as_of_ms)
    assert caught.value.wanted == f"snapshot as of {shown}"
    assert caught.value.known == ("1970-01-01T00:00:00.100Z", "1970-01-01T00:00:00.200Z")
    assert caught.value.message.endswith(
        f"has no snapshot as of {shown}. Its times in its log: 1970-01-01T00:00:00.100Z, 1970-01-01T00:00:00.200Z."
    )


def test_time_without_a_log_goes_by_ancestors() -> None:
    found = parsed(table_document(**HISTORY) | {"snapshot-log": []})
    snapshot = found.select(as_of_ms=150).snapshot
    assert snapshot is not None
    assert snapshot.id == 1


def test_version_4_is_refused() -> None:
    with pytest.raises(UnsupportedFormatError, match="format version 4; tamis knows 1 to 3"):
        parsed(table_document(**{"format-version": 4}))


def test_gzipped_metadata_is_read() -> None:
    data = gzip.compress(json.dumps(table_document()).encode())
    assert parse_metadata(data, "v1.gz.metadata.json").location == "/warehouse/t"


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"\x1f\x8b\x08", b'"x"', b'{"format-version": 2}', b'{"format-version": "two"}', b"\xff\xfe"],
)
def test_damaged_metadata_is_a_clear_error(data: bytes) -> None:
    with pytest.raises(UnreadableMetadataError, match=r"cannot read s3://…@bucket/v1\.json"):
        parse_metadata(data, "s3://key:secret@bucket/v1.json")


def test_unknown_spec_id_is_an_error() -> None:
    with pytest.raises(UnknownSpecError, match="partition spec 5"):
        parsed(table_document()).layout(5)


def _field(id_: int, name: str, type_: str) -> dict[str, object]:
    return {"id": id_, "name": name, "required": False, "type": type_}
