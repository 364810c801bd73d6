"""A bloom filter of a join's keys, and whether a column's values can be looked up in it.

Law: it is asked only where equal values have equal keys, whatever the two types are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyarrow import types as pt

from tamis.predicate.keys import has_order, uses_bytes
from tamis.predicate.schema import Column
from tamis.predicate.type_names import is_bytes, is_clock, is_text, type_name
from tamis.sieve.join.bloom import Bloom
from tamis.sieve.join.ranges import JoinRange

__all__ = ["JoinBloom"]

MAX_FALSE_POSITIVES: Final = 0.9
"""A bloom filter that finds more than this share of foreign keys is not asked: it tells next to nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class JoinBloom:
    """A bloom filter over the keys of values of one type, and what else is known of them."""

    bloom: Bloom
    type: pa.DataType | None
    range: JoinRange

    def fault(self, column: Column) -> str | None:
        """Why the bloom filter cannot be asked for values of the column; None if it can."""
        if not has_order(column.type):
            return f"values of type {type_name(column.type)} have no order"
        if self.bloom.of_bytes != uses_bytes(column.type):
            return "the bloom filter is over keys of another kind"
        given = column.type if self.type is None else self.type
        if not _same_keys(given, column.type):
            return f"a bloom filter over {given} cannot be asked for {type_name(column.type)} values"
        false_positives = self.bloom.false_positives
        if false_positives > MAX_FALSE_POSITIVES:
            return f"the bloom filter is full: it finds {false_positives:.0%} of all other keys as well"
        return None


def _same_keys(given: pa.DataType, type_: pa.DataType) -> bool:
    """Whether equal values of the two types have equal keys. Nanoseconds have not: Spark reads microseconds."""
    if is_clock(type_) and type_.unit == "ns":
        return False
    if given == type_:
        return True
    if pt.is_timestamp(given) and pt.is_timestamp(type_):
        return bool(given.unit == type_.unit and (given.tz is None) == (type_.tz is None))
    if pt.is_decimal128(given) and pt.is_decimal128(type_):
        return bool(given.scale == type_.scale)  # of one key kind, which was checked
    alike = (pt.is_signed_integer, pt.is_floating, _are_bytes)
    return any(family(given) and family(type_) for family in alike)


def _are_bytes(type_: pa.DataType) -> bool:
    return is_text(type_) or is_bytes(type_)
