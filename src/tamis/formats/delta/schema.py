"""A Delta table's columns, from the schema string of its metaData action.

A column is known by its physical path, which survives a rename under column mapping; without mapping it is the path
of names. Statistics and partition values are keyed by physical names in every mode.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa

from tamis.errors import UnsupportedFormatError
from tamis.formats.delta.types import UnknownType, is_opaque, primitive
from tamis.formats.document import Document, Misfit, boolean, each, integer, mapping, may, need, text, within
from tamis.formats.errors import shown, unreadable
from tamis.predicate.names import dotted
from tamis.predicate.schema import Column, ColumnId, Schema
from tamis.predicate.type_names import type_name

__all__ = ["DeltaField", "DeltaSchema", "TypeChange", "mapping_mode", "parse_schema"]

ACTION: Final = "the table's metaData action"
DEEPEST: Final = 64
"""Most types inside one another. Each is a few calls deep, in tamis and in Arrow."""
_MODE: Final = "delta.columnMapping.mode"
_PHYSICAL: Final = "delta.columnMapping.physicalName"
_ID: Final = "delta.columnMapping.id"
_COLLATIONS: Final = "__COLLATIONS"
_WRITTEN_AS: Final = "__CHAR_VARCHAR_TYPE_STRING"
_RESTORE: Final = "Restore the log, or open an older version of the table."


@dataclass(frozen=True, slots=True)
class TypeChange:
    """A change of a column's type that older files have not followed."""

    from_type: str
    to_type: str
    field_path: str = ""
    """Where in a map or list the type changed: `element`, `value.element`; empty for the column itself."""


@dataclass(frozen=True, slots=True)
class DeltaField:
    """A column or a nested field."""

    name: str
    physical_name: str
    id: str
    """The physical path, with its parts quoted where they must be."""
    type: pa.DataType
    """With the names of today; pa.null() if values do not compare as Arrow's would: see spark_type."""
    spark_type: str = ""
    """A primitive type as the schema spells it: `string collate UNICODE_CI`, `char(3)`, `variant`."""
    field_id: int | None = None
    nullable: bool = True
    children: tuple[DeltaField, ...] = ()
    """The fields of a struct; none for what lies inside an array or a map."""
    items: tuple[DeltaField, ...] = ()
    """The element of an array, or the key and the value of a map. They have no path that SQL could name."""
    generation_expression: str | None = None
    default: str | None = None
    """What INSERT puts where it is told nothing, as SQL."""
    type_changes: tuple[TypeChange, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)

    @property
    def described(self) -> str:
        """The type as Spark's SQL has it, also where values do not compare as Arrow's would: `variant`, `char(3)`."""
        if self.children:
            return f"struct<{','.join(f'{one.name}:{one.described}' for one in self.children)}>"
        match self.items:
            case (element,):
                return f"array<{element.described}>"
            case (key, value):
                return f"map<{key.described},{value.described}>"
        return self.spark_type if pa.types.is_null(self.type) else type_name(self.type)

    def widened_from(self, name: str) -> bool:
        """Whether the column itself, not something inside it, once had that type."""
        return any(change.from_type == name and not change.field_path for change in self.type_changes)


@dataclass(frozen=True, slots=True)
class DeltaSchema:
    """The columns of one version of the table."""

    fields: tuple[DeltaField, ...]
    partition_fields: tuple[DeltaField, ...] = ()
    """In the order of the metaData action's partitionColumns."""
    _by_id: dict[ColumnId, DeltaField] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_id", {one.id: one for _, one in self.walk()})

    def walk(self) -> Iterator[tuple[tuple[str, ...], DeltaField]]:
        """Every field outside arrays and maps with its path of names, parents first."""
        yield from _walk(self.fields, ())

    def columns(self) -> Schema:
        """What a predicate may name: columns and fields of structs, known by their physical paths."""
        return Schema(tuple(Column(one.id, path, one.type) for path, one in self.walk()))

    def without_generation(self) -> DeltaSchema:
        """The same, of a table whose writers need not keep to generation expressions: then they say nothing."""
        return DeltaSchema(*(tuple(map(_not_generated, fields)) for fields in (self.fields, self.partition_fields)))

    def field(self, id_: ColumnId) -> DeltaField:
        """The field with that id; KeyError if there is none."""
        return self._by_id[id_]


def _not_generated(field: DeltaField) -> DeltaField:
    """Only a column can be generated, not what lies inside it."""
    return field if field.generation_expression is None else replace(field, generation_expression=None)


def _walk(fields: tuple[DeltaField, ...], parents: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], DeltaField]]:
    for one in fields:
        path = (*parents, one.name)
        yield path, one
        yield from _walk(one.children, path)


def mapping_mode(configuration: Mapping[str, str]) -> str:
    """How columns are known in files, as the property says: `none`, `name`, `id`, or what is not known."""
    return configuration.get(_MODE, "none").strip().lower()


def parse_schema(
    schema_string: str, configuration: Mapping[str, str], partition_columns: Sequence[str], *, path: str = ACTION
) -> DeltaSchema:
    """The schema of a metaData action; path is the file that the action stands in.

    UnreadableMetadataError says what does not fit, and where; UnsupportedFormatError which type or mode is not known.
    """
    mode = mapping_mode(configuration)
    if mode not in {"none", "name", "id"}:
        raise _unsupported(path, f"column mapping mode {mode!r}", "it has the column mapping mode")
    try:
        document = json.loads(schema_string)
    except (ValueError, RecursionError) as error:
        raise unreadable(path, f"its schemaString is not JSON ({error})", cure=_RESTORE) from error
    try:
        fields = within("schemaString", partial(_struct, mode != "none"), document)
        partition = within("partitionColumns", partial(_partition, fields), list(partition_columns))
    except UnknownType as unknown:
        raise _unsupported(path, f"type {unknown.name}", f"{unknown.place} is of the type") from unknown
    except Misfit as misfit:
        raise unreadable(path, misfit.reason, place=misfit.place or None, cure=_RESTORE) from misfit
    return DeltaSchema(fields, partition)


def _unsupported(path: str, feature: str, what: str) -> UnsupportedFormatError:
    name = feature.split(" ", 1)[1] if feature.startswith("type ") else feature.rsplit(" ", 1)[1]
    return UnsupportedFormatError(
        f"cannot read the table of {shown(path)}: {what} {name}, which this version of tamis does not know. "
        "Read the table with the engine that wrote it, or use a newer tamis.",
        path=shown(path),
        feature=feature,
    )


def _partition(fields: tuple[DeltaField, ...], value: object) -> tuple[DeltaField, ...]:
    found = each(partial(_partition_field, fields))(value)
    if len({one.id for one in found}) < len(found):
        raise Misfit("a column stands in it twice")
    return found


def _partition_field(fields: tuple[DeltaField, ...], name: object) -> DeltaField:
    """The column of that name, as it is written or, if none is, in any case, as Spark resolves it."""
    wanted = text(name)
    found = [one for one in fields if one.name == wanted] or [
        one for one in fields if one.name.lower() == wanted.lower()
    ]
    if len(found) != 1:
        raise Misfit(f"the schema has no column {dotted((wanted,))}")
    if not found[0].spark_type:
        raise Misfit(f"column {dotted((wanted,))} is a struct, an array or a map, which no table is partitioned by")
    return found[0]


@dataclass(frozen=True, slots=True)
class _Inside:
    """What stands around a type: how it is mapped, where it is, and the metadata of the column that it is in."""

    mapped: bool
    parents: tuple[str, ...]
    deep: int = DEEPEST
    metadata: Document = field(default_factory=dict)
    within: str = ""
    """The path from that column, as its metadata names it: `m.value.element`."""

    def step(self, part: str) -> _Inside:
        return replace(self, deep=self.deep - 1, within=f"{self.within}.{part}", parents=(*self.parents, part))


def _struct(mapped: bool, value: object) -> tuple[DeltaField, ...]:  # noqa: FBT001 - bound by partial
    document = mapping(value)
    if need(document, "type", text) != "struct":
        raise Misfit("the schema of a table is a struct", "type")
    return need(document, "fields", partial(_fields, _Inside(mapped, ())))


def _fields(inside: _Inside, value: object) -> tuple[DeltaField, ...]:
    """The fields of a struct; Misfit if two have one name, or one physical name, which nothing could tell apart."""
    found = each(partial(_field, inside))(value)
    seen: set[tuple[str, str]] = set()
    for place, one in enumerate(found):
        for named in (("name", one.name), ("metadata", one.physical_name)):
            if named in seen:
                raise Misfit("the name stands twice in its struct", f"[{place}].{named[0]}")
            seen.add(named)
    return found


def _field(inside: _Inside, value: object) -> DeltaField:
    document = mapping(value)
    name = need(document, "name", text)
    metadata = may(document, "metadata", mapping) or {}
    physical, field_id = name, None
    if inside.mapped:
        physical = within("metadata", lambda _: need(metadata, _PHYSICAL, text), metadata)
        field_id = within("metadata", lambda _: may(metadata, _ID, integer), metadata)
    path = (*inside.parents, physical)
    around = replace(inside, parents=path, deep=inside.deep - 1, metadata=metadata, within=name)
    typed = need(document, "type", partial(_type, around))
    return replace(
        typed,
        name=name,
        physical_name=physical,
        id=dotted(path),
        field_id=field_id,
        nullable=may(document, "nullable", boolean) is not False,
        generation_expression=_said(metadata, "delta.generationExpression"),
        default=_said(metadata, "CURRENT_DEFAULT"),
        type_changes=within("metadata", lambda _: may(metadata, "delta.typeChanges", each(_change)) or (), metadata),
        metadata=dict(metadata),
    )


def _said(metadata: Document, key: str) -> str | None:
    return within("metadata", lambda _: may(metadata, key, text), metadata)


def _change(value: object) -> TypeChange:
    document = mapping(value)
    return TypeChange(
        need(document, "fromType", text), need(document, "toType", text), may(document, "fieldPath", text) or ""
    )


def _type(inside: _Inside, value: object) -> DeltaField:
    """A field that has the type, and what is nested in it, but no name yet."""
    if inside.deep <= 0:
        raise Misfit(f"types are nested more than {DEEPEST} deep")
    if isinstance(value, str):
        return _leaf(inside, text(value))
    document = mapping(value)
    match need(document, "type", text):
        case "struct":
            children = need(document, "fields", partial(_fields, inside))
            type_ = pa.struct([pa.field(one.name, one.type) for one in children])
            return replace(_NAMELESS, type=type_, children=children)
        case "array":
            element = need(document, "elementType", partial(_item, inside, "element"))
            return replace(_NAMELESS, type=pa.list_(element.type), items=(element,))
        case "map":
            key = need(document, "keyType", partial(_item, inside, "key"))
            item = need(document, "valueType", partial(_item, inside, "value"))
            # Arrow has no map with keys of a type that it does not know: then the map is opaque as well.
            type_ = pa.null() if pa.types.is_null(key.type) else pa.map_(key.type, item.type)
            return replace(_NAMELESS, type=type_, items=(key, item))
        case "udt":
            return need(document, "sqlType", partial(_type, replace(inside, deep=inside.deep - 1)))
        case other:
            raise UnknownType(other, "type")


def _item(inside: _Inside, part: str, value: object) -> DeltaField:
    around = inside.step(part)
    return replace(_type(around, value), name=part, physical_name=part, id=dotted(around.parents))


def _leaf(inside: _Inside, name: str) -> DeltaField:
    collations = inside.metadata.get(_COLLATIONS)
    collation = collations.get(inside.within) if isinstance(collations, Mapping) else None
    written_as = inside.metadata.get(_WRITTEN_AS)
    plain, _, inline = name.partition(" collate ")
    collation = inline or collation
    type_ = primitive(plain if inline and plain == "string" else name)
    if not pa.types.is_string(type_):
        return replace(_NAMELESS, type=type_, spark_type=name)
    spark_type = written_as if isinstance(written_as, str) and "." not in inside.within else "string"
    if isinstance(collation, str):
        spark_type = f"{spark_type} collate {collation.rsplit('.', 1)[-1]}"
    opaque = is_opaque(str(collation) if collation is not None else None, str(written_as) if written_as else None)
    return replace(_NAMELESS, type=pa.null() if opaque else type_, spark_type=spark_type)


_NAMELESS: Final = DeltaField("", "", "", pa.null())
