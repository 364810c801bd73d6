"""One partition type over all specs of a table, as Spark users know it from the `_partition` column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import pyarrow as pa

from tamis.formats.iceberg.metadata import TableMetadata
from tamis.sieve.outcome import Outcome

__all__ = ["shown_values", "unified_partitions"]


@dataclass(frozen=True, slots=True)
class _Slot:
    """A field of the unified type. Version 1 counts ids anew in each spec: an id alone does not name a field."""

    field_id: int
    source: object
    transform: str


def unified_partitions(metadata: TableMetadata, outcomes: Sequence[Outcome]) -> pa.ChunkedArray:
    """The partition of each kept file: a struct with a field for each partition field of the table's specs."""
    slots = _slots(metadata)
    type_ = pa.struct([pa.field(name, field_type) for name, field_type in slots.values()])
    chunks = []
    for outcome in outcomes:
        count = int(outcome.kept.sum())
        if not slots:
            chunks.append(pa.array([{}] * count, type_))
            continue
        children = _children(metadata, outcome)
        arrays = [
            children[slot].cast(field_type) if slot in children else pa.nulls(count, field_type)
            for slot, (_, field_type) in slots.items()
        ]
        chunks.append(pa.StructArray.from_arrays(arrays, fields=list(type_)))
    return pa.chunked_array(chunks, type_)


def _slots(metadata: TableMetadata) -> dict[_Slot, tuple[str, pa.DataType]]:
    """The fields in the order of their ids, each with its newest name; none of a column that is gone."""
    there = metadata.schema.types
    newest: dict[_Slot, tuple[str, pa.DataType]] = {}
    for layout in sorted(metadata.specs, key=lambda layout: layout.spec_id):
        for field, field_id, field_type in zip(layout.spec.fields, layout.field_ids, layout.types, strict=True):
            if field_type is not None and field.transform.name != "void" and field.source in there:
                newest[_Slot(field_id, field.source, str(field.transform))] = (
                    field.name,
                    pa.string() if field_type == pa.uuid() else _storage(field_type),
                )
    names: set[str] = set()
    slots = {}
    for slot in sorted(newest, key=lambda slot: slot.field_id):
        name, field_type = newest[slot]
        unique = name if name not in names else f"{name}_{slot.field_id}"
        names.add(unique)
        slots[slot] = (unique, field_type)
    return slots


def _children(metadata: TableMetadata, outcome: Outcome) -> dict[_Slot, pa.Array]:
    batch = outcome.batch
    if batch.spec_id is None or batch.partition is None:
        return {}
    layout = metadata.layout(batch.spec_id)
    kept = pa.array(outcome.kept)
    children = {}
    for position, (field, field_id) in enumerate(zip(layout.spec.fields, layout.field_ids, strict=True)):
        child = shown_values(batch.partition.field(position).filter(kept))
        children[_Slot(field_id, field.source, str(field.transform))] = child
    return children


def shown_values(array: pa.Array) -> pa.Array:
    """Partition values as users see them: UUIDs are text."""
    if array.type == pa.uuid():
        raw = array.storage.to_pylist()
        return pa.array([None if value is None else str(UUID(bytes=value)) for value in raw], pa.string())
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _storage(type_: pa.DataType) -> pa.DataType:
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_
