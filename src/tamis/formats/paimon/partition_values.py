"""Partition values: BinaryRows as typed columns, and the folders that files of a partition lie in.

Each distinct row of bytes is decoded once. Writers may encode NULL in two ways: two rows of bytes, one value.

A folder is named after its values, as Java prints them, with some characters escaped. pypaimon names it as Python
prints them, escapes nothing, and its metadata does not say so: where the two differ there are two spellings, and
whoever opens a file has to look which of them is there.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from tamis.formats.paimon.binary_row import BinaryRows
from tamis.formats.paimon.options import POSTPONE, Options
from tamis.formats.paimon.reading import read_type
from tamis.formats.paimon.schema import PaimonField, PaimonSchema
from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.type_names import is_bytes

__all__ = ["Partitions", "bucket_folder", "escaped"]

_ESCAPED: Final = frozenset("\"#%'*/:=?\\{}[]^\x7f") | {chr(one) for one in range(32)}
_NO_BLANKS: Final = frozenset("\x85\xa0\u2007\u202f")
"""Blanks to Python, and not to Java."""
_EPOCH: Final = dt.date(1970, 1, 1)
_MICROS: Final = 1_000_000
_LEAST_PLAIN: Final = Decimal("0.001")
_MOST_PLAIN: Final = Decimal(10**7)


@dataclass(frozen=True, slots=True, eq=False)
class Partitions:
    """The distinct partitions of some entries."""

    codes: Int64s
    """Of each entry the number of its partition."""
    rows: pa.Array
    """The serialised row of each partition."""
    values: tuple[pa.Array, ...]
    """A column for each partition field, a value for each partition."""
    undecoded: tuple[Mask, ...]
    """Of each field the partitions whose value could not be decoded."""
    folders: tuple[str, ...]
    """Of each partition the folder, as Java names it, below the table's; empty if it has none of its own."""

    @classmethod
    def of(cls, rows: pa.Array, schema: PaimonSchema) -> Partitions:
        """The partitions of entries, by their serialised rows."""
        encoded = rows.dictionary_encode()
        distinct = encoded.dictionary
        decoded = BinaryRows.of(distinct)
        fields = schema.partition_fields
        wrong = decoded.arity != len(fields)
        values, undecoded = [], []
        for place, field in enumerate(fields):
            # A CHAR is not judged, but its text names the folder.
            found = decoded.field(place, replace(field, type=read_type(field)))
            values.append(found.values)
            undecoded.append(found.damaged | wrong)
        folders = partition_folders(fields, values, Options.of(schema), python=False)
        if not fields:
            folders *= len(distinct)
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return cls(codes, distinct, tuple(values), tuple(undecoded), tuple(folders))


def partition_folders(
    fields: Sequence[PaimonField], values: Sequence[pa.Array], options: Options, *, python: bool
) -> list[str]:
    """The folder of each partition, below the table's, as Java names it, or as pypaimon does."""
    count = len(values[0]) if values else 1
    folders = [[options.data_folder] if options.data_folder else [] for _ in range(count)]
    for field, column in zip(fields, values, strict=True):
        name = field.name if python else escaped(field.name)
        for folder, value in zip(folders, _plain_values(column), strict=True):
            text = _python_text(value, field) if python else _java_text(value, field, options)
            if text is None or (not text.strip() if python else _is_blank(text)):
                text = options.default_partition
            folder.append(f"{name}={text if python else escaped(text)}")
    return ["/".join(folder) for folder in folders]


def _is_blank(text: str) -> bool:
    """Whether Java takes every character for a blank: to it, one at which no line may break is none."""
    return all(one.isspace() and one not in _NO_BLANKS for one in text)


def bucket_folder(bucket: int) -> str:
    """The folder of a bucket."""
    return "bucket-postpone" if bucket == POSTPONE else f"bucket-{bucket}"


def escaped(text: str) -> str:
    """A name or a value, as a part of a path.

    >>> escaped("a/b=c 1:00")
    'a%2Fb%3Dc 1%3A00'
    """
    return "".join(f"%{ord(one):02X}" if one in _ESCAPED else one for one in text)


def _plain_values(column: pa.Array) -> list[Any]:
    """Values as Python has them; moments as counts, for Python has neither nanoseconds nor year 10000."""
    if pt.is_timestamp(column.type) or pt.is_time(column.type):
        column = column.view(pa.int64())
    elif pt.is_date32(column.type):
        column = column.view(pa.int32())
    return list(column.to_pylist())


def _java_text(value: Any, field: PaimonField, options: Options) -> str | None:  # noqa: ANN401 - by type
    if value is None:
        return None
    type_ = field.type
    if pt.is_boolean(type_):
        return "true" if value else "false"
    if pt.is_floating(type_):
        return java_float(value, single=pt.is_float32(type_))
    if pt.is_date32(type_):
        return str(value) if options.legacy_names else _date(value)
    if pt.is_time(type_):
        return str(value // 1000) if options.legacy_names else _time(value, field.precision or 0)
    if pt.is_timestamp(type_):
        days, nanos = _day_and_nanos(value, type_)
        if options.legacy_names:
            return f"{_date(days)}T{_clock(nanos)}"
        return f"{_date(days)} {_fixed_clock(nanos, field.precision or 0)}"
    if is_bytes(type_):
        return bytes(value).decode("utf-8", "replace")
    return f"{value:f}" if pt.is_decimal(type_) else str(value)  # without an exponent


def _python_text(value: Any, field: PaimonField) -> str | None:  # noqa: ANN401 - a value of any type
    """As Python's str: a date by its day, a timestamp with a blank, True and False, 1e+16."""
    if value is None:
        return None
    type_ = field.type
    if pt.is_date32(type_):
        return _date(value)
    if pt.is_time(type_):
        clock = _clock(value * 1000, seconds=True)
        return clock if "." not in clock else f"{clock.partition('.')[0]}.{value % _MICROS:06d}"
    if pt.is_timestamp(type_):
        days, nanos = _day_and_nanos(value, type_)
        micros = nanos // 1000 % _MICROS
        fraction = f".{micros:06d}" if micros else ""
        whole = _clock(nanos // 10**9 * 10**9, seconds=True)
        return f"{_date(days)} {whole}{fraction}{'+00:00' if type_.tz else ''}"
    return str(value)


def _date(days: int) -> str:
    """A day as Java and Python write it; beyond year 9999, which Python does not have, by its number."""
    try:
        return (_EPOCH + dt.timedelta(days=days)).isoformat()
    except OverflowError:
        return str(days)


def _day_and_nanos(count: int, type_: pa.DataType) -> tuple[int, int]:
    per_second = _MICROS if type_.unit == "us" else 10**9
    days, rest = divmod(count, 86_400 * per_second)
    return days, rest * (10**9 // per_second)


def _clock(nanos: int, *, seconds: bool = False) -> str:
    """As Java's LocalTime prints itself: seconds only if there are any, a fraction in groups of three digits."""
    total, fraction = divmod(nanos, 10**9)
    hours, rest = divmod(total, 3600)
    minutes, whole = divmod(rest, 60)
    text = f"{hours:02d}:{minutes:02d}"
    if whole or fraction or seconds:
        text += f":{whole:02d}"
    if fraction:
        digits = f"{fraction:09d}"
        text += "." + (digits[:3] if digits[3:] == "000000" else digits[:6] if digits[6:] == "000" else digits)
    return text


def _fixed_clock(nanos: int, precision: int) -> str:
    """As SQL's cast prints it: seconds always, a fraction without trailing zeros up to the type's precision."""
    total, fraction = divmod(nanos, 10**9)
    text = _clock(total * 10**9, seconds=True)
    digits = f"{fraction:09d}"[:precision]
    return f"{text}.{digits}" if digits else text


def _time(micros: int, precision: int) -> str:
    return _fixed_clock(micros * 1000, precision)


def java_float(value: float, *, single: bool) -> str:
    """A float as Java prints it, with as few digits as tell it from its neighbours.

    >>> java_float(1.0, single=False), java_float(1e10, single=False), java_float(1.5e-5, single=True)
    ('1.0', '1.0E10', '1.5E-5')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    number = Decimal(_shortest_single(value) if single else repr(value))
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 - for the type checker: the number is finite
    text = "".join(map(str, digits)).rstrip("0") or "0"
    scale = exponent + len(digits) - 1
    minus = "-" if sign else ""
    if _LEAST_PLAIN <= abs(number) < _MOST_PLAIN:
        if scale < 0:
            return f"{minus}0.{'0' * (-scale - 1)}{text}"
        whole, fraction = text[: scale + 1].ljust(scale + 1, "0"), text[scale + 1 :]
        return f"{minus}{whole}.{fraction or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{scale}"


def _shortest_single(value: float) -> str:
    for precision in range(1, 10):
        text = f"{value:.{precision}g}"
        if struct.pack(">f", float(text)) == struct.pack(">f", value):
            return text
    return repr(value)
