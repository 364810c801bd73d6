"""Column statistics of manifest entries: BinaryRows of least and greatest values, and null counts.

Law: a lower bound is at or below every value of its file, an upper bound at or above, in the type that the column has
today. What a file says follows the schema that it was written with, and the list of columns that its statistics have:

- A column is found by its id in the file's schema: by its place there, or by its name in `_VALUE_STATS_COLS`.
- A column that is younger than the file is NULL in all its rows.
- A bound of an older type holds where every value of that type is the same value of today's: ints and floats that
  were widened, decimals with more digits before the point, longer texts. Of other changes nothing is said.
- Java cuts texts to 16 characters, and makes the last one of an upper bound one greater: a bound either way. If that
  is half a character (behind U+D7FF) it is written as `?`: an upper bound that ends so reaches up to U+E000.
- pypaimon cuts nanoseconds to microseconds, and times to milliseconds: upper bounds reach to the end of these.
- A bound that is NaN says nothing: Java's greatest value is NaN where there is one, and pypaimon's is not.
- Rows of another number of fields than the columns are not understood, and say nothing; nor does an empty row, which
  writers leave that keep no statistics.
- A null count that is null, negative or not there is not known. Counts could not be null in Paimon's first versions,
  and columns without statistics were written as 0: such a 0 is believed only beside a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from tamis.formats.paimon.binary_row import BinaryRows
from tamis.formats.paimon.schema import PaimonField, PaimonSchema
from tamis.formats.paimon.sheets import UNSURE
from tamis.predicate.arrays import Int64s
from tamis.predicate.keys import has_order
from tamis.predicate.schema import Column, ColumnId
from tamis.predicate.type_names import family, is_text
from tamis.printable import printable
from tamis.sieve.domain import ColumnStats
from tamis.sieve.order import mask_of

__all__ = ["Source", "column_stats", "numbered", "widens"]

_ABSENT: Final = -1
"""Statistics do not have the column."""
_YOUNGER: Final = -2
"""The file's schema does not have it."""
_FEW: Final = 1 << 16
_WITHIN: Final = 999
"""The last of a thousand, from the first."""
_HALVED: Final = "?"
_ABOVE_HALVES: Final = "\ue000"


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Statistics of one kind, keys' or values', of some files."""

    lower: BinaryRows
    upper: BinaryRows
    nulls: pa.ListArray
    schema_ids: Int64s
    columns: pa.Array | None
    """The columns that each file's statistics have, by name; null for all of its schema's, or its key's."""
    of: Callable[[PaimonSchema], Sequence[PaimonField]]
    """All columns that statistics of a schema have, where no list says less."""
    written: pa.Array | None = None
    """The columns that each file has; null for all of its schema's."""


def column_stats(
    schema: PaimonSchema,
    schemas: Mapping[int, PaimonSchema],
    wanted: Iterable[Column],
    source: Source,
    rows: pa.Array,
) -> tuple[dict[ColumnId, ColumnStats], list[str]]:
    """The statistics of the wanted columns, and what is to be said of those that were left out."""
    layouts, notes = _layouts(source, schemas)
    found: dict[ColumnId, ColumnStats] = {}
    for column in wanted:
        today = schema.field(column.id)
        if today is None or column.nested or not today.paimon_type or schema.has_read_default(today):
            continue
        stats, note = _column(today, source, layouts, rows)
        found[column.id] = stats
        notes += note
    return found, notes


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """Files of one schema, whose statistics have the same columns."""

    files: Int64s
    schema: PaimonSchema
    names: tuple[str, ...]


def _layouts(source: Source, schemas: Mapping[int, PaimonSchema]) -> tuple[list[_Layout], list[str]]:
    """Files by what their statistics have; those that are not understood are in none of them."""
    listed, lists = _numbered(source.columns, len(source.schema_ids))
    written, writes = _numbered(source.written, len(source.schema_ids))
    ids, id_codes = numbered(source.schema_ids)
    kinds, members = numbered((id_codes * len(lists) + listed) * len(writes) + written)
    found, unknown, misfit = [], 0, 0
    for number, kind in enumerate(kinds.tolist()):
        files = np.flatnonzero(members == number) if len(kinds) > 1 else np.arange(len(members))
        (place, listing), writing = divmod(kind // len(writes), len(lists)), kind % len(writes)
        schema = schemas.get(int(ids[place]))
        if schema is None:
            unknown += len(files)
            continue
        names = lists[listing]
        if names is None:
            names = tuple(one.name for one in source.of(schema))
            has = writes[writing]
            if has is not None and tuple(name for name in has if name in set(names)) != names:
                continue  # the file has some of the columns, and its statistics do not say which
        fits = (source.lower.arity[files] == len(names)) & (source.upper.arity[files] == len(names))
        empty = (source.lower.arity[files] <= 0) & (source.upper.arity[files] <= 0)
        misfit += int((~fits & ~empty).sum())
        found.append(_Layout(files[fits], schema, names))
        # Null counts and bounds are written together: without the one, the other is not trusted. Only that a column
        # is younger than its file can be told of any file.
        found.append(_Layout(files[~fits], schema, ()))
    notes = []
    if unknown:
        notes.append(f"statistics of {unknown:,} files are not used: there is no schema of the id that they name")
    if misfit:
        notes.append(f"statistics of {misfit:,} files are not used: they do not have the columns that they name")
    return found, notes


def numbered(values: Int64s) -> tuple[Int64s, Int64s]:
    """The distinct numbers, ascending, and of each value the place of its number.

    Few distinct ones that are close together are the rule, and are told without sorting.
    """
    least = int(values.min(initial=0))
    span = int(values.max(initial=0)) - least + 1
    if span > max(len(values), _FEW):
        found, places = np.unique(values, return_inverse=True)
        return found, places
    there = np.zeros(span, np.bool_)
    there[values - least] = True
    found = np.flatnonzero(there)
    place = np.cumsum(there) - 1
    return found + least, place[values - least]


def _numbered(lists: pa.Array | None, count: int) -> tuple[Int64s, list[tuple[str, ...] | None]]:
    """Of each file the number of its list of names, and the lists; None for no list."""
    if lists is None or lists.null_count == len(lists):
        return np.zeros(count, np.int64), [None]
    encoded = pc.binary_join(lists, "\0").dictionary_encode(null_encoding="encode")
    empty = mask_of(pc.equal(pc.list_value_length(lists), 0).fill_null(False))  # noqa: FBT003 - of no list
    texts = [None if one is None else tuple(one.split("\0")) for one in encoded.dictionary.to_pylist()]
    numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    if empty.any():
        # A list without names and one with an empty name are joined alike.
        numbers = np.where(empty, len(texts), numbers)
        texts.append(())
    return numbers, texts


def _column(
    today: PaimonField, source: Source, layouts: Sequence[_Layout], rows: pa.Array
) -> tuple[ColumnStats, list[str]]:
    count = len(source.schema_ids)
    places = np.full(count, _ABSENT, np.int64)
    kinds: dict[PaimonField, list[Int64s]] = {}
    changed = 0
    for layout in layouts:
        past = layout.schema.field(today.id)
        if past is None:
            places[layout.files] = _YOUNGER
        elif past.name in layout.names and not widens(past, today):
            changed += len(layout.files)
        elif past.name in layout.names:
            places[layout.files] = layout.names.index(past.name)
            kinds.setdefault(_kind(past), []).append(layout.files)
    lower, upper = (_bounds(side, places, kinds, today) for side in (source.lower, source.upper))
    nulls = _counts(source.nulls, places, lower, upper)
    younger = places == _YOUNGER
    if younger.any():
        known = pa.array(younger & (today.default is None))
        nulls = pc.if_else(known, rows, nulls)
    notes = []
    if changed:
        name = printable(today.name)
        notes.append(
            f"bounds of {name} in {changed:,} files are not used: it had another type when they were written"
        )
    return ColumnStats(lower, _reaching(upper), nulls), notes


def _kind(field: PaimonField) -> PaimonField:
    """What decides how a value is decoded."""
    return PaimonField(0, "", field.type, precision=field.precision)


def _bounds(
    side: BinaryRows, places: Int64s, kinds: Mapping[PaimonField, Sequence[Int64s]], today: PaimonField
) -> pa.Array | None:
    """The bounds in the type of today; None if nothing can be said of any file."""
    if not has_order(today.type) or not kinds:
        return None
    parts, files = [], []
    for kind, members in kinds.items():
        taken = np.concatenate(list(members))
        decoded = side.take(taken).field(places[taken], kind)
        values = decoded.values
        if pt.is_floating(values.type):
            values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
        parts.append(values.cast(today.type))
        files.append(taken)
    every = np.concatenate(files)
    if len(every) == len(places) and np.array_equal(every, np.arange(len(places))):
        return pa.concat_arrays(parts) if len(parts) > 1 else parts[0]
    order = np.full(len(places), len(every), np.int64)
    order[every] = np.arange(len(every))
    # The last one stands for the files of which nothing is said.
    return pa.concat_arrays([*parts, pa.nulls(1, today.type)]).take(pa.array(order))


def _counts(lists: pa.ListArray, places: Int64s, lower: pa.Array | None, upper: pa.Array | None) -> pa.Array:
    """The null count at its place in each file's list; null where there is none."""
    has = mask_of(lists.is_valid()) & (places >= 0)
    offsets = lists.offsets.to_numpy().astype(np.int64)
    sizes = np.diff(offsets)
    has &= places < sizes
    values = lists.values
    if not has.any() or not len(values):
        return pa.nulls(len(places), pa.int64())
    at = pa.array(np.where(has, offsets[:-1] + places, 0), mask=~has)
    found = values.take(at)
    unknown = pc.less(found, 0)
    if not pc.any(unknown).as_py():
        return found
    if lower is not None and upper is not None:
        counted = pc.and_(pc.equal(found, UNSURE), pc.or_(lower.is_valid(), upper.is_valid()))
        found, unknown = pc.if_else(counted, 0, found), pc.and_not(unknown, counted)
    return pc.if_else(unknown, pa.scalar(None, pa.int64()), found)


def _reaching(upper: pa.Array | None) -> pa.Array | None:
    """Upper bounds that are at or above every value, whatever a writer has cut."""
    if upper is None or not (is_text(upper.type) or pt.is_temporal(upper.type)):
        return upper
    if pt.is_time(upper.type) or (pt.is_timestamp(upper.type) and upper.type.unit == "ns"):
        counts = upper.view(pa.int64())
        return pc.subtract(pc.add(counts, _WITHIN), _modulo(counts)).view(upper.type)
    if pt.is_temporal(upper.type):
        return upper
    halved = pc.ends_with(upper, _HALVED)
    if not pc.any(halved).as_py():
        return upper
    longer = pc.binary_join_element_wise(
        pc.utf8_slice_codeunits(upper, 0, -1), pa.scalar(_ABOVE_HALVES, upper.type), pa.scalar("", upper.type)
    )
    return pc.if_else(halved, longer, upper)


def _modulo(counts: pa.Array) -> pa.Array:
    return pa.array(counts.fill_null(0).to_numpy(zero_copy_only=False) % (_WITHIN + 1))


def widens(past: PaimonField, today: PaimonField) -> bool:
    """Whether every value of the type that a column had is the same value, in the same order, of the type it has."""
    if not has_order(past.type) or not has_order(today.type):
        return bool(past.type == today.type)
    if past.type == today.type:
        longer = today.length is None or (past.length is not None and past.length <= today.length)
        return longer and (past.precision or 0) <= (today.precision or 0)
    if pt.is_decimal(past.type) and pt.is_decimal(today.type):
        return bool(past.type.scale == today.type.scale and past.type.precision <= today.type.precision)
    if family(past.type) not in {"int", "float"} or family(past.type) != family(today.type):
        return False
    return bool(past.type.bit_width < today.type.bit_width)
