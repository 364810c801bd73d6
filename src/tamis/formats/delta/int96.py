"""Timestamps that Spark wrote as INT96, its default: in a checkpoint's statistics as everywhere else.

They are instants, but Parquet does not say so: readers give a time without a zone, and in nanoseconds, which wrap
around beyond the years 1677 to 2262. Law: an instant is what Spark reads, or it is null. Before 1900 writers may have
counted in another calendar, and in other offsets of their zone: nothing is said of these.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.predicate.units import DAY
from tamis.sieve.order import mask_of

__all__ = ["as_instants", "int96_columns"]

_INSTANT: Final = pa.timestamp("us", tz="UTC")
_CERTAIN: Final = (-70 * 365 - 16) * DAY
"""1900-01-02, from which on no writer had another calendar, in microseconds since 1970."""


def int96_columns(file: pq.ParquetFile) -> frozenset[str]:
    """The paths of the columns that are INT96, as Parquet writes them."""
    columns = (file.schema.column(number) for number in range(len(file.schema.names)))
    return frozenset(column.path for column in columns if column.physical_type == "INT96")


def as_instants(values: pa.Array, path: str, int96: AbstractSet[str]) -> pa.Array:
    """The values, read in microseconds, with those columns inside them that are INT96 as instants."""
    if path in int96:
        micros = values.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        known = mask_of(values.is_valid()) & (micros >= _CERTAIN)
        return pa.array(np.where(known, micros, 0), mask=~known).view(_INSTANT)
    if not pa.types.is_struct(values.type) or not any(one.startswith(f"{path}.") for one in int96):
        return values
    children = [as_instants(values.field(field.name), f"{path}.{field.name}", int96) for field in values.type]
    fields = [field.with_type(child.type) for field, child in zip(values.type, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=values.is_null())
