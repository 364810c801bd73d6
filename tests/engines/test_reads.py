# ruff: noqa: S608 - SQL made of the tests' own names
"""plan.read gives the rows that Iceberg's connector gives: evolved tables, conditions, every kind of delete."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tamis
from tests.engines.conftest import Warehouse
from tests.engines.predicates import conditions
from tests.engines.reading import (
    METADATA,
    bag,
    connector,
    delete_rows,
    fingerprints,
    make,
    same,
    tamis_rows,
    true_fingerprints,
)
from tests.engines.truth import live_rows, session_zone

pytestmark = pytest.mark.engine

COUNT = 16
"""Conditions for each format version. The planner's own suite has hundreds: here it is the reading that is held."""


@pytest.fixture(params=[1, 2, 3], ids="v{}".format)
def table(request: pytest.FixtureRequest, evolved: Callable[[int], str]) -> str:
    return evolved(request.param)


def differing(warehouse: Warehouse, name: str, wheres: list[str], zone: str = "UTC") -> dict[str, object]:
    """The conditions for which tamis reads other rows than those that it is true of."""
    opened = tamis.open(warehouse.path(name))
    with live_rows(warehouse.spark, f"ice.db.{name}") as rows, session_zone(warehouse.spark, zone):
        wanted = true_fingerprints(rows, wheres)
        found = fingerprints([opened.plan(where, time_zone=zone).read(warehouse.spark) for where in wheres])
    return {where: (one, other) for where, one, other in zip(wheres, found, wanted, strict=True) if one != other}


def test_generated_conditions_give_the_rows_that_they_are_true_of(warehouse: Warehouse, table: str) -> None:
    """Pruning, deletes, push-down and the row filter together; each could lose or invent a row."""
    assert differing(warehouse, table, conditions(int(table[-1]) + 20, COUNT)) == {}


def test_another_time_zone_gives_its_own_rows(warehouse: Warehouse, evolved: Callable[[int], str]) -> None:
    """Times and dates meet in the session's zone, in the planner and in Spark."""
    wheres = conditions(31, 8, only=("ts", "ntz", "d"))
    assert differing(warehouse, evolved(3), wheres, "America/New_York") == {}


def test_whole_tables_and_their_metadata_columns_are_the_connectors(warehouse: Warehouse, table: str) -> None:
    """Names, types, values, and for each row its file, its place, its spec and its partition over all specs."""
    columns = [*warehouse.spark.table(f"ice.db.{table}").columns, *METADATA]
    ours = tamis_rows(warehouse, table, metadata_columns=METADATA)
    theirs = connector(warehouse, table, columns=columns)
    assert ours.schema.simpleString() == theirs.schema.simpleString()
    assert bag(ours) == bag(theirs)


def test_metadata_columns_stand_alone_and_in_any_order(warehouse: Warehouse, table: str) -> None:
    """Each is looked up on its own; `_pos` needs no look-up, and no column of the table need be read."""
    for wanted in (["_pos"], ["_spec_id", "_file"], ["_partition"]):
        ours = tamis_rows(warehouse, table, "id > 300 and id % 3 = 0", columns=[], metadata_columns=wanted)
        assert bag(ours) == bag(connector(warehouse, table, "id > 300 and id % 3 = 0", columns=wanted))


def test_no_partition_is_null_as_the_connector_shows_it(warehouse: Warehouse) -> None:
    make(warehouse, "never_partitioned", "id int", "insert into {t} values (1), (2)")
    ours = tamis_rows(warehouse, "never_partitioned", metadata_columns=METADATA)
    assert bag(ours) == bag(connector(warehouse, "never_partitioned", columns=["id", *METADATA]))


# -- deletes by position -------------------------------------------------------------------------------------


@pytest.mark.parametrize("granularity", ["file", "partition"])
@pytest.mark.parametrize("version", [2, 3])
def test_position_deletes_of_either_scope_are_applied(warehouse: Warehouse, version: int, granularity: str) -> None:
    """Several deletes over the same files, of which one names a file twice; in version 3 they are vectors."""
    name = f"by_position_{granularity}_{version}"
    insert = "insert into {{t}} select id, id % 3 from range({}, {})"
    made = {"write_delete_granularity": granularity}
    make(warehouse, name, "id bigint, p bigint", insert.format(0, 300), partition="p", version=version, **made)
    spark, table = warehouse.spark, f"ice.db.{name}"
    spark.sql(f"delete from {table} where id % 10 = 1")
    spark.sql(f"delete from {table} where id % 7 = 1 or id between 200 and 240")
    spark.sql(insert.format(300, 330).replace("{t}", table))
    assert same(warehouse, name) == same(warehouse, name, "id >= 0")
    assert same(warehouse, name, "p = 1 and id % 2 = 0") > 0
    assert tamis_rows(warehouse, name, "id in (1, 8, 201)").count() == 0
    metadata = tamis_rows(warehouse, name, metadata_columns=["_file", "_pos"])
    assert bag(metadata) == bag(connector(warehouse, name, columns=["id", "p", "_file", "_pos"]))


def test_vectors_over_old_position_deletes_replace_them(warehouse: Warehouse) -> None:
    """A table of version 2 that became one of version 3: where a file has a vector, its old deletes are in it."""
    make(warehouse, "upgraded", "id bigint", "insert into {t} select id from range(100)")
    spark = warehouse.spark
    spark.sql("delete from ice.db.upgraded where id < 10")
    spark.sql("insert into ice.db.upgraded select id from range(100, 200)")
    spark.sql("delete from ice.db.upgraded where id between 100 and 109")
    spark.sql("alter table ice.db.upgraded set tblproperties ('format-version' = '3')")
    spark.sql("delete from ice.db.upgraded where id between 20 and 29")
    assert same(warehouse, "upgraded") == 170


# -- deletes by value ----------------------------------------------------------------------------------------


def by_value(warehouse: Warehouse, name: str, version: int = 2) -> None:
    """Forty rows in two partitions, in one commit each ten, with NULLs in every column but the first."""
    columns = "id int, s string, st struct<a: int, b: string>, r string, k int"
    rows = (
        "insert into {{t}} select id, if(id % 5 = 0, null, 's' || id % 4), "
        "if(id % 7 = 0, null, named_struct('a', id % 5, 'b', 'b' || id % 3)), 'r' || id % 2, id % 6 "
        "from (select cast(id as int) as id from range({}, {}))"
    )
    inserts = [rows.format(start, start + 10) for start in (0, 10, 20, 30)]
    make(warehouse, name, columns, *inserts, partition="r", version=version)


def numbers(warehouse: Warehouse, name: str, where: str | None = None) -> set[int]:
    rows = tamis_rows(warehouse, name, where, columns=["id"]).collect()
    assert len({row.id for row in rows}) == len(rows)
    return {row.id for row in rows}


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_by_value_reach_older_rows_of_their_partition(warehouse: Warehouse, version: int) -> None:
    """With NULL keys, keys of two columns, fields of structs; rows that come later stay, whatever they hold."""
    name = f"by_value_{version}"
    by_value(warehouse, name, version)
    delete_rows(warehouse, name, [{"k": 1}, {"k": 4}], like="r=r0")
    assert same(warehouse, name) == 34  # 4, 10, 16, 22, 28, 34: those of the other partition stay
    delete_rows(warehouse, name, [{"s": None}], like="r=r1")
    warehouse.spark.sql(f"delete from ice.db.{name} where id in (0, 1, 2)")  # by position, beside those by value
    assert same(warehouse, name, "id < 17 or id > 18") < same(warehouse, name)
    delete_rows(warehouse, name, [{"st.a": 2, "st.b": "b1"}, {"st.a": 3, "st.b": None}], like="r=r1")
    delete_rows(warehouse, name, [{"k": 3, "s": "s3"}, {"k": None, "s": None}], like="r=r1")
    before = same(warehouse, name)
    warehouse.spark.sql(f"insert into ice.db.{name} select id + 100, s, st, r, k from ice.db.{name}")
    warehouse.spark.sql(f"insert into ice.db.{name} values (200, null, null, 'r0', 4), (201, null, null, 'r1', 3)")
    assert same(warehouse, name) == 2 * before + 2
    assert same(warehouse, name, "k = 4 or st.a = 2") > 0
    assert same(warehouse, name, "s is null and id % 2 >= 0") > 0
    delete_rows(warehouse, name, [{"k": 4}], like="r=r0")
    assert 200 not in numbers(warehouse, name)
    metadata = tamis_rows(warehouse, name, "id % 3 = 0", metadata_columns=METADATA)
    every = ["id", "s", "st", "r", "k", *METADATA]
    assert bag(metadata) == bag(connector(warehouse, name, "id % 3 = 0", columns=every))


def test_deletes_by_a_field_of_a_struct_hold_whatever_is_selected(warehouse: Warehouse) -> None:
    """Iceberg's connector brings deleted rows back, loses rows or fails unless a query selects the whole struct.

    Not the same one in each run, so the rows are held against arithmetic, not against the connector.
    """
    by_value(warehouse, "unselected")
    delete_rows(warehouse, "unselected", [{"st.a": 1}], like="r=r1")
    left = set(range(40)) - {1, 11, 31}  # 1 modulo 5 and odd; the struct of 21 is NULL
    assert numbers(warehouse, "unselected") == left
    assert {row.id for row in tamis_rows(warehouse, "unselected").select("id", "st.b").collect()} == left
    assert numbers(warehouse, "unselected", "id in (1, 11, 31)") == set()


def test_deletes_by_floats_tell_zeros_apart_and_take_nan_for_itself(warehouse: Warehouse) -> None:
    """To Spark -0.0 is 0.0; to Iceberg, which compares deleted values as Java does, it is another number."""
    values = "(1, -0D, -float(0)), (2, 0D, float(0)), (3, double('NaN'), float('NaN')), (4, null, null), (5, 7D, 7F)"
    rows = f"insert into {{t}} select id, d, f, named_struct('p', d) from values {values} as v(id, d, f)"
    table = "id int, d double, f float, st struct<p: double>"
    deletes = {"minus": ("d", -0.0), "plus": ("st.p", 0.0), "nan": ("d", float("nan")), "widened": ("f", -0.0)}
    for kind, (column, value) in deletes.items():
        name = make(warehouse, f"zeros_{kind}", table, rows, "alter table {t} alter column f type double")
        delete_rows(warehouse, name, [{column: value}])
        assert same(warehouse, name) == 4, kind
        assert same(warehouse, name, "id > 0") == 4, kind


def test_deletes_of_an_unpartitioned_spec_reach_every_older_row(warehouse: Warehouse) -> None:
    """Whatever spec and partition the rows have; those of the same columns in one partition count on their own."""
    by_value(warehouse, "everywhere")
    spark, name = warehouse.spark, "everywhere"
    delete_rows(warehouse, name, [{"k": 0}], like="r=r0")
    spark.sql(f"alter table ice.db.{name} drop partition field r")
    spark.sql(f"insert into ice.db.{name} select id + 100, s, st, r, k from ice.db.{name} where id < 20")
    delete_rows(warehouse, name, [{"k": 5}, {"k": 2}])
    spark.sql(f"alter table ice.db.{name} add partition field bucket(2, id)")
    spark.sql(f"insert into ice.db.{name} values (300, 'x', null, 'r0', 5), (301, 'x', null, 'r1', 0)")
    assert same(warehouse, name) > 20
    found = numbers(warehouse, name, "k in (0, 2, 5)")
    assert found == {300, 301} | {row.id for row in connector(warehouse, name, "k = 0").collect()}


def test_equality_deletes_of_one_partition_and_of_all_of_them_name_the_same_columns(warehouse: Warehouse) -> None:
    """The older ones of the partition, the younger ones of all, then the reverse: neither takes the other's reach."""
    rows = "insert into {t} select k::int, 'r' || k % 3 from (select explode(sequence(0, 29)) k)"
    make(warehouse, "both_scopes", "k int, r string", rows, partition="r")
    delete_rows(warehouse, "both_scopes", [{"k": 0}, {"k": 1}, {"k": 2}], like="r=r0")
    warehouse.spark.sql("alter table ice.db.both_scopes drop partition field r")
    delete_rows(warehouse, "both_scopes", [{"k": 3}, {"k": 4}, {"k": 5}])
    delete_rows(warehouse, "both_scopes", [{"k": 6}, {"k": 7}, {"k": 8}], like="r=r1")
    assert same(warehouse, "both_scopes") == 30 - 1 - 3 - 1


def test_deletes_on_renamed_and_promoted_columns_still_apply(warehouse: Warehouse) -> None:
    """A delete names a column by its id, whatever it is called and however wide it is now."""
    by_value(warehouse, "moved")
    delete_rows(warehouse, "moved", [{"k": 1}, {"k": None}], like="r=r1")
    delete_rows(warehouse, "moved", [{"st.a": 4}], like="r=r0")
    before = numbers(warehouse, "moved")
    for change in (
        "rename column k to kk",
        "alter column kk type bigint",
        "rename column st.a to aa",
        "alter column st.aa type bigint",
        "rename column s to k",
        "rename column st to s",
    ):
        warehouse.spark.sql(f"alter table ice.db.moved {change}")
    assert same(warehouse, "moved") == len(before)
    assert numbers(warehouse, "moved") == before
    warehouse.spark.sql("insert into ice.db.moved select id + 100, k, s, r, kk from ice.db.moved")
    assert same(warehouse, "moved", "kk >= 0 and id % 2 >= 0") > 0
    delete_rows(warehouse, "moved", [{"k": "s1"}], like="r=r0")
    assert same(warehouse, "moved", "s.aa is not null") > 0


def test_deletes_on_a_dropped_column_still_apply_where_the_connector_fails(warehouse: Warehouse) -> None:
    """The format demands it; once a column of the same name is added, Iceberg's connector cannot read the table."""
    by_value(warehouse, "dropped_key")
    delete_rows(warehouse, "dropped_key", [{"k": 1}, {"k": 5}], like="r=r1")
    before = numbers(warehouse, "dropped_key")
    assert len(before) == 27
    warehouse.spark.sql("alter table ice.db.dropped_key drop column k")
    assert same(warehouse, "dropped_key") == 27
    assert numbers(warehouse, "dropped_key") == before
    # Another column of the same name is another column: the deletes know nothing of it.
    warehouse.spark.sql("alter table ice.db.dropped_key add column k int")
    warehouse.spark.sql("insert into ice.db.dropped_key values (100, 'x', null, 'r1', 1), (101, 'x', null, 'r1', 2)")
    with pytest.raises(Exception, match="multiple fields for name k"):
        connector(warehouse, "dropped_key").collect()
    assert numbers(warehouse, "dropped_key") == before | {100, 101}
    delete_rows(warehouse, "dropped_key", [{"k": 1}], like="r=r1")
    assert numbers(warehouse, "dropped_key") == before | {101}
    assert numbers(warehouse, "dropped_key", "k is null") == before
    assert tamis_rows(warehouse, "dropped_key").columns == ["id", "s", "st", "r", "k"]


def test_deletes_on_a_field_dropped_from_a_struct_apply_where_the_connector_loses_rows(warehouse: Warehouse) -> None:
    """The struct is still there and is read with the field and without it: Iceberg's connector drops other rows."""
    by_value(warehouse, "dropped_field")
    delete_rows(warehouse, "dropped_field", [{"st.a": 1}], like="r=r1")
    delete_rows(warehouse, "dropped_field", [{"st.a": 2, "st.b": "b0"}], like="r=r0")
    rows = connector(warehouse, "dropped_field").collect()
    whole = {row.id: (row.s, row.st and row.st.b, row.st is None, row.r, row.k) for row in rows}
    before = set(whole)
    warehouse.spark.sql("alter table ice.db.dropped_field drop column st.a")
    assert numbers(warehouse, "dropped_field") == before
    found = tamis_rows(warehouse, "dropped_field").collect()
    assert {row.id: (row.s, row.st and row.st.b, row.st is None, row.r, row.k) for row in found} == whole
    warehouse.spark.sql("alter table ice.db.dropped_field add column st.a string")
    assert numbers(warehouse, "dropped_field", "st.b = 'b1' or st.a = 'x' or st is null or st.b != 'b1'") == before
    warehouse.spark.sql("alter table ice.db.dropped_field drop column st")
    assert numbers(warehouse, "dropped_field") == before
