"""Column statistics of a Delta log as bounds and counts that hold of every row.

Law: a lower bound is at or below every value of its file, an upper bound at or above. Writers' habits widen them:

- Strings are cut to a prefix. Spark makes the upper bound of a cut one greater than all that begins with it; other
  writers only cut, at 32 characters, UTF-16 units or bytes. So an upper bound that may be cut, of 29 bytes or more (a
  character has up to 4, and is not cut in two), reaches to the end of all that begins with it.
- Timestamps are cut to milliseconds: floor(v) <= v <= floor(v) + 999 us.
- Their offset from UTC may be cut to minutes. Zones whose offset had seconds ended in January 1972: whatever lies
  before 1973 may be up to 59 s off, on either side.
- A float that is a double by now was written as short as a float can be: 1.1 stands for 1.10000002384185791.
- Decimals may have passed through a double (delta-rs calculates unscaled / 10**scale in one): unscaled values of 48
  bits or more are off by up to a few 2**-53 of themselves, smaller ones come back exactly.
- With a deletion vector, or tightBounds false, bounds hold still; a null count only if it is 0 or counts all rows.
- A null count of an array or a map may be that of its elements, which is no less: it says something only if it is 0.

Nothing is said of NaN, which some writers leave out of their bounds, and some not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from tamis.formats.delta.schema import DeltaField, DeltaSchema
from tamis.formats.delta.stats_counts import read_counts
from tamis.formats.delta.stats_json import read_stats
from tamis.formats.delta.text_values import dates, moments
from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.keys import INT64_MAX, INT64_MIN, has_order
from tamis.predicate.names import split_name
from tamis.predicate.schema import Column, ColumnId
from tamis.predicate.type_names import family, is_bytes, is_text
from tamis.predicate.units import DAY, SECOND
from tamis.sieve.domain import ColumnStats
from tamis.sieve.order import mask_of
from tamis.sieve.transforms.partition_values import decimal_words

__all__ = ["FileStatistics", "column_stats"]

MAYBE_CUT: Final = 32 - 3
"""Bytes of the shortest string that may be a prefix of 32 bytes, cut at a character."""
_WITHIN_MILLI: Final = 999
_WITHIN_MINUTE: Final = 59 * SECOND
_OFFSETS_HAVE_SECONDS: Final = 3 * 365 * DAY
"""Before 1973, in microseconds."""
_DIGITS_OF_A_DOUBLE: Final = 15
"""Decimals of fewer digits pass through a double unchanged."""
_BOUNDS: Final = ("minValues", "maxValues")


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """What the log says of each file of a batch."""

    columns: Mapping[ColumnId, ColumnStats]
    num_records: pa.Array
    """Rows, those that a deletion vector deletes included; null if unknown."""
    unread: Mask
    """Files of whose statistics something could not be read: it says nothing, and the file is kept for it."""
    notes: tuple[str, ...] = ()


def column_stats(
    schema: DeltaSchema | None,
    wanted: Iterable[Column | ColumnId],
    *,
    json: pa.Array | None = None,
    parsed: pa.StructArray | None = None,
    has_vector: Mask,
) -> FileStatistics:
    """The statistics of the wanted columns, from the log's strings, a checkpoint's stats_parsed, or both.

    Of a file that has both, a column is taken from stats_parsed if that has it: a checkpoint's writer derived it from
    the string. Where nothing is wanted but row counts no schema is needed.
    """
    count = len(has_vector)
    fields = [] if schema is None else [schema.field(one.id if isinstance(one, Column) else one) for one in wanted]
    fields = [field for field in {field.id: field for field in fields}.values() if not field.children]
    unread, notes = np.zeros(count, np.bool_), []
    sources: list[_Source] = []
    if parsed is not None:
        sources.append(_Source(parsed, typed=True))
    if json is not None and (parsed is None or not _has_all(parsed, fields)):
        floats = any(pt.is_floating(field.type) for field in fields)
        read = read_stats(json, _shape(fields), floats=floats) if fields else read_counts(json)
        sources.append(_Source(read.values, typed=False))
        unread |= read.failed
        if read.failed.any():
            notes.append(f"statistics of {int(read.failed.sum()):,} files cannot be read in full, and are not used")
    rows = _first(source.numbers(("numRecords",)) for source in sources) or pa.nulls(count, pa.int64())
    loose = has_vector | ~mask_of(_first(source.flags() for source in sources) or pa.array(np.ones(count, np.bool_)))
    columns: dict[ColumnId, ColumnStats] = {}
    for field in fields:
        stats, bad = _column(field, sources, rows, loose)
        columns[field.id] = stats
        if bad.any():
            unread |= bad
            notes.append(f"bounds of {field.id} in {int(bad.sum()):,} files cannot be read, and are not used")
    return FileStatistics(columns, rows, unread, tuple(notes))


# -- where statistics come from ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Source:
    """Statistics as a struct of structs, from strings or typed by a checkpoint's writer."""

    values: pa.StructArray
    typed: bool

    def at(self, path: tuple[str, ...]) -> pa.Array | None:
        """What stands there, null where a struct around it is null; None if there is no such field."""
        found: pa.Array = self.values
        for name in path:
            if not pt.is_struct(found.type) or (place := found.type.get_field_index(name)) < 0:
                return None
            found = pc.struct_field(found, [place])
        return found

    def numbers(self, path: tuple[str, ...]) -> pa.Array | None:
        found = self.at(path)
        return found.cast(pa.int64()) if found is not None and pt.is_integer(found.type) else None

    def flags(self) -> pa.Array | None:
        """tightBounds, true where it is not said."""
        found = self.at(("tightBounds",))
        return found.fill_null(True) if found is not None and pt.is_boolean(found.type) else None  # noqa: FBT003


def _first(found: Iterable[pa.Array | None]) -> pa.Array | None:
    """Of each file what the first source says that says anything."""
    arrays = [one for one in found if one is not None]
    return pc.coalesce(*arrays) if len(arrays) > 1 else arrays[0] if arrays else None


def _has_all(parsed: pa.StructArray, fields: list[DeltaField]) -> bool:
    """Whether stats_parsed leaves nothing to the strings."""
    source = _Source(parsed, typed=True)
    return not parsed.null_count and all(
        source.at((part, *_path(field))) is not None
        for field in fields
        for part in ("nullCount", *(_BOUNDS if _has_bounds(field) else ()))
    )


def _path(field: DeltaField) -> tuple[str, ...]:
    return split_name(field.id) or (field.physical_name,)


def _has_bounds(field: DeltaField) -> bool:
    """Delta keeps none of booleans and binaries; of what has no order they would say nothing."""
    return has_order(field.type) and not pt.is_boolean(field.type) and not is_bytes(field.type)


def _shape(fields: list[DeltaField]) -> pa.StructType:
    """The type of the strings' wanted part: numbers as themselves, all else as texts."""
    bounds: dict[str, Any] = {}
    counts: dict[str, Any] = {}
    for field in fields:
        _put(counts, _path(field), pa.int64())
        if _has_bounds(field):
            texts = is_text(field.type) or pt.is_temporal(field.type)
            _put(bounds, _path(field), pa.string() if texts else field.type)
    parts = {"numRecords": pa.int64(), "tightBounds": pa.bool_()}
    parts |= {part: _struct(bounds) for part in _BOUNDS if bounds}
    if counts:
        parts["nullCount"] = _struct(counts)
    return pa.struct(list(parts.items()))


def _put(tree: dict[str, Any], path: tuple[str, ...], type_: pa.DataType) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = type_


def _struct(tree: dict[str, Any]) -> pa.StructType:
    return pa.struct([(name, _struct(one) if isinstance(one, dict) else one) for name, one in tree.items()])


# -- what they say -----------------------------------------------------------------------------------------------


def _column(field: DeltaField, sources: list[_Source], rows: pa.Array, loose: Mask) -> tuple[ColumnStats, Mask]:
    path = _path(field)
    bad = np.zeros(len(rows), np.bool_)
    sides: list[pa.Array | None] = [None, None]
    if _has_bounds(field):
        for side, part in enumerate(_BOUNDS):
            values = []
            for source in sources:
                found = source.at((part, *path))
                if found is not None:
                    value, failed = _typed(found, field) if source.typed else _read(found, field)
                    bad |= failed
                    values.append(value)
            sides[side] = _first(values)
    lower, upper = _widened(field, *sides)
    nulls = _first(source.numbers(("nullCount", *path)) for source in sources)
    if nulls is not None and field.items:
        nulls = pc.if_else(pc.equal(nulls, 0), nulls, pa.scalar(None, pa.int64()))
    if nulls is not None and loose.any():
        sure = pc.fill_null(pc.or_kleene(pc.equal(nulls, 0), pc.equal(nulls, rows)), fill_value=False)
        nulls = pc.if_else(pc.or_(sure, pa.array(~loose)), nulls, pa.scalar(None, pa.int64()))
    return ColumnStats(lower, upper, nulls, None, rows), bad


def _read(values: pa.Array, field: DeltaField) -> tuple[pa.Array, Mask]:
    """Bounds of the column's type from what the strings have, null where they are none; and where that is so."""
    type_ = field.type
    if pt.is_date32(type_):
        found = dates(values)
    elif pt.is_timestamp(type_):
        times = moments(values)
        # delta-rs writes a Z behind wall clocks as well: it is no zone, since the column has none.
        ok = times.valid & (times.zoned if type_.tz is not None else times.offset == 0)
        found = pa.array(np.where(ok, times.instant, 0), mask=~ok).view(type_)
    else:
        return values, np.zeros(len(values), np.bool_)
    return found, mask_of(pc.and_(values.is_valid(), found.is_null()))


def _typed(values: pa.Array, field: DeltaField) -> tuple[pa.Array, Mask]:
    """Bounds of the column's type from a checkpoint's; null, and bad, if those are of a type that cannot widen."""
    if values.type == field.type:
        return values, np.zeros(len(values), np.bool_)
    was, now = family(values.type), family(field.type)
    widens = was == now or (was == "int" and now in {"decimal", "float"})
    if widens or (pt.is_date32(values.type) and now == "timestamp"):
        try:
            return values.cast(field.type), np.zeros(len(values), np.bool_)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
    return pa.nulls(len(values), field.type), mask_of(values.is_valid())


def _widened(
    field: DeltaField, lower: pa.Array | None, upper: pa.Array | None
) -> tuple[pa.Array | None, pa.Array | None]:
    """The bounds as far apart as a writer's habits may need."""
    if is_text(field.type):
        return lower, None if upper is None else _above_prefix(upper)
    if pt.is_timestamp(field.type):
        return _moved(lower, _earliest), _moved(upper, _latest)
    if pt.is_decimal128(field.type):
        return _decimals(lower, -1), _decimals(upper, 1)
    if pt.is_float64(field.type) and field.widened_from("float"):
        return _floats(lower, np.fmin), _floats(upper, np.fmax)
    return lower, upper


def _above_prefix(upper: pa.Array) -> pa.Array:
    """Binary bounds above all that begins with a string that may have been cut; the others as they are.

    p with its last byte increased lies above all that begins with p, and UTF-8 has no last byte that overflows.
    """
    keys = upper.cast(pa.large_binary())
    _, offsets, data = keys.buffers()
    if not len(keys) or data is None:
        return upper
    ends = np.frombuffer(offsets, np.int64)[keys.offset : keys.offset + len(keys) + 1]
    cut = (np.diff(ends) >= MAYBE_CUT) & mask_of(keys.is_valid())
    if not cut.any():
        return upper
    changed = np.frombuffer(data, np.uint8).copy()
    changed[ends[1:][cut] - 1] += 1
    buffers = [keys.buffers()[0], offsets, pa.py_buffer(changed)]
    return pa.Array.from_buffers(pa.large_binary(), len(keys), buffers, offset=keys.offset)


def _moved(bound: pa.Array | None, move: Callable[[Int64s], Int64s]) -> pa.Array | None:
    if bound is None:
        return None
    micros = bound.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(move(micros), mask=~mask_of(bound.is_valid())).view(bound.type)


def _earliest(micros: Int64s) -> Int64s:
    loose = np.where(micros < _OFFSETS_HAVE_SECONDS, _WITHIN_MINUTE, 0)
    return np.asarray(np.maximum(micros, INT64_MIN + _WITHIN_MINUTE) - loose)


def _latest(micros: Int64s) -> Int64s:
    loose = np.where(micros < _OFFSETS_HAVE_SECONDS, _WITHIN_MINUTE, 0) + _WITHIN_MILLI
    return np.asarray(np.minimum(micros, INT64_MAX - _WITHIN_MILLI) + loose)


def _decimals(bound: pa.Array | None, sign: int) -> pa.Array | None:
    """The bounds moved outwards by 2**-48 of themselves, rounded down: not at all below 2**48.

    delta-rs writes those without a scale as longs; where they are none, as the greatest or the least one, which then
    says nothing.
    """
    if bound is None or bound.type.precision < _DIGITS_OF_A_DOUBLE:
        return bound
    high, low = decimal_words(bound)
    negative = high < 0
    magnitude = np.where(negative, ~low + np.uint64(1), low)
    top = np.where(negative, ~high + (low == 0), high).view(np.uint64)
    more = (magnitude >> np.uint64(48)) | (top << np.uint64(16))
    over = (top >> np.uint64(48)).view(np.int64)
    moved = low + more if sign > 0 else low - more
    carried = moved < low if sign > 0 else moved > low
    words = np.stack([moved.view(np.int64), high + sign * (over + carried)], axis=1)
    valid = mask_of(bound.is_valid())
    if bound.type.scale == 0:
        ends = (low == np.uint64(1 << 63)) | ((sign > 0) & (low == np.uint64((1 << 63) - 1)))
        valid = valid & ~(ends & (high == (0 if sign > 0 else -1)))
    validity = None if valid.all() else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(bound.type, len(bound), [validity, pa.py_buffer(np.ascontiguousarray(words))])


def _floats(bound: pa.Array | None, choose: Any) -> pa.Array | None:  # noqa: ANN401 - a ufunc of numpy
    """The further of a double and of the float that is written so."""
    if bound is None:
        return None
    doubles = bound.fill_null(0.0).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):
        floats = doubles.astype(np.float32).astype(np.float64)
    return pa.array(choose(doubles, floats), mask=~mask_of(bound.is_valid()))
