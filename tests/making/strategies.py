"""Random files, partition specs and predicates for the properties: the one place that tests import them from.

A file is rows and what its metadata says of them, in plain dataclasses that know no format. Columns, values and rows
are made in strategy_values, predicates in strategy_predicates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cmp_to_key

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from pyarrow import types as pt

from tests.making.oracle import Path, order, read
from tests.making.strategy_predicates import literals, predicates
from tests.making.strategy_values import TYPES, Row, Types, columns, decimal_of, rows, values

__all__ = [
    "TYPES",
    "ColumnFacts",
    "File",
    "PartitionField",
    "Row",
    "Types",
    "columns",
    "decimal_of",
    "described",
    "files",
    "literals",
    "partition_specs",
    "predicates",
    "rows",
    "transforms",
    "values",
]


# -- files ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What a file's metadata says of one column; None is "it does not say".

    Bounds are Python values as rows hold them. They enclose every value that is neither NULL nor NaN, and need not
    be tight, unless `inverted`: then they are swapped, say nothing, and must be ignored. A NaN may lie outside any
    bounds; an upper bound that is NaN encloses it. `truncated` bounds of text or bytes are a prefix of the least
    value and the successor of a prefix of the greatest.
    """

    lower: object = None
    upper: object = None
    value_count: int | None = None
    null_count: int | None = None
    nan_count: int | None = None
    inverted: bool = False
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class File:
    """Rows, and true facts about them."""

    rows: tuple[Row, ...]
    facts: dict[Path, ColumnFacts]

    @property
    def row_count(self) -> int:
        return len(self.rows)


@st.composite
def files(draw: DrawFn, types: Types, *, least: int = 0, most: int = 6) -> File:
    """A file whose metadata is true, though it may be silent, wide, cut short or swapped."""
    return draw(described(types, draw(rows(types, least=least, most=most))))


@st.composite
def described(draw: DrawFn, types: Types, found: tuple[Row, ...]) -> File:
    """A file of these rows, and true facts about them."""
    facts = {path: draw(_facts(type_, [row[path] for row in found])) for path, type_ in types.items()}
    return File(found, facts)


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and value != value  # noqa: PLR0124 - the definition of NaN


@st.composite
def _facts(draw: DrawFn, type_: pa.DataType, column: list[object]) -> ColumnFacts:
    known = [value for value in column if value is not None and not _is_nan(value)]
    nans = sum(map(_is_nan, column))
    counts: dict[str, int | None] = {
        "value_count": draw(st.sampled_from([None, len(column)])),
        "null_count": draw(st.sampled_from([None, column.count(None)])),
        "nan_count": draw(st.sampled_from([None, nans])) if pt.is_floating(type_) else None,
    }
    shape = draw(st.sampled_from(["exact", "exact", "exact", "widened", "truncated", "missing", "inverted", "nan"]))
    if not known or shape == "missing":
        return ColumnFacts(**counts)  # type: ignore[arg-type] # ints or None
    if shape == "widened":
        known = known + draw(st.lists(values(type_).filter(lambda v: not _is_nan(v)), min_size=1, max_size=2))
    lower: object = _least(known, type_)
    upper: object = _least(known, type_, reverse=True)
    truncated = inverted = False
    if pt.is_floating(type_) and shape == "nan" and nans:
        upper = float("nan")  # as Spark computes max, and so Delta: NaN is the greatest value
    if shape == "truncated" and isinstance(lower, (str, bytes)) and not pt.is_fixed_size_binary(type_):
        assert isinstance(upper, (str, bytes))
        length = draw(st.integers(1, 3))
        lower, upper, truncated = lower[:length], _prefix_successor(upper, length), True
    if shape == "inverted" and order(read(lower, type_), read(upper, type_)) != 0:
        lower, upper, inverted = upper, lower, True
    if draw(st.integers(0, 7)) == 0:
        lower, upper = draw(st.sampled_from([(None, upper), (lower, None)]))
        inverted = False
        if shape == "inverted":
            lower = upper = None
    return ColumnFacts(lower, upper, **counts, inverted=inverted, truncated=truncated)  # type: ignore[arg-type]


def _least(known: Iterable[object], type_: pa.DataType, *, reverse: bool = False) -> object:
    by_order = cmp_to_key(lambda a, b: order(read(a, type_), read(b, type_)))
    return sorted(known, key=by_order, reverse=reverse)[0]


def _prefix_successor(value: str | bytes, length: int) -> str | bytes | None:
    """The least value above everything that begins with the prefix; None if there is none."""
    if len(value) <= length:
        return value
    if isinstance(value, bytes):
        cut = value[:length].rstrip(b"\xff")
        return cut[:-1] + bytes([cut[-1] + 1]) if cut else None
    text = value[:length].rstrip("\U0010ffff")
    if not text:
        return None
    code = ord(text[-1]) + 1
    return text[:-1] + chr(0xE000 if 0xD800 <= code <= 0xDFFF else code)  # surrogates are no characters


# -- partition specs ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A source column and its transform as Iceberg writes it: `bucket[16]`, `day`, `void`."""

    source: Path
    transform: str


def transforms(type_: pa.DataType) -> SearchStrategy[str]:
    """Transforms that the type allows; `zorder[3]` stands for one that nobody knows."""
    names = [st.sampled_from(["identity", "identity", "void", "zorder[3]"])]
    if not (pt.is_boolean(type_) or pt.is_floating(type_)):
        names.append(st.sampled_from([1, 2, 7, 16, 1000]).map("bucket[{}]".format))
    if pt.is_integer(type_) or pt.is_decimal(type_) or pt.is_string(type_) or pt.is_binary(type_):
        names.append(st.sampled_from([1, 2, 3, 10, 100]).map("truncate[{}]".format))
    if pt.is_date(type_):
        names.append(st.sampled_from(["year", "month", "day"]))
    if pt.is_timestamp(type_):
        names.append(st.sampled_from(["year", "month", "day", "hour"]))
    return st.one_of(names)


@st.composite
def partition_specs(draw: DrawFn, types: Types, *, most: int = 3) -> tuple[PartitionField, ...]:
    """None to three fields; two may share a source."""
    sources = draw(st.lists(st.sampled_from(sorted(types)), max_size=most))
    return tuple(PartitionField(source, draw(transforms(types[source]))) for source in sources)
