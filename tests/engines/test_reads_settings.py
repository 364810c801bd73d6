"""Settings of a session that would change what is read, were they not seen to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

import tamis
from tamis.errors import BindError, SessionSettingError
from tests.engines.conftest import Warehouse
from tests.engines.tables import execute

pytestmark = pytest.mark.engine


@contextmanager
def settings(warehouse: Warehouse, **values: str) -> Iterator[None]:
    names: Mapping[str, str] = {name.replace("__", "."): value for name, value in values.items()}
    before = {name: warehouse.spark.conf.get(name, None) for name in names}
    try:
        for name, value in names.items():
            warehouse.spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                warehouse.spark.conf.unset(name)
            else:
                warehouse.spark.conf.set(name, old)


@pytest.fixture(scope="module")
def times(warehouse: Warehouse) -> str:
    """A table with both kinds of time."""
    execute(
        warehouse.spark,
        "create table ice.db.times (id bigint, ts timestamp, ntz timestamp_ntz) using iceberg",
        "insert into ice.db.times select id, timestamp'2024-01-01 02:00:00Z', timestamp_ntz'2024-01-01 02:00:00' "
        "from range(3)",
    )
    return warehouse.path("times")


def test_session_that_calls_other_times_timestamp_reads_the_same_types(warehouse: Warehouse, times: str) -> None:
    """What `timestamp` means in SQL is a setting; what the column is, is not."""
    with settings(
        warehouse, spark__sql__timestampType="TIMESTAMP_NTZ", spark__sql__session__timeZone="America/New_York"
    ):
        found = tamis.open(times).plan("id > 0", time_zone="America/New_York").read(warehouse.spark)
        assert found.schema == warehouse.spark.table("ice.db.times").schema
        assert found.count() == 2
        assert found.where("ts = timestamp_ltz'2024-01-01 02:00:00Z'").count() == 2


@pytest.mark.parametrize("value", ["true", "TRUE", " True "])
def test_session_that_reads_missing_ids_as_nulls_is_refused(warehouse: Warehouse, times: str, value: str) -> None:
    """A file without field ids would read as NULLs, in silence. To Spark every spelling of true is one."""
    plan = tamis.open(times).plan()
    with (
        settings(warehouse, spark__sql__parquet__fieldId__read__ignoreMissing=value),
        pytest.raises(SessionSettingError, match="ignoreMissing=true"),
    ):
        plan.read(warehouse.spark)


def test_session_that_takes_quoted_names_for_patterns_is_refused(warehouse: Warehouse, times: str) -> None:
    """A name in back quotes may then match other columns, and Spark fails far from the reason."""
    plan = tamis.open(times).plan()
    with (
        settings(warehouse, spark__sql__parser__quotedRegexColumnNames="true"),
        pytest.raises(SessionSettingError, match="quotedRegexColumnNames=true") as caught,
    ):
        plan.read(warehouse.spark)
    assert caught.value.setting == "spark.sql.parser.quotedRegexColumnNames"


def test_session_without_a_reader_that_tells_files_is_refused(warehouse: Warehouse, times: str) -> None:
    """Spark's newer readers have no `_metadata`: deletes and partition values could not be told to rows."""
    plan = tamis.open(times).plan()
    with settings(warehouse, spark__sql__sources__useV1SourceList="orc"):
        with pytest.raises(SessionSettingError, match=r"without parquet.*'orc,parquet'") as caught:
            plan.read(warehouse.spark)
        assert caught.value.value == "orc"
        warehouse.spark.conf.set(caught.value.setting, "orc, Parquet")
        assert plan.read(warehouse.spark).count() == 3


@pytest.mark.parametrize("value", ["true", "TRUE", " True "])
def test_session_that_tells_cases_apart_does_so_however_it_is_spelt(
    warehouse: Warehouse, times: str, value: str
) -> None:
    with settings(warehouse, spark__sql__caseSensitive=value), pytest.raises(BindError, match="ID"):
        tamis.open(times).plan("ID > 0", spark=warehouse.spark)


def test_session_that_ignores_missing_files_still_fails_for_one(warehouse: Warehouse) -> None:
    """Rows are not lost because a session is lenient: a file that goes before it is read is told."""
    execute(
        warehouse.spark,
        "create table ice.db.vanishing (id bigint) using iceberg",
        "insert into ice.db.vanishing select id from range(3)",
    )
    plan = tamis.open(warehouse.path("vanishing")).plan()
    rows = plan.read(warehouse.spark)
    path = plan.files["path"].to_pylist()[0]
    Path(path.removeprefix("file:")).unlink()
    with (
        settings(
            warehouse, spark__sql__files__ignoreMissingFiles="true", spark__sql__files__ignoreCorruptFiles="true"
        ),
        pytest.raises(Exception, match=Path(path).name),
    ):
        rows.collect()


CHANGED = {
    "spark.sql.parser.escapedStringLiterals": ("true", r"s = 'a\\tb'"),
    "spark.sql.ansi.doubleQuotedIdentifiers": ("true", 's = "s"'),
    "spark.sql.legacy.consecutiveStringLiterals.enabled": ("true", "s = 'it''s'"),
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": ("true", "x > 1.5e-1"),
    "spark.sql.legacy.allowNegativeScaleOfDecimal": ("true", "x > 1e2BD"),
    "spark.sql.timestampType": ("TIMESTAMP_NTZ", "ts > timestamp'2024-01-01 00:00:00'"),
    "spark.sql.legacy.interval.enabled": ("true", "ts > date '2024-01-01' + interval 3 hours"),
    "spark.sql.decimalOperations.allowPrecisionLoss": ("false", "x > 1.1 * 2.2"),
    "spark.sql.legacy.literal.pickMinimumPrecision": ("false", "x > 1.1 * 2"),
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": ("true", "x > 1.1 * 2"),
}


@pytest.fixture(scope="module")
def texts(warehouse: Warehouse) -> str:
    """A table with texts that some settings read otherwise."""
    execute(
        warehouse.spark,
        "create table ice.db.texts (id bigint, s string, x double, ts timestamp) using iceberg",
        "insert into ice.db.texts select id, array('s', 'a\\tb', 'it\\'s')[id], id, timestamp'2024-01-01 02:00:00Z' "
        "from range(3)",
    )
    return warehouse.path("texts")


@pytest.mark.parametrize("name", list(CHANGED))
def test_session_that_reads_the_condition_otherwise_is_refused(warehouse: Warehouse, texts: str, name: str) -> None:
    """Files are pruned by one meaning, and rows would be filtered by another. A condition that it leaves is read."""
    value, where = CHANGED[name]
    plan = tamis.open(texts).plan(where)
    rows = plan.read(warehouse.spark).count()
    assert rows == warehouse.spark.table("ice.db.texts").where(where).count()
    with settings(warehouse, **{name.replace(".", "__"): value}):
        with pytest.raises(SessionSettingError, match=f"{name}={value}") as caught:
            plan.read(warehouse.spark)
        assert (caught.value.setting, caught.value.value) == (name, value)
        assert tamis.open(texts).plan("id > 0").read(warehouse.spark).count() == 2
        assert tamis.open(texts).plan().read(warehouse.spark).count() == 3


def test_session_that_compares_times_as_texts_is_refused(warehouse: Warehouse, times: str) -> None:
    """The setting has an effect without ANSI rules alone."""
    plan = tamis.open(times).plan("ts > '2024'")
    with settings(warehouse, spark__sql__legacy__typeCoercion__datetimeToString__enabled="true"):
        assert plan.read(warehouse.spark).count() == 3
        with (
            settings(warehouse, spark__sql__ansi__enabled="false"),
            pytest.raises(SessionSettingError, match="datetimeToString"),
        ):
            plan.read(warehouse.spark)


@pytest.fixture(scope="module")
def listed(warehouse: Warehouse) -> str:
    """A table with a value in each file, of types that have several spellings."""
    execute(
        warehouse.spark,
        "create table ice.db.listed (id int, k string, dec decimal(9,2), d date, ts timestamp, f double, "
        "s struct<i: int>) using iceberg",
        "insert into ice.db.listed values "
        "(5, 'k5', 5.5, date'2020-01-05', timestamp'2020-01-05 00:00:00', 5D, named_struct('i', 5))",
        "insert into ice.db.listed values "
        "(6, 'k6', 6.5, date'2020-01-06', timestamp'2020-01-06 00:00:00', 6D, named_struct('i', 6))",
    )
    return warehouse.path("listed")


OTHER_TEXTS = ("id in ('05', 7)", "dec in ('5.5')", "d in ('2020-1-5')", "ts in ('2020-01-05')", "f in ('5')")


@pytest.mark.parametrize("where", [*OTHER_TEXTS, "S.I in ('05')", "year(d) in ('02020')"])
def test_session_that_compares_lists_as_texts_is_refused(warehouse: Warehouse, listed: str, where: str) -> None:
    """Without ANSI rules 5 is not in ('05'): a file of fives was pruned of NOT IN, and its rows were lost."""
    spark = warehouse.spark
    for condition in (where, f"not ({where})"):
        plan = tamis.open(listed).plan(condition)
        assert plan.read(spark).count() == spark.table("ice.db.listed").where(condition).count()
        with (
            settings(warehouse, spark__sql__ansi__enabled="false"),
            pytest.raises(SessionSettingError, match=r"ansi\.enabled=false, which changes what a text in a list"),
        ):
            plan.read(spark)


@pytest.mark.parametrize(
    "where",
    ["K in ('k5')", "id in (5, 6.0)", "d in (date'2020-01-05')", "id = '05' and k = 'in'", "left(k, 1) in ('k')"],
)
def test_lists_that_mean_the_same_are_read_without_ansi_rules(warehouse: Warehouse, listed: str, where: str) -> None:
    """Such sessions are common, and most lists are of the column's own type."""
    with settings(warehouse, spark__sql__ansi__enabled="false"):
        for condition in (where, f"not ({where})"):
            found = tamis.open(listed).plan(condition).read(warehouse.spark)
            assert found.count() == warehouse.spark.table("ice.db.listed").where(condition).count()


def test_session_that_tells_cases_apart_is_heeded(warehouse: Warehouse, texts: str) -> None:
    """With spark the plan binds as the session does; a plan for another session is refused if names differ."""
    table = tamis.open(texts)
    plan = table.plan("ID > 0 and upper(S) <> ''")
    assert plan.read(warehouse.spark).count() == 2
    with settings(warehouse, spark__sql__caseSensitive="true"):
        with pytest.raises(SessionSettingError, match="caseSensitive=true"):
            plan.read(warehouse.spark)
        with pytest.raises(BindError, match="ID"):
            table.plan("ID > 0", spark=warehouse.spark)
        assert table.plan("ID > 0", spark=warehouse.spark, case_sensitive=False).stats.kept > 0
        assert table.plan("id > 0", spark=warehouse.spark).read(warehouse.spark).count() == 2
        assert table.plan("id > 0").read(warehouse.spark).count() == 2
