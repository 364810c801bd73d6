"""What a plan says of kept files that Spark's own readers may not read right, and that are then read with Arrow.

It is told from metadata: which columns a query asks for, what a file's own statistics say of its dates, and whether
the session has an Avro reader is known when rows are read, and may spare a file the second way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from tamis.formats.iceberg.defaults import default_scalar
from tamis.formats.iceberg.fields import UNKNOWN, promoted_ids
from tamis.formats.iceberg.types import Field, TableSchema
from tamis.predicate.type_names import is_bytes
from tamis.sieve.outcome import Outcome

__all__ = ["reading_notes"]

LONG_DIGITS = 18
"""Decimals up to so many digits Spark's readers can give as a default."""
_TWINS = "names differ in case alone and the session ignores case"
_PLACES = "rows are deleted by position, or their positions are asked for"


def reading_notes(
    schema: TableSchema, history: Sequence[TableSchema], mapping: str | None, outcomes: Sequence[Outcome]
) -> tuple[str, ...]:
    """A note for each file format of the kept files that has reasons to be read with Arrow.

    history has all schemas of the table; mapping is its name mapping, which explains files without field ids.
    """
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        if "file_format" in outcome.batch.extra and outcome.kept.any():
            formats = outcome.batch.extra["file_format"].filter(pa.array(outcome.kept))
            for entry in pc.value_counts(formats):
                counts[str(entry["values"]).lower()] += entry["counts"].as_py()
    notes = []
    twins = [_TWINS] if any(_has_twins(version.fields) for version in (schema, *history)) else []
    if counts["orc"]:
        causes = []
        if any(_has(field, _is_zoned) for field in schema.fields):
            causes.append("a file has times with a zone")
        causes += _named([field for field in schema.fields if _has(field, _is_naive)], "is", "are", "asked for")
        causes += _named([field for field in schema.fields if _has(field, _is_of_day)], "is", "are", "asked for")
        dates = [field for field in schema.fields if _has(field, lambda one: bool(pt.is_date(one.type)))]
        causes += _named(dates, "has", "have", "dates before 1582-10-15")
        notes.append(_note(counts["orc"], "ORC", [*causes, *_lost(schema, by_name=True), *twins, _PLACES]))
    if counts["avro"]:
        odd = [field for field in schema.fields if _has(field, _is_of_day) or _has(field, _is_nanos)]
        causes = ["the session has no Avro package", *_named(odd, "is", "are", "asked for")]
        causes += [*_lost(schema, by_name=True), *twins, _PLACES]
        notes.append(_note(counts["avro"], "Avro", causes))
    promoted = promoted_ids((schema, *history))
    days = [field for field in schema.fields if _has(field, lambda one: one.id in promoted and _is_nanos(one))]
    causes = [*_named(days, "is", "are", "asked for, of which older files have dates"), *_lost(schema, by_name=False)]
    if twins and mapping is not None:
        causes.append(f"a file has no field ids and {_TWINS}")
    if causes and counts["parquet"]:
        notes.append(_note(counts["parquet"], "Parquet", causes))
    return tuple(notes)


def _note(count: int, name: str, causes: Sequence[str]) -> str:
    files = f"{count:,} {name} {'file is' if count == 1 else 'files are'}"
    return f"{files} read with Arrow, not by Spark's own reader, where {'; or where '.join(causes)}"


def _named(fields: Iterable[Field], one: str, many: str, what: str) -> list[str]:
    names = [repr(field.name) for field in fields]
    if not names:
        return []
    return [f"column{'s' if len(names) > 1 else ''} {', '.join(names)} {many if len(names) > 1 else one} {what}"]


def _has(field: Field, test: Callable[[Field], bool]) -> bool:
    return test(field) or any(_has(inner, test) for inner in (*field.children, *field.items))


def _is_zoned(field: Field) -> bool:
    return bool(pt.is_timestamp(field.type) and field.type.tz is not None)


def _is_naive(field: Field) -> bool:
    return bool(pt.is_timestamp(field.type) and field.type.tz is None)


def _has_twins(fields: Sequence[Field]) -> bool:
    """Whether two names at one place differ in case alone."""
    inside = any(_has_twins((*field.children, *field.items)) for field in fields)
    return inside or len({field.name.lower() for field in fields}) < len(fields)


def _is_of_day(field: Field) -> bool:
    return bool(pt.is_time(field.type))


def _is_nanos(field: Field) -> bool:
    return bool(pt.is_timestamp(field.type) and field.type.unit == "ns")


def _lost(schema: TableSchema, *, by_name: bool) -> list[str]:
    """Columns of which Spark's readers cannot give what files lack."""
    lost = [field for field in schema.fields if _lacks_default(field, by_name=by_name)]
    void = [
        field for field in schema.fields if any(_has(inner, _is_void) for inner in (*field.children, *field.items))
    ]
    return [
        *_named(lost, "is", "are", "asked for, whose initial default Spark's readers cannot give"),
        *_named(void, "is", "are", "asked for, with fields of no type inside"),
    ]


def _is_void(field: Field) -> bool:
    return field.written_type.strip() == UNKNOWN


def _lacks_default(field: Field, *, by_name: bool, top: bool = True) -> bool:
    """Whether there is a default in the field that Spark's readers cannot give; by_name, of columns found so."""
    kind, nested = field.type, (*field.children, *field.items)
    if nested:
        return field.initial_default is not None or any(
            _lacks_default(inner, by_name=by_name, top=False) for inner in nested
        )
    if default_scalar(kind, field.initial_default) is None:
        return False
    wide = pt.is_decimal(kind) and kind.precision > LONG_DIGITS
    return not top or kind == pa.uuid() or (not by_name and (wide or is_bytes(kind)))
