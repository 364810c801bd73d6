"""Partition values as numbers, words and bytes, read with distrust.

Law: a value that cannot be read, or that its transform cannot have produced, says nothing. It is reported as a
Problem, and both sides of its entry become unbounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import typing as npt
from pyarrow import types as pt

from tamis.predicate.arrays import Int64s, Mask, UInt64s
from tamis.predicate.type_names import family
from tamis.sieve.order import KeyArray, encode, mask_of

__all__ = [
    "Problem",
    "byte_pieces",
    "decimal_words",
    "distrust",
    "encode_or_report",
    "fits",
    "flat",
    "integers",
    "kind",
    "problems",
]

Words = tuple[Int64s, UInt64s]
_KINDS: Final = {"uuid": "bytes", "zoned": "timestamp"}
"""Families whose partition values are alike: of a UUID they are its bytes, of an instant the same numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Entries whose partition values are not trusted, and why."""

    mask: Mask
    text: str


def problems(*found: tuple[Mask, str]) -> tuple[Problem, ...]:
    """Those that concern any entry at all."""
    return tuple(Problem(mask, text) for mask, text in found if mask.any())


def distrust(lower: KeyArray, upper: KeyArray, found: tuple[Problem, ...]) -> tuple[KeyArray, KeyArray]:
    """Both sides without the entries that have a problem on either side."""
    for problem in found:
        lower, upper = lower.keep(~problem.mask), upper.keep(~problem.mask)
    return lower, upper


def flat(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One plain array: chunks joined, dictionaries and extension types undone."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def kind(type_: pa.DataType) -> str:
    """The family of a type: within one family a narrower type widens to a wider one."""
    found = family(type_)
    return _KINDS.get(found, found)


def fits(values: pa.DataType, source: pa.DataType) -> bool:
    """Whether identity partition values of this type can belong to a column that is of type source by now."""
    if pt.is_null(values) or kind(values) == kind(source):
        return True
    # Avro holds a date as an int. A date column may have become a timestamp, but not one with a zone.
    if pt.is_date32(values):
        return bool(pt.is_timestamp(source) and source.tz is None)
    return bool(pt.is_int32(values) and pt.is_date32(source))


def integers(array: pa.Array) -> KeyArray | None:
    """Ordinals, whether they come as ints or as dates; None for other types."""
    valid = mask_of(array.is_valid())
    if pt.is_null(array.type):
        return KeyArray(np.zeros(len(array), np.int64), valid)
    if pt.is_date32(array.type):
        array = array.view(pa.int32())
    if not pt.is_signed_integer(array.type):
        return None
    return KeyArray(array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64), valid)


def decimal_words(array: pa.Array) -> Words:
    """The unscaled values as a signed high and an unsigned low word; any words where null."""
    words = np.frombuffer(array.buffers()[1], "<i8").reshape(-1, 2)[array.offset : array.offset + len(array)]
    return words[:, 1].copy(), words[:, 0].copy().view(np.uint64)


def byte_pieces(array: pa.LargeBinaryArray) -> tuple[Int64s, Int64s, npt.NDArray[np.uint8]]:
    """Where each value starts, how long it is, and the bytes of them all, followed by at least four zeros."""
    count = len(array)
    _, offset_buffer, data_buffer = array.buffers()
    if not count:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(4, np.uint8)
    offsets = np.frombuffer(offset_buffer, np.int64)[array.offset : array.offset + count + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.zeros(last - first + 4, np.uint8)
    if last > first:
        data[:-4] = np.frombuffer(data_buffer, np.uint8)[first:last]
    return offsets[:-1] - first, np.diff(offsets), data


def encode_or_report(array: pa.Array, type_: pa.DataType) -> tuple[KeyArray, Mask]:
    """The keys of what fits type_, and where a value does not."""
    try:
        return encode(array, type_), np.zeros(len(array), np.bool_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    # Only now value by value, and each distinct one once: what a healthy table never needs.
    distinct = array.dictionary_encode()
    good = np.array([_encodes(value, type_) for value in distinct.dictionary] or [True])
    bad = mask_of(array.is_valid()) & ~good[distinct.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    kept = pc.if_else(pa.array(bad), pa.scalar(None, array.type), array)
    return encode(kept if good.any() else pa.nulls(len(array)), type_), bad


def _encodes(value: pa.Scalar, type_: pa.DataType) -> bool:
    try:
        encode(pa.repeat(value, 1), type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True
