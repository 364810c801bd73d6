"""From random files to the batches that the sieve takes: the one place where tests build them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tamis.predicate.schema import Column, Schema
from tamis.sieve.domain import ColumnStats
from tamis.sieve.files import FileBatch
from tamis.sieve.partitions import PartitionField, PartitionSpec
from tamis.sieve.transforms import apply, parse_transform
from tests.making.strategies import File, Row, Types, columns, described, partition_specs, rows

__all__ = ["Table", "arrow", "batch", "schema_of", "tables"]


class Table:
    """Random files in random specs, and the batches that describe them."""

    def __init__(self, types: Types, specs: Sequence[PartitionSpec], files: Sequence[Sequence[File]]) -> None:
        self.types = types
        self.specs = tuple(specs)
        self.files = [file for group in files for file in group]
        self.schema = schema_of(types, self.rows)
        self.batches = [batch(group, types, spec) for spec, group in zip(specs, files, strict=True)]

    @property
    def rows(self) -> list[Row]:
        """Every row of every file."""
        return [row for file in self.files for row in file.rows]

    def __repr__(self) -> str:
        return f"Table({self.types}, {self.specs}, {self.files})"


@st.composite
def tables(draw: DrawFn, *, most_specs: int = 2) -> Table:
    """One or two specs, a few files each, whose metadata is true."""
    types = draw(columns())
    specs, files = [], []
    for spec_id in range(draw(st.integers(1, most_specs))):
        fields = tuple(
            PartitionField(f"f{place}", list(types).index(field.source) + 1, parse_transform(field.transform))
            for place, field in enumerate(draw(partition_specs(types)))
        )
        spec = PartitionSpec(spec_id, fields)
        found = draw(st.lists(rows(types, most=5), min_size=1, max_size=3))
        specs.append(spec)
        files.append([draw(described(types, _one_partition(spec, group, types))) for group in found])
    return Table(types, specs, files)


def schema_of(types: Types, rows: Sequence[Row] | None = None) -> Schema:
    """Columns in the order of the types, with ids from 1; with rows, every other one is required that has no NULL."""
    columns: list[Column] = []
    for place, (path, type_) in enumerate(types.items(), 1):
        required = rows is not None and place % 2 == 1 and all(row[path] is not None for row in rows)
        columns.append(Column(place, path, type_, required=required, inside_required=required))
    return Schema(tuple(columns))


def arrow(found: Sequence[object], type_: pa.DataType) -> pa.Array:
    """Python values, as rows hold them, as an Arrow array."""
    if type_ == pa.uuid():
        storage = pa.array([None if value is None else value.bytes for value in found], pa.binary(16))  # type: ignore[attr-defined]
        return pa.ExtensionArray.from_storage(pa.uuid(), storage)
    return pa.array(found, type_)


def batch(files: Sequence[File], types: Types, spec: PartitionSpec) -> FileBatch:
    """The files of one spec, with the facts that their metadata states."""
    stats = {}
    for place, (path, type_) in enumerate(types.items(), 1):
        facts = [file.facts[path] for file in files]
        stats[place] = ColumnStats(
            arrow([fact.lower for fact in facts], type_),
            arrow([fact.upper for fact in facts], type_),
            pa.array([fact.null_count for fact in facts], pa.int64()),
            pa.array([fact.nan_count for fact in facts], pa.int64()),
            pa.array([fact.value_count for fact in facts], pa.int64()),
        )
    return FileBatch(
        path=pa.array([f"{spec.spec_id}-{place}" for place in range(len(files))], pa.string()),
        size=pa.array([100] * len(files), pa.int64()),
        rows=pa.array([file.row_count for file in files], pa.int64()),
        spec_id=spec.spec_id,
        partition=_partition(spec, files, types),
        stats=stats,
    )


def _one_partition(spec: PartitionSpec, group: Sequence[Row], types: Types) -> tuple[Row, ...]:
    """The rows that share the first one's partition."""
    if not group or not spec.fields:
        return tuple(group)
    keys = _keys(spec, group, types)
    return tuple(row for row, key in zip(group, keys, strict=True) if key == keys[0])


def _keys(spec: PartitionSpec, group: Sequence[Row], types: Types) -> list[tuple[object, ...]]:
    parts = [_applied(field, group, types) for field in spec.fields]
    texts = [[None if value is None else repr(value) for value in _listed(part)] for part in parts]
    return list(zip(*texts, strict=True))


def _listed(array: pa.Array) -> list[object]:
    plain = array.storage if isinstance(array, pa.ExtensionArray) else array
    if pa.types.is_timestamp(plain.type) or pa.types.is_time(plain.type):
        plain = plain.view(pa.int64() if plain.type.bit_width == 64 else pa.int32())
    return list(plain.to_pylist())


def _applied(field: PartitionField, group: Sequence[Row], types: Types) -> pa.Array:
    assert isinstance(field.source, int)
    path = list(types)[field.source - 1]
    found = arrow([row[path] for row in group], types[path])
    if field.transform.name == "unknown":
        return pc.cast(pa.array([7] * len(group), pa.int32()), pa.int32())
    return apply(field.transform, found)


def _partition(spec: PartitionSpec, files: Sequence[File], types: Types) -> pa.StructArray | None:
    if not spec.fields:
        return None
    empty = dict.fromkeys(types)
    firsts: list[Row] = [file.rows[0] if file.rows else empty for file in files]
    children = [_applied(field, firsts, types) for field in spec.fields]
    return pa.StructArray.from_arrays(children, names=[field.name for field in spec.fields])
