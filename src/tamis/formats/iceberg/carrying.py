"""Manifests written anew, as they lose files or become one: what goes is marked deleted, what stays is carried on.

An entry that stays keeps all that was said of it: statistics, split offsets, keys of encryption, the sequence numbers
and the first row id that it had inherited, and fields of later versions that tamis does not know. It is decoded and
encoded again in whole columns. Law: nothing is left out in silence; what cannot be carried is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import CommitRefused, UnreadableMetadataError
from tamis.formats.avro.container import AvroFile
from tamis.formats.avro.writer import avro_file
from tamis.formats.errors import shown
from tamis.formats.iceberg import entries as e
from tamis.formats.iceberg.entries import Entries, whole_entries
from tamis.formats.iceberg.manifest_list import DATA, Manifest
from tamis.formats.iceberg.manifest_schemas import Schema, entry_schema, schema_text
from tamis.formats.iceberg.manifest_writing import BLOCK_SIZE, Codec, Count, WrittenManifest, summary_of
from tamis.formats.iceberg.metadata import SpecLayout
from tamis.predicate.arrays import Mask
from tamis.sieve.partition_keys import distinct, plain_values

__all__ = ["Gone", "Thinned", "merged", "thinned"]

EXISTING: Final = 0
DELETED: Final = 2
DATA_FILE: Final = 2
PARTITION: Final = 102
_NOT_WRITTEN: Final = frozenset({105, 106, 107})
"""block_size_in_bytes, file_ordinal and sort_columns: the format asks writers of today to leave them out."""
_LINEAGE: Final = 2
"""The last version without row ids."""


@dataclass(frozen=True, slots=True)
class Gone:
    """What left with one manifest: a row for each file, as the summary of a snapshot counts them."""

    files: pa.Table
    """content, path, rows, size, offset and content_size."""
    partitions: frozenset[tuple[int, str]]
    """Spec and values of every partition that lost a file."""


@dataclass(frozen=True, slots=True)
class Thinned:
    """A manifest without some of its files."""

    manifest: WrittenManifest
    gone: Gone


def thinned(  # noqa: PLR0913 - all that a manifest is made of
    name: str,
    manifest: Manifest,
    data: bytes,
    layout: SpecLayout,
    leaves: Callable[[Entries], Mask],
    *,
    version: int,
    snapshot_id: int,
    codec: Codec,
) -> Thinned | None:
    """The manifest without the entries that leave; None if none of them does. name is the table's."""
    ((entries, file),) = _whole(name, [manifest], layout, [data])
    leaving = leaves(entries)
    if not leaving.any():
        return None
    shape = _Shape.of(name, manifest, file, version, snapshot_id)
    made = _written_anew(name, manifest, [(entries, leaving)], shape, codec)
    return Thinned(made, _gone(entries, leaving))


def merged(
    name: str,
    manifests: Sequence[Manifest],
    data: Sequence[bytes],
    layout: SpecLayout,
    *,
    version: int,
    snapshot_id: int,
    codec: Codec,
) -> WrittenManifest:
    """One manifest of all live entries of these, which are of one spec and hold data or deletes alike."""
    if None in layout.types:
        raise _refused(name, manifests[0], "nobody can sum up values of a transform that this version does not know")
    found = _whole(name, manifests, layout, data)
    shapes = [_Shape.of(name, manifests[0], file, version, snapshot_id) for _, file in found]
    if any(shape.schema != shapes[0].schema or shape.unknown != shapes[0].unknown for shape in shapes):
        raise _refused(name, manifests[0], "another has other fields")
    stay = [(entries, np.zeros(entries.count, np.bool_)) for entries, _ in found]
    return _written_anew(name, manifests[0], stay, shapes[0], codec)


def _whole(
    name: str, manifests: Sequence[Manifest], layout: SpecLayout, data: Sequence[bytes]
) -> list[tuple[Entries, AvroFile]]:
    try:
        return whole_entries(manifests, layout, data)
    except UnreadableMetadataError as error:
        if "a type of its own" not in str(error):
            raise
        raise _refused(name, manifests[0], error.reason) from error


def _written_anew(
    name: str, manifest: Manifest, parts: Sequence[tuple[Entries, Mask]], shape: _Shape, codec: Codec
) -> WrittenManifest:
    """A manifest of these entries, of which some leave. manifest is one of those that they are from."""
    layout = parts[0][0].layout
    rows = [_rows(name, manifest, entries, leaving, shape) for entries, leaving in parts]
    try:
        packed = avro_file(rows, shape.schema, schema_text(shape.schema), shape.head, codec.name, codec.level)
    except ValueError as error:
        raise _refused(name, manifest, str(error)) from error
    existing, deleted = (_count(parts, stay=stay) for stay in (True, False))
    sequences = pa.chunked_array(
        [entries.inherited["sequence_number"].filter(pa.array(~leaving)) for entries, leaving in parts], pa.int64()
    )
    return WrittenManifest(
        packed,
        layout.spec_id,
        content=manifest.content,
        existing=existing,
        deleted=deleted,
        min_sequence=pc.min(sequences).as_py(),
        partitions=_summaries(manifest, layout, [_values(name, manifest, entries) for entries, _ in parts]),
    )


def _count(parts: Sequence[tuple[Entries, Mask]], *, stay: bool) -> Count:
    files = rows = 0
    for entries, leaving in parts:
        mine = ~leaving if stay else leaving
        records = np.asarray(entries.columns[e.RECORDS].to_numpy(zero_copy_only=False), np.int64)
        files, rows = files + int(mine.sum()), rows + int(records[mine].sum())
    return Count(files, rows)


def _values(name: str, manifest: Manifest, entries: Entries) -> pa.StructArray | None:
    values, undecoded = entries.partition()
    if undecoded:
        raise _refused(name, manifest, f"a partition value cannot be read: {undecoded[0].text}")
    return values


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the new manifest looks like."""

    schema: Schema
    unknown: Mapping[str, tuple[int, ...]]
    """Fields that today's format does not have, by name, and where they stand."""
    head: Mapping[str, str]
    """What the file's head says, as the old one does."""
    version: int
    snapshot_id: int

    @classmethod
    def of(cls, name: str, manifest: Manifest, file: AvroFile, version: int, snapshot_id: int) -> _Shape:
        """Like the old one, in today's version of the format."""
        schema, unknown = _schemas(name, manifest, file, version)
        head = {key: value for key, value in file.metadata.items() if not key.startswith("avro.")}
        head |= {"partition-spec-id": str(manifest.spec_id), "format-version": str(version)}
        if version > 1:
            head["content"] = "data" if manifest.content == DATA else "deletes"
        return cls(schema, unknown, head, version, snapshot_id)


def _schemas(
    name: str, manifest: Manifest, file: AvroFile, version: int
) -> tuple[Schema, dict[str, tuple[int, ...]]]:
    """Today's schema with the writer's own partition record, and whatever else the writer has."""
    named: dict[str, Any] = {}
    theirs = _spelt(file.schema, named)
    inside = next((one for one in theirs["fields"] if _id(one) == DATA_FILE), None)
    if inside is None or not isinstance(inside["type"], dict):
        raise _refused(name, manifest, "its entries have no file")
    ours = entry_schema(version, ())
    our_file = next(one for one in ours["fields"] if one["name"] == "data_file")["type"]
    their_partition = next((one for one in inside["type"]["fields"] if _id(one) == PARTITION), None)
    if their_partition is not None:
        place = next(one for one in our_file["fields"] if one["name"] == "partition")
        place["type"] = {**their_partition["type"], "name": "r102"}
    unknown: dict[str, tuple[int, ...]] = {}
    for mine, listed, above in ((ours, theirs, ()), (our_file, inside["type"], (DATA_FILE,))):
        known = {one["field-id"] for one in mine["fields"]} | ({2} if not above else set()) | _NOT_WRITTEN
        names = {one["name"] for one in mine["fields"]}
        for one in listed["fields"]:
            if _id(one) in known:
                continue
            if isinstance(one["type"], dict) and one["type"].get("type") == "record":
                raise _refused(
                    name, manifest, f"its field {one['name']!r} is a record that this version does not know"
                )
            if one["name"] in names:
                raise _refused(name, manifest, f"its field {one['name']!r} is not the one that this version knows")
            mine["fields"].append(one)
            unknown[one["name"]] = above
    return ours, unknown


def _id(field: Mapping[str, Any]) -> int | None:
    found = field.get("field-id", e.ALL_NAMES.get(str(field["name"])))
    return None if found is None else int(found)


def _spelt(node: Any, named: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """The schema with every reference to a named type replaced by the type."""
    match node:
        case str(reference) if reference in named:
            return named[reference]
        case list():
            return [_spelt(part, named) for part in node]
        case {"type": "record" | "fixed" | "enum", "name": str(name)}:
            found = {**node}
            if "fields" in node:
                found["fields"] = [{**one, "type": _spelt(one["type"], named)} for one in node["fields"]]
            named[name] = found
            return found
        case {"type": "array", "items": items}:
            return {**node, "items": _spelt(items, named)}
        case {"type": (dict() | list()) as inside}:
            return {**node, "type": _spelt(inside, named)}
    return node


def _rows(name: str, manifest: Manifest, entries: Entries, leaving: Mask, shape: _Shape) -> pa.StructArray:
    """The entries by the schema: what goes is deleted by this snapshot, what stays has all that it inherited."""
    inherited, gone = entries.inherited, pa.array(leaving)
    mine = pa.scalar(shape.snapshot_id, pa.int64())
    top = {
        "status": pa.array(np.where(leaving, DELETED, EXISTING), pa.int32()),
        "snapshot_id": pc.if_else(gone, mine, inherited["snapshot_id"]),
        "sequence_number": inherited["sequence_number"],
        "file_sequence_number": inherited["file_sequence_number"],
    }
    if shape.version > 1 and inherited["sequence_number"].null_count:
        raise _refused(name, manifest, "an entry has no sequence number")
    set_: dict[str, pa.Array] = {}
    if shape.version > _LINEAGE:
        set_["first_row_id"] = inherited.get("first_row_id", pa.nulls(entries.count, pa.int64()))
    file = next(one for one in shape.schema["fields"] if one["name"] == "data_file")["type"]
    columns = []
    for one in file["fields"]:
        if one["name"] == "partition":
            columns.append(_partition(one["type"]["fields"], entries))
        elif one["name"] in set_:
            columns.append(set_[one["name"]])
        else:
            columns.append(_column(entries, one, shape.unknown.get(one["name"])))
    top["data_file"] = pa.StructArray.from_arrays(columns, names=[one["name"] for one in file["fields"]])
    every = [top[one["name"]] if one["name"] in top else _column(entries, one, ()) for one in shape.schema["fields"]]
    return pa.StructArray.from_arrays(every, names=[one["name"] for one in shape.schema["fields"]])


_FILLED: Final = {"content": (0, pa.int32()), "block_size_in_bytes": (BLOCK_SIZE, pa.int64())}
"""What version 1 did not say of a file, or what no writer of today says any more."""


def _column(entries: Entries, field: Mapping[str, Any], above: tuple[int, ...] | None) -> pa.Array:
    """A column that is carried as it is; null throughout if the writer had it not."""
    parent = (DATA_FILE,) if above is None else above
    path = next(
        (one.path for one in entries.written.values() if one.path[:-1] == parent and _same(one.path[-1], field, one)),
        None,
    )
    column = None if path is None else entries.columns.get(path)
    filled = _FILLED.get(str(field["name"]))
    fill = None if filled is None else pa.scalar(*filled)  # made here: the first scalar of a process loads pandas
    if column is None:
        return pa.nulls(entries.count) if fill is None else pa.repeat(fill, entries.count)
    return _renamed(column, field["type"]) if fill is None else column.fill_null(fill)


def _same(id_: int, field: Mapping[str, Any], written: Any) -> bool:  # noqa: ANN401 - an AvroColumn
    known = _id(field)
    return bool(id_ == known) if known is not None else bool(written.written_as == field["name"])


def _renamed(column: pa.Array, type_: Any) -> pa.Array:  # noqa: ANN401 - JSON
    """Maps as lists of pairs, whose parts are called as the schema calls them."""
    match [part for part in (type_ if isinstance(type_, list) else [type_]) if part != "null"]:
        case [{"type": "array", "items": {"type": "record", "fields": fields}}]:
            names = [one["name"] for one in fields]
            inside = column.type.value_type
            if [inside.field(place).name for place in range(inside.num_fields)] != names:
                parts = [inside.field(place).with_name(name) for place, name in enumerate(names)]
                return column.cast(pa.list_(pa.struct(parts)))
    return column


def _partition(fields: list[Mapping[str, Any]], entries: Entries) -> pa.Array:
    """The partition values as their writer wrote them."""
    if not fields:
        return pa.array([{}] * entries.count, pa.struct([]))
    above = (DATA_FILE, PARTITION)
    columns = [_column(entries, one, above) for one in fields]
    return pa.StructArray.from_arrays(columns, names=[one["name"] for one in fields])


def _summaries(
    manifest: Manifest, layout: SpecLayout, values: Sequence[pa.StructArray | None]
) -> tuple[Mapping[str, Any], ...] | None:
    """What the list says of each field; of one that nobody can read, what it said before, which was of more files."""
    found = []
    for place, type_ in enumerate(layout.types):
        if type_ is None:
            if manifest.summaries is None or len(manifest.summaries) != len(layout.types):
                return None
            names = ("contains_null", "contains_nan", "lower_bound", "upper_bound")
            found.append(dict(zip(names, manifest.summaries[place], strict=True)))
        else:
            columns = [one.field(place) for one in values if one is not None]
            found.append(summary_of(pa.chunked_array(columns, type_).combine_chunks(), type_))
    return tuple(found)


def _gone(entries: Entries, leaving: Mask) -> Gone:
    mask = pa.array(leaving)
    values, _ = entries.partition()
    columns = {
        "content": entries.column(e.CONTENT, pa.int32()).fill_null(0),
        "path": entries.columns[e.FILE_PATH],
        "rows": entries.columns[e.RECORDS],
        "size": entries.columns[e.SIZE],
        "offset": entries.column(e.OFFSET, pa.int64()),
        "content_size": entries.column(e.CONTENT_SIZE, pa.int64()),
    }
    files = pa.table({key: column.filter(mask) for key, column in columns.items()})
    keys = {()} if values is None else _keys(values.filter(mask))
    return Gone(files, frozenset((entries.layout.spec_id, repr(key)) for key in keys))


def _keys(values: pa.StructArray) -> set[tuple[object, ...]]:
    plain = [child.storage if isinstance(child, pa.ExtensionArray) else child for child in values.flatten()]
    _, first = distinct(plain, len(values))
    return set(zip(*(plain_values(child.take(pa.array(first))) for child in plain), strict=True))


def _refused(name: str, manifest: Manifest, why: str) -> CommitRefused:
    return CommitRefused(
        f"cannot commit to {name}: its manifest {shown(manifest.path)} cannot be written anew without loss ({why}). "
        "Change the table with the engine that wrote the manifest, or with a newer version.",
        table=name,
        feature="a manifest that cannot be carried on",
    )
