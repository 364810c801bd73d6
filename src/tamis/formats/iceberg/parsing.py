"""A table's metadata file to values: every field that is read is checked, and what is wrong is named by its place.

What can be seen to be corrupt is an error here, at the door: ids that stand twice or lead nowhere, a snapshot without
manifests, a main branch that is not the current snapshot. Java's reader refuses the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, Literal

import pyarrow as pa
from pyarrow import types as pt

from tamis.errors import UnsupportedFormatError
from tamis.formats.errors import shown
from tamis.formats.iceberg.document import (
    Document,
    Misfit,
    damaged,
    each,
    integer,
    location,
    long,
    mapping,
    may,
    need,
    read_document,
    text,
    within,
)
from tamis.formats.iceberg.metadata import MAIN, Ref, Snapshot, SpecLayout, TableMetadata
from tamis.formats.iceberg.types import TableSchema, parse_schema
from tamis.sieve.partitions import PartitionField, PartitionSpec
from tamis.sieve.transforms import Transform, parse_transform

__all__ = ["FIRST_PARTITION_ID", "parse_document", "parse_metadata"]

NEWEST_VERSION: Final = 3
FIRST_PARTITION_ID: Final = 1000
"""Where version 1 counts partition field ids from, in every spec anew."""
NO_SNAPSHOT: Final = -1
"""How old writers say that a table has no current snapshot."""


def parse_metadata(data: bytes, path: str) -> TableMetadata:
    """The metadata file's content, plain or gzipped. UnreadableMetadataError if it is damaged, v4 is refused."""
    return parse_document(read_document(data, path), path)


def parse_document(document: Document, path: str) -> TableMetadata:
    """The table that a metadata file's JSON describes; errors as of parse_metadata."""
    try:
        version = need(document, "format-version", integer)
        if not 1 <= version <= NEWEST_VERSION:
            raise UnsupportedFormatError(
                f"{shown(path)} has format version {version}; tamis knows 1 to {NEWEST_VERSION}. "
                "Use a newer tamis, or keep the table at a version that it knows.",
                path=shown(path),
                feature=f"format version {version}",
            )
        return _table(document, version, path)
    except Misfit as misfit:
        raise damaged(path, misfit) from misfit


def _table(document: Document, version: int, path: str) -> TableMetadata:
    schemas, current_schema = _schemas(document, version)
    specs, default_spec = _specs(document, version, _types(schemas, current_schema))
    snapshots = may(document, "snapshots", each(_snapshot)) or ()
    _distinct((snapshot.id for snapshot in snapshots), "snapshots[{}].snapshot-id")
    current = may(document, "current-snapshot-id", long)
    current = None if current == NO_SNAPSHOT else current
    return TableMetadata(
        path=path,
        format_version=version,
        uuid=may(document, "table-uuid", text),
        location=need(document, "location", location),
        schemas=schemas,
        current_schema_id=current_schema,
        specs=specs,
        default_spec_id=default_spec,
        snapshots=snapshots,
        current_snapshot_id=current,
        refs=_refs(document, current, frozenset(snapshot.id for snapshot in snapshots)),
        snapshot_log=may(document, "snapshot-log", each(_logged)) or (),
        properties=may(document, "properties", _properties) or {},
        last_updated_ms=may(document, "last-updated-ms", long),
        last_sequence_number=may(document, "last-sequence-number", long) or 0,
        next_row_id=may(document, "next-row-id", long),
    )


def _schemas(document: Document, version: int) -> tuple[tuple[TableSchema, ...], int]:
    """All schemas, and the current one's id. The oldest tables have a single one, under a name of its own."""
    if version == 1 and document.get("schemas") is None:
        only = need(document, "schema", parse_schema)
        return (only,), only.schema_id
    schemas = need(document, "schemas", each(partial(parse_schema, numbered=True)))
    _distinct((schema.schema_id for schema in schemas), "schemas[{}].schema-id")
    current = need(document, "current-schema-id", integer)
    _known(current, (schema.schema_id for schema in schemas), "current-schema-id", "schemas")
    return schemas, current


def _types(schemas: Sequence[TableSchema], current: int) -> dict[int, pa.DataType]:
    """The type of every column that there is or was."""
    types: dict[int, pa.DataType] = {}
    # The newest schema that knows a column says its type: promotions only widen. The current one has the last word.
    for schema in sorted(schemas, key=lambda schema: (schema.schema_id == current, schema.schema_id)):
        types |= schema.types
    return types


def _specs(document: Document, version: int, types: dict[int, pa.DataType]) -> tuple[tuple[SpecLayout, ...], int]:
    """All specs, and the default one's id; of the oldest tables the single one, of id 0."""
    fields = partial(_spec_fields, version=version)
    if version == 1 and document.get("partition-specs") is None:
        return (_layout(0, need(document, "partition-spec", fields), types),), 0

    def spec(value: object) -> SpecLayout:
        document = mapping(value)
        return _layout(need(document, "spec-id", integer), need(document, "fields", fields), types)

    specs = need(document, "partition-specs", each(spec))
    _distinct((layout.spec_id for layout in specs), "partition-specs[{}].spec-id")
    default = need(document, "default-spec-id", integer)
    _known(default, (layout.spec_id for layout in specs), "default-spec-id", "partition-specs")
    return specs, default


_SpecField = tuple[str, Transform, tuple[int, ...], int | None]


def _spec_fields(value: object, *, version: int) -> tuple[tuple[str, Transform, tuple[int, ...], int], ...]:
    """Name, transform, sources and id of each field of a spec."""
    fields = each(_spec_field)(value)
    ids = [field[3] for field in fields]
    if version == 1 and not any(id_ is not None for id_ in ids):
        ids = list(range(FIRST_PARTITION_ID, FIRST_PARTITION_ID + len(ids)))
    for position, id_ in enumerate(ids):
        if id_ is None:
            raise Misfit("it is missing", f"[{position}].field-id")
    field_ids = [id_ for id_ in ids if id_ is not None]
    _distinct(field_ids, "[{}].field-id")
    return tuple((*field[:3], id_) for field, id_ in zip(fields, field_ids, strict=True))


def _spec_field(value: object) -> _SpecField:
    document = mapping(value)
    sources = may(document, "source-ids", each(integer)) or (need(document, "source-id", integer),)
    transform = parse_transform(need(document, "transform", text))
    return need(document, "name", text), transform, sources, may(document, "field-id", integer)


def _layout(
    spec_id: int, parsed: Iterable[tuple[str, Transform, tuple[int, ...], int]], types: dict[int, pa.DataType]
) -> SpecLayout:
    fields, field_ids, results = [], [], []
    for position, (name, transform, sources, field_id) in enumerate(parsed):
        source = sources[0] if len(sources) == 1 and sources[0] in types else None
        if source is not None and pt.is_nested(types[source]):
            raise Misfit(f"it is {source}, a column of the type {types[source]}", f"fields[{position}].source-id")
        fields.append(PartitionField(name, source, transform))
        field_ids.append(field_id)
        results.append(_result(transform, None if source is None else types[source]))
    return SpecLayout(PartitionSpec(spec_id, tuple(fields)), tuple(field_ids), tuple(results))


def _snapshot(value: object) -> Snapshot:
    document = mapping(value)
    id_ = need(document, "snapshot-id", long)
    if id_ == NO_SNAPSHOT:
        raise Misfit(f"it is {NO_SNAPSHOT}, which means no snapshot", "snapshot-id")
    sequence = may(document, "sequence-number", long) or 0
    listed = may(document, "manifest-list", location)
    manifests = may(document, "manifests", each(location))
    # Snapshots of version 1 may name their manifests, also where the table is of a later version by now.
    if listed is None and (manifests is None or sequence > 0):
        raise Misfit("it is missing, and nothing else says which files the snapshot has", "manifest-list")
    return Snapshot(
        id=id_,
        timestamp_ms=need(document, "timestamp-ms", long),
        parent_id=may(document, "parent-snapshot-id", long),
        sequence_number=sequence,
        manifest_list=listed,
        manifests=manifests or (),
        schema_id=may(document, "schema-id", integer),
        first_row_id=may(document, "first-row-id", long),
        summary=may(document, "summary", _summary),
    )


def _summary(value: object) -> Document:
    summary = mapping(value)
    may(summary, "operation", text)  # the one that is read
    return summary


def _refs(document: Document, current: int | None, snapshots: frozenset[int]) -> tuple[Ref, ...]:
    """Branches and tags, the main branch among them if the table has a current snapshot."""
    if current is not None:
        _known(current, snapshots, "current-snapshot-id", "snapshots")
    refs = may(document, "refs", partial(_named_refs, snapshots)) or {}
    main = refs.get(MAIN)
    if main is not None and main.snapshot_id != current:
        says = "there is none" if current is None else f"it is {current}"
        raise Misfit(
            f"it is {main.snapshot_id}, but of the current snapshot current-snapshot-id says that {says}",
            f"refs.{MAIN}.snapshot-id",
        )
    if current is not None:
        refs.setdefault(MAIN, Ref(MAIN, current, "branch"))
    return tuple(refs.values())


def _named_refs(snapshots: frozenset[int], value: object) -> dict[str, Ref]:
    return {name: within(name, partial(_ref, name, snapshots), ref) for name, ref in mapping(value).items()}


def _ref(name: str, snapshots: frozenset[int], value: object) -> Ref:
    document = mapping(value)
    ref_types: dict[str, Literal["branch", "tag"]] = {"branch": "branch", "tag": "tag"}
    ref_type = need(document, "type", text)
    if ref_type.lower() not in ref_types:
        raise Misfit("it is neither branch nor tag", "type")
    snapshot_id = need(document, "snapshot-id", long)
    _known(snapshot_id, snapshots, "snapshot-id", "snapshots")
    return Ref(text(name), snapshot_id, ref_types[ref_type.lower()])


def _logged(value: object) -> tuple[int, int]:
    entry = mapping(value)
    return need(entry, "timestamp-ms", long), need(entry, "snapshot-id", long)


def _properties(value: object) -> dict[str, str]:
    """A property of null is one that is not set."""
    return {text(key): within(key, text, setting) for key, setting in mapping(value).items() if setting is not None}


def _distinct(ids: Iterable[int], place: str) -> None:
    """Misfit if an id stands twice: which of the two is meant?"""
    seen: set[int] = set()
    for position, id_ in enumerate(ids):
        if id_ in seen:
            raise Misfit(f"{id_} stands there twice", place.format(position))
        seen.add(id_)


def _known(id_: int, ids: Iterable[int], place: str, where: str) -> None:
    if id_ not in set(ids):
        raise Misfit(f"it is {id_}, which is none of the table's {where}", place)


def _result(transform: Transform, source: pa.DataType | None) -> pa.DataType | None:
    """The type of a transform's values; None if that cannot be known."""
    match transform.name:
        case "bucket" | "year" | "month" | "hour":
            return pa.int32()
        case "day":
            return pa.date32()
        case "identity" | "truncate" | "void":
            return None if source is None or pa.types.is_null(source) else source
    return None
