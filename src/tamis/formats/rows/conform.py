"""Columns of a data file as the table has them: found by id or by name, in the table's types, with what files lack.

Law: a value that a file has is given as the table's type has it, exactly, or it is an error that names the column;
never another value. What a file does not have is the column's default, or NULL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from tamis.formats.rows.avro import FIELD_ID
from tamis.formats.rows.nested import list_of, map_of, struct_of, whole
from tamis.formats.scan import ReadField
from tamis.predicate.type_names import is_bytes, is_list, is_text

__all__ = ["Misread", "absent", "conformed", "found", "shown_type"]

_IDS: Final = (b"PARQUET:field_id", b"iceberg.id", FIELD_ID)
_GREGORIAN: Final = -141_427
"""1582-10-15, the first day of the Gregorian calendar, as days since 1970."""
_DAY_MICROS: Final = 86_400_000_000
_BYTES: Final = 16
"""Of a UUID."""
_DIGITS: Final = np.frombuffer(b"0123456789abcdef", np.uint8)
_HIGH: Final = np.array([0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34])
_LOW: Final = _HIGH + 1
"""Where a UUID's text has the two digits of each byte."""


class Misread(ValueError):
    """A column that a file has in a way in which the table cannot have it."""


@dataclass(frozen=True, slots=True)
class _Where:
    """What is read, for errors."""

    column: str

    def wrong(self, kind: pa.DataType, wanted: object) -> Misread:
        return Misread(f"column {self.column!r} is {kind} in the file, which cannot be read as {wanted}")

    def inside(self, name: str) -> _Where:
        return _Where(f"{self.column}.{name}")


def found(field: ReadField, columns: Iterable[pa.Field]) -> int | None:
    """The place of a field among those of a file: by its id, else by its name there. None if the file lacks it."""
    for place, column in enumerate(columns):
        if field.id is not None:
            if _id(column) == field.id:
                return place
        elif column.name == field.written_as:
            return place
    return None


def _id(column: pa.Field) -> int | None:
    metadata = column.metadata or {}
    return next((int(metadata[key]) for key in _IDS if key in metadata), None)


def shown_type(field: ReadField) -> pa.DataType:
    """The Arrow type that a column is given in: a UUID is text."""
    kind = field.type
    if pt.is_struct(kind):
        return pa.struct([pa.field(child.name, shown_type(child)) for child in field.children])
    if pt.is_map(kind):
        key, value = field.children
        return pa.map_(shown_type(key), shown_type(value))
    if is_list(kind):
        return pa.list_(shown_type(field.children[0]))
    return _leaf_type(kind)


def _leaf_type(kind: pa.DataType) -> pa.DataType:
    if kind == pa.uuid() or is_text(kind):
        return pa.string()
    if is_bytes(kind):
        return pa.binary()
    return pa.time64("ns") if pt.is_time(kind) else kind


def absent(field: ReadField, rows: int) -> pa.Array:
    """What rows have in a column that their file lacks."""
    kind = shown_type(field)
    if field.default is None or not field.default.is_valid:
        return pa.nulls(rows, kind)
    # A struct of it has no fields: they are absent as well, and have defaults of their own.
    return _conformed(pa.repeat(field.default, rows), pa.field("", field.default.type), field, _Where(field.name))


def conformed(array: pa.Array, column: pa.Field, field: ReadField) -> pa.Array:
    """A column of a file, described by that field of its schema, as the table has it."""
    return _conformed(array, column, field, _Where(field.name))


def _conformed(array: pa.Array, column: pa.Field, field: ReadField, where: _Where) -> pa.Array:
    kind = field.type
    if pt.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pt.is_struct(kind):
        if not pt.is_struct(array.type):
            raise where.wrong(array.type, "a struct")
        return _struct(whole(array), column.type, field, where)
    if pt.is_map(kind):
        return _map(whole(array), column.type, field, where)
    if is_list(kind):
        if not is_list(array.type):
            raise where.wrong(array.type, "a list")
        return _list(whole(array), column.type, field, where)
    if pt.is_nested(array.type):
        raise where.wrong(array.type, kind)
    return _leaf(array, field, where)


def _struct(array: pa.Array, written: pa.DataType, field: ReadField, where: _Where) -> pa.Array:
    columns = [written.field(place) for place in range(written.num_fields)]
    parts = []
    for child in field.children:
        place = found(child, columns)
        below = where.inside(child.name)
        parts.append(
            absent(child, len(array))
            if place is None
            else _conformed(array.field(place), columns[place], child, below)
        )
    kinds = [pa.field(child.name, part.type) for child, part in zip(field.children, parts, strict=True)]
    return struct_of(array, parts, kinds)


def _list(array: pa.Array, written: pa.DataType, field: ReadField, where: _Where) -> pa.Array:
    if not pt.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    values = _conformed(array.values, written.value_field, field.children[0], where.inside("element"))
    return list_of(array, values, pa.field("item", values.type))


def _map(array: pa.Array, written: pa.DataType, field: ReadField, where: _Where) -> pa.Array:
    key, value = field.children
    if pt.is_map(array.type):
        keys, items, fields = array.keys, array.items, (written.key_field, written.item_field)
    elif pt.is_list(array.type) and pt.is_struct(array.type.value_type) and array.type.value_type.num_fields == 2:  # noqa: PLR2004
        # As Avro has maps whose keys are no texts.
        entries = whole(array.values)
        keys, items = entries.field(0), entries.field(1)
        fields = (written.value_type.field(0), written.value_type.field(1))
    else:
        raise where.wrong(array.type, "a map")
    keys = _conformed(keys, fields[0], key, where.inside("key"))
    return map_of(array, keys, _conformed(items, fields[1], value, where.inside("value")))


def _leaf(array: pa.Array, field: ReadField, where: _Where) -> pa.Array:
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if field.stored is not None and not pt.is_duration(field.stored) and field.counts is None:
        return _cast(_leaf(array, replace(field, type=field.stored, stored=None), where), _leaf_type(field.type))
    kind, given = field.type, array.type
    if field.counts is not None:
        return _number(array, field.counts, where)
    if kind == pa.uuid():
        if not is_bytes(given):
            raise where.wrong(given, "a UUID")
        return _uuids(array, where)
    if pt.is_date32(kind) and pt.is_date32(given):
        return _dated(array, field, where)
    if pt.is_timestamp(kind):
        found = _time(array, kind, where)
        return _after_julian(found, where) if field.utc_alone else found
    if pt.is_time(kind) and pt.is_int64(given):
        array = array.view(pa.time64("us"))  # as ORC files have it
    elif not _widens(given, kind):
        raise where.wrong(given, kind)
    if field.filled:
        array = pc.utf8_rtrim(array, characters=" ")
    return array if array.type == _leaf_type(kind) else array.cast(_leaf_type(kind))


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values of an older type as those of today's. A whole number becomes the nearest float."""
    return array.cast(kind, safe=not pt.is_floating(kind))


def _number(array: pa.Array, kind: pa.DataType, where: _Where) -> pa.Array:
    """The number that a time of day is, or a time in nanoseconds."""
    given = array.type
    if pt.is_null(given):
        return pa.nulls(len(array), pa.int64())
    same = given == kind or (pt.is_timestamp(given) and given.unit == "ns" and pt.is_timestamp(kind))
    if pt.is_int64(given) or same:
        return array.view(pa.int64())
    if given == pa.time32("ms") and pt.is_time(kind):
        return pc.multiply(array.view(pa.int32()).cast(pa.int64()), 1000)
    if _is_day_of(given, kind):
        return pc.multiply_checked(array.view(pa.int32()).cast(pa.int64()), _DAY_MICROS * 1000)
    raise where.wrong(given, kind)


def _widens(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether every value of one type is one of the other, as Iceberg promotes types, or both are one."""
    if pt.is_signed_integer(given) and pt.is_signed_integer(kind):
        return bool(given.bit_width <= kind.bit_width)
    if pt.is_floating(given) and pt.is_floating(kind):
        return bool(given.bit_width <= kind.bit_width)
    if pt.is_decimal(given) and pt.is_decimal(kind):
        return bool(given.scale == kind.scale and given.precision <= kind.precision)
    both = ((is_text, is_text), (is_bytes, is_bytes), (pt.is_boolean, pt.is_boolean), (pt.is_time, pt.is_time))
    return pt.is_null(given) or any(one(given) and other(kind) for one, other in both)


def _is_day_of(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether the file has dates that have become times without a zone: each its midnight."""
    return bool(pt.is_date32(given) and pt.is_timestamp(kind) and kind.tz is None)


def _time(array: pa.Array, kind: pa.DataType, where: _Where) -> pa.Array:
    """A time to the microsecond; with a zone or without, as the table has it."""
    given = array.type
    if _is_day_of(given, kind):
        counted = pc.multiply_checked(array.view(pa.int32()).cast(pa.int64()), _DAY_MICROS)
        return counted.view(pa.timestamp("us"))
    if not pt.is_timestamp(given):
        raise where.wrong(given, kind)
    counted = array.view(pa.int64())
    if given.unit == "ns":
        # Downwards, as everywhere: Arrow's own cast goes towards 1970.
        values = counted.fill_null(0).to_numpy(zero_copy_only=False) // 1000
        mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        counted = pa.array(values, pa.int64(), mask=mask)
    elif given.unit != "us":
        counted = pc.multiply_checked(counted, 1000 if given.unit == "ms" else 1_000_000)
    return counted.view(pa.timestamp("us", kind.tz))


def _after_julian(array: pa.Array, where: _Where) -> pa.Array:
    """The times, none of which is of days that some writers count by the Julian calendar."""
    least = pc.min(array.view(pa.int64())).as_py()
    if least is not None and least < _GREGORIAN * 86_400_000_000:
        raise Misread(
            f"column {where.column!r} has a time before 1582-10-15 in an ORC file, where writers count days by "
            "different calendars. Rewrite such files as Parquet with the table's own engine, or read without this "
            "column."
        )
    return array


def _dated(array: pa.Array, field: ReadField, where: _Where) -> pa.Array:
    if field.calendar == "unknown" and len(array) > array.null_count:
        least = pc.min(array.view(pa.int32())).as_py()
        if least < _GREGORIAN:
            raise Misread(
                f"column {where.column!r} has a date before 1582-10-15, written by a program whose calendar is not "
                "known. Rewrite such files as Parquet with the table's own engine, or read without this column."
            )
    return array


def _uuids(array: pa.Array, where: _Where) -> pa.Array:
    """Sixteen bytes each, as text: digits in groups, with a hyphen between them."""
    valid = array.is_valid()
    if not pt.is_fixed_size_binary(array.type):
        lengths = pc.min_max(pc.binary_length(array)).as_py()
        if lengths["min"] is not None and (lengths["min"], lengths["max"]) != (_BYTES, _BYTES):
            raise where.wrong(array.type, "a UUID")
        array = array.fill_null(bytes(_BYTES)).cast(pa.binary(_BYTES))
    elif array.type.byte_width != _BYTES:
        raise where.wrong(array.type, "a UUID")
    rows = len(array)
    if not rows:
        return pa.array([], pa.string())
    start = array.offset * _BYTES
    raw = np.frombuffer(array.buffers()[1], np.uint8)[start : start + rows * _BYTES].reshape(rows, _BYTES)
    text = np.full((rows, 36), ord("-"), np.uint8)
    text[:, _HIGH], text[:, _LOW] = _DIGITS[raw >> 4], _DIGITS[raw & 15]
    offsets = np.arange(rows + 1, dtype=np.int32) * 36
    buffers = [valid.buffers()[1], pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string(), rows, buffers)
