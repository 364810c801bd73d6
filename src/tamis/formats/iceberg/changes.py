"""Whether files that were written with one schema of a table still fit another, which has come meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyarrow import types as pt

from tamis.formats.edit import NewFile
from tamis.formats.iceberg.metadata import TableMetadata
from tamis.formats.iceberg.types import Field, TableSchema

__all__ = ["promoted", "why_no_home", "why_unfit"]


def why_unfit(old: TableSchema, new: TableSchema) -> str | None:
    """Why files of the old schema cannot be added under the new one; None if they can.

    A column that was renamed, moved, widened or made optional takes them; so does one more column, if rows may lack
    it. A column that is gone, or that became another's, does not: values would be lost in silence.
    """
    if old == new:
        return None
    before = {one.id: one for one in _every(old.fields)}
    after = {one.id: one for one in _every(new.fields)}
    for id_, one in before.items():
        other = after.get(id_)
        if other is None:
            return f"its column {one.name!r} was dropped"
        if not promoted(one.type, other.type):
            return f"its column {one.name!r} is of another type now"
        if other.required and not one.required:
            return f"its column {other.name!r} is required now"
    for id_, one in after.items():
        if id_ not in before and one.required and one.initial_default is None:
            return f"its new column {one.name!r} is required"
    return None


def why_no_home(old: TableMetadata, new: TableMetadata, files: Sequence[NewFile]) -> str | None:
    """Why files whose partition values are of the old metadata's specs cannot be listed; None if they can.

    An id may have been given to another spec, once its own was removed: values would be taken for what they are not.
    """
    specs = {one.spec_id: one for one in new.specs}
    for spec_id in sorted({file.spec_id or 0 for file in files}):
        if spec_id not in specs:
            return f"its partition spec {spec_id} was removed"
        mine, now = old.layout(spec_id), specs[spec_id]
        if mine.field_ids != now.field_ids or mine.spec != now.spec:
            return f"its partition spec {spec_id} is another one now"
        if not all(map(_same_kind, mine.types, now.types)):
            return f"values of its partition spec {spec_id} are of another type now"
    return None


def _same_kind(old: pa.DataType | None, new: pa.DataType | None) -> bool:
    return old == new or (old is not None and new is not None and promoted(old, new))


def _every(fields: Sequence[Field]) -> Iterator[Field]:
    for one in fields:
        yield one
        yield from _every(one.children)
        yield from _every(one.items)


def promoted(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether a column of the old type may have become one of the new: Iceberg's promotions, parts judged alone."""
    if pt.is_nested(old) or pt.is_nested(new):
        return bool(old.id == new.id)
    if pt.is_decimal128(old) and pt.is_decimal128(new):
        return bool(old.scale == new.scale and old.precision <= new.precision)
    return old == new or (old, new) in {
        (pa.int32(), pa.int64()),
        (pa.float32(), pa.float64()),
        (pa.date32(), pa.timestamp("us")),
        (pa.date32(), pa.timestamp("ns")),
    }
