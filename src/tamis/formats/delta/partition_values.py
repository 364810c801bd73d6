"""Partition values: the log's map of texts as typed columns, each distinct text decoded once.

Law: a value is what every engine reads the text as, or it is undecoded: then its file is kept, noted and counted.
Engines disagree on an empty text of a string column and on timestamps without a zone, so that these are undecoded
(but for a zone that the caller names). The map is trusted before `partitionValues_parsed`, which a checkpoint's
writer derived from it, by rules and in a time zone of its own: of the two only the map is part of the protocol for
readers. The parsed values are taken where there is no map.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from tamis.formats.delta.schema import DeltaField, DeltaSchema
from tamis.formats.delta.text_values import HIVE_NULL, cast_texts, dates, moments
from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.compare.zones import Zone
from tamis.predicate.keys import has_order
from tamis.predicate.type_names import is_bytes, is_text, type_name
from tamis.printable import printable
from tamis.sieve.order import mask_of
from tamis.sieve.partitions import Undecoded

__all__ = ["instants", "is_zoned", "partition_columns", "wall_times"]

EMPTY_TEXT: Final = "engines read an empty text as NULL or as empty"
"""Why the empty text of a string or a binary is undecoded. Spark reads it as empty."""
_REPLACED: Final = "\N{REPLACEMENT CHARACTER}"
_LONGEST: Final = 40

Decode = Callable[[pa.Array], pa.Array]
"""Distinct texts, none null or empty, to values; null where a text is not decoded."""


@dataclass(frozen=True, slots=True)
class _Texts:
    """One column's texts: of each file the number of its text, and whether anything is known of it at all."""

    distinct: pa.Array
    codes: Int64s
    """-1 for NULL."""
    unknown: Mask
    why: str = ""

    @property
    def written(self) -> pa.Array:
        """Each file's text; null for NULL, and where it is not known."""
        return self.distinct.take(pa.array(self.codes, mask=self.codes < 0))


def partition_columns(
    maps: pa.Array | pa.ChunkedArray,
    schema: DeltaSchema,
    zone: Zone | None = None,
    parsed: pa.StructArray | None = None,
) -> tuple[pa.StructArray, tuple[Undecoded, ...]]:
    """A child for each partition column, in the schema's order, and what could not be decoded.

    maps is the log's map<string, string>, keyed by physical names; a key that is missing is NULL. zone is the time
    zone of timestamps that say none: without it they are undecoded.
    """
    maps = _whole(maps)
    entries = _Entries.of(maps)
    children, undecoded = [], []
    for place, field in enumerate(schema.partition_fields):
        texts = entries.texts(field.physical_name)
        values, failed = _column(texts, field, zone)
        if parsed is not None:
            values, failed = _with_parsed(values, failed, entries.present, field, parsed)
        undecoded += [
            Undecoded(place, rows, why, texts.written, empty=why == EMPTY_TEXT) for rows, why in failed if rows.any()
        ]
        children.append(values)
    fields = [
        pa.field(field.name, child.type) for field, child in zip(schema.partition_fields, children, strict=True)
    ]
    if not fields:
        return pa.array([{}] * len(maps), pa.struct([])), ()
    return pa.StructArray.from_arrays(children, fields=fields), tuple(undecoded)


def wall_times(maps: pa.Array | pa.ChunkedArray, schema: DeltaSchema) -> dict[int, pa.Array]:
    """What clocks show of the texts that say no zone, though their column has one: microseconds, by column and file.

    Null of every other text; a column whose texts all say their zone is not there.
    """
    found: dict[int, pa.Array] = {}
    for place, field in enumerate(schema.partition_fields):
        if is_zoned(field):
            texts = _Entries.of(_whole(maps)).texts(field.physical_name)
            times = moments(texts.distinct)
            bare = _of(times.valid & ~times.zoned, texts.codes)
            if bare.any():
                found[place] = pa.array(np.append(times.wall, 0)[texts.codes], pa.int64(), mask=~bare)
    return found


def instants(walls: pa.Array, zone: Zone, type_: pa.DataType) -> pa.Array:
    """The instants that Spark takes for what clocks in a zone show; null where the zone's rules do not tell."""
    distinct = walls.dictionary_encode()
    taken = [zone.taken(wall) for wall in distinct.dictionary.to_pylist()]
    values = pa.array([first if first == last else None for first, last in taken], pa.int64())
    return values.take(distinct.indices).view(type_)


def is_zoned(field: DeltaField) -> bool:
    """Whether a column's values are instants: only of these a zone tells the value of a text without one."""
    return bool(pt.is_timestamp(field.type) and field.type.tz is not None)


def _whole(maps: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(maps, pa.ChunkedArray):
        return maps.combine_chunks() if maps.num_chunks != 1 else maps.chunk(0)
    return maps


@dataclass(frozen=True, slots=True)
class _Entries:
    """All files' maps as one list of entries."""

    keys: pa.DictionaryArray
    values: pa.Array
    files: Int64s
    """Which file each entry belongs to."""
    present: Mask
    """Which files have a map."""

    @classmethod
    def of(cls, maps: pa.MapArray) -> _Entries:
        offsets = maps.offsets.to_numpy().astype(np.int64)
        present = mask_of(maps.is_valid())
        # A null map may span entries all the same: they belong to nobody.
        sizes = np.where(present, np.diff(offsets), 0)
        files = np.repeat(np.arange(len(maps)), sizes)
        starts = np.repeat(offsets[:-1] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes) if len(maps) else files
        rows = pa.array(starts + np.arange(len(files)))
        keys = pa.array(maps.keys).take(rows).cast(pa.string()).dictionary_encode()
        return cls(keys, pa.array(maps.items).take(rows).cast(pa.string()), files, present)

    def texts(self, name: str) -> _Texts:
        """The texts under that key. Unknown: files without a map, or with two such keys, or one in another case."""
        known = self.keys.dictionary.to_pylist()
        codes = self.keys.indices.to_numpy(zero_copy_only=False)
        same = [place for place, key in enumerate(known) if key == name]
        alike = [place for place, key in enumerate(known) if key != name and key.lower() == name.lower()]
        mine = np.isin(codes, same)
        count = len(self.present)
        times = np.bincount(self.files[mine], minlength=count)
        stray = np.bincount(self.files[np.isin(codes, alike)], minlength=count) if alike else np.zeros(count)
        entries = pa.array(np.flatnonzero(mine))
        encoded = self.values.take(entries).dictionary_encode()
        numbers = np.full(count, -1, np.int64)
        numbers[self.files[mine]] = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        unknown = ~self.present | (times > 1) | ((times == 0) & (stray > 0))
        return _Texts(encoded.dictionary, np.where(unknown, -1, numbers), unknown)


def _column(texts: _Texts, field: DeltaField, zone: Zone | None) -> tuple[pa.Array, list[tuple[Mask, str]]]:
    """The values of each file, and where there are none, with the reason."""
    type_ = field.type if has_order(field.type) else pa.string()
    name = type_name(field.type) if has_order(field.type) else field.spark_type
    empty = mask_of(pc.equal(texts.distinct, "")) if len(texts.distinct) else np.zeros(0, np.bool_)
    given = pc.if_else(pa.array(empty), pa.scalar(None, pa.string()), texts.distinct)
    values = _decode(given, type_, zone)
    bad = mask_of(pc.and_(given.is_valid(), values.is_null()))
    failed = [(texts.unknown, "the file has no value of this column, or several")]
    if is_text(type_) or is_bytes(type_):
        # The protocol reads an empty text as NULL, Spark as an empty one: the file may hold either.
        failed.append((_of(empty, texts.codes), EMPTY_TEXT))
    why = _why(given, bad, name, type_, zone)
    failed.append((_of(bad, texts.codes), why))
    return values.take(pa.array(texts.codes, mask=texts.codes < 0)), failed


def _of(mask: Mask, codes: Int64s) -> Mask:
    """What holds of the distinct texts, for each file."""
    return np.append(mask, np.False_)[codes]


def _why(texts: pa.Array, bad: Mask, name: str, type_: pa.DataType, zone: Zone | None) -> str:
    if not bad.any():
        return ""
    example = printable(texts[int(np.flatnonzero(bad)[0])].as_py())
    example = example if len(example) <= _LONGEST else f"{example[:_LONGEST]}…"
    if pt.is_timestamp(type_) and type_.tz and moments(pa.array([example])).valid[0]:
        known = "says no time zone" if zone is None else f"may name several instants in {zone.name}"
        return f"'{example}' {known}, and engines read it in the zone of their session"
    return f"'{example}' cannot be read as {name}"


def _decode(texts: pa.Array, type_: pa.DataType, zone: Zone | None) -> pa.Array:
    """The values of distinct texts; null where one is null or cannot be decoded."""
    if not len(texts):
        return pa.nulls(0, type_)
    if is_text(type_):
        return pc.if_else(pc.equal(texts, HIVE_NULL), pa.scalar(None, pa.string()), texts)
    if is_bytes(type_):
        # Spark writes the bytes as UTF-8, with U+FFFD for what is none; the protocol escapes them: \u0001.
        odd = pc.or_(pc.match_substring(texts, _REPLACED), pc.match_substring(texts, "\\u"))
        return pc.if_else(odd, pa.scalar(None, pa.string()), texts).cast(type_)
    if pt.is_boolean(type_):
        low = pc.utf8_lower(texts)
        return pc.if_else(pc.is_in(low, pa.array(["true", "false"])), pc.equal(low, "true"), None)
    if pt.is_date32(type_):
        return dates(texts)
    if pt.is_timestamp(type_):
        return _timestamps(texts, type_, zone)
    return cast_texts(texts, type_)


def _timestamps(texts: pa.Array, type_: pa.DataType, zone: Zone | None) -> pa.Array:
    found = moments(texts)
    if type_.tz is None:
        # A date is what a column holds that was widened from one: midnight, as Spark casts it.
        ok, micros = found.valid & ~found.zoned, found.wall
    else:
        ok, micros = found.valid & found.zoned, found.instant
        bare = found.valid & ~found.zoned
        if zone is not None and bare.any():
            taken = instants(pa.array(found.wall, mask=~bare), zone, type_)
            micros = np.where(bare, taken.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), micros)
            ok |= bare & mask_of(taken.is_valid())
    return pa.array(np.where(ok, micros, 0), mask=~ok).view(type_)


def _with_parsed(
    values: pa.Array,
    failed: list[tuple[Mask, str]],
    present: Mask,
    field: DeltaField,
    parsed: pa.StructArray,
) -> tuple[pa.Array, list[tuple[Mask, str]]]:
    """The parsed values for files without a map; not of strings, binaries and timestamps, see the module."""
    place = parsed.type.get_field_index(field.physical_name)
    lost = mask_of(parsed.is_null()) if place >= 0 else np.ones(len(values), np.bool_)
    usable = not (is_text(values.type) or is_bytes(values.type) or pt.is_timestamp(values.type))
    if place < 0 or not usable or present.all():
        return values, failed
    try:
        given = parsed.field(place).cast(values.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return values, failed
    taken = ~present & ~lost
    return pc.if_else(pa.array(taken), given, values), [(rows & ~taken, why) for rows, why in failed]
