"""The Avro schemas of manifests and manifest lists, as each format version has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as pt

__all__ = ["avro_name", "entry_schema", "list_schema", "schema_text"]

Schema = dict[str, Any]

_MAPS: Final = {
    108: ("column_sizes", 117, 118, "long", "Map of column id to total size on disk"),
    109: ("value_counts", 119, 120, "long", "Map of column id to total count, including null and NaN"),
    110: ("null_value_counts", 121, 122, "long", "Map of column id to null value count"),
    137: ("nan_value_counts", 138, 139, "long", "Map of column id to number of NaN values in the column"),
    125: ("lower_bounds", 126, 127, "bytes", "Map of column id to lower bound"),
    128: ("upper_bounds", 129, 130, "bytes", "Map of column id to upper bound"),
}


def entry_schema(version: int, partition: Sequence[tuple[int, str, pa.DataType]]) -> Schema:
    """An entry of a manifest. partition has the id, the name and the type of each field of the spec."""
    entry = [_field(0, "status", "int"), _field(1, "snapshot_id", "long", optional=True)]
    if version > 1:
        entry += (_field(id_, name, "long", optional=True) for id_, name in _SEQUENCES)
    return _record("manifest_entry", [*entry, _field(2, "data_file", _record("r2", _file(version, partition)))])


_SEQUENCES: Final = ((3, "sequence_number"), (4, "file_sequence_number"))


def _file(version: int, partition: Sequence[tuple[int, str, pa.DataType]]) -> list[Schema]:
    fields = [_field(id_, avro_name(name), _leaf(type_), optional=True) for id_, name, type_ in partition]
    for made, (_, name, _) in zip(fields, partition, strict=True):
        if made["name"] != name:
            made["iceberg-field-name"] = name
    found = [] if version == 1 else [_field(134, "content", "int", "0=data, 1=position deletes, 2=equality deletes")]
    found += [
        _field(100, "file_path", "string", "Location URI with FS scheme"),
        _field(101, "file_format", "string", "File format name: avro, orc, or parquet"),
        _field(102, "partition", _record("r102", fields)),
        _field(103, "record_count", "long", "Number of records in the file"),
        _field(104, "file_size_in_bytes", "long", "Total file size in bytes"),
    ]
    if version == 1:
        found.append(_field(105, "block_size_in_bytes", "long"))
    found += (_map(id_, *rest) for id_, rest in _MAPS.items())
    found += [
        _field(131, "key_metadata", "bytes", "Encryption key metadata blob", optional=True),
        _field(132, "split_offsets", _array("long", 133), "Splittable offsets", optional=True),
    ]
    if version > 1:
        found.append(_field(135, "equality_ids", _array("int", 136), "Equality comparison field IDs", optional=True))
    found.append(_field(140, "sort_order_id", "int", "Sort order ID", optional=True))
    if version > 2:  # noqa: PLR2004 - row lineage and deletion vectors
        found.append(_field(142, "first_row_id", "long", "The row ID of the first row of the file", optional=True))
    if version > 1:
        found.append(
            _field(143, "referenced_data_file", "string", "The data file that all deletes reference", optional=True)
        )
    if version > 2:  # noqa: PLR2004 - as above
        found += (
            _field(144, "content_offset", "long", "Where the content starts in the file", optional=True),
            _field(145, "content_size_in_bytes", "long", "The length of the content in the file", optional=True),
        )
    return found


def list_schema(version: int) -> Schema:
    """An entry of a manifest list."""
    summary = _record(
        "r508",
        [
            _field(509, "contains_null", "boolean", "True if any file has a null partition value"),
            _field(518, "contains_nan", "boolean", "True if any file has a nan partition value", optional=True),
            _field(510, "lower_bound", "bytes", "Partition lower bound for all files", optional=True),
            _field(511, "upper_bound", "bytes", "Partition upper bound for all files", optional=True),
        ],
    )
    old = version == 1
    head = [
        _field(500, "manifest_path", "string", "Location URI with FS scheme"),
        _field(501, "manifest_length", "long", "Total file size in bytes"),
        _field(502, "partition_spec_id", "int", "Spec ID used to write"),
    ]
    sequences = [
        _field(517, "content", "int", "Contents of the manifest: 0=data, 1=deletes"),
        _field(515, "sequence_number", "long", "Sequence number when the manifest was added"),
        _field(516, "min_sequence_number", "long", "Lowest sequence number in the manifest"),
    ]
    files = [
        _field(504, "added_files_count", "int", "Added entry count", optional=old),
        _field(505, "existing_files_count", "int", "Existing entry count", optional=old),
        _field(506, "deleted_files_count", "int", "Deleted entry count", optional=old),
    ]
    rows = [
        _field(512, "added_rows_count", "long", "Added rows count", optional=old),
        _field(513, "existing_rows_count", "long", "Existing rows count", optional=old),
        _field(514, "deleted_rows_count", "long", "Deleted rows count", optional=old),
    ]
    snapshot = [_field(503, "added_snapshot_id", "long", "Snapshot ID that added the manifest")]
    partitions = [_field(507, "partitions", _array(summary, 508), "Summary for each partition", optional=True)]
    key = [_field(519, "key_metadata", "bytes", "Encryption key metadata blob", optional=True)]
    row_id = [_field(520, "first_row_id", "long", "The row ID of the first row of the manifest", optional=True)]
    if old:
        return _record("manifest_file", [*head, *snapshot, *files, *partitions, *rows, *key])
    every = [*head, *sequences, *snapshot, *files, *rows, *partitions, *key]
    return _record("manifest_file", every + (row_id if version > 2 else []))  # noqa: PLR2004 - row lineage


_NAMED: Final = ("fixed", "record", "enum")


def schema_text(schema: Schema) -> str:
    """The schema as JSON, with a named type spelt out once and named after that, as Avro demands.

    ValueError if two types have one name.
    """
    seen: dict[str, Any] = {}

    def told(node: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(node, list):
            return [told(part) for part in node]
        if not isinstance(node, dict):
            return node
        if node.get("type") in _NAMED:
            if seen.get(node["name"], node) != node:
                raise ValueError(f"two types are called {node['name']!r}")
            if node["name"] in seen:
                return node["name"]
            seen[node["name"]] = node
        return {key: told(value) for key, value in node.items()}

    return json.dumps(told(schema), separators=(",", ":"), ensure_ascii=False)


def avro_name(name: str) -> str:
    """The name as Avro allows it, and Iceberg's writers spell it: what is no letter, digit or _ by its code.

    >>> avro_name("info.city"), avro_name("1st")
    ('info_x2Ecity', '_1st')
    """
    units = name.encode("utf-16-be")
    found = []
    for place in range(0, len(units), 2):
        unit = chr(int.from_bytes(units[place : place + 2], "big"))
        fine = unit == "_" or (unit.isalnum() if place else unit.isalpha())
        if fine:
            found.append(unit)
        else:
            found.append(f"_{unit}" if unit.isdigit() and unit.isascii() else f"_x{ord(unit):X}")
    return "".join(found)


def _record(name: str, fields: Sequence[Mapping[str, Any]]) -> Schema:
    return {"type": "record", "name": name, "fields": list(fields)}


def _array(items: object, element_id: int) -> Schema:
    return {"type": "array", "items": items, "element-id": element_id}


def _field(id_: int, name: str, type_: object, doc: str = "", *, optional: bool = False) -> Schema:
    found: Schema = {"name": name, "type": ["null", type_] if optional else type_}
    if doc:
        found["doc"] = doc
    if optional:
        found["default"] = None
    return found | {"field-id": id_}


def _map(id_: int, name: str, key_id: int, value_id: int, value: str, doc: str) -> Schema:
    pair = _record(f"k{key_id}_v{value_id}", [_field(key_id, "key", "int"), _field(value_id, "value", value)])
    return _field(id_, name, {"type": "array", "items": pair, "logicalType": "map"}, doc, optional=True)


def _leaf(type_: pa.DataType) -> object:
    """A partition value's type, as Iceberg's writers spell it in Avro."""
    plain = {
        pa.bool_(): "boolean",
        pa.int32(): "int",
        pa.int64(): "long",
        pa.float32(): "float",
        pa.float64(): "double",
        pa.string(): "string",
        pa.binary(): "bytes",
        pa.date32(): {"type": "int", "logicalType": "date"},
        pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
        pa.uuid(): {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"},
    }
    if type_ in plain:
        return plain[type_]
    if pt.is_timestamp(type_):
        unit = "nanos" if type_.unit == "ns" else "micros"
        return {"type": "long", "logicalType": f"timestamp-{unit}", "adjust-to-utc": type_.tz is not None}
    if pt.is_decimal128(type_):
        # The fewest bytes that hold any value of so many digits, with a sign.
        size = next(n for n in range(1, 17) if 10**type_.precision <= 1 << 8 * n - 1)
        shape = {"precision": type_.precision, "scale": type_.scale}
        return {
            "type": "fixed",
            "name": f"decimal_{type_.precision}_{type_.scale}",
            "size": size,
            "logicalType": "decimal",
            **shape,
        }
    if pt.is_fixed_size_binary(type_):
        return {"type": "fixed", "name": f"fixed_{type_.byte_width}", "size": type_.byte_width}
    raise ValueError(f"manifests hold no partition values of type {type_}")
