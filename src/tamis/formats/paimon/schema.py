"""A Paimon table's columns, from its schema files: each file of the table says by which of them it was written.

A column is known by its field id, which survives a rename. Statistics of a file follow the schema of its own id.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import pyarrow as pa

from tamis.errors import UnsupportedFormatError
from tamis.formats.document import Document, Misfit, each, integer, long, mapping, may, need, text
from tamis.formats.errors import shown, unreadable
from tamis.formats.paimon.types import UnknownType, atomic
from tamis.predicate.names import dotted
from tamis.predicate.schema import Column, ColumnId, Schema

__all__ = ["PaimonField", "PaimonSchema", "parse_schema"]

DEEPEST: Final = 64
"""Most types inside one another. Each is a few calls deep, in tamis and in Arrow."""
NEWEST_VERSION: Final = 3
_BUCKET_WAS_ONE: Final = 1
"""Up to this version of schema files a table that does not say has one bucket; later it has none."""
_ORC_WAS_DEFAULT: Final = 2
"""Up to this version data files of a table that does not say are ORC; later Parquet."""


@dataclass(frozen=True, slots=True)
class PaimonField:
    """A column or a nested field, as one schema has it."""

    id: int
    name: str
    type: pa.DataType
    """pa.null() if values do not compare as Arrow's would: see paimon_type."""
    paimon_type: str = ""
    """A type without others inside it, as the schema spells it; empty for rows, arrays and maps."""
    nullable: bool = True
    precision: int | None = None
    """Of a timestamp, a time or a decimal."""
    length: int | None = None
    """Most characters or bytes; None if there is no limit."""
    children: tuple[PaimonField, ...] = ()
    """The fields of a row; none for what lies inside an array or a map."""
    items: tuple[PaimonField, ...] = ()
    """The element of an array, or the key and the value of a map. They have no path that SQL could name."""
    default: str | None = None
    """What writers put where they are told nothing."""


@dataclass(frozen=True, slots=True)
class PaimonSchema:
    """One schema of the table."""

    id: int
    fields: tuple[PaimonField, ...]
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    comment: str | None = None
    _by_id: dict[ColumnId, PaimonField] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_id", {one.id: one for _, one in self.walk()})

    def walk(self) -> Iterator[tuple[tuple[str, ...], PaimonField]]:
        """Every field outside arrays and maps with its path of names, parents first."""
        yield from _walk(self.fields, ())

    def columns(self) -> Schema:
        """What a predicate may name: columns and fields of rows, known by their ids."""
        return Schema(tuple(Column(one.id, path, one.type) for path, one in self.walk()))

    def field(self, id_: ColumnId) -> PaimonField | None:
        """The field with that id; None if this schema has none."""
        return self._by_id.get(id_)

    def named(self, name: str) -> PaimonField:
        """The column of that name; KeyError if there is none."""
        for one in self.fields:
            if one.name == name:
                return one
        raise KeyError(name)

    def has_read_default(self, field: PaimonField) -> bool:
        """Whether older readers give rows that have NULL a default: then what was written is not what is read."""
        return f"fields.{field.name}.default-value" in self.options

    def with_options(self, options: Mapping[str, str]) -> PaimonSchema:
        """The same columns, with these options."""
        return replace(self, options=options)

    @property
    def partition_fields(self) -> tuple[PaimonField, ...]:
        """In the order in which partition values have them."""
        return tuple(map(self.named, self.partition_keys))

    @property
    def key_fields(self) -> tuple[PaimonField, ...]:
        """The primary key without partition columns: by these a bucket's rows are merged. None without one."""
        return tuple(self.named(name) for name in self.primary_keys if name not in self.partition_keys)

    @property
    def bucket_fields(self) -> tuple[PaimonField, ...]:
        """The columns that are hashed into a bucket: as the table says, else its key without partition columns."""
        said = self.options.get("bucket-key", "")
        names = [name.strip() for name in said.split(",") if name.strip()]
        known = {one.name: one for one in self.fields}
        if names and all(name in known for name in names):
            return tuple(known[name] for name in names)
        return () if names else self.key_fields


def _walk(fields: tuple[PaimonField, ...], parents: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], PaimonField]]:
    for one in fields:
        path = (*parents, one.name)
        yield path, one
        yield from _walk(one.children, path)


def parse_schema(path: str, content: bytes | str) -> PaimonSchema:
    """The schema of a file; UnreadableMetadataError says what does not fit, and where.

    UnsupportedFormatError names a type, or a version of schema files, that this version does not know.
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise unreadable(path, f"it is not JSON ({error})") from error
    try:
        return _schema(path, document)
    except UnknownType as unknown:
        what = f"{unknown.place} is of the type {unknown.name}"
        raise _unsupported(path, f"type {unknown.name}", what) from unknown
    except Misfit as misfit:
        raise unreadable(path, misfit.reason, place=misfit.place or None) from misfit


def _schema(path: str, value: object) -> PaimonSchema:
    document = mapping(value)
    version = may(document, "version", integer) or 1
    if version > NEWEST_VERSION:
        raise _unsupported(path, f"schema version {version}", f"it is a schema of version {version}")
    fields = need(document, "fields", partial(_fields, DEEPEST))
    ids: set[int] = set()
    for where, one in _walk(fields, ()):
        if one.id in ids:
            raise Misfit(f"two fields have the id {one.id}, one of them {dotted(where)}", "fields")
        ids.add(one.id)
    names = {one.name for one in fields}
    partition = need(document, "partitionKeys", partial(_names, names))
    primary = need(document, "primaryKeys", partial(_names, names))
    options = {
        str(key): str(said) for key, said in (may(document, "options", mapping) or {}).items() if said is not None
    }
    if version <= _BUCKET_WAS_ONE:
        options.setdefault("bucket", "1")
    if version <= _ORC_WAS_DEFAULT:
        options.setdefault("file.format", "orc")
    found = PaimonSchema(
        need(document, "id", long), fields, partition, primary, options, may(document, "comment", text)
    )
    for one in found.partition_fields:
        if not one.paimon_type:
            raise Misfit(f"column {dotted((one.name,))} is a row, an array or a map", "partitionKeys")
    return found


def _names(known: set[str], value: object) -> tuple[str, ...]:
    found = each(text)(value)
    for place, name in enumerate(found):
        if name not in known:
            raise Misfit(f"the schema has no column {dotted((name,))}", f"[{place}]")
    if len(set(found)) < len(found):
        raise Misfit("a column stands in it twice")
    return found


def _fields(deep: int, value: object) -> tuple[PaimonField, ...]:
    """The fields of a row; Misfit if two have one name, which nothing could tell apart."""
    found = each(partial(_field, deep))(value)
    seen: set[str] = set()
    for place, one in enumerate(found):
        if one.name in seen:
            raise Misfit("the name stands twice in its row", f"[{place}].name")
        seen.add(one.name)
    return found


def _field(deep: int, value: object) -> PaimonField:
    document = mapping(value)
    id_ = need(document, "id", integer)
    name = need(document, "name", text)
    typed = need(document, "type", partial(_type, deep))
    return replace(typed, id=id_, name=name, default=may(document, "defaultValue", text))


def _type(deep: int, value: object) -> PaimonField:
    """A field that has the type, and what is nested in it, but no name yet."""
    if deep <= 0:
        raise Misfit(f"types are nested more than {DEEPEST} deep")
    if isinstance(value, str):
        return _atomic(text(value))
    document = mapping(value)
    spelled = need(document, "type", text)
    name = spelled.strip().upper()
    nullable = not name.endswith("NOT NULL")
    match name.removesuffix("NOT NULL").strip():
        case "ROW":
            children = need(document, "fields", partial(_fields, deep - 1))
            type_ = pa.struct([pa.field(one.name, one.type) for one in children])
            return replace(_NAMELESS, type=type_, children=children, nullable=nullable)
        case "ARRAY":
            element = _item(document, "element", deep)
            return replace(_NAMELESS, type=pa.list_(element.type), items=(element,), nullable=nullable)
        case "MAP":
            key, item = _item(document, "key", deep), _item(document, "value", deep)
            return replace(_NAMELESS, type=_map(key, item.type), items=(key, item), nullable=nullable)
        case "MULTISET":
            key = _item(document, "element", deep)
            item = replace(_atomic("INT NOT NULL"), name="value")
            return replace(_NAMELESS, type=_map(key, item.type), items=(key, item), nullable=nullable)
        case _:
            return _atomic(spelled)


def _map(key: PaimonField, item: pa.DataType) -> pa.DataType:
    """Arrow has no map with keys of a type that it does not know: then the map is opaque as well."""
    return pa.null() if pa.types.is_null(key.type) else pa.map_(key.type, item)


def _item(document: Document, part: str, deep: int) -> PaimonField:
    return replace(need(document, part, partial(_type, deep - 1)), name=part)


def _atomic(spelled: str) -> PaimonField:
    found = atomic(spelled)
    return replace(
        _NAMELESS,
        type=found.arrow,
        paimon_type=found.name,
        nullable=found.nullable,
        precision=found.precision,
        length=found.length,
    )


def _unsupported(path: str, feature: str, what: str) -> UnsupportedFormatError:
    return UnsupportedFormatError(
        f"cannot read the table of {shown(path)}: {what}, which this version of tamis does not know. "
        "Read the table with the engine that wrote it, or use a newer tamis.",
        path=shown(path),
        feature=feature,
    )


_NAMELESS: Final = PaimonField(-1, "", pa.null())
