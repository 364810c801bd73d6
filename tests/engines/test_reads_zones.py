"""Times of which Python's and Java's time-zone rules differ, read from a real table."""

from __future__ import annotations

import pytest

import tamis
from tests.engines.conftest import Warehouse
from tests.engines.tables import execute
from tests.engines.test_reads_settings import settings

pytestmark = pytest.mark.engine

CONDITIONS = {
    "Europe/Stockholm": [
        "t < timestamp '1945-06-01 00:00:00'",
        "date(t) = date '1945-06-01' or wall >= timestamp '1945-06-01 00:00:00'",
        "date_trunc('hour', t) <= timestamp '1945-05-31 23:00:00'",
    ],
    "Asia/Tehran": ["t >= timestamp '1978-12-01 00:00:00'"],
    "Europe/Amsterdam": ["date(t) <= date '1935-06-30'"],
}


@pytest.fixture(scope="module")
def old(warehouse: Warehouse) -> str:
    """A file for each hour or two around the times in question, so that every one is judged by itself."""
    rows = [
        (start, hours)
        for start in ("1945-05-31 12:00:00Z", "1978-11-30 12:00:00Z", "1935-06-30 12:00:00Z")
        for hours in (6.5, 8.2, 9.2, 10.2, 11.2, 12.5, 15.5)
    ]
    values = ", ".join(f"(timestamp '{start}' + make_dt_interval(0, 0, {int(hours * 60)}))" for start, hours in rows)
    moments = f"(values {values}) as moments(t)"
    wall = "to_timestamp_ntz(date_format(t, 'yyyy-MM-dd HH:mm:ss'))"
    execute(
        warehouse.spark,
        "create table ice.db.old_times (id int, t timestamp, wall timestamp_ntz) using iceberg partitioned by (id)",
        f"insert into ice.db.old_times select int(row_number() over (order by t)), t, {wall} from {moments}",  # noqa: S608 - of constants
    )
    return warehouse.path("old_times")


@pytest.mark.parametrize("zone", CONDITIONS)
def test_rows_of_disputed_times_are_spark_s(warehouse: Warehouse, old: str, zone: str) -> None:
    """Planned without the session and with it: what Spark's own filter finds, no more and no less."""
    spark = warehouse.spark
    with settings(warehouse, spark__sql__session__timeZone=zone):
        for where in CONDITIONS[zone]:
            # Through an exchange: no connector prunes what the filter has not seen.
            frame = spark.table("ice.db.old_times").repartition(1)
            wanted = sorted(row.id for row in frame.where(where).collect())
            for plan in (tamis.open(old).plan(where, time_zone=zone), tamis.open(old).plan(where, spark=spark)):
                assert sorted(row.id for row in plan.read(spark).collect()) == wanted, where


def test_plan_with_the_session_prunes_to_the_hour(warehouse: Warehouse, old: str) -> None:
    """Must prune: without a session a disputed day stays, with it not a file too many."""
    where, zone = "t >= timestamp '1978-12-01 00:00:00'", "Asia/Tehran"
    with settings(warehouse, spark__sql__session__timeZone=zone):
        exact = tamis.open(old).plan(where, spark=warehouse.spark)
        loose = tamis.open(old).plan(where, time_zone=zone)
        matching = exact.read(warehouse.spark).count()
    assert exact.stats.kept == matching
    assert set(exact.files["verdict"].to_pylist()) == {"all"}
    assert loose.stats.kept > exact.stats.kept


@pytest.mark.parametrize(("planned", "session"), [("UTC", "Etc/UTC"), ("UTC", "GMT"), ("Japan", "Asia/Tokyo")])
def test_plan_is_read_under_another_name_of_its_zone(
    warehouse: Warehouse, old: str, planned: str, session: str
) -> None:
    plan = tamis.open(old).plan("t >= timestamp '1978-12-01 00:00:00'", time_zone=planned)
    with settings(warehouse, spark__sql__session__timeZone=session):
        wanted = warehouse.spark.table("ice.db.old_times").where("t >= timestamp '1978-12-01 00:00:00'").count()
        assert plan.read(warehouse.spark).count() == wanted
