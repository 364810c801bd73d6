"""Columns whose names differ in case alone: rows are the connector's, or an error says which setting it takes.

The connector reads such tables in a session that heeds case, and fails in any other, whatever is selected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

import tamis
from tamis.errors import BindError, SessionSettingError, UnreadableColumnError
from tests.engines.conftest import Warehouse
from tests.engines.reading import bag, connector, delete_rows, make

pytestmark = pytest.mark.engine

SETTING = "spark.sql.caseSensitive"
COLUMNS = "id int, ID int, st struct<a: double, A: double>, b int, ls array<struct<x: int, X: string>>"
ROWS = (
    "insert into {t} select cast(id as int), cast(id + 100 as int), named_struct('a', cast(id / 4 as double), 'A', "
    "cast(-id as double)), cast(id as int), array(named_struct('x', cast(id as int), 'X', 'X' || id)) "
    "from range(0, 20, 1, 1)"
)


@pytest.fixture
def heeding(warehouse: Warehouse) -> Iterator[Warehouse]:
    """A session that tells names apart by their case."""
    before = warehouse.spark.conf.get(SETTING)
    warehouse.spark.conf.set(SETTING, "true")
    yield warehouse
    warehouse.spark.conf.set(SETTING, str(before))


def told(warehouse: Warehouse, name: str, where: str | None, columns: list[str]) -> Counter[str]:
    """What the connector reads where the session heeds case."""
    return bag(connector(warehouse, name, where, columns))


def read(warehouse: Warehouse, name: str, where: str | None, columns: list[str], *, heed: bool) -> Counter[str]:
    plan = tamis.open(warehouse.path(name)).plan(where, case_sensitive=heed)
    warehouse.spark.conf.set(SETTING, str(heed).lower())
    try:
        return bag(plan.read(warehouse.spark, columns=columns))
    finally:
        warehouse.spark.conf.set(SETTING, "true")


def check(warehouse: Warehouse, name: str) -> None:
    """All that can be told apart is read, by either kind of session."""
    every = ["id", "ID", "st", "b", "ls"]
    for where in ("ID > 104 and id <> 13 and st.A < -5 and st.a > 1.5", "id = 7 or ID = 7 or ls[0].X = 'X9'"):
        assert read(warehouse, name, where, every, heed=True) == told(warehouse, name, where, every), where
    for columns, where in ((["ID", "st"], None), (["ls", "b"], "b > 12 and b % 2 = 0"), (["b", "id"], "b = 5")):
        found = read(warehouse, name, where, columns, heed=False)
        assert found == told(warehouse, name, where, columns), (where, columns)
        assert found


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_names_that_differ_in_case_alone_are_read_from_any_format(heeding: Warehouse, file_format: str) -> None:
    """By name Spark's readers find two columns for one, where the session ignores case."""
    name = make(
        heeding,
        f"twins_{file_format}",
        COLUMNS,
        ROWS,
        "delete from {t} where b in (3, 4)",
        ROWS.replace("range(0, 20, 1, 1)", "range(20, 23, 1, 1)"),
        write_format_default=file_format,
    )
    check(heeding, name)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_names_that_files_alone_have_twice_do_not_hinder(heeding: Warehouse, file_format: str) -> None:
    """A column was dropped, the file still has it. What is left has a name that is like no other."""
    name = make(
        heeding,
        f"lone_{file_format}",
        COLUMNS,
        ROWS,
        "alter table {t} drop column ID",
        "alter table {t} drop column st.A",
        "alter table {t} rename column b to B",
        "alter table {t} add column b int",
        write_format_default=file_format,
    )
    for where in (None, "id > 5 and st.a < 4"):
        wanted = told(heeding, name, where, ["id", "st", "ls"])
        assert wanted
        for heed in (True, False):
            assert read(heeding, name, where, ["id", "st", "ls"], heed=heed) == wanted, (where, heed)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_files_without_ids_have_names_that_differ_in_case_alone(heeding: Warehouse, file_format: str) -> None:
    """The name mapping ties each name to its own column."""
    spark, name = heeding.spark, f"mapped_twins_{file_format}"
    source = heeding.folder / f"twins in {file_format}"
    rows = ROWS.removeprefix("insert into {t} ")
    names = ("id", "ID", "st", "b", "ls")
    spark.sql(rows).toDF(*names).write.format(file_format).save(str(source))
    make(
        heeding,
        name,
        COLUMNS,
        f"call ice.system.add_files(table => 'db.{name}', source_table => '`{file_format}`.`{source}`')",
        write_format_default=file_format,
    )
    check(heeding, name)


@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_deletes_by_value_take_the_column_that_they_name(heeding: Warehouse, file_format: str) -> None:
    """Not its twin: neither are rows lost nor do they come back."""
    name = make(heeding, f"twins_deleted_{file_format}", COLUMNS, ROWS, write_format_default=file_format)
    delete_rows(heeding, name, [{"ID": 105}, {"ID": 7}])
    for columns in (["b"], ["ID", "st"]):
        wanted = told(heeding, name, None, columns)
        assert wanted.total() == 19
        assert read(heeding, name, None, columns, heed=False) == wanted
    delete_rows(heeding, name, [{"ID": 109, "id": 9}])
    with pytest.raises(UnreadableColumnError, match=r"'ID' and 'id' differ in case alone.*caseSensitive to true"):
        read(heeding, name, None, ["b"], heed=False)
    assert read(heeding, name, None, ["b", "id"], heed=True) == told(heeding, name, None, ["b", "id"])


def test_a_session_that_ignores_case_is_told_what_to_set(heeding: Warehouse) -> None:
    """To Spark the reference is ambiguous: a condition is never filtered by another column than planned."""
    name = make(heeding, "twins_told", COLUMNS, ROWS)
    opened = tamis.open(heeding.path(name))
    for where in ("id > 3", "st.a > 2"):
        with pytest.raises(BindError, match=r"ambiguous.*case_sensitive=True.*caseSensitive=true"):
            opened.plan(where)
        plan = opened.plan(where, case_sensitive=True)
        heeding.spark.conf.set(SETTING, "false")
        with pytest.raises(SessionSettingError, match=r"ignores the case.*caseSensitive to true") as caught:
            plan.read(heeding.spark, columns=["b"])
        heeding.spark.conf.set(caught.value.setting, "true")
    heeding.spark.conf.set(SETTING, "false")
    for columns in (None, ["id", "ID"]):
        with pytest.raises(UnreadableColumnError, match=r"'ID' and 'id' differ in case alone"):
            opened.plan("b > 3").read(heeding.spark, columns=columns)


def test_explain_says_of_names_that_differ_in_case_alone(heeding: Warehouse) -> None:
    name = make(heeding, "twins_explained", COLUMNS, ROWS, write_format_default="avro")
    (note,) = tamis.open(heeding.path(name)).plan().stats.notes
    assert "1 Avro file is read with Arrow" in note
    assert "or where names differ in case alone and the session ignores case" in note
