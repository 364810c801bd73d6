"""What the tests of preimages share: asking for one, and reading its bounds as plain keys."""

from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.sieve.order import KeyArray
from tamis.sieve.transforms import Preimage, parse_transform, preimage

US, NS, TZ = pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC")
INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1
DAY = 86_400_000_000
Bounds = tuple[Any, Any]


def of(text: str, source: pa.DataType, lower: pa.Array, upper: pa.Array | None = None) -> Preimage:
    return preimage(parse_transform(text), source, lower, lower if upper is None else upper)


def bounds(found: Preimage) -> list[Bounds]:
    """Lower and upper keys; None where nothing is said."""
    assert found.range is not None
    assert found.range.lower is not None
    assert found.range.upper is not None
    return list(zip(_keys(found.range.lower), _keys(found.range.upper), strict=True))


def _keys(side: KeyArray) -> list[Any]:
    listed = side.keys.tolist() if isinstance(side.keys, np.ndarray) else side.keys.to_pylist()
    return [key if valid else None for key, valid in zip(listed, side.valid, strict=True)]


def ints(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int32())


def period(text: str, source: pa.DataType, ordinal: int) -> Bounds:
    return bounds(of(text, source, ints(ordinal)))[0]


def micros(*parts: int) -> int:
    return round((datetime(*parts) - datetime(1970, 1, 1)).total_seconds()) * 1_000_000  # type: ignore[arg-type] # year to second


def days(*parts: int) -> int:
    return (date(*parts) - date(1970, 1, 1)).days
