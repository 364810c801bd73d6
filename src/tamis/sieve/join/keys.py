"""A join's keys of one type in the key space of a column of another, as Spark's `=` compares the two.

Law: a converted key is the key of every column value that Spark finds equal to it. A key that no value of the column
can equal does not fit. Where equality is not exact (Spark rounds the column's side, or settings decide how it
compares), there is no conversion but a reason, and the column does not prune.

    keys            column           what Spark compares                             here
    int widths      int widths       as the wider                                    exact, out of range never fits
    int, decimal    int, decimal     as a decimal that holds both, up to 38 digits   exact; beyond 38 digits: a reason
    float           double           as double                                       exact
    int, long       double           the key as double, rounded                      exact: round the key the same way
    double          long             the column as double, rounded                   a reason
    timestamps      same zone kind   as microseconds                                 exact; a finer key never fits
    date            zone-less time   the date's midnight                             exact
    text, binary    text, binary     bytes                                           exact
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from tamis.predicate.arrays import Mask
from tamis.predicate.keys import INT64_MAX, INT_DIGITS, MAX_DIGITS, has_order, key_span
from tamis.predicate.type_names import family, type_name
from tamis.predicate.units import DAY_SECONDS, NANOS_IN_MICRO, PER_SECOND, SECOND
from tamis.sieve.order import KeyArray, encode, mask_of

__all__ = ["Converted", "convert", "plain"]

EXACT_IN_DOUBLE: Final = 32
"""Ints of up to so many bits are exact as doubles: 2**31 < 2**53."""
EXACT_IN_FLOAT: Final = 16
"""Ints of up to so many bits are exact as floats: 2**15 < 2**24."""


@dataclass(frozen=True, slots=True)
class Converted:
    """A key for each row; not valid where it is NULL, not fitting where no value of the column can equal it."""

    keys: KeyArray
    fits: Mask
    step: int = 1
    """How many keys of the column each of these stands for: key k for [k * step, (k + 1) * step)."""


Rule = Callable[[pa.Array, pa.DataType], Converted | str]


def plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array of a type that tables have: chunks joined, dictionaries and views undone, unsigned ints signed.

    Raises pa.ArrowException if that is not possible.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    wanted = _PLAIN.get(array.type)
    if wanted is None and pt.is_decimal(array.type) and array.type.precision <= MAX_DIGITS:
        wanted = pa.decimal128(array.type.precision, array.type.scale)
    return array if wanted is None or wanted == array.type else array.cast(wanted)


_PLAIN: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.string_view(): pa.string(),
    pa.binary_view(): pa.binary(),
}


def convert(array: pa.Array, type_: pa.DataType) -> Converted | str:
    """The keys of array for a column of type_, or the reason why they say nothing of it."""
    if not has_order(type_):
        return f"values of type {type_name(type_)} have no order"
    if pt.is_null(array.type):
        return Converted(encode(array, type_), np.ones(len(array), np.bool_))
    rule = _RULES.get((family(array.type), family(type_)))
    if rule is None:
        return f"{type_name(array.type)} keys and {type_name(type_)} values do not compare exactly"
    found = rule(array, type_)
    if isinstance(found, str):
        return found
    valid = mask_of(array.is_valid())
    return Converted(KeyArray(found.keys.keys, valid), found.fits | ~valid, found.step)


def _all(keys: KeyArray, step: int = 1) -> Converted:
    return Converted(keys, np.ones(len(keys), np.bool_), step)


def _same(array: pa.Array, type_: pa.DataType) -> Converted:
    return _all(encode(array, type_))


def _ints(array: pa.Array, type_: pa.DataType) -> Converted:
    return _within(encode(array, array.type), type_)


def _within(keys: KeyArray, type_: pa.DataType, fits: Mask | None = None) -> Converted:
    """The same numbers, those alone fitting that the type has."""
    span = key_span(type_)
    numbers = keys.keys
    inside = np.asarray((numbers >= span.least) & (numbers <= span.greatest))  # type: ignore[operator] # all ints
    return Converted(keys, inside if fits is None else inside & fits)


def _floats(array: pa.Array, _: pa.DataType) -> Converted:
    # A float32 column is widened to double, as its own keys are: a key between two floats equals none of them.
    return _all(encode(array, pa.float64()))


def _ints_as_floats(array: pa.Array, type_: pa.DataType) -> Converted | str:
    if pt.is_float32(type_) and array.type.bit_width > EXACT_IN_FLOAT:
        keys = type_name(array.type)
        return f"Spark compares {keys} keys with float values as float or as double, by its ANSI setting"
    numbers = encode(array, array.type)
    return _all(encode(pa.array(numbers.keys.astype(np.float64), mask=~numbers.valid), pa.float64()))


def _floats_as_ints(array: pa.Array, type_: pa.DataType) -> Converted | str:
    exact = EXACT_IN_FLOAT if pt.is_float32(array.type) else EXACT_IN_DOUBLE
    if type_.bit_width > exact:
        return f"Spark rounds {type_name(type_)} values to compare them with {type_name(array.type)} keys"
    valid = mask_of(array.is_valid())
    floats = array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
    whole = np.isfinite(floats) & (np.floor(floats) == floats) & (np.abs(floats) < 2.0**EXACT_IN_DOUBLE)
    return _within(KeyArray(np.where(whole, floats, 0).astype(np.int64), valid), type_, whole)


def _decimals(array: pa.Array, type_: pa.DataType) -> Converted | str:
    """Ints and decimals on either side: both as the decimal that holds every value of both."""
    have, want = _as_decimal(array.type), _as_decimal(type_)
    scale = max(have.scale, want.scale)
    whole = max(have.precision - have.scale, want.precision - want.scale)
    if whole + scale > MAX_DIGITS:
        sides = f"{type_name(array.type)} keys and {type_name(type_)} values"
        return f"Spark rounds {sides} to compare them: both need {whole + scale} digits"
    wide = array.cast(have).cast(pa.decimal128(whole + scale, scale))
    # Cut to the column's scale: a key that this changes, the column cannot express.
    cut = wide.cast(pa.decimal128(max(whole + want.scale, 1), want.scale), safe=False)
    least, greatest = (pa.scalar(end, cut.type) for end in _ends(type_, want))
    same = pc.equal(cut.cast(wide.type), wide)
    inside = pc.and_(pc.greater_equal(cut, least), pc.less_equal(cut, greatest))
    fits = pc.fill_null(pc.and_(same, inside), fill_value=True)
    kept = pc.if_else(fits, cut, pa.scalar(None, cut.type)).cast(want).cast(type_)
    return Converted(encode(kept, type_), mask_of(fits))


def _as_decimal(type_: pa.DataType) -> pa.DataType:
    return pa.decimal128(INT_DIGITS[type_], 0) if pt.is_signed_integer(type_) else type_


def _ends(type_: pa.DataType, want: pa.DataType) -> tuple[Decimal, Decimal]:
    """The least and the greatest value of the column."""
    if pt.is_signed_integer(type_):
        most = (1 << (type_.bit_width - 1)) - 1
        return Decimal(-most - 1), Decimal(most)
    nines = (9,) * want.precision
    return Decimal((1, nines, -want.scale)), Decimal((0, nines, -want.scale))


def _moments(array: pa.Array, type_: pa.DataType) -> Converted:
    """Times and timestamps of any unit. A column of nanoseconds is compared as Spark reads it: in microseconds."""
    keys = encode(array, array.type)
    have, want = PER_SECOND[array.type.unit], PER_SECOND[type_.unit]
    if type_.unit != "ns":
        return _rescaled(keys, have, want)
    micros = KeyArray(keys.keys // NANOS_IN_MICRO, keys.valid)
    return _all(micros, NANOS_IN_MICRO) if array.type.unit == "ns" else _fine(_rescaled(keys, have, SECOND))


def _fine(micros: Converted) -> Converted:
    """Microseconds for a column of nanoseconds: the range of its 64 bits is a thousandth."""
    most, numbers = INT64_MAX // NANOS_IN_MICRO, micros.keys.keys
    inside = (numbers >= -most - 1) & (numbers <= most)
    return Converted(micros.keys, micros.fits & inside, NANOS_IN_MICRO)


def _rescaled(keys: KeyArray, have: int, want: int) -> Converted:
    """Counts of one unit as counts of another; those that would be broken, or overflow, fit nothing."""
    numbers = keys.keys
    if want == have:
        return _all(keys)
    if want > have:
        factor = want // have
        fits = (numbers <= INT64_MAX // factor) & (numbers >= -(INT64_MAX // factor))
        return Converted(KeyArray(np.where(fits, numbers, 0) * factor, keys.valid), np.asarray(fits))
    factor = have // want
    return Converted(KeyArray(numbers // factor, keys.valid), np.asarray(numbers % factor == 0))


def _dates_as_moments(array: pa.Array, type_: pa.DataType) -> Converted:
    seconds = _rescaled(encode(array, array.type), 1, DAY_SECONDS)
    if type_.unit == "ns":
        return _fine(_both_fit(_rescaled(seconds.keys, 1, SECOND), seconds.fits))
    return _both_fit(_rescaled(seconds.keys, 1, PER_SECOND[type_.unit]), seconds.fits)


def _moments_as_dates(array: pa.Array, type_: pa.DataType) -> Converted:
    days = _rescaled(encode(array, array.type), PER_SECOND[array.type.unit] * DAY_SECONDS, 1)
    return _within(days.keys, type_, days.fits)


def _both_fit(converted: Converted, fits: Mask) -> Converted:
    return Converted(converted.keys, converted.fits & fits, converted.step)


def _bytes(array: pa.Array, type_: pa.DataType) -> Converted:
    keys = encode(array, pa.large_binary())
    if not pt.is_fixed_size_binary(type_) and type_ != pa.uuid():
        return _all(keys)
    width = len(key_span(type_).least)  # type: ignore[arg-type] # bytes, as the type is
    return Converted(keys, mask_of(pc.fill_null(pc.equal(pc.binary_length(keys.keys), width), fill_value=True)))


def _text_as_uuid(array: pa.Array, _: pa.DataType) -> Converted:
    """Spark reads a uuid as its lower-case text: other spellings equal none."""
    parsed = pa.array([_uuid_bytes(text) for text in array.to_pylist()], pa.large_binary())
    valid = mask_of(array.is_valid())
    return Converted(KeyArray(parsed, valid), ~valid | mask_of(parsed.is_valid()))


def _uuid_bytes(text: str | None) -> bytes | None:
    try:
        parsed = UUID(text or "")
    except ValueError:
        return None
    return parsed.bytes if str(parsed) == text else None


def _uuid_as_text(array: pa.Array, _: pa.DataType) -> Converted:
    texts = [None if value is None else str(value).encode() for value in array.to_pylist()]
    return _all(KeyArray(pa.array(texts, pa.large_binary()), mask_of(array.is_valid())))


_RULES: Final[dict[tuple[str, str], Rule]] = {
    ("bool", "bool"): _same,
    ("date32[day]", "date32[day]"): _same,
    ("int", "int"): _ints,
    ("int", "float"): _ints_as_floats,
    ("float", "int"): _floats_as_ints,
    ("float", "float"): _floats,
    ("decimal", "decimal"): _decimals,
    ("int", "decimal"): _decimals,
    ("decimal", "int"): _decimals,
    ("time", "time"): _moments,
    ("timestamp", "timestamp"): _moments,
    ("zoned", "zoned"): _moments,
    ("date32[day]", "timestamp"): _dates_as_moments,
    ("timestamp", "date32[day]"): _moments_as_dates,
    ("text", "text"): _bytes,
    ("text", "bytes"): _bytes,
    ("bytes", "text"): _bytes,
    ("bytes", "bytes"): _bytes,
    ("uuid", "uuid"): _same,
    ("bytes", "uuid"): _bytes,
    ("uuid", "bytes"): _bytes,
    ("text", "uuid"): _text_as_uuid,
    ("uuid", "text"): _uuid_as_text,
}
"""(keys, column): pairs that are not listed do not compare exactly, or only by the session's time zone."""
