"""Never wrong: the range of each column of a composite key, as it is left of too many keys."""

from __future__ import annotations

from functools import cmp_to_key

import pyarrow as pa
from hypothesis import assume, given
from hypothesis import strategies as st

from tamis.sieve.join.runtime import RuntimeFilter
from tests.making.harness import Table, arrow, tables
from tests.making.oracle import order, read
from tests.property.test_runtime_never_wrong import joins, kept, matches


def ends(values: list[object], type_: pa.DataType) -> tuple[pa.Scalar, pa.Scalar]:
    """The least and the greatest of them as Spark orders them; nulls if there is none but NULL."""
    by_order = cmp_to_key(lambda a, b: order(read(a, type_), read(b, type_)))
    known = sorted((value for value in values if value is not None), key=by_order) or [None]
    found = arrow(known, type_)
    return found[0], found[-1]


@given(st.data(), tables(), st.booleans())
def test_file_that_joins_is_within_the_range_of_every_column(
    data: st.DataObject, table: Table, null_safe: bool
) -> None:
    keys, key_types = data.draw(joins(table, same_type=True))
    assume(next(iter(keys.values())))
    ranges = [ends(column, key_types[path]) for path, column in keys.items()]
    runtime = RuntimeFilter.of_ranges(list(keys), ranges, null_safe=null_safe)
    for file, keep in zip(table.files, kept(table, runtime), strict=True):
        joined = any(matches(row, table.types, keys, key_types, null_safe=null_safe) for row in file.rows)
        assert keep or not joined, file
