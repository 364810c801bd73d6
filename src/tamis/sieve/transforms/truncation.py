"""truncate[W]: numbers down to a multiple of W, texts and binaries to their first W code points or bytes.

Law: a range holds every value that any writer may have truncated to it. Java computes in the column's own width:
truncating the least ints wraps to a great number, which is no multiple of W. So a value that is no multiple is not
trusted, and bounds that span such a number do not rule out the least ints.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from tamis.predicate.arrays import SIGN_BIT, Int64s, Mask, UInt64s
from tamis.predicate.keys import INT32_MAX, INT32_MIN, INT64_MAX, LONG_DECIMAL_DIGITS, key_span
from tamis.sieve.domain import Range
from tamis.sieve.order import KeyArray, from_words, mask_of
from tamis.sieve.transforms.partition_values import (
    Problem,
    byte_pieces,
    decimal_words,
    distrust,
    encode_or_report,
    integers,
    kind,
    problems,
)

__all__ = ["can_truncate", "truncate", "truncated_range"]

Found = tuple[Range | None, tuple[Problem, ...]]

_NOT_A_MULTIPLE: Final = "the value is not a multiple of the width: its writer's arithmetic wrapped"
_OUTSIDE: Final = "no value of the column's type truncates to it"
_INVERTED: Final = "the lower bound is above the upper bound"
_UTF8_MARK: Final = 0xC0
_UTF8_CONTINUES: Final = 0x80
_LAST_BYTE: Final = 0xFF


def can_truncate(source: pa.DataType) -> bool:
    """Whether Iceberg truncates this type: ints, decimals, strings and binaries of any length."""
    return kind(source) in {"int", "decimal", "text"} or bool(pt.is_binary(source) or pt.is_large_binary(source))


# -- forwards ----------------------------------------------------------------------------------------------------


def truncate(values: pa.Array, width: int) -> pa.Array:
    """The values truncated as Java does it, wrapping included; bytes and shorts become the ints that Iceberg has.

    A decimal keeps its type, also where the result has one digit more than the type allows.
    """
    if not can_truncate(values.type):
        raise ValueError(f"truncate[{width}] does not take {values.type}: it needs an int, decimal, string or binary")
    match kind(values.type):
        case "int":
            return _truncate_ints(values, width)
        case "decimal":
            return _truncate_decimals(values, width)
        case "text":
            return pc.utf8_slice_codeunits(values, 0, width)  # in spite of its name it counts code points
    return pc.binary_slice(values, 0, width)


def _truncate_ints(values: pa.Array, width: int) -> pa.Array:
    type_ = pa.int64() if pt.is_int64(values.type) else pa.int32()
    numbers = values.cast(type_).fill_null(0).to_numpy(zero_copy_only=False)
    step = numbers.dtype.type(width)
    # v - (((v % W) + W) % W), in which % keeps the sign and all sums wrap.
    return pa.array(numbers - np.fmod(np.fmod(numbers, step) + step, step), type_, mask=~mask_of(values.is_valid()))


def _truncate_decimals(values: pa.Array, width: int) -> pa.Array:
    high, low = decimal_words(values)
    rest = _modulo(high, low, width).view(np.uint64)
    words = np.stack([(low - rest).view(np.int64), high - (low < rest)], axis=1)
    valid = pa.array(mask_of(values.is_valid())).buffers()[1]
    return pa.Array.from_buffers(values.type, len(values), [valid, pa.py_buffer(words.astype("<i8").tobytes())])


def _modulo(high: Int64s, low: UInt64s, width: int) -> Int64s:
    """A 128-bit number modulo a width of at most 31 bits: (high * 2**64 + low) mod W, and never negative."""
    carried = np.mod(high, width) * ((1 << 64) % width) % width
    return (carried + (low % np.uint64(width)).astype(np.int64)) % width


# -- backwards ---------------------------------------------------------------------------------------------------


def truncated_range(width: int, source: pa.DataType, lower: pa.Array, upper: pa.Array) -> Found:
    """The values that truncate to between lower and upper; None if these cannot be truncated values of source."""
    match kind(source):
        case "int":
            sides = integers(lower), integers(upper)
            if sides[0] is not None and sides[1] is not None and not pt.is_date32(lower.type):
                return _int_range(width, source, sides[0], sides[1])
        case "decimal":
            if all(pt.is_null(side.type) or _same_scale(side.type, source) for side in (lower, upper)):
                return _decimal_range(width, source, lower, upper)
        case family:
            if all(kind(side.type) in (family, "null") for side in (lower, upper)):
                return _prefix_range(width, source, lower, upper)
    everywhere = np.ones(len(lower), np.bool_)
    return None, (Problem(everywhere, f"{lower.type} is not a type for the values of truncate on {source}"),)


def _int_range(width: int, source: pa.DataType, lower: KeyArray, upper: KeyArray) -> Found:
    span = key_span(source)
    least, greatest = int(span.least), int(span.greatest or 0)
    long = bool(pt.is_int64(source))
    # W > 2**30 overflows Java's inner sum in 32 bits, and two wraps may make a multiple again. A long column may have
    # been an int one when it was written: only what no int can be is sure.
    ints = (~lower.valid | (lower.keys <= INT32_MAX)) & (~upper.valid | (upper.keys >= INT32_MIN))
    overflow = (lower.valid | upper.valid) & (width > 1 << 30) & (ints | (not long))
    ends = _plus(upper.keys, width - 1)
    outside = (lower.valid & ((lower.keys > greatest) | (_plus(lower.keys, width - 1) < least))) | (
        upper.valid & ((upper.keys > greatest) | (ends < least))
    )
    uneven = (lower.valid & (lower.keys % width != 0)) | (upper.valid & (upper.keys % width != 0))
    found = problems(
        (overflow, f"truncate[{width}] overflows {source} when it is written"),
        (uneven & ~overflow, _NOT_A_MULTIPLE),
        (outside & ~uneven & ~overflow, _OUTSIDE),
        (lower.above(upper), _INVERTED),
    )
    starts = _with_wrapped(width, (32, 64) if long else (32,), lower, upper)
    low = KeyArray(np.clip(starts, least, greatest), lower.valid)
    high = KeyArray(np.clip(ends, least, greatest), upper.valid)
    return Range(*distrust(low, high, found)), found


def _with_wrapped(width: int, sizes: tuple[int, ...], lower: KeyArray, upper: KeyArray) -> Int64s:
    """The lower keys, or the least int where the bounds span the number that the least ints wrap to.

    Bounds of a long column may come from the time when it was an int.
    """
    starts = lower.keys
    for size in sizes:
        least = -(1 << (size - 1))
        wrapped = least // width * width + (1 << size)
        if least % width:
            spans = (~lower.valid | (lower.keys <= wrapped)) & (~upper.valid | (upper.keys >= wrapped))
            starts = np.where(spans, np.minimum(starts, least), starts)
    return starts


def _plus(keys: Int64s, add: int) -> Int64s:
    """Sums that stay at the greatest key instead of wrapping."""
    return np.where(keys > INT64_MAX - add, INT64_MAX, np.minimum(keys, INT64_MAX - add) + add)


def _same_scale(values: pa.DataType, source: pa.DataType) -> bool:
    """Truncation works on unscaled values, so that another scale is another partition."""
    return bool(pt.is_decimal128(values) and values.scale == source.scale)


def _decimal_range(width: int, source: pa.DataType, lower: pa.Array, upper: pa.Array) -> Found:
    valid = [mask_of(side.is_valid()) for side in (lower, upper)]
    lower, upper = (side.cast(source) if pt.is_null(side.type) else side for side in (lower, upper))
    low, high = decimal_words(lower), decimal_words(upper)
    uneven = (valid[0] & (_modulo(*low, width) != 0)) | (valid[1] & (_modulo(*high, width) != 0))
    most = 10**source.precision - 1
    outside = np.zeros(len(lower), np.bool_)
    for side, known in ((low, valid[0]), (high, valid[1])):
        outside |= known & (_below(_split(most), side) | _below(_add(side, width - 1), _split(-most)))
    found = problems(
        (uneven, _NOT_A_MULTIPLE),
        (outside & ~uneven, _OUTSIDE),
        (valid[0] & valid[1] & _below(high, low), _INVERTED),
    )
    ends = _add(high, width - 1)
    starts = _choose(_below(low, _split(-most)), _split(-most), low)
    ends = _choose(_below(_split(most), ends), _split(most), ends)
    keys = [_decimal_key(side, source, known) for side, known in ((starts, valid[0]), (ends, valid[1]))]
    return Range(*distrust(keys[0], keys[1], found)), found


Words = tuple[Int64s, UInt64s]


def _split(number: int) -> Words:
    return np.array([number >> 64], np.int64), np.array([number & ((1 << 64) - 1)], np.uint64)


def _below(left: Words, right: Words) -> Mask:
    return np.asarray((left[0] < right[0]) | ((left[0] == right[0]) & (left[1] < right[1])))


def _add(words: Words, number: int) -> Words:
    low = words[1] + np.uint64(number)
    return words[0] + (low < words[1]), low


def _choose(mask: Mask, left: Words, right: Words) -> Words:
    return np.where(mask, left[0], right[0]), np.where(mask, left[1], right[1])


def _decimal_key(words: Words, source: pa.DataType, valid: Mask) -> KeyArray:
    high, low = words
    if source.precision <= LONG_DECIMAL_DIGITS:
        return KeyArray(low.view(np.int64), valid)
    return KeyArray(from_words(high.view(np.uint64) ^ SIGN_BIT, low), valid)


def _prefix_range(width: int, source: pa.DataType, lower: pa.Array, upper: pa.Array) -> Found:
    (low, low_bad), (high, high_bad) = (encode_or_report(side, source) for side in (lower, upper))
    text = kind(source) == "text"
    sizes = _sizes(high.keys, text=text)
    long = (low.valid & (_sizes(low.keys, text=text) > width)) | (high.valid & (sizes > width))
    found = problems(
        (low_bad | high_bad, f"the value cannot be read as {source}"),
        (long, f"the value is longer than truncate[{width}] leaves it"),
        (low.above(high), _INVERTED),
    )
    ends = _ends(high, cut=sizes >= width)
    return Range(*distrust(low, ends, found), upper_open=True), found


def _sizes(keys: pa.LargeBinaryArray, *, text: bool) -> Int64s:
    """Lengths in bytes, or in code points: the bytes of UTF-8 that continue none."""
    starts, lengths, data = byte_pieces(keys)
    if not text:
        return lengths
    begun = np.concatenate([[0], np.cumsum((data & _UTF8_MARK) != _UTF8_CONTINUES)])
    return np.asarray(begun[starts + lengths] - begun[starts])


def _ends(keys: KeyArray, *, cut: Mask) -> KeyArray:
    """What lies just above every value of a prefix: above the prefix itself alone where it was not cut.

    [p, p + NUL) holds p alone. All that starts with p lies in [p, q), where q is p with its last byte increased,
    after bytes 0xFF at the end have gone; if nothing is left then nothing lies above. UTF-8 has no byte 0xFF.
    """
    starts, lengths, data = byte_pieces(keys.keys)
    kept = lengths.copy()
    rows = np.flatnonzero(cut & (kept > 0))
    while len(rows):
        rows = rows[data[starts[rows] + kept[rows] - 1] == _LAST_BYTE]
        kept[rows] -= 1
        rows = rows[kept[rows] > 0]
    endless = cut & (kept == 0)
    sizes = np.where(cut, kept, kept + 1)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    taken = data[np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)]
    taken[offsets[1:][~cut] - 1] = 0
    taken[offsets[1:][cut & ~endless] - 1] += 1
    buffers = [None, pa.py_buffer(offsets.astype(np.int64).tobytes()), pa.py_buffer(taken.tobytes())]
    ends = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(keys), buffers)
    return KeyArray(ends, keys.valid & ~endless)
