"""Arrays of structs, lists and maps, taken apart and put together again with other things in them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyarrow import types as pt

__all__ = ["list_of", "map_of", "rebuilt", "struct_of", "whole"]


def whole(array: pa.Array) -> pa.Array:
    """The array without an offset: parts of a slice cannot be put together again."""
    return pa.concat_arrays([array]) if array.offset else array


def struct_of(array: pa.Array, parts: list[pa.Array], fields: list[pa.Field]) -> pa.Array:
    """A struct that is NULL where that array is."""
    if not parts:
        return pa.array([{}] * len(array), pa.struct([]), mask=array.is_null().to_numpy(zero_copy_only=False))
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)


def list_of(array: pa.Array, values: pa.Array, item: pa.Field) -> pa.Array:
    """A list as long as that array's, of these values, which are as many as its own."""
    mask = array.is_null() if array.null_count else None
    made = pa.ListArray.from_arrays(array.offsets, values, mask=mask)
    return made.cast(pa.list_(item)) if made.type != pa.list_(item) else made


def map_of(array: pa.Array, keys: pa.Array, items: pa.Array) -> pa.Array:
    """A map as long as that array's."""
    mask = array.is_null() if array.null_count else None
    return pa.MapArray.from_arrays(array.offsets, keys, items, mask=mask)


def rebuilt(
    array: pa.Array, other: pa.Array | None, change: Callable[[pa.Array, pa.Array | None], pa.Array]
) -> pa.Array:
    """A struct, list or map with everything in it changed; other has the same shape, and goes along."""
    array = whole(array)
    other = None if other is None else whole(other)
    kind = array.type
    if pt.is_struct(kind):
        parts = [
            change(array.field(place), None if other is None else other.field(place))
            for place in range(kind.num_fields)
        ]
        return struct_of(array, parts, [kind.field(at).with_type(part.type) for at, part in enumerate(parts)])
    if pt.is_map(kind):
        keys = change(array.keys, None if other is None else other.keys)
        return map_of(array, keys, change(array.items, None if other is None else other.items))
    values = change(array.values, None if other is None else other.values)
    return list_of(array, values, kind.value_field.with_type(values.type))
