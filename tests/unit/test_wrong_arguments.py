"""Objects that other libraries put into users' hands, as every argument: refused by name, before anything happens."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pytest
from pyiceberg.catalog import Catalog

import tamis
from tamis.arguments import check_storage
from tamis.checks import check_choice, check_names
from tamis.errors import FilterInputError, TamisError
from tamis.spark.join import Join, KeyOptions
from tests.making.cli_tables import catalog, events


class Vague:
    """As a Column of PySpark: it equals everything, and is neither true nor false."""

    def __eq__(self, other: object) -> Any:  # noqa: ANN401 - a Column
        return self

    __hash__ = None  # type: ignore[assignment] # as a Column

    def __bool__(self) -> bool:
        raise ValueError("cannot convert a column into a bool")


ODD = (Vague(), pd.Series([1]), pc.field("id") == 1, np.array([1, 2]), pd.NA, 5, b"x")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("wrong")
    events(folder)
    return catalog(folder)


@pytest.fixture(scope="module")
def table(made: Catalog) -> tamis.Table:
    return tamis.open("db.events", catalog=made)


ASKED: dict[str, Callable[[tamis.Table, Any], object]] = {
    "explain": lambda table, odd: table.plan().explain(odd),
    "explain timing": lambda table, odd: table.plan().explain(timing=odd),
    "explain a rewrite": lambda table, odd: table.rewrite().plan().explain(odd),
    "explain a rewrite timing": lambda table, odd: table.rewrite().plan().explain(timing=odd),
    "explain a delete": lambda table, odd: table.plan_delete("id = 1").explain(odd),
    "explain an update": lambda table, odd: table.plan_update({"id": 1}, where="id = 1").explain(odd),
    "progress of a plan": lambda table, odd: table.plan(progress=odd),
    "progress of a rewrite": lambda table, odd: table.rewrite().plan(odd),
    "progress of an inspection": lambda table, odd: table.inspect(odd),
    **{
        f"{call} {name}": lambda table, odd, call=call, name=name: {
            "delete": lambda: table.delete("id = 1", **{name: odd}),
            "plan_delete": lambda: table.plan_delete("id = 1", **{name: odd}),
            "update": lambda: table.update({"id": 1}, where="id = 1", **{name: odd}),
            "plan_update": lambda: table.plan_update({"id": 1}, where="id = 1", **{name: odd}),
        }[call]()
        for call in ("delete", "plan_delete", "update", "plan_update")
        for name in (
            *("mode", "isolation", "branch", "snapshot_properties"),
            *("case_sensitive", "time_zone", "storage"),
        )
    },
    "pattern of like": lambda _, odd: tamis.col("a").like(odd),
    "escape of like": lambda _, odd: tamis.col("a").like("a", odd),
    "unit of date_trunc": lambda _, odd: tamis.col("a").date_trunc(odd),
    "ends of a range's columns": lambda _, odd: tamis.RuntimeFilter.of_ranges(["a"], [odd]),
    "ranges": lambda _, odd: tamis.RuntimeFilter.of_ranges(["a"], odd),
    "bloom": lambda _, odd: tamis.RuntimeFilter.of_bloom("a", odd),
    "type of a bloom": lambda _, odd: tamis.RuntimeFilter.of_bloom("a", odd, type=odd),
    "null_safe of keys": lambda _, odd: tamis.RuntimeFilter.of("a", [1], null_safe=odd),
    "null_safe of a range": lambda _, odd: tamis.RuntimeFilter.of_range("a", 1, 2, null_safe=odd),
    "how keys are collected": lambda _, odd: KeyOptions(pin=odd),
    "how keys are put into a bloom filter": lambda _, odd: KeyOptions(bloom=odd),
    "columns of a join": lambda _, odd: Join.of({"a": odd}, "inner", null_safe=False),
    "column of a join": lambda _, odd: Join.of([odd], "inner", null_safe=False),
    "keys of a join": lambda _, odd: Join.of(odd, "inner", null_safe=False),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_object_of_another_library_is_refused_in_words_of_our_own(
    made: Catalog, table: tamis.Table, asked: str, odd: object
) -> None:
    with pytest.raises((TypeError, TamisError)) as refused:
        ASKED[asked](table, odd)
    assert "/tamis/" in str(refused.traceback[-1].path)
    if asked.startswith(("delete", "update")):
        assert tamis.open("db.events", catalog=made).snapshot_id == table.snapshot_id


@pytest.mark.parametrize(
    "from_dataframe", [{"columns": 5}, {"columns": [5]}, {"max_keys": "5"}, {"max_keys": 1.5}, {"pin": None}]
)
def test_wrong_ways_to_collect_keys_are_named_before_a_job_runs(from_dataframe: dict[str, Any]) -> None:
    frame = SimpleNamespace(sparkSession=None)
    with pytest.raises(TypeError, match=next(iter(from_dataframe))):
        tamis.RuntimeFilter.from_dataframe(frame, **{"columns": "id", **from_dataframe})


def test_most_keys_are_a_number_of_them() -> None:
    with pytest.raises(ValueError, match="max_keys is -1: give 0 or more"):
        KeyOptions(max_keys=-1)
    with pytest.raises(TypeError, match="max_keys is a float"):
        KeyOptions(max_keys=1.5)  # type: ignore[arg-type] # the point of the test


@pytest.mark.parametrize("keys", [{"region": "eu"}, {"region": b"eu"}, {"region": memoryview(b"eu")}])
def test_one_text_in_a_dict_of_keys_is_not_its_letters(table: tamis.Table, keys: dict[str, Any]) -> None:
    """Its letters as join keys would prune the files of 'eu'."""
    with pytest.raises(TypeError, match="the join keys of region are one value"):
        table.plan(runtime_filters=[tamis.RuntimeFilter.of("region", keys)])


def test_frame_of_pandas_gives_the_keys_of_several_columns() -> None:
    frame = pd.DataFrame({"name": ["x"], "id": [7]}, index=[3])
    assert tamis.RuntimeFilter.of(["id", "name"], frame).keys == 1
    assert tamis.RuntimeFilter.of("id", frame).text == "id in 1 join key [7]"


def test_frame_of_spark_is_collected_not_listed() -> None:
    frame: Any = SimpleNamespace(sparkSession=None, columns=["id"])
    with pytest.raises(TypeError, match=r"collect them with RuntimeFilter\.from_dataframe"):
        tamis.RuntimeFilter.of("id", frame)


def test_each_column_needs_one_range() -> None:
    """Two letters of a text once were the ends of a range."""
    with pytest.raises(TypeError, match="a member of ranges is a str: give a pair"):
        tamis.RuntimeFilter.of_ranges(["id"], ["ab"])  # type: ignore[list-item] # the point of the test
    with pytest.raises(FilterInputError, match="1 columns and 2 ranges"):
        tamis.RuntimeFilter.of_ranges(["id"], [(1, 2), (3, 4)])


def test_column_without_a_name_is_none() -> None:
    with pytest.raises(TypeError, match="a column of a runtime filter is a tuple"):
        tamis.RuntimeFilter.of([()], [1])


@pytest.mark.parametrize("combined", [operator.and_, operator.or_])
def test_condition_combined_with_what_is_none_names_its_class(combined: Callable[[Any, Any], object]) -> None:
    with pytest.raises(TypeError, match=r"and a pandas\S+Series is none: put brackets"):
        combined(tamis.col("id") == 1, pd.Series([1]))


def test_choice_is_quoted_short_and_safe() -> None:
    with pytest.raises(ValueError, match=r"mode is 'x{80}…': give one of 'a', 'b'"):
        check_choice("mode", "x" * 5000, ("a", "b"))
    with pytest.raises(ValueError, match=r"mode is '\\x1b\[31m'"):
        check_choice("mode", "\x1b[31m", ("a", "b"))
    with pytest.raises(TypeError, match="storage is a bool"):
        check_storage(True)
    with pytest.raises(TypeError, match="columns is a dict"):
        check_names("columns", {})


def test_name_that_is_longer_than_any_path_is_cut_in_a_message(table: tamis.Table) -> None:
    with pytest.raises(TamisError) as error:
        table.plan(tamis.col("x" * 100_000) == 1)
    assert len(str(error.value)) < 1200
    path = "s3://bucket/" + "k" * 1024
    assert path in str(tamis.TamisError(f"cannot read {path}."))


def test_join_that_is_asked_with_an_unknown_option_names_those_that_there_are(table: tamis.Table) -> None:
    frame: Any = type("DataFrame", (), {"__module__": "pyspark.sql"})()
    with pytest.raises(TypeError, match=r"no option 'max_key': there are max_keys, bloom, pin"):
        table.plan_join(frame, "id", max_key=5)  # type: ignore[call-arg] # the point of the test
