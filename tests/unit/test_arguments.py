"""Every public argument with what users have in their hands: a wrong one is a TypeError that says what to write."""

from __future__ import annotations

import datetime as dt
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg import expressions as ice

import tamis
from tamis.arguments import check_types
from tamis.errors import BindError, ExecutorError
from tests.making.cli_tables import BY_REGION, SCHEMA, catalog, events, folder_of, rows


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tamis.Table:
    return tamis.open(folder_of(events(tmp_path_factory.mktemp("arguments"))))


def spark_column() -> object:
    from pyspark.sql.connect.functions import col

    return col("id") == 1


@pytest.mark.parametrize(
    "where",
    [
        True,
        False,
        0,
        1.5,
        b"id = 1",
        ["id = 1"],
        [("id", "=", 1)],
        {"id": 1},
        lambda: "id = 1",
        pc.field("id") == 1,
        np.array([True]),
        pd.Series([True]),
        Path("id = 1"),
        object(),
        tamis.RuntimeFilter.of("id", [1]),
    ],
    ids=lambda where: type(where).__name__,
)
def test_where_of_another_type_is_refused_and_never_means_every_row(table: tamis.Table, where: object) -> None:
    with pytest.raises(TypeError, match=r"where is .*not a condition"):
        table.plan(where)


def test_column_of_pyspark_is_refused_with_the_way_to_write_it(table: tamis.Table) -> None:
    with pytest.raises(TypeError, match=r"PySpark Column.*SQL text"):
        table.plan(spark_column())  # type: ignore[arg-type] # the point of the test


@pytest.mark.parametrize(
    ("expression", "sql"),
    [
        (ice.EqualTo("id", 1), "id = 1"),
        (ice.LessThan("id", 1), "id < 1"),
        (ice.LessThanOrEqual("id", 1), "id <= 1"),
        (ice.GreaterThan("id", 1), "id > 1"),
        (ice.GreaterThanOrEqual("id", 1), "id >= 1"),
        (ice.In("region", {"eu", "uk"}), "region IN ('eu', 'uk')"),
        (ice.IsNull("region"), "region IS NULL"),
        (ice.NotNull("region"), "region IS NOT NULL"),
        (ice.StartsWith("region", "e"), "startswith(region, 'e')"),
        (ice.AlwaysTrue(), "true"),
        (ice.AlwaysFalse(), "false"),
        (ice.Not(ice.LessThan("id", 5)), "id >= 5"),
        (ice.And(ice.EqualTo("id", 1), ice.EqualTo("region", "eu")), "id = 1 AND region = 'eu'"),
        (ice.Or(ice.EqualTo("id", 1), ice.EqualTo("region", "eu")), "id = 1 OR region = 'eu'"),
        (ice.EqualTo("ts", dt.datetime(2024, 1, 3, 12)), "ts = timestamp_ntz '2024-01-03 12:00:00'"),
    ],
    ids=str,
)
def test_expression_of_pyiceberg_means_the_same_condition(table: tamis.Table, expression: object, sql: str) -> None:
    plan = table.plan(expression)
    assert plan.sieve.predicate.sql == sql
    assert plan.files.equals(table.plan(sql).files)


@pytest.mark.parametrize(
    "expression",
    [
        ice.NotEqualTo("id", 1),
        ice.NotIn("id", {1, 2}),
        ice.NotStartsWith("region", "e"),
        ice.Not(ice.EqualTo("id", 1)),
        ice.Not(ice.In("id", {1, 2})),
        ice.And(ice.EqualTo("id", 1), ice.NotEqualTo("region", "eu")),
    ],
    ids=str,
)
def test_expression_that_is_true_of_null_in_iceberg_alone_is_refused(table: tamis.Table, expression: object) -> None:
    """PyIceberg's own scans answer it in both ways."""
    with pytest.raises(BindError, match=r"NULL.*IS NULL"):
        table.plan(expression)


def test_values_of_pyiceberg_keep_their_types() -> None:
    from tamis.formats import converted_condition
    from tamis.predicate.schema import Schema
    from tamis.predicate.sql.rendering import render

    schema = Schema.of(
        d=pa.date32(),
        z=pa.timestamp("us", "UTC"),
        u=pa.uuid(),
        t=pa.time64("us"),
        x=pa.decimal128(9, 2),
        f=pa.float64(),
    )
    noon = dt.datetime(2024, 1, 3, 12, tzinfo=dt.UTC)
    for expression, sql in (
        (ice.EqualTo("d", dt.date(2024, 1, 3)), "d = date '2024-01-03'"),
        (ice.EqualTo("z", noon), "z = timestamp '2024-01-03 12:00:00Z'"),
        (ice.EqualTo("t", dt.time(12, 30)), "t = time '12:30:00'"),
        (ice.EqualTo("x", Decimal("1.50")), "x = 1.50"),
        (ice.IsNaN("f"), "f = double('NaN')"),
    ):
        assert render(converted_condition(expression, schema)) == sql
    uuid = UUID(int=7)
    assert str(uuid) in render(converted_condition(ice.EqualTo("u", uuid), schema))
    with pytest.raises(BindError, match="PyIceberg"):
        converted_condition(ice.EqualTo("z", ice.literals.TimestampLiteral(2**62)), schema)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"executors": "alway"}, ValueError, "'auto', 'always', 'never'"),
        ({"executors": None}, TypeError, "executors is None"),
        ({"executors": "always"}, ExecutorError, "without a session"),
        ({"runtime_filters": tamis.RuntimeFilter.of("id", [1])}, TypeError, r"give a list, runtime_filters=\[keys\]"),
        ({"runtime_filters": [[1, 2]]}, TypeError, "a member of runtime_filters is a list"),
        ({"runtime_filters": None}, TypeError, "runtime_filters is None"),
        ({"case_sensitive": "yes"}, TypeError, "case_sensitive is a str"),
        ({"strict": 1}, TypeError, "strict is an int"),
        ({"time_zone": 0}, TypeError, "time_zone is an int"),
        ({"time_zone": dt.UTC}, TypeError, "time_zone is a datetime.timezone"),
        ({"progress": True}, TypeError, "progress is a bool"),
        ({"spark": "local[2]"}, TypeError, "SparkSession"),
    ],
)
def test_wrong_argument_of_plan_is_named(
    table: tamis.Table, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        table.plan("id = 1", **arguments)


@pytest.mark.parametrize("spark", [None, "local[2]", 5, object()])
def test_reading_without_a_session_says_so(table: tamis.Table, spark: object) -> None:
    with pytest.raises(TypeError, match="give a SparkSession"):
        table.plan("id = 1").read(spark)


@pytest.mark.parametrize(
    ("other", "cure"),
    [
        (pd.DataFrame({"id": [1]}), r"spark.createDataFrame\(frame\)"),
        (pa.table({"id": [1]}), r"frame.to_pandas\(\)"),
        (None, "a DataFrame of Spark"),
        ([{"id": 1}], "a DataFrame of Spark"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_joining_with_what_is_no_dataframe_of_spark_says_how_to_make_one(
    table: tamis.Table, other: object, cure: str
) -> None:
    with pytest.raises(TypeError, match=cure):
        table.join(other, "id")


@pytest.mark.parametrize(
    ("columns", "keys", "words"),
    [
        ("id", "abc", "keys of id are one value, a str: give a list"),
        ("id", b"abc", "give a list"),
        (5, [1], "columns of a runtime filter are an int"),
        (None, [1], "columns of a runtime filter are None"),
        ([5], [1], "a column of a runtime filter is an int"),
    ],
)
def test_runtime_filter_of_wrong_things_is_refused(columns: Any, keys: Any, words: str) -> None:  # noqa: ANN401
    """A text is a sequence of letters: its letters once were the join keys, and pruned every file."""
    with pytest.raises(TypeError, match=words):
        tamis.RuntimeFilter.of(columns, keys)


def test_keys_of_what_is_no_dataframe_and_columns_of_what_is_no_name_are_refused() -> None:
    with pytest.raises(TypeError, match="df is a list: give a DataFrame of Spark"):
        tamis.RuntimeFilter.from_dataframe([1], "id")
    with pytest.raises(TypeError, match="a column's name is an int"):
        tamis.col(5)  # type: ignore[arg-type] # the point of the test


SHOWN: list[Callable[[tamis.Table], object]] = [
    lambda table: table,
    lambda table: table.plan("id > 3"),
    lambda table: table.plan(f"id IN ({', '.join(map(str, range(5000)))})"),
    lambda _: tamis.RuntimeFilter.of("id", list(range(5000))),
]


@pytest.mark.parametrize("made", SHOWN)
def test_object_shows_itself_in_one_short_line(table: tamis.Table, made: Callable[[tamis.Table], object]) -> None:
    shown = repr(made(table))
    assert shown.startswith("<tamis ")
    assert "\n" not in shown
    assert len(shown) < 400


def test_notebook_shows_a_plan_as_it_explains_itself_and_escapes_it(tmp_path: Path) -> None:
    made = catalog(tmp_path).create_table("db.hostile", SCHEMA, partition_spec=BY_REGION)
    made.append(rows([1], "<script>alert(1)</script>", 1))
    opened = tamis.open(folder_of(made))
    plan = opened.plan("region = '<script>alert(1)</script>'")
    for page in (plan._repr_html_(), opened._repr_html_()):
        assert "<script" not in page
        assert page.startswith("<pre>")
    assert "&lt;script&gt;" in plan._repr_html_()


def test_files_of_a_plan_go_to_arrow_and_pandas(table: tamis.Table) -> None:
    plan = table.plan("id > 3")
    assert plan.to_arrow().equals(plan.files)
    assert plan.to_pandas()["path"].tolist() == plan.files["path"].to_pylist()


def test_files_of_a_plan_go_to_polars_or_the_error_names_it(table: tamis.Table) -> None:
    plan = table.plan("id > 3")
    try:
        import polars as pl
    except ImportError:
        with pytest.raises(tamis.errors.MissingDependency, match="pip install polars"):
            plan.to_polars()
        return
    assert isinstance(plan.to_polars(), pl.DataFrame)


@pytest.mark.parametrize("made", SHOWN)
def test_object_equals_itself_alone_and_can_be_a_key(
    table: tamis.Table, made: Callable[[tamis.Table], object]
) -> None:
    """Plans hold arrays, of which == is an array: comparing two of them once was an error of numpy's."""
    one, other = made(table), made(table)
    assert one == one  # noqa: PLR0124 - the point of the test
    assert (one == other) is (one is other)
    assert one in {one: 1}


def test_table_and_plan_can_be_pickled_and_still_plan(table: tamis.Table) -> None:
    again = pickle.loads(pickle.dumps(table))  # noqa: S301 - made in this line
    plan = pickle.loads(pickle.dumps(table.plan("id > 3")))  # noqa: S301 - as above
    assert again.plan("id > 3").files.equals(plan.files)
    assert plan.explain() == table.plan("id > 3").explain()


# -- tamis.open -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:  # noqa: ANN401 - a table of PyIceberg
    return events(tmp_path_factory.mktemp("opened"))


def test_table_opens_by_a_path_object_by_pyiceberg_s_table_and_by_its_catalog(made: Any) -> None:  # noqa: ANN401
    by_path = tamis.open(Path(folder_of(made)))
    for opened in (tamis.open(made), tamis.open("db.events", catalog=made.catalog)):
        assert opened.plan("id > 3").files.equals(by_path.plan("id > 3").files)
    assert tamis.open(made).name == "db.events"


def test_time_of_a_state_is_a_datetime_or_text(made: Any) -> None:  # noqa: ANN401
    second = made.history()[1]
    moment = dt.datetime.fromtimestamp(second.timestamp_ms / 1000, dt.UTC)
    for as_of in (moment, moment.isoformat(), moment.replace(tzinfo=None), moment.replace(tzinfo=None).isoformat()):
        assert tamis.open(made, as_of=as_of).snapshot_id == second.snapshot_id
    assert tamis.open(made, as_of_ms=second.timestamp_ms).snapshot_id == second.snapshot_id


@pytest.mark.parametrize(
    ("target", "arguments", "error", "words"),
    [
        (None, {}, TypeError, "the table is None"),
        (5, {}, TypeError, "the table is an int"),
        (b"/x", {}, TypeError, "the table is a bytes"),
        (["/x"], {}, TypeError, "the table is a list"),
        (pd.DataFrame(), {}, TypeError, "the table is a pandas"),
        ("/x", {"snapshot_id": "7"}, TypeError, "snapshot_id is a str"),
        ("/x", {"snapshot_id": True}, TypeError, "snapshot_id is a bool"),
        ("/x", {"ref": 7}, TypeError, "ref is an int"),
        ("/x", {"as_of_ms": 1.5}, TypeError, "as_of_ms is a float"),
        ("/x", {"as_of": 7}, TypeError, "as_of is an int"),
        ("/x", {"as_of": dt.date(2024, 1, 1)}, TypeError, "as_of is a datetime.date"),
        ("/x", {"as_of": "yesterday"}, ValueError, "not a time"),
        ("/x", {"as_of": "2024-01-01", "as_of_ms": 5}, TypeError, "give one of them"),
        ("/x", {"catalog": 7}, TypeError, "catalog is an int"),
        ("/x", {"cache": "off"}, TypeError, "cache is a str"),
    ],
)
def test_wrong_argument_of_open_is_named(
    target: object, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        tamis.open(target, **arguments)  # type: ignore[arg-type] # the point of the test


def test_wrong_name_of_a_table_gets_near_ones(made: Any) -> None:  # noqa: ANN401
    with pytest.raises(tamis.errors.TamisError, match=r"no table 'db.event'. Did you mean db.events\?"):
        tamis.open("db.event", catalog=made.catalog)


def test_properties_without_a_name_say_by_which_name_the_table_was_asked_for(made: Any) -> None:  # noqa: ANN401
    """A SQL catalog finds tables by the catalog's name: with another one, all are missing."""
    properties = {key: value for key, value in made.catalog.properties.items() if key != "name"}
    with pytest.raises(tamis.errors.TamisError, match="asked by the name 'tamis' since it has none"):
        tamis.open("db.events", catalog={"type": "sql", **properties})


def test_table_with_credentials_is_pickled_without_them(made: Any) -> None:  # noqa: ANN401
    io = made.catalog._load_file_io({"s3.secret-access-key": "hush-hush", "token": "hush-hush"}, "s3://b/x")
    from dataclasses import replace

    from tamis.formats.iceberg.fileio import fetch_through

    opened = tamis.open(made)
    held = tamis.Table(replace(opened.source, fetch=fetch_through(io)))  # type: ignore[type-var] # a dataclass
    assert b"hush-hush" not in pickle.dumps(held)
    again = pickle.loads(pickle.dumps(held))  # noqa: S301 - made in this line
    assert again.plan("id > 3").files.equals(opened.plan("id > 3").files)


@pytest.mark.parametrize(
    ("types", "error", "said"),
    [
        (["time"], TypeError, "types is a list"),
        ({"time": "timestamp"}, ValueError, "give 'time' or 'bigint' or 'string'"),
        ({"timestamp_ns": "bigint"}, ValueError, "give 'timestamp_ntz'"),
        ({"opened": "bigint"}, ValueError, "'opened'.*'time', 'timestamp_ns', 'timestamptz_ns'"),
    ],
)
def test_types_are_named_as_the_table_names_them(types: object, error: type[Exception], said: str) -> None:
    """A column's name, or a type that would lose more than is asked for, is not taken for a request."""
    with pytest.raises(error, match=said):
        check_types(types)
    check_types(None)
    check_types({"time": "string", "timestamptz_ns": "timestamp"})
