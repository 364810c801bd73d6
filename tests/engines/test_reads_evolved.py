# ruff: noqa: S608 - SQL made of the tests' own names
"""Columns that were renamed, swapped, dropped, added again, promoted, nested, oddly named: rows are the connector's.

Spark reads Parquet by field ids, but pushes filters down, prunes inside structs and looks types up by name. Each test
that swaps names or renames what holds others is one in which that gave wrong rows without a word.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis.errors import BindError, UnreadableColumnError
from tests.engines.conftest import Warehouse
from tests.engines.reading import Java, bag, connector, delete_rows, java_table, make, same, tamis_rows

pytestmark = pytest.mark.engine

NUMBERS = "(select cast(id as int) as id from range({}, {}))"


@contextmanager
def setting(warehouse: Warehouse, name: str, value: str) -> Iterator[None]:
    before = warehouse.spark.conf.get(name)
    warehouse.spark.conf.set(name, value)
    try:
        yield
    finally:
        warehouse.spark.conf.set(name, before)


def test_filters_on_swapped_names_lose_no_row(warehouse: Warehouse) -> None:
    """Spark pushed a filter on `a` down to the column that the file calls so: row groups of another column."""
    swap = [("a", "t"), ("b", "a"), ("t", "b"), ("s.x", "t"), ("s.y", "x"), ("s.t", "y")]
    make(
        warehouse,
        "swapped",
        "a int, b string, s struct<x: int, y: string>, l array<struct<x: int, y: string>>",
        "insert into {t} select id, 'b' || id, named_struct('x', id, 'y', 'y' || id), "
        f"array(named_struct('x', id, 'y', 'y' || id), null) from {NUMBERS.format(0, 50)}",
        *(f"alter table {{t}} rename column {old} to {new}" for old, new in swap),
        *(f"alter table {{t}} rename column l.element.{old} to {new}" for old, new in (("x", "t"), ("y", "x"))),
    )
    for where in ("a = 'b7'", "b < 7 and b % 2 >= 0", "s.x = 'y3'", "s.y in (3, 5)", "a is null", "l[0].x = 'y9'"):
        assert same(warehouse, "swapped", where) == int("null" not in where) * {"b <": 7, "s.y": 2}.get(where[:3], 1)
    assert same(warehouse, "swapped") == 50


def test_a_column_that_was_dropped_and_added_again_is_another(warehouse: Warehouse) -> None:
    """Spark took the old column's statistics for the new one's: `a is null` found nothing, though all are."""
    make(
        warehouse,
        "again",
        "id int, a int, st struct<p: int, q: int>",
        f"insert into {{t}} select id, id, named_struct('p', id, 'q', id) from {NUMBERS.format(0, 20)}",
        "alter table {t} drop column a",
        "alter table {t} add column a int",
        "alter table {t} drop column st.p",
        "alter table {t} add column st.p string first",
        f"insert into {{t}} select id, named_struct('p', 'x', 'q', id), id from {NUMBERS.format(20, 30)}",
    )
    assert same(warehouse, "again", "a is null and id % 2 >= 0") == 20
    assert same(warehouse, "again", "a > 25") == 4
    assert same(warehouse, "again", "st.p is null and id % 2 >= 0") == 20
    assert same(warehouse, "again", "a <=> null or st.p = 'x'") == 30


def test_parts_of_a_renamed_column_are_read_by_id(warehouse: Warehouse) -> None:
    """Where one field of a struct is wanted, Spark prunes the others and the ids with them: all was NULL."""
    make(
        warehouse,
        "parts",
        "id int, st struct<a: int, d: struct<x: int, y: int>>, l array<struct<p: int, q: int>>, "
        "`o d` struct<a: int>, m map<string, struct<p: int, q: int>>, kept struct<a: int, b: int>",
        "insert into {t} select id, named_struct('a', id, 'd', named_struct('x', id, 'y', id)), "
        "array(named_struct('p', id, 'q', id)), named_struct('a', id), map('k', named_struct('p', id, 'q', id)), "
        f"named_struct('a', id, 'b', id) from {NUMBERS.format(0, 5)}",
        "alter table {t} rename column st to s2",
        "alter table {t} rename column m to m2",
        "alter table {t} rename column l.element.p to pp",
    )
    parts = ["s2.a", "s2.d.x", "l.pp", "m2['k'].q", "`o d`.a", "kept.b"]
    ours, theirs = (one.selectExpr(*parts) for one in (tamis_rows(warehouse, "parts"), connector(warehouse, "parts")))
    assert bag(ours) == bag(theirs)
    assert same(warehouse, "parts", "s2.d.y > 2 and `o d`.a < 4") == 1
    pruned = tamis_rows(warehouse, "parts").select("kept.b")
    assert "ReadSchema: struct<kept:struct<b:int>>" in plan_text(pruned)  # a name that never changed is pruned


def plan_text(frame: Any) -> str:  # noqa: ANN401
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_inside_lists_and_maps_everything_may_change(warehouse: Warehouse) -> None:
    """Renamed, added, dropped, promoted; structs of which a file has no field any more; NULLs at every depth."""
    make(
        warehouse,
        "inside",
        "id int, l array<struct<a: int, b: string>>, m map<string, struct<x: int, y: float>>, ll array<array<int>>, "
        "st struct<p: struct<q: int>>, only struct<z: int>, lo array<struct<z: int>>, mo map<int, struct<z: int>>",
        "insert into {t} select id, array(named_struct('a', id, 'b', 'v' || id), null), "
        "map('k', named_struct('x', id, 'y', id / 2)), array(array(id), null), "
        "named_struct('p', named_struct('q', id)), named_struct('z', id), array(named_struct('z', id), null), "
        f"map(1, named_struct('z', id), 2, null) from {NUMBERS.format(0, 6)}",
        "insert into {t} values (100, null, null, null, null, null, null, null), "
        "(101, array(), map(), array(), named_struct('p', null), named_struct('z', null), array(), map())",
        *(
            f"alter table {{t}} {change}"
            for change in (
                "rename column l.element.a to aa",
                "alter column l.element.aa type bigint",
                "add column l.element.c int first",
                "drop column m.value.x",
                "add column m.value.x string",
                "alter column m.value.y type double",
                "alter column ll.element.element type bigint",
                "alter column st.p.q type bigint",
                "rename column st.p to pp",
                "add column only.w int",
                "drop column only.z",
                "add column lo.element.w int",
                "drop column lo.element.z",
                "add column mo.value.w int",
                "drop column mo.value.z",
            )
        ),
    )
    assert same(warehouse, "inside") == 8
    assert same(warehouse, "inside", "st.pp.q > 2") == 3
    assert same(warehouse, "inside", "only is null") == 1
    assert same(warehouse, "inside", "only.w is null and id % 2 >= 0") == 8
    assert same(warehouse, "inside", "st.pp is null and id % 2 >= 0", ["id", "lo", "mo", "only"]) == 2


def test_filters_beyond_a_promoted_decimals_old_range_lose_no_row(warehouse: Warehouse) -> None:
    """Spark cut the filter's number to the four or eight bytes that the old file has, and compared with the rest."""
    widths = {3: 18, 9: 20, 10: 38, 18: 30, 19: 38}
    columns = ", ".join(f"d{width} decimal({width}, 2)" for width in widths)
    values = ", ".join(f"cast(-id / 3 as decimal({width}, 2))" for width in widths)
    make(
        warehouse,
        "decimals",
        f"id int, {columns}, i int, f float",
        f"insert into {{t}} select id, {values}, id, cast(id / 10 as float) from {NUMBERS.format(0, 20)}",
        *(f"alter table {{t}} alter column d{old} type decimal({new}, 2)" for old, new in widths.items()),
        "alter table {t} alter column i type bigint",
        "alter table {t} alter column f type double",
        f"insert into {{t}} select id, {values}, id, id / 10 from {NUMBERS.format(20, 30)}",
    )
    large = {3: "42949672.96", 9: "184467440737095516.23", 10: "184467440737095516.23", 18: "184467440737095516.23"}
    every = " and ".join(f"d{width} > -{number}" for width, number in large.items())
    assert same(warehouse, "decimals", f"{every} and id % 2 >= 0") == 30
    assert same(warehouse, "decimals", "i < 4294967296 and i <> 4294967299 and id % 2 >= 0") == 30
    assert same(warehouse, "decimals", "f > 0.1D and id % 2 >= 0") == 29  # 0.1 as a float is above 0.1
    assert same(warehouse, "decimals", "d19 < -3 and d9 < -3.3") == 20


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_old_dates_and_times_mean_what_they_say(warehouse: Warehouse, zone: str) -> None:
    """Before 1582 calendars differ; before 1970 numbers are negative; without a zone all zones agree."""
    name = f"old_{zone[:3].lower()}"
    make(
        warehouse,
        name,
        "id int, d date, ts timestamp, n timestamp_ntz",
        "insert into {t} select id, date_add(date'0001-01-01', id * 40000), "
        "timestamp'0001-01-01 00:00:00Z' + make_dt_interval(id * 40000, 1, 2, 3.000004), "
        "timestamp_ntz'0001-01-01 00:00:00' + make_dt_interval(id * 40000, 1, 2, 3.000004) "
        f"from {NUMBERS.format(0, 19)}",
    )
    where = "(d < date'1582-10-10' or n > timestamp_ntz'1960-01-01 00:00:00') and id % 2 >= 0"
    texts = ["id", "cast(d as string)", "cast(ts as string)", "cast(n as string)"]  # Python has no such moments
    with setting(warehouse, "spark.sql.session.timeZone", zone):
        ours = tamis.open(warehouse.path(name)).plan(where, time_zone=zone).read(warehouse.spark).selectExpr(*texts)
        assert bag(ours) == bag(connector(warehouse, name, where).selectExpr(*texts))
        assert ours.count() > 10


def test_odd_names_are_read_filtered_and_deleted_by(warehouse: Warehouse) -> None:
    """Dots, spaces, backticks, other alphabets, keywords, and the name of Spark's own hidden column."""
    make(
        warehouse,
        "odd_names",
        "`a.b` int, `c d` int, `e``f` int, `_metadata` int, `select` int, x struct<`p.q`: int, `r s`: int>, "
        "`ünï` int",
        "insert into {t} select id, id, id, id, id, named_struct('p.q', id, 'r s', id), id "
        f"from {NUMBERS.format(0, 20)}",
        "delete from {t} where `c d` in (3, 4)",
    )
    assert same(warehouse, "odd_names") == 18
    assert same(warehouse, "odd_names", "`a.b` > 5 and `e``f` < 10 and _metadata % 2 = 0") == 2
    assert same(warehouse, "odd_names", "x.`p.q` = 7 or `ünï` = 8") == 2
    assert same(warehouse, "odd_names", "`select` < 5", ["_metadata", "e`f", "a.b"]) == 3
    found = tamis_rows(warehouse, "odd_names", columns=["_metadata"], metadata_columns=["_pos", "_file"])
    assert bag(found) == bag(connector(warehouse, "odd_names", columns=["_metadata", "_pos", "_file"]))


def test_names_that_differ_in_case_alone_are_read_or_refused_as_the_session_has_it(warehouse: Warehouse) -> None:
    """A session that ignores case cannot tell them apart: it says so, and reads one of them when asked."""
    with setting(warehouse, "spark.sql.caseSensitive", "true"):
        rows = f"insert into {{t}} select id, id + 100, id from {NUMBERS.format(0, 20)}"
        make(warehouse, "cases", "a int, A int, b int", rows)
        assert same(warehouse, "cases") == 20
        plan = tamis.open(warehouse.path("cases")).plan("A > 110 and a % 2 >= 0", case_sensitive=True)
        assert plan.read(warehouse.spark).count() == 9
    with pytest.raises(UnreadableColumnError, match="differ in case alone"):
        tamis_rows(warehouse, "cases")
    assert {row.A for row in tamis_rows(warehouse, "cases", "b > 17 and b % 2 >= 0", columns=["A"]).collect()} == {
        118,
        119,
    }


def test_uuids_are_text_in_columns_partitions_filters_and_deletes(warehouse: Warehouse) -> None:
    """Sixteen bytes in files; text to Spark's users. Without metrics the partition's value comes from metadata."""
    java = Java(warehouse.spark)
    uuid, number = java.types.UUIDType.get(), java.types.IntegerType.get()
    java_table(
        warehouse,
        "uuids",
        [
            java.field(1, "id", number, required=True),
            java.field(2, "u", uuid),
            java.field(3, "fx", java.types.FixedType.ofLength(5)),
            java.field(4, "lu", java.types.ListType.ofOptional(20, uuid)),
            java.field(5, "su", java.struct(java.field(21, "u", uuid), java.field(22, "k", number))),
            java.field(6, "mu", java.types.MapType.ofOptional(23, 24, uuid, uuid)),
        ],
        identity="u",
        write_metadata_metrics_default="none",
    )
    text, other = "00000000-0000-0000-0000-00000000000", "f8c3de3d-1fea-4d7c-a8b0-29f63c4c3454"
    warehouse.spark.sql(
        f"insert into ice.db.uuids select id, '{text}' || (id % 3), cast('abcde' as binary), array('{other}', null), "
        f"named_struct('u', '{other}', 'k', id), map('{other}', '{other}') from {NUMBERS.format(0, 6)}"
    )
    assert same(warehouse, "uuids") == 6
    assert same(warehouse, "uuids", f"u = '{text}1' and id % 2 >= 0") == 2
    assert same(warehouse, "uuids", f"su.u = '{other}' and id % 2 >= 0 and fx = X'6162636465'") == 6
    partition = tamis_rows(warehouse, "uuids", columns=["u"], metadata_columns=["_partition"])
    assert bag(partition) == bag(connector(warehouse, "uuids", columns=["u", "_partition"]))
    delete_rows(warehouse, "uuids", [{"u": java.jvm.java.util.UUID.fromString(f"{text}1")}], like=f"u={text}1")
    assert same(warehouse, "uuids") == 4


def test_partition_values_that_files_may_lack_keep_their_types(warehouse: Warehouse) -> None:
    """Without metrics they come from metadata: a time without zone that does not exist in the session's zone, too."""
    make(
        warehouse,
        "constants",
        "id int, n timestamp_ntz, t timestamp, b binary, dd decimal(20, 2), d date, r int",
        "insert into {t} select id, timestamp_ntz'2020-03-08 02:30:00', timestamp'2020-03-08 02:30:00', X'00ff', "
        f"12.34, date'1500-02-28', id from {NUMBERS.format(0, 3)}",
        "insert into {t} values (9, null, null, null, null, null, null)",
        "alter table {t} alter column r type bigint",
        "alter table {t} rename column r to rr",
        partition="n, t, b, dd, d, r",
        write_metadata_metrics_default="none",
    )
    with setting(warehouse, "spark.sql.session.timeZone", "America/New_York"):
        assert same(warehouse, "constants") == 4
        assert same(warehouse, "constants", "n = timestamp_ntz'2020-03-08 02:30:00' and id % 2 >= 0 and rr < 2") == 2
        ours = tamis_rows(warehouse, "constants", columns=[], metadata_columns=["_partition"])
        assert bag(ours) == bag(connector(warehouse, "constants", columns=["_partition"]))


def test_columns_that_are_named_as_ours_are_no_others(warehouse: Warehouse) -> None:
    """What reading adds meanwhile has names that no column has: deletes of both kinds, look-ups, metadata columns."""
    names = ["_tamis_file", "_TAMIS_uri", "_tamis_number", "_tamis_position", "_tamis_sequence", "_tamis_scope_0"]
    names += ["_tamis_data", "_tamis_delete", "_tamis_value_0", "_tamis_column_1", "_tamis_field_2"]
    columns = ", ".join(f"{name} int" for name in names)
    values = ", ".join("id" for _ in names)
    make(
        warehouse,
        "ours",
        f"id int, {columns}, p int, st struct<_tamis_field_1: int, _tamis_absent_2: int>",
        f"insert into {{t}} select id, {values}, id % 3, named_struct('a', id, 'b', id) from {NUMBERS.format(0, 12)}",
        "delete from {t} where id = 5",
        "alter table {t} rename column _tamis_field_2 to other",
        "alter table {t} drop partition field p",
        partition="p",
    )
    delete_rows(warehouse, "ours", [{"_tamis_number": 7}])
    assert same(warehouse, "ours") == 10
    assert same(warehouse, "ours", "_tamis_file > 3 and _tamis_data <> 8 and p < 2 and st._tamis_field_1 > 0") == 4
    metadata = ["_file", "_pos", "_spec_id", "_partition"]
    found = tamis_rows(warehouse, "ours", columns=["_tamis_file", "p"], metadata_columns=metadata)
    assert bag(found) == bag(connector(warehouse, "ours", columns=["_tamis_file", "p", *metadata]))


def test_a_column_with_the_name_of_a_metadata_column_is_read_as_a_column(warehouse: Warehouse) -> None:
    java = Java(warehouse.spark)
    number = java.types.IntegerType.get()
    java_table(warehouse, "hides", [java.field(1, "id", number), java.field(2, "_pos", number)])
    plan = tamis.open(warehouse.path("hides")).plan()
    assert plan.read(warehouse.spark).columns == ["id", "_pos"]
    with pytest.raises(BindError, match="has a column '_pos' of its own"):
        plan.read(warehouse.spark, columns=["id"], metadata_columns=["_pos"])


# -- defaults ------------------------------------------------------------------------------------------------


def defaults(warehouse: Warehouse, name: str) -> list[str]:
    """A table with rows that are older than columns with a default of every type; those columns."""
    make(warehouse, name, "id int", f"insert into {{t}} select id from {NUMBERS.format(0, 3)}", version=3)
    java = Java(warehouse.spark)
    types, literal = java.types, java.iceberg.expressions.Literal
    raw = java.jvm.java.nio.ByteBuffer.wrap(bytes([0, 255, 39]))
    wide = Decimal("-1234567890123456789012345678.0123456789")
    with_zone, without = types.TimestampType.withZone(), types.TimestampType.withoutZone()
    columns = {
        "b": (types.BooleanType.get(), literal.of(True)),
        "i": (types.IntegerType.get(), literal.of(-(2**31))),
        "l": (types.LongType.get(), literal.of(1 - 2**63)),
        "f": (types.FloatType.get(), literal.of(1.1).to(types.FloatType.get())),
        "d": (types.DoubleType.get(), literal.of(-0.1)),
        "s": (types.StringType.get(), literal.of('it\'s \\ "q" \n 😀 ${x} %')),
        "s0": (types.StringType.get(), literal.of("")),
        "dt": (types.DateType.get(), literal.of("1500-02-28").to(types.DateType.get())),
        "ts": (with_zone, literal.of("1969-12-31T23:59:59.999999+00:00").to(with_zone)),
        "nz": (without, literal.of("0001-01-01T00:00:00.000001").to(without)),
        "dec": (types.DecimalType.of(18, 2), literal.of(Decimal("-1234567890123456.78"))),
        "wide": (types.DecimalType.of(38, 10), literal.of(wide)),
        "u": (types.UUIDType.get(), literal.of("f8c3de3d-1fea-4d7c-a8b0-29f63c4c3454").to(types.UUIDType.get())),
        "fx": (types.FixedType.ofLength(3), literal.of(raw).to(types.FixedType.ofLength(3))),
        "bn": (types.BinaryType.get(), literal.of(raw)),
    }
    for column, (type_, value) in columns.items():
        java.load(name).updateSchema().addColumn(column, type_, None, value).commit()
    java.load(name).updateSchema().addRequiredColumn("rq", types.IntegerType.get(), None, literal.of(7)).commit()
    warehouse.spark.sql(f"refresh table ice.db.{name}")
    return [*columns, "rq"]


def test_rows_older_than_a_column_have_its_initial_default(warehouse: Warehouse) -> None:
    """In what is read, in filters (a file must not be skipped for lack of the column), and for deletes by value."""
    every = defaults(warehouse, "defaults")
    plain = [column for column in every if column not in ("wide", "u", "fx", "bn")]
    assert same(warehouse, "defaults", columns=["id", *plain]) == 3
    for where in (
        "i = -2147483648",
        "s like 'it%'",
        "dt < date'1600-01-01'",
        "dec < 0 and rq = 7",
        "nz < ts",
        "s0 = ''",
    ):
        assert same(warehouse, "defaults", f"{where} and id % 2 >= 0", ["id", *plain]) == 3
    assert same(warehouse, "defaults", "i is null and id % 2 >= 0", ["id"]) == 0
    with setting(warehouse, "spark.sql.session.timeZone", "Asia/Tokyo"):
        assert same(warehouse, "defaults", columns=["id", "ts", "nz", "dt"]) == 3
    delete_rows(warehouse, "defaults", [{"i": -(2**31), "s0": ""}])
    assert tamis_rows(warehouse, "defaults", columns=["id"]).count() == 0


def test_defaults_that_sparks_reader_cannot_give_are_read_with_arrow(warehouse: Warehouse) -> None:
    """Its vectorised reader fails inside a task for binary values and for decimals of more than 18 digits."""
    every = defaults(warehouse, "hard_defaults")
    assert same(warehouse, "hard_defaults", columns=["id", *every]) == 3
    for column in ("wide", "u", "fx", "bn"):
        assert same(warehouse, "hard_defaults", columns=[column]) == 3
    assert same(warehouse, "hard_defaults", "wide < 0 and length(bn) = 2 and id % 2 >= 0", ["id", "u"]) <= 3
    warehouse.spark.sql("insert into ice.db.hard_defaults (id, bn, rq) values (77, null, 1)")
    assert same(warehouse, "hard_defaults", columns=["id", "bn", "u", "wide"]) == 4
    assert same(warehouse, "hard_defaults", "bn is null and id > 0", ["id"]) >= 1


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_columns_of_no_type_are_null_as_the_connector_has_them(warehouse: Warehouse, file_format: str) -> None:
    """`unknown` of version 3: no file has it. Spark calls it void."""
    name = make(
        warehouse,
        f"of_no_type_{file_format}",
        "id int, st struct<a: int>",
        "insert into {t} values (1, named_struct('a', 1)), (2, null)",
        version=3,
        write_format_default=file_format,
    )
    java = Java(warehouse.spark)
    for parent in ((), ("st",)):
        java.load(name).updateSchema().addColumn(*parent, "un", java.types.UnknownType.get()).commit()
    assert same(warehouse, name) == 2
    assert same(warehouse, name, "un is null and id > 0", ["id"]) == 2
    assert same(warehouse, name, "st.un is not null and id > 0", ["id"]) == 0


def test_a_default_of_a_struct_is_made_of_those_of_its_fields(warehouse: Warehouse) -> None:
    """It is written as `{}`, as the specification has it."""
    name = make(warehouse, "struct_default", "id int", "insert into {t} values (1)", version=3)
    folder = Path(warehouse.path(name)) / "metadata"
    document = json.loads((folder / "v2.metadata.json").read_text(encoding="utf-8"))
    inside = {"type": "struct", "fields": [{"id": 3, "name": "a", "type": "int", "required": False}]}
    inside["fields"][0] |= {"initial-default": 5}
    added = {"id": 2, "name": "st", "type": inside, "required": False, "initial-default": {}}
    (schema,) = document["schemas"]
    document["schemas"].append({**schema, "schema-id": 1, "fields": [*schema["fields"], added]})
    changed = document | {"current-schema-id": 1, "last-column-id": 3}
    (folder / "v3.metadata.json").write_text(json.dumps(changed), encoding="utf-8")
    (folder / "version-hint.text").write_text("3", encoding="utf-8")
    for where in (None, "st.a = 5", "st is not null and st.a is not null"):
        assert [row.asDict(recursive=True) for row in tamis_rows(warehouse, name, where).collect()] == [
            {"id": 1, "st": {"a": 5}}
        ], where
    assert tamis_rows(warehouse, name, "st is null").count() == 0


def test_a_file_that_is_listed_twice_counts_twice(warehouse: Warehouse) -> None:
    """Iceberg reads a file as often as it is added; Spark lists a path once."""
    make(warehouse, "twice", "id int", f"insert into {{t}} select id from {NUMBERS.format(0, 5)}")
    java = Java(warehouse.spark)
    java.load("twice").newFastAppend().appendFile(java.data_file("twice")).commit()
    assert same(warehouse, "twice") > 5
    assert same(warehouse, "twice", "id % 2 >= 0") > 5
    ours = tamis_rows(warehouse, "twice", metadata_columns=["_file", "_pos"])
    assert bag(ours) == bag(connector(warehouse, "twice", columns=["id", "_file", "_pos"]))
