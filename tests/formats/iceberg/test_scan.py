"""What a reader is told of the files that a plan keeps: groups, values of metadata, names that can be trusted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, NestedField, StringType

import tamis
from tamis.errors import UnreadableMetadataError
from tamis.formats.iceberg.fields import read_fields
from tamis.formats.iceberg.scan import _repeats
from tamis.formats.iceberg.types import Field, TableSchema
from tamis.formats.scan import Scan
from tamis.sieve.partitions import Undecoded
from tests.making.manifests import create


def schema(number: int, *fields: Field) -> TableSchema:
    return TableSchema(number, fields)


def column(number: int, name: str, type_: pa.DataType | None = None) -> Field:
    return Field(number, name, type_ or pa.int32())


def struct(number: int, name: str, *fields: Field) -> Field:
    return Field(number, name, pa.struct([(one.name, one.type) for one in fields]), children=fields)


def listed(number: int, name: str, element: Field) -> Field:
    return Field(number, name, pa.list_(element.type), items=(element,))


def trusted(current: TableSchema, *history: TableSchema) -> dict[str, tuple[bool, bool]]:
    """For each column whether filters may go by its name, and whether parts of it may."""
    return {one.name: (one.own_name, one.own_path) for one in read_fields(current, history)}


# -- names ---------------------------------------------------------------------------------------------------


def test_names_that_never_changed_are_trusted() -> None:
    only = schema(0, column(1, "a"), struct(2, "s", column(3, "x")))
    later = schema(1, column(1, "a"), struct(2, "s", column(3, "x")), column(4, "b"))
    assert trusted(later, only, later) == {"a": (True, True), "s": (True, True), "b": (True, True)}


def test_names_that_meant_another_column_are_not() -> None:
    """Swapped, dropped and added again, or taken over in another spelling: Spark's filters ignore case."""
    first = schema(0, column(1, "a"), column(2, "b"), column(3, "c"), column(4, "d"))
    last = schema(1, column(2, "a"), column(1, "b"), column(5, "C"), column(4, "d"))
    assert trusted(last, first, last) == dict.fromkeys(("a", "b", "C"), (False, False)) | {"d": (True, True)}


def test_a_renamed_column_may_be_filtered_by_name_but_not_taken_apart() -> None:
    """No file has its new name for anything else. But a part of it would be looked for under the new name alone."""
    first = schema(0, struct(1, "old", column(2, "x")), listed(3, "l", struct(4, "element", column(5, "p"))))
    last = schema(1, struct(1, "new", column(2, "x")), listed(3, "l", struct(4, "element", column(5, "q"))))
    assert trusted(last, first, last) == {"new": (True, False), "l": (True, False)}


def test_a_swap_inside_a_column_concerns_the_whole_of_it() -> None:
    first = schema(
        0, struct(1, "s", column(2, "x"), column(3, "y")), listed(4, "l", struct(5, "element", column(6, "p")))
    )
    last = schema(
        1, struct(1, "s", column(3, "x"), column(2, "y")), listed(4, "l", struct(5, "element", column(7, "p")))
    )
    assert trusted(last, first, last) == {"s": (False, False), "l": (False, False)}


@pytest.mark.parametrize(("old", "new", "same"), [(3, 9, True), (9, 10, False), (18, 19, False), (19, 38, False)])
def test_a_decimal_that_became_wider_in_files_is_not_filtered_by_name(old: int, new: int, same: bool) -> None:
    """Spark cuts a filter's number to the bytes that the old file has."""
    first = schema(0, column(1, "d", pa.decimal128(old, 2)))
    last = schema(1, column(1, "d", pa.decimal128(new, 2)))
    assert trusted(last, first, last)["d"][0] is same


def test_names_that_writers_have_to_change_are_not_taken_apart_by() -> None:
    """Iceberg writes `a b` as `a_x20b`."""
    only = schema(0, struct(1, "a b", column(2, "x")), struct(3, "s", column(4, "y.z")), column(5, "c d"))
    assert trusted(only, only) == {"a b": (True, False), "s": (True, False), "c d": (True, False)}


def test_an_incomplete_history_trusts_no_name() -> None:
    """Schemas were removed, or an old writer kept the last one alone: what a file calls its columns is not known."""
    current = schema(2, column(1, "a"), column(2, "b"))
    untrusted = {"a": (False, False), "b": (False, False)}
    assert trusted(current, current) == untrusted
    assert trusted(current, schema(0, column(1, "a")), current) == untrusted
    holes = schema(0, column(1, "a"), column(3, "b"))
    assert trusted(holes, holes) == untrusted


def test_a_nested_default_is_its_fields_own() -> None:
    """Spark's readers know none inside structs: such a column is read with Arrow, where files lack the field."""
    inner = Field(3, "x", pa.int32(), initial_default=5)
    only = schema(0, column(1, "a"), struct(2, "s", inner))
    fields = {one.name: one for one in read_fields(only, [only])}
    assert fields["a"].default is None
    assert fields["s"].children[0].default == pa.scalar(5, pa.int32())


# -- groups --------------------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Six rows in three partitions."""
    made = create(
        tmp_path,
        Schema(NestedField(1, "id", IntegerType()), NestedField(2, "r", StringType())),
        PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "r")),
    )
    rows = {"id": pa.array(range(6), pa.int32()), "r": pa.array(["a", "a", "b", "b", None, None])}
    made.append(pa.table(rows))
    return made


def scanned(table: Table, where: str | None = None) -> Scan:
    opened = tamis.open(table.metadata_location)
    return opened.source.scan(opened.plan(where))


def test_files_are_grouped_by_whether_they_need_the_filter(table: Table) -> None:
    """Whoever is read alike is read together, in the plan's order."""
    assert all(group.holds for group in scanned(table).groups)
    cut = scanned(table, "id > 2")
    assert {group.holds: len(group.numbers) for group in cut.groups} == {True: 1, False: 1}
    assert [field.name for field in cut.fields] == ["id", "r"]
    assert not any((group.positions, group.equality) != (False, False) for group in cut.groups)


def test_identity_partition_values_stand_in_whatever_metrics_say(table: Table) -> None:
    """An imported file has its partition in its path alone, and metrics may count a column that is not there."""
    found = scanned(table)
    assert [group.constants for group in found.groups] == [("r",)]
    assert sorted(found.constants["r"].to_pylist(), key=str) == [None, "a", "b"]
    with table.update_spec() as update:
        update.remove_field("r")
    table.append(pa.table({"id": pa.array([7], pa.int32()), "r": ["c"]}))
    later = scanned(table)
    assert {group.constants: len(group.numbers) for group in later.groups} == {(): 1, ("r",): 3}


def test_each_file_has_its_partition_over_all_specs(table: Table) -> None:
    with table.update_spec() as update:
        update.add_field("id", IdentityTransform(), "id")
    table.append(pa.table({"id": pa.array([7], pa.int32()), "r": ["c"]}))
    found = scanned(table).files.sort_by("sequence_number")
    assert found["spec_id"].to_pylist() == [0, 0, 0, 1]
    assert {(one["r"], one["id"]) for one in found["partition"].to_pylist()} == {
        ("a", None),
        ("b", None),
        (None, None),
        ("c", 7),
    }


def test_no_kept_file_is_no_group(table: Table) -> None:
    found = scanned(table, "id > 100")
    assert found.groups == ()
    assert found.files.num_rows == 0
    assert found.files.schema.field("partition").type == pa.struct([("r", pa.string())])


def test_a_path_that_comes_again_is_read_again() -> None:
    """Readers list a path once; the table counts its rows as often as it names it."""
    assert _repeats(pa.chunked_array([["a", "b", "a"], ["c", "a"]])).tolist() == [0, 0, 1, 0, 2]
    assert _repeats(pa.chunked_array([["a"], ["b"]])).tolist() == [0, 0]
    spelled = ["/a/b", "file:/a/b", "file:///a/b", "//a/b", "/a//b", "/a/./b", "/a/c/../b", "s3://x/a/b", "/a/.b"]
    assert _repeats(pa.chunked_array([spelled])).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 0]


def test_partition_value_that_cannot_be_decoded_is_never_a_column_s_null(tmp_path: Path) -> None:
    """The file itself is asked. If it lacks the column, its value is that of the partition, or nobody's."""
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "region"))
    columns = Schema(NestedField(1, "id", IntegerType()), NestedField(2, "region", StringType()))
    table = create(tmp_path, columns, spec)
    with table.transaction() as change:
        change.set_properties({"write.metadata.metrics.default": "none"})
    table.append(pa.table({"id": pa.array([1], pa.int32()), "region": ["eu"]}))
    opened = tamis.open(table.metadata_location)
    plan = opened.plan()
    (outcome,) = plan.outcomes
    assert opened.source.scan(plan).groups[0].constants == ("region",)
    fault = Undecoded(0, np.array([True]), "no text")
    damaged = replace(plan, outcomes=(replace(outcome, batch=replace(outcome.batch, undecoded=(fault,))),))
    assert opened.source.scan(damaged).groups[0].constants == ("region",)
    path = plan.files["path"][0].as_py().removeprefix("file://")
    pq.write_table(pq.ParquetFile(path).read(["id"]), path)
    with pytest.raises(UnreadableMetadataError, match="its partition value cannot be read, and it lacks the column"):
        opened.source.scan(damaged)
