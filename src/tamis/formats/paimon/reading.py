"""How the table's columns are found in a data file: by the names and types of the schema that it was written with.

A column is the one with the same field id, whatever it was called. Files need not carry ids, and pypaimon's do not.
Law: a value is what Paimon's own cast makes of the file's; a type from which tamis does not know that cast is refused
by its name, when the column is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyarrow import types as pt

from tamis.formats.paimon.schema import PaimonField
from tamis.formats.scan import Calendar, FileFormat, OwnNames, ReadField

__all__ = ["has_zone", "read_field", "read_type", "refused"]

ABSENT: Final = "absent_{}"
"""What no file calls a field."""
_DIGITS: Final[Mapping[pa.DataType, int]] = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
"""Decimal digits of the greatest value of each."""
_MILLIS: Final = 3
_EVERY_TEXT: Final = (1 << 31) - 1


def read_type(field: PaimonField) -> pa.DataType:
    """The type that readers give a field. A CHAR is the text that was written; blanks are not added to it."""
    if _is_char(field):
        return pa.string()
    if pt.is_struct(field.type):
        return pa.struct([pa.field(one.name, read_type(one)) for one in field.children])
    if field.items and pt.is_list(field.type):
        return pa.list_(read_type(field.items[0]))
    if len(field.items) > 1:
        key, value = map(read_type, field.items)
        return pa.null() if pt.is_null(key) else pa.map_(key, value)
    return field.type


def read_field(now: PaimonField, then: PaimonField | None, file_format: FileFormat, own: OwnNames) -> ReadField:
    """A column, and how it is found in files whose schema has it as then; None if they do not have it."""
    described = now.paimon_type or str(read_type(now))
    if then is None:
        return ReadField(now.name, read_type(now), described=described, children=_shape(now))
    if bool(now.paimon_type) != bool(then.paimon_type) or len(now.items) != len(then.items):
        return _refused(now, f"{described}, which some files have as {then.paimon_type or str(then.type)}")
    if now.paimon_type:
        return _leaf(now, then, file_format, described)
    children = []
    if pt.is_struct(now.type):
        by_id = {one.id: one for one in then.children}
        if not any(one.id in by_id for one in now.children):
            return _refused(now, f"{described}, of which some files have no field")
        for one in now.children:
            child = read_field(one, by_id.get(one.id), file_format, own)
            children.append(child if one.id in by_id else replace(child, written_as=own(ABSENT.format(one.id))))
    else:
        children = [read_field(*pair, file_format, own) for pair in zip(now.items, then.items, strict=True)]
    wrong = next((child for child in children if pt.is_null(child.type)), None)
    if wrong is not None:
        return _refused(now, wrong.described)
    return ReadField(now.name, read_type(now), None, then.name, tuple(children), described=described)


def has_zone(field: PaimonField) -> bool:
    """Whether a time with a zone is in the field: Spark reads no ORC file that has one, whatever it is asked for."""
    zoned = pt.is_timestamp(field.type) and field.type.tz is not None
    return bool(zoned) or any(has_zone(one) for one in (*field.children, *field.items))


def refused(field: ReadField) -> bool:
    """Whether no reader can give the column, for what is said in described."""
    return bool(pt.is_null(field.type))


def _refused(now: PaimonField, described: str) -> ReadField:
    return ReadField(now.name, pa.null(), described=described)


def _shape(now: PaimonField) -> tuple[ReadField, ...]:
    """What is inside a column that a file does not have."""
    inside = now.children or now.items
    return tuple(
        ReadField(one.name, read_type(one), None, one.name, _shape(one), described=one.paimon_type) for one in inside
    )


def _leaf(now: PaimonField, then: PaimonField, file_format: FileFormat, described: str) -> ReadField:
    type_, stored = read_type(now), read_type(then)
    if pt.is_null(type_) or pt.is_null(stored) or _is_counted(type_) or _is_counted(stored):
        return _refused(now, described)
    if not _is_cast(then, now, stored, type_):
        return _refused(now, f"{described}, which some files have as {then.paimon_type}")
    if file_format == "avro":
        if pt.is_timestamp(stored):
            # Those with a zone are marked as local, and those without as in UTC: the numbers are the same.
            stored = pa.duration("ms" if (then.precision or 0) <= _MILLIS else "us")
        if stored in (pa.int8(), pa.int16()):
            stored = pa.int32()
    # Java and Arrow write days of one calendar, and their ORC files say nothing of it.
    calendar: Calendar = "taken for julian" if file_format == "orc" and pt.is_date(stored) else "known"
    if calendar != "known" and stored != type_:
        return _refused(now, f"{described}, which some ORC files have as {then.paimon_type}")
    cast = None if stored == type_ else stored
    found = ReadField(now.name, type_, None, then.name, described=described, stored=cast, calendar=calendar)
    if file_format != "orc":
        return found
    return replace(found, filled=_is_char(then), utc_alone=pt.is_timestamp(stored))


def _is_counted(kind: pa.DataType) -> bool:
    """Whether files have the type as numbers that readers take for others: milliseconds of the day, INT96."""
    return bool(pt.is_time(kind) or (pt.is_timestamp(kind) and kind.unit == "ns"))


def _is_char(field: PaimonField) -> bool:
    return field.paimon_type.upper().startswith("CHAR")


def _is_cast(then: PaimonField, now: PaimonField, a: pa.DataType, b: pa.DataType) -> bool:
    """Whether every value of the one type is one of the other, and Spark's cast gives the same as Paimon's."""
    if a == b:
        if _is_char(then) or _is_char(now):
            return then.paimon_type.upper() == now.paimon_type.upper()
        return (then.precision or 0) <= (now.precision or 0) and _most(then) <= _most(now)
    if a in _DIGITS:
        if b in _DIGITS:
            return _DIGITS[a] < _DIGITS[b]
        if pt.is_decimal(b):
            return _DIGITS[a] <= int(b.precision) - int(b.scale)
        return pt.is_floating(b) or (pt.is_string(b) and _most(now) == _EVERY_TEXT)
    if pt.is_decimal(a) and pt.is_decimal(b):
        return bool(a.scale <= b.scale and a.precision - a.scale <= b.precision - b.scale)
    if pt.is_boolean(a):
        return bool(pt.is_string(b)) and _most(now) == _EVERY_TEXT
    if pt.is_date32(a):
        return bool(pt.is_timestamp(b)) and b.tz is None and b.unit == "us"
    return bool(pt.is_float32(a) and pt.is_float64(b))


def _most(field: PaimonField) -> int:
    return _EVERY_TEXT if field.length is None else field.length
