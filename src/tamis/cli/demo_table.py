"""The table of `tamis demo`: PyIceberg writes it, real manifests and real Parquet files, the same on every run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.errors import MissingDependency
from tamis.predicate.units import DAY

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["make"]

DAYS: Final = 12
"""Days of data in each of the table's three ages; the last one is 2024-02-05."""
ROWS_A_DAY: Final = 400
CUSTOMERS: Final = 1000
BUCKETS: Final = 4
FIRST_DAY: Final = 19723
"""2024-01-01, in days since 1970."""


def make(folder: str) -> str:
    """The table's folder."""
    try:
        from pyiceberg.catalog.sql import SqlCatalog
        from pyiceberg.transforms import BucketTransform, DayTransform, MonthTransform
        from pyiceberg.types import StringType
    except ImportError as error:
        raise MissingDependency(
            "the demo makes an Iceberg table with 'pyiceberg': pip install 'tamis[iceberg]'",
            package="pyiceberg",
            extra="iceberg",
        ) from error
    catalog = SqlCatalog("demo", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.events", _rows(0).schema)
    for day in range(DAYS):
        table.append(_rows(day))
    with table.update_spec() as change:
        change.add_field("ts", MonthTransform(), "ts_month")
    for day in range(DAYS, 2 * DAYS):
        table.append(_rows(day))
    with table.update_schema() as columns:
        columns.rename_column("region", "market")
        columns.add_column("coupon", StringType())
    with table.update_spec() as change:
        change.remove_field("ts_month")
        change.add_field("ts", DayTransform(), "ts_day")
        change.add_field("customer_id", BucketTransform(BUCKETS), "customer_bucket")
    for day in range(2 * DAYS, 3 * DAYS):
        table.append(_rows(day, new=True))
    return f"{folder}/shop/events"


def _rows(day: int, *, new: bool = False) -> pa.Table:
    """A day's events."""
    import pyarrow as pa

    count = range(ROWS_A_DAY)
    starts = (FIRST_DAY + day) * DAY
    columns = {
        "ts": pa.array([starts + number * DAY // ROWS_A_DAY for number in count], pa.timestamp("us", "UTC")),
        "customer_id": pa.array([(number * 7919 + day * 104_729) % CUSTOMERS for number in count], pa.int64()),
        "amount": pa.array([(number * 31 + day) % 997 / 4 for number in count], pa.float64()),
        "market" if new else "region": pa.array(["eu" if number % 3 else "us" for number in count], pa.string()),
    }
    if new:
        columns["coupon"] = pa.array(["SPRING" if number % 5 == 0 else None for number in count], pa.string())
    return pa.table(columns)
