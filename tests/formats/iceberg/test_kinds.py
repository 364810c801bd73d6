"""Fields of manifests and their lists under types that Iceberg does not give them: an error that names the field."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.errors import UnreadableMetadataError
from tamis.formats.iceberg.bounds import MapColumn
from tamis.formats.iceberg.kinds import COUNTS, NUMBER, NUMBERS, SUMMARIES, TEXT, VALUES
from tamis.formats.iceberg.manifest_list import DATA, DELETES, Manifest, parse_manifest_list
from tamis.formats.iceberg.manifests import read_data_files, read_delete_files
from tests.making.manifests import avro_bytes, entry, entry_schema, parsed, table_document

LONG, STRING, BYTES = pa.int64(), pa.string(), pa.binary()
ONE = {"boolean": True, "string": "1", "bytes": b"1", "long": 1, "double": 1.0}
"""A value of each type that a field may wrongly have."""
ARRAY = {"type": "array", "items": "string"}


def changed(schema: dict[str, Any], field_id: int, type_: object) -> dict[str, Any]:
    """The schema with that field of another type."""
    found = copy.deepcopy(schema)
    inner = next((one["type"]["fields"] for one in found["fields"] if one["field-id"] == 2), [])
    for one in (*found["fields"], *inner):
        if one["field-id"] == field_id:
            one["type"] = type_
            one.pop("default", None)
    return found


def value(type_: object) -> object:
    return ONE[type_] if isinstance(type_, str) else ["x"]


@pytest.mark.parametrize(
    ("field_id", "name", "type_"),
    [
        (0, "status", "string"),
        (1, "snapshot_id", "bytes"),
        (3, "sequence_number", "double"),
        (100, "file_path", "bytes"),
        (100, "file_path", "long"),
        (101, "file_format", "long"),
        (103, "record_count", "boolean"),
        (104, "file_size_in_bytes", "string"),
        (110, "null_value_counts", "long"),
        (110, "null_value_counts", ARRAY),
        (125, "lower_bounds", "bytes"),
        (128, "upper_bounds", ARRAY),
        (134, "content", "boolean"),
        (135, "equality_ids", "long"),
        (135, "equality_ids", ARRAY),
        (137, "nan_value_counts", "bytes"),
        (143, "referenced_data_file", "long"),
        (144, "content_offset", "string"),
    ],
)
def test_field_of_another_type_is_an_error_that_names_it(field_id: int, name: str, type_: object) -> None:
    """Found by changing single fields of manifests: each was a traceback, of NumPy, Arrow or Python."""
    record = entry(content=1)
    (record if name in {"status", "snapshot_id", "sequence_number"} else record["data_file"])[name] = value(type_)
    data = avro_bytes(changed(entry_schema(version=3), field_id, type_), [record])
    manifest = Manifest("m", len(data), 0, DELETES)
    with pytest.raises(UnreadableMetadataError, match=f"read m at byte 0: its field {field_id} is of the type"):
        list(read_delete_files(parsed(table_document()), [manifest], {"m": data}.__getitem__, {1: pa.float64()}))


LONGS = {"type": "array", "items": "long"}


def test_ids_of_columns_may_be_written_as_longs_and_are_no_wider_than_ids() -> None:
    """PyIceberg writes them as longs, those of its own data files, which have none, as well."""

    def read(ids: list[int]) -> list[object]:
        entries = [entry("a", content=2, equality_ids=[1]), entry("b", content=2, equality_ids=ids)]
        data = avro_bytes(changed(entry_schema(version=2), 135, ["null", LONGS]), entries)
        manifest = Manifest("m", len(data), 0, DELETES)
        (batch,) = read_delete_files(parsed(table_document()), [manifest], {"m": data}.__getitem__, {})
        return list(batch.files["equality_ids"].to_pylist())

    assert read([2, 1]) == [[1], [2, 1]]
    for wide in (1 << 31, -(1 << 31) - 1, 1 << 62):
        with pytest.raises(UnreadableMetadataError, match="m: entry 1: it names a column by more than 32 bits"):
            read([1, wide])


SUMMARY = {
    "type": "array",
    "items": {
        "type": "record",
        "name": "r508",
        "fields": [
            {"name": "contains_null", "type": "boolean", "field-id": 509},
            {"name": "lower_bound", "type": ["null", "bytes"], "field-id": 510},
            {"name": "upper_bound", "type": ["null", "bytes"], "field-id": 511},
        ],
    },
}
LIST_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        {"name": "manifest_path", "type": "string", "field-id": 500},
        {"name": "manifest_length", "type": "long", "field-id": 501},
        {"name": "partition_spec_id", "type": "int", "field-id": 502},
        {"name": "sequence_number", "type": ["null", "long"], "field-id": 515},
        {"name": "partitions", "type": ["null", SUMMARY], "field-id": 507},
    ],
}
LISTED = {"manifest_path": "m", "manifest_length": 1, "partition_spec_id": 0, "partitions": None}


@pytest.mark.parametrize(
    ("field_id", "name", "type_"),
    [
        (500, "manifest_path", "bytes"),
        (501, "manifest_length", "string"),
        (502, "partition_spec_id", "boolean"),
        (515, "sequence_number", "string"),
        (507, "partitions", "long"),
        (507, "partitions", ARRAY),
    ],
)
def test_field_of_a_list_of_another_type_is_an_error_that_names_it(field_id: int, name: str, type_: object) -> None:
    data = avro_bytes(changed(LIST_SCHEMA, field_id, type_), [LISTED | {name: value(type_)}])
    with pytest.raises(UnreadableMetadataError, match=f"read l at byte 0: its field {field_id} is of the type"):
        parse_manifest_list("l", data)


def summary(*, lower: str = "lower_bound", item: object = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """A manifest list's schema with summaries of partition fields, the lower bound under a name; and a row of it."""
    record = copy.deepcopy(SUMMARY["items"])
    record["fields"][1]["name"] = lower  # type: ignore[index] # a record's
    told = {"contains_null": False, lower: b"a", "upper_bound": b"b"} if item is None else None
    return changed(LIST_SCHEMA, 507, {"type": "array", "items": ["null", record]}), LISTED | {"partitions": [told]}


def test_summary_without_its_bound_is_an_error_and_not_one_of_no_values() -> None:
    """A bound that is not there says that the manifest has no value: it would be pruned, and its rows lost."""
    schema, row = summary()
    (found,) = parse_manifest_list("l", avro_bytes(schema, [row]))
    assert found.summaries == ((False, None, b"a", b"b"),)
    schema, row = summary(lower="least")
    with pytest.raises(UnreadableMetadataError, match="not a list of summaries of partition fields"):
        parse_manifest_list("l", avro_bytes(schema, [row]))


def test_summary_that_is_null_says_nothing() -> None:
    schema, row = summary(item="null")
    (found,) = parse_manifest_list("l", avro_bytes(schema, [row]))
    assert found.summaries is None


def test_count_without_a_key_is_of_no_column() -> None:
    items = [[{"key": 1, "value": 5}, {"key": None, "value": 6}], [{"key": None, "value": 7}], None]
    column = pa.array(items, pa.list_(pa.struct([("key", pa.int64()), ("value", pa.int64())])))
    assert MapColumn.of(column).numbers(1).to_pylist() == [5, None, None]


@pytest.mark.parametrize(
    ("kind", "fits", "others"),
    [
        (NUMBER, [pa.int32(), LONG], [pa.bool_(), STRING, pa.list_(LONG)]),
        (TEXT, [STRING], [BYTES, LONG]),
        (NUMBERS, [pa.list_(pa.int32()), pa.list_(LONG)], [LONG, pa.list_(STRING)]),
        (
            COUNTS,
            [pa.list_(pa.struct([("key", pa.int32()), ("value", LONG)]))],
            [
                pa.list_(pa.struct([("value", pa.int32()), ("key", LONG)])),
                pa.list_(pa.struct([("key", pa.int32()), ("value", BYTES)])),
                pa.list_(pa.struct([("key", pa.int32()), ("value", LONG), ("more", LONG)])),
                pa.list_(LONG),
            ],
        ),
        (
            VALUES,
            [pa.list_(pa.struct([("key", LONG), ("value", BYTES)]))],
            [pa.list_(pa.struct([("key", STRING), ("value", BYTES)]))],
        ),
        (SUMMARIES, [], [LONG, pa.list_(LONG), pa.list_(pa.struct([("contains_null", pa.bool_())]))]),
    ],
)
def test_types_that_hold_the_same_values_are_of_one_kind(kind: Any, fits: list[Any], others: list[Any]) -> None:  # noqa: ANN401 - a Kind
    assert all(kind[1](type_) for type_ in fits)
    assert not any(kind[1](type_) for type_ in others)


@pytest.mark.parametrize("transform", ["identity", "bucket[4]", "day", "truncate[3]"])
def test_partition_of_a_column_of_many_values_is_an_error(tmp_path: Path, transform: str) -> None:
    """A file has one value of it, and no list is one: planning ended in a traceback."""
    many = {"type": "list", "element-id": 2, "element": "int", "element-required": False}
    field = {"source-id": 1, "field-id": 1000, "transform": transform, "name": "p"}
    document = table_document(
        **{
            "schemas": [{"schema-id": 0, "fields": [{"id": 1, "name": "a", "required": False, "type": many}]}],
            "partition-specs": [{"spec-id": 0, "fields": [field]}],
        }
    )
    path = tmp_path / "v1.metadata.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    where = r"at partition-specs\[0\].fields\[0\].source-id: it is 1"
    with pytest.raises(UnreadableMetadataError, match=where):
        tamis.open(str(path))


def test_numbers_may_be_of_any_width() -> None:
    """Some writers know no int, or no long."""
    schema = entry_schema()
    for field_id, type_ in ((0, "long"), (103, "int"), (104, "int"), (134, "long")):
        schema = changed(schema, field_id, type_)
    data = avro_bytes(schema, [entry("a", rows=7)])
    manifest = Manifest("m", len(data), 0, DATA)
    (batch,) = read_data_files(parsed(table_document()), [manifest], {"m": data}.__getitem__, {})
    assert (batch.path.to_pylist(), batch.rows.to_pylist()) == (["a"], [7])
