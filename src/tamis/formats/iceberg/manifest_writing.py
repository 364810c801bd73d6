"""Manifests of new files, and manifest lists that carry the old manifests on.

Law: an entry of a manifest list that was there before is there afterwards with every field that it had, also those
that tamis does not know.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from tamis.formats.avro.container import header, parse_avro, varint
from tamis.formats.avro.records import encode_record, read_records
from tamis.formats.avro.writer import BLOCK_BYTES, avro_file, compressed
from tamis.formats.edit import NewFile
from tamis.formats.iceberg.manifest_list import DATA, DELETES
from tamis.formats.iceberg.manifest_schemas import avro_name, entry_schema, list_schema, schema_text
from tamis.formats.iceberg.metadata import SpecLayout
from tamis.formats.iceberg.single_values import encoded, plain_array
from tamis.formats.storage import Fetch

__all__ = [
    "Carried",
    "Codec",
    "Count",
    "WrittenManifest",
    "carried_entries",
    "counted",
    "entry_rows",
    "manifest_bytes",
    "manifest_list",
    "summary_of",
]

ADDED: Final = 1
BLOCK_SIZE: Final = 67_108_864
"""What version 1 demands of every file, and no reader uses."""


@dataclass(frozen=True, slots=True)
class Codec:
    """How Avro blocks are compressed: Avro's name, and the strength, None for the codec's own."""

    name: str = "deflate"
    level: int | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """So many files, of so many rows."""

    files: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True)
class WrittenManifest:
    """A manifest's bytes, and what the manifest list says of it beside its place."""

    data: bytes
    spec_id: int
    content: int = DATA
    """DATA or DELETES."""
    added: Count = Count()
    existing: Count = Count()
    deleted: Count = Count()
    min_sequence: int | None = None
    """The least sequence number of what it carries on; None if that is nothing."""
    partitions: tuple[Mapping[str, Any], ...] | None = ()


def manifest_bytes(
    files: Sequence[NewFile],
    layout: SpecLayout,
    *,
    version: int,
    schema: Mapping[str, Any],
    spec: Sequence[Mapping[str, Any]],
    snapshot_id: int,
    codec: Codec,
) -> WrittenManifest:
    """A manifest of added files of one spec, data or deletes. schema and spec are as the metadata has them."""
    partition = list(zip(layout.field_ids, (f.name for f in layout.spec.fields), layout.types, strict=True))
    written = entry_schema(version, partition)
    values = _partitions(files, layout)
    rows = entry_rows(files, values, [avro_name(name) for _, name, _ in partition], snapshot_id)
    head = {
        "schema": json.dumps(schema, separators=(",", ":"), ensure_ascii=False),
        "schema-id": str(schema.get("schema-id", 0)),
        "partition-spec": json.dumps(spec, separators=(",", ":"), ensure_ascii=False),
        "partition-spec-id": str(layout.spec.spec_id),
        "format-version": str(version),
    }
    content = DELETES if files[0].content else DATA
    if version > 1:
        head["content"] = "deletes" if content else "data"
    data = avro_file([rows], written, schema_text(written), head, codec.name, codec.level)
    summaries = tuple(summary_of(column, type_) for column, type_ in zip(values, layout.types, strict=True))
    added = Count(len(files), sum(file.rows for file in files))
    return WrittenManifest(data, layout.spec_id, content, added=added, partitions=summaries)


def _partitions(files: Sequence[NewFile], layout: SpecLayout) -> list[pa.Array]:
    """A column for each field of the spec."""
    return [plain_array([file.partition[place] for file in files], type_) for place, type_ in enumerate(layout.types)]


def entry_rows(
    files: Sequence[NewFile], partition: Sequence[pa.Array], names: Sequence[str], snapshot_id: int
) -> pa.StructArray:
    """The entries as Arrow has them, fields named as in the Avro schema."""
    count = len(files)

    def same(value: object, type_: pa.DataType) -> pa.Array:
        return pa.repeat(pa.scalar(value, type_), count)

    nothing = pa.nulls(count)
    # A struct without fields has no length of its own in Arrow: an unpartitioned spec.
    place = (
        pa.StructArray.from_arrays(list(partition), names=list(names))
        if names
        else pa.array([{}] * count, pa.struct([]))
    )
    data = {
        "content": pa.array([file.content for file in files], pa.int32()),
        "file_path": pa.array([file.path for file in files], pa.string()),
        "file_format": pa.array([file.file_format for file in files], pa.string()),
        "partition": place,
        "record_count": pa.array([file.rows for file in files], pa.int64()),
        "file_size_in_bytes": pa.array([file.size for file in files], pa.int64()),
        "block_size_in_bytes": same(BLOCK_SIZE, pa.int64()),
        "column_sizes": _maps([file.column_sizes for file in files], pa.int64()),
        "value_counts": _maps([file.value_counts for file in files], pa.int64()),
        "null_value_counts": _maps([file.null_counts for file in files], pa.int64()),
        "nan_value_counts": _maps([file.nan_counts for file in files], pa.int64()),
        "lower_bounds": _maps([file.lower for file in files], pa.binary()),
        "upper_bounds": _maps([file.upper for file in files], pa.binary()),
        "split_offsets": pa.array([list(file.split_offsets) or None for file in files], pa.list_(pa.int64())),
        "sort_order_id": pa.array([file.sort_order_id for file in files], pa.int32()),
        "referenced_data_file": pa.array([file.referenced for file in files], pa.string()),
        "content_offset": pa.array([file.content_offset for file in files], pa.int64()),
        "content_size_in_bytes": pa.array([file.content_size for file in files], pa.int64()),
    }
    data |= dict.fromkeys(("key_metadata", "equality_ids", "first_row_id"), nothing)
    entry = {
        "status": same(ADDED, pa.int32()),
        "snapshot_id": same(snapshot_id, pa.int64()),
        # Both are inherited: the commit that is not lost says which they are.
        "sequence_number": nothing,
        "file_sequence_number": nothing,
        "data_file": pa.StructArray.from_arrays(list(data.values()), names=list(data)),
    }
    return pa.StructArray.from_arrays(list(entry.values()), names=list(entry))


def _maps(maps: Sequence[Mapping[int, Any]], value: pa.DataType) -> pa.ListArray:
    """Maps as lists of pairs, by ascending key; an empty one is written as none."""
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in maps])]).astype(np.int32)
    pairs_of = [pair for one in maps for pair in sorted(one.items())]
    keys, values = ([pair[side] for pair in pairs_of] for side in (0, 1))
    pairs = pa.StructArray.from_arrays([pa.array(keys, pa.int32()), pa.array(values, value)], names=["key", "value"])
    mask = pa.array([not one for one in maps], pa.bool_())
    return pa.ListArray.from_arrays(pa.array(offsets), pairs, mask=mask)


def summary_of(column: pa.Array, type_: pa.DataType) -> dict[str, Any]:
    """What a manifest list says of a field: are there nulls, NaN, and between what all other values lie."""
    nan = False
    if isinstance(column, pa.ExtensionArray):
        column = column.storage  # a uuid's bytes, which Arrow can order
    if pt.is_floating(type_):
        is_nan = pc.fill_null(pc.is_nan(column), False)
        nan = bool(pc.any(is_nan).as_py())
        column = column.filter(pc.invert(is_nan))
    nulls = column.null_count > 0
    column = column.drop_null()
    lower = upper = None
    if len(column):
        if pt.is_temporal(type_):
            column = column.view(pa.int32() if type_.bit_width == 32 else pa.int64())  # noqa: PLR2004 - bits
        ends = pc.min_max(column.cast(pa.binary()) if pt.is_string(type_) else column).as_py()
        low, high = ends["min"], ends["max"]
        if pt.is_floating(type_):
            # -0.0 lies below 0.0 to Java and equals it to Arrow: bounds that hold for both.
            low, high = (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
        lower, upper = encoded(type_, low), encoded(type_, high)
    return {"contains_null": nulls, "contains_nan": nan, "lower_bound": lower, "upper_bound": upper}


@dataclass(frozen=True, slots=True)
class Carried:
    """The entries of an older manifest list, every field by its name, and the fields that tamis does not know."""

    entries: tuple[dict[str, Any], ...] = ()
    unknown: tuple[Mapping[str, Any], ...] = ()


def carried_entries(path: str, data: bytes) -> Carried:
    """The entries of a manifest list, as the writer's schema has them, fields renamed to those of today."""
    file = parse_avro(path, data)
    today = {part["field-id"]: part["name"] for part in list_schema(3)["fields"]}
    names = {part["name"]: today.get(part.get("field-id"), part["name"]) for part in file.schema["fields"]}
    known = set(today.values())
    unknown = tuple(part for part in file.schema["fields"] if names[part["name"]] not in known)
    entries = tuple({names[key]: value for key, value in record.items()} for record in read_records(file))
    return Carried(entries, unknown)


_COUNTS: Final = ("added", "existing", "deleted")
"""By the status of an entry: 0 is existing, 1 added, 2 deleted."""


def counted(entry: dict[str, Any], fetch: Fetch) -> dict[str, Any]:
    """The entry with all its counts. Old lists left some out, which lists of today must have: the manifest tells."""
    names = [f"{part}_{what}_count" for part in _COUNTS for what in ("files", "rows")]
    if all(entry.get(name) is not None for name in names):
        return entry
    path = entry["manifest_path"]
    records = read_records(parse_avro(path, fetch(path)))
    found = dict.fromkeys(names, 0)
    for record in records:
        part = ("existing", "added", "deleted")[record["status"]]
        found[f"{part}_files_count"] += 1
        found[f"{part}_rows_count"] += record["data_file"]["record_count"]
    return {**entry, **{name: count for name, count in found.items() if entry.get(name) is None}}


def manifest_list(
    entries: Sequence[Mapping[str, Any]],
    unknown: Sequence[Mapping[str, Any]],
    version: int,
    head: Mapping[str, str],
    codec: Codec,
) -> bytes:
    """A manifest list of these entries. What an old list did not say is 0, as the format defines it."""
    schema = list_schema(version)
    schema["fields"] += [_optional(part) for part in unknown]
    sync = secrets.token_bytes(16)
    meta = {"avro.schema": schema_text(schema), "avro.codec": codec.name, "format-version": str(version), **head}
    parts = [header(meta, sync)]
    block, count = bytearray(), 0
    for entry in entries:
        filled = _filled(entry) if version > 1 else entry
        block += encode_record(filled, schema)
        count += 1
        if len(block) >= BLOCK_BYTES:
            parts.append(_block(bytes(block), count, sync, codec))
            block, count = bytearray(), 0
    if count:
        parts.append(_block(bytes(block), count, sync, codec))
    return b"".join(parts)


def _block(data: bytes, count: int, sync: bytes, codec: Codec) -> bytes:
    packed = compressed(data, codec.name, codec.level)
    return b"".join([varint(count), varint(len(packed)), packed, sync])


def _optional(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """A field that new entries do not have."""
    type_ = part["type"]
    has_null = isinstance(type_, list) and "null" in type_
    return part if has_null else {**part, "type": ["null", type_], "default": None}


_ZEROS: Final = ("content", "sequence_number", "min_sequence_number")


def _filled(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**entry, **{name: DATA if entry.get(name) is None else entry[name] for name in _ZEROS}}
