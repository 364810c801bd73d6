"""Generated partition columns: what their values say of the columns that they are generated from.

Law: a source value whose row lies in a file is in the preimage of that file's partition values, whatever the session
that wrote it. Spark reads the wall clock of a timestamp in its session's time zone, which the log does not record. No
zone that Spark takes is more than 18 hours from UTC: so a wall-clock period [a, b) holds the instants of
[a - 18 h, b + 18 h). What has no zone (dates, timestamp_ntz) is exact.

A timestamp that is a partition value went through a text of the wall clock: of an hour that the clock shows twice it
comes back as one of the two. And the clock may have been set between a source and the beginning of its year. Two
offsets from UTC are at most 36 hours apart: so the source lies within 36 hours of what the value says.

An empty string becomes NULL when it is a partition value: NULL in a generated string does not say that its source is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from tamis.formats.delta.generation import Generated, parse_expression
from tamis.formats.delta.schema import DeltaField, DeltaSchema
from tamis.formats.delta.text_values import moments
from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.keys import has_order
from tamis.predicate.type_names import is_text
from tamis.predicate.units import DAY, HOUR, SECOND
from tamis.sieve.order import mask_of
from tamis.sieve.partition_keys import PartitionField, PartitionSpec
from tamis.sieve.partitions import Undecoded
from tamis.sieve.transforms import Transform, TransformName

__all__ = ["DeltaSpec", "partition_spec"]

ZONES: Final = 18 * HOUR
"""How far from UTC a session's clock may be."""
CHANGES: Final = 2 * ZONES
"""How far apart two offsets from UTC may be."""
_DAYS: Final = {"year": 366, "quarter": 92, "month": 31, "week": 7, "day": 1}
"""The longest of each."""
_PARTS: Final = ("year", "month", "day", "hour")
_FORMAT_PARTS: Final = {4: "year", 6: "month", 8: "day", 10: "hour"}
"""By the number of digits that a pattern makes."""
_LETTERS: Final = "yMdH"
_EMPTY: Final = "an empty string is written as NULL: the source may be either"

Derive = Callable[[list[pa.Array]], pa.Array]
"""The partition columns that a derived field is made of to its values; null also where they make none."""


@dataclass(frozen=True, slots=True)
class _Derived:
    """A field of the spec that is no column: made of partition columns, a fact about their source."""

    field: PartitionField
    places: tuple[int, ...]
    derive: Derive
    nulls_unknown: bool = False


@dataclass(frozen=True, slots=True)
class DeltaSpec:
    """How the table's files are partitioned: by its partition columns, and by what these are generated from."""

    spec: PartitionSpec
    derived: tuple[_Derived, ...] = ()

    def partition(
        self, columns: pa.StructArray, undecoded: Iterable[Undecoded] = ()
    ) -> tuple[pa.StructArray, tuple[Undecoded, ...]]:
        """The partition columns with a child for every derived field; what is made of undecoded values is so too."""
        failed = list(undecoded)
        children = columns.flatten()
        given = len(children)
        for place, derived in enumerate(self.derived, given):
            sources = [children[source] for source in derived.places]
            values = derived.derive(sources)
            lost = np.zeros(len(columns), np.bool_)
            for one in [one for one in failed if one.field in derived.places]:
                lost |= one.rows
            if lost.any():
                failed.append(Undecoded(place, lost, "it is generated into a column that cannot be decoded"))
            null = ~lost & mask_of(values.is_null())
            if not derived.nulls_unknown:
                for source in sources:
                    null &= mask_of(source.is_valid())
            if null.any():
                text = _EMPTY if derived.nulls_unknown else f"the expression {derived.field.name} makes no such value"
                failed.append(Undecoded(place, null, text))
            children.append(values)
        if not self.derived:
            return columns, tuple(failed)
        names = [field.name for field in self.spec.fields]
        return pa.StructArray.from_arrays(children, names=names), tuple(failed)


def partition_spec(schema: DeltaSchema, spec_id: int | None = None) -> DeltaSpec:
    """The spec of a table: identity of each partition column, then what generated ones say of their sources."""
    plain = tuple(PartitionField(field.name, field.id, Transform("identity")) for field in schema.partition_fields)
    derived = tuple(_derived_fields(schema))
    return DeltaSpec(PartitionSpec(spec_id, plain + tuple(one.field for one in derived)), derived)


def _derived_fields(schema: DeltaSchema) -> Iterable[_Derived]:
    columns = {tuple(part.lower() for part in path): field for path, field in schema.walk()}
    parts: dict[tuple[str, bool], dict[str, int]] = {}
    for place, column in enumerate(schema.partition_fields):
        made = parse_expression(column.generation_expression or "")
        source = columns.get(tuple(part.lower() for part in made.source)) if made is not None else None
        if made is None or source is None or not has_order(source.type) or not has_order(column.type):
            continue
        if made.kind in _PARTS:
            if pt.is_temporal(source.type) and pt.is_integer(column.type):
                parts.setdefault((source.id, made.as_date), {})[made.kind] = place
            continue
        found = _single(made, source, column)
        if found is not None:
            transform, derive, nulls_unknown = found
            name = column.generation_expression or ""
            yield _Derived(PartitionField(name, source.id, transform, derived=True), (place,), derive, nulls_unknown)
    for (id_, _), places in parts.items():
        combined = _combined(schema, schema.field(id_), places)
        if combined is not None:
            yield combined


def _single(made: Generated, source: DeltaField, column: DeltaField) -> tuple[Transform, Derive, bool] | None:
    """The transform of a column that one expression makes, how its value comes from the column, and of NULLs."""
    clock, text = pt.is_temporal(source.type), is_text(source.type)
    match made.kind:
        case "identity" if source.type == column.type:
            # A zoned timestamp came through the wall clock of its writer.
            slack = (CHANGES, CHANGES) if _zoned(source) else (0, 0)
            return Transform("identity", slack=slack), _same, text or pt.is_binary(source.type)
        case "substring" if text and is_text(column.type):
            return Transform("truncate", made.length), _same, True
        case "date" if clock and pt.is_date32(column.type):
            return Transform("day", slack=_slack(source)), _same, False
        case "format" if clock and is_text(column.type):
            unit = _FORMAT_PARTS[sum(letter in _LETTERS for letter in made.unit)]
            if unit == "hour" and (pt.is_date32(source.type) or made.as_date):
                return None
            return Transform(unit, slack=_slack(source)), partial(_formatted, made.unit, unit), False  # type: ignore[arg-type]
        case "trunc" if clock and pt.is_temporal(column.type):
            return _truncated(made, source, column)
    return None


def _zoned(field: DeltaField) -> bool:
    return bool(pt.is_timestamp(field.type) and field.type.tz is not None)


def _slack(source: DeltaField) -> tuple[int, int]:
    return (ZONES, ZONES) if _zoned(source) else (0, 0)


def _same(children: list[pa.Array]) -> pa.Array:
    return children[0]


def _truncated(made: Generated, source: DeltaField, column: DeltaField) -> tuple[Transform, Derive, bool] | None:
    """The source lies in [value, value + unit), give or take the clock."""
    days = _DAYS.get(made.unit)
    length = days * DAY if days else HOUR if made.unit == "hour" else 60 * SECOND
    if pt.is_date32(source.type):
        if not days:
            return None
        if pt.is_date32(column.type):
            return Transform("identity", slack=(0, days - 1)), _same, False
        if _zoned(column):
            # The date's midnight in the writer's zone: as a date, up to 18 hours off either way.
            return Transform("identity", slack=(1, days + 1)), _as_dates, False
        return Transform("identity", slack=(0, days)), _as_dates, False
    if pt.is_date32(column.type):
        below, above = _slack(source)
        return Transform("identity", slack=(below, above + length)), partial(_as_type, source.type), False
    if _zoned(column) != _zoned(source):
        return None
    loose = CHANGES if _zoned(source) else 0
    return Transform("identity", slack=(loose, loose + length)), _same, False


def _as_type(type_: pa.DataType, children: list[pa.Array]) -> pa.Array:
    """Dates as midnights of UTC."""
    days = children[0].view(pa.int32())
    numbers = days.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    ok = mask_of(days.is_valid()) & (np.abs(numbers) < (1 << 62) // DAY)
    return pa.array(np.where(ok, numbers, 0) * DAY, mask=~ok).view(type_)


def _as_dates(children: list[pa.Array]) -> pa.Array:
    """The days of UTC that timestamps lie in."""
    micros = children[0].view(pa.int64())
    days = micros.fill_null(0).to_numpy(zero_copy_only=False) // DAY
    return pa.array(days.astype(np.int32), mask=~mask_of(micros.is_valid())).view(pa.date32())


def _formatted(pattern: str, unit: str, children: list[pa.Array]) -> pa.Array:
    """Ordinals of `yyyy-MM-dd-HH` and the like, each distinct text once; null where a text is not of the pattern."""
    encoded = children[0].dictionary_encode()
    found = moments(pa.array([_iso(pattern, text) for text in encoded.dictionary.to_pylist()], pa.string()))
    return _ordinals(unit, found.wall // HOUR, found.valid).take(encoded.indices)


def _iso(pattern: str, text: str) -> str | None:
    """The beginning of the period that a text of the pattern names; None if it is not of the pattern."""
    digits = ""
    if len(text) != len(pattern):
        return None
    for mark, letter in zip(pattern, text, strict=True):
        if mark in _LETTERS:
            digits += letter
        elif mark != letter:
            return None
    if not (digits.isascii() and digits.isdigit()):
        return None
    year, month, day, hour = digits[:4], digits[4:6] or "01", digits[6:8] or "01", digits[8:10] or "00"
    return f"{year}-{month}-{day} {hour}:00:00"


def _ordinals(unit: str, hours: Int64s, valid: Mask) -> pa.Array:
    """Years, months, days or hours since 1970, from hours since then."""
    if unit == "hour":
        found = hours
    else:
        found = (hours // 24).astype("M8[D]").astype(f"M8[{unit[0].upper()}]").astype(np.int64)
    ok = valid & (np.abs(found) < 1 << 31)
    values = pa.array(np.where(ok, found, 0).astype(np.int32), mask=~ok)
    return values.view(pa.date32()) if unit == "day" else values


def _combined(schema: DeltaSchema, source: DeltaField, places: dict[str, int]) -> _Derived | None:
    """YEAR with MONTH, DAY and HOUR, as far down as there is one of each: a month alone says nothing."""
    known = [part for index, part in enumerate(_PARTS) if all(one in places for one in _PARTS[: index + 1])]
    if pt.is_date32(source.type):
        known = [part for part in known if part != "hour"]
    if not known:
        return None
    unit: TransformName = known[-1]  # type: ignore[assignment] # one of _PARTS
    names = ", ".join(schema.partition_fields[places[part]].generation_expression or "" for part in known)
    field = PartitionField(names, source.id, Transform(unit, slack=_slack(source)), derived=True)
    return _Derived(field, tuple(places[part] for part in known), partial(_from_parts, unit))


def _from_parts(unit: str, children: list[pa.Array]) -> pa.Array:
    """Ordinals of years, months, days and hours that stand in columns of their own."""
    count = len(children[0])
    ok = np.ones(count, np.bool_)
    numbers: list[Int64s] = []
    for child in children:
        ok &= mask_of(child.is_valid())
        numbers.append(child.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False))
    numbers += [np.full(count, first) for first in (1, 1, 0)[len(numbers) - 1 :]]
    year, month, day, hour = numbers
    ok &= (np.abs(year) < 1 << 20) & (month >= 1) & (month <= 12)  # noqa: PLR2004 - months
    ok &= (hour >= 0) & (hour < 24)  # noqa: PLR2004 - hours
    months = np.where(ok, (year - 1970) * 12 + month - 1, 0)
    first, after = ((months + more).astype("M8[M]").astype("M8[D]").astype(np.int64) for more in (0, 1))
    ok &= (day >= 1) & (first + day - 1 < after)
    return _ordinals(unit, np.where(ok, (first + day - 1) * 24 + hour, 0), ok)
