"""Whatever PyIceberg drops of a table is dropped here too, or a reason says why it must not be."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import expressions as e
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)

import tamis

STRUCT = StructType(NestedField(8, "p", IntegerType()), NestedField(9, "r", IntegerType(), required=True))
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "s", StringType()),
    NestedField(3, "d", DateType()),
    NestedField(4, "ts", TimestampType()),
    NestedField(5, "f", DoubleType()),
    NestedField(6, "n", DecimalType(10, 2)),
    NestedField(
        7, "st", StructType(NestedField(8, "p", IntegerType()), NestedField(9, "r", IntegerType(), required=True))
    ),
    NestedField(10, "rs", StructType(NestedField(11, "q", IntegerType())), required=True),
)
ARROW = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("s", pa.string()),
        pa.field("d", pa.date32()),
        pa.field("ts", pa.timestamp("us")),
        pa.field("f", pa.float64()),
        pa.field("n", pa.decimal128(10, 2)),
        pa.field("st", pa.struct([pa.field("p", pa.int32()), pa.field("r", pa.int32(), nullable=False)])),
        pa.field("rs", pa.struct([pa.field("q", pa.int32())]), nullable=False),
    ]
)
REASONS = {
    r"st\.r IS NULL": "PyIceberg takes a required field for never NULL, also where the struct around it is",
    r"st\.p IS NULL": "of a struct that may be NULL, not every writer counts the NULLs of its fields",
    r"f GreaterThan(OrEqual)? .*": "NaN is greater than any number to Spark, and PyIceberg writes no count of it",
}
"""Where a file is kept that PyIceberg drops."""


def row(number: int, *, struct: bool = True) -> dict[str, Any]:
    return {
        "id": number,
        "s": f"s{number:03}",
        "d": dt.date(2024, 1, 1) + dt.timedelta(days=number),
        "ts": dt.datetime(2024, 1, 1) + dt.timedelta(hours=7 * number),
        "f": number / 4,
        "n": (Decimal(number) / 2).quantize(Decimal("0.01")),
        "st": {"p": number, "r": number} if struct else None,
        "rs": {"q": number},
    }


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Files of ranges of numbers, of one with NULLs and a NaN, and of an empty struct, in three specs."""
    home: Path = tmp_path_factory.mktemp("warehouse")
    catalog = SqlCatalog("c", uri=f"sqlite:///{home}/c.db", warehouse=f"file://{home}")
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", SCHEMA)
    nulls = {"id": 25, **dict.fromkeys(("s", "d", "ts", "f", "n", "st")), "rs": {"q": None}}
    groups = [
        [row(n) for n in range(10)],
        [row(n) for n in range(10, 20)],
        [row(20), {**row(21), "f": float("nan")}, nulls],
        [row(30, struct=False), row(31, struct=False)],
    ]
    for group in groups:
        made.append(pa.Table.from_pylist(group, ARROW))
    with made.update_spec() as update:
        update.add_field("s", IdentityTransform(), "s")
    made.append(pa.Table.from_pylist([row(40), row(41), nulls], ARROW))
    with made.update_spec() as update:
        update.remove_field("s")
        update.add_field("ts", DayTransform(), "day")
        update.add_field("id", BucketTransform(4), "bucket")
    made.append(pa.Table.from_pylist([row(n) for n in range(50, 54)], ARROW))
    return made


def conditions() -> dict[str, tuple[e.BooleanExpression, e.BooleanExpression | str]]:
    """Every predicate on every column, at, beside and beyond what the files hold: as PyIceberg and tamis take it.

    A negation of PyIceberg's takes rows with NULL as well; one of SQL leaves them out, and so drops no less.
    """
    plain: dict[str, e.BooleanExpression] = {}
    found: dict[str, tuple[e.BooleanExpression, e.BooleanExpression | str]] = {}
    columns = ("id", "s", "d", "ts", "f", "n", "st.p", "rs.q")
    for name in columns:
        for number in (0, 15, 25, 60):
            value = _value(row(number), name)
            for operator in (e.EqualTo, e.LessThan, e.LessThanOrEqual, e.GreaterThan, e.GreaterThanOrEqual):
                plain[f"{name} {operator.__name__} {value}"] = operator(name, value)
            plain[f"{name} not above {value}"] = e.Not(e.GreaterThan(name, value))
            found[f"{name} != {value}"] = (e.NotEqualTo(name, value), f"{name} != '{value}'")
        some = [_value(row(number), name) for number in (3, 12, 70)]
        plain[f"{name} IN"] = e.In(name, some)
        listed = ", ".join(f"'{value}'" for value in some)
        found[f"{name} NOT IN"] = (e.NotIn(name, some), f"{name} NOT IN ({listed})")
    for name in (*columns, "st.r"):
        plain[f"{name} IS NULL"] = e.IsNull(name)
        plain[f"{name} IS NOT NULL"] = e.NotNull(name)
    for prefix in ("s00", "s04", "x", "s"):
        plain[f"s LIKE {prefix}"] = e.StartsWith("s", prefix)
        found[f"s NOT LIKE {prefix}"] = (e.NotStartsWith("s", prefix), f"s NOT LIKE '{prefix}%'")
    plain["f IS NAN"] = e.IsNaN("f")
    plain["both"] = e.And(e.GreaterThan("id", 12), e.Or(e.LessThan("f", 4.0), e.IsNull("s")))
    plain["either"] = e.Or(e.EqualTo("id", 3), e.And(e.EqualTo("s", "s041"), e.NotNull("d")))
    return found | {said: (condition, condition) for said, condition in plain.items()}


def _value(of: dict[str, Any], name: str) -> Any:  # noqa: ANN401 - of any column
    for part in name.split("."):
        of = of[part]
    return of.isoformat() if isinstance(of, (dt.date, dt.datetime)) else of


def test_no_file_is_kept_that_pyiceberg_drops_but_for_a_reason(table: Table) -> None:
    """And each reason is still one: a file that is dropped after all has none."""
    opened = tamis.open(table)
    kept: dict[str, int] = {}
    for said, (condition, where) in conditions().items():
        theirs = {task.file.file_path for task in table.scan(row_filter=condition).plan_files()}
        ours = set(opened.plan(where).files["path"].to_pylist())
        if ours - theirs:
            kept[said] = len(ours - theirs)
    unexplained = [said for said in kept if not any(re.fullmatch(reason, said) for reason in REASONS)]
    assert not unexplained, sorted(unexplained)
    assert [reason for reason in REASONS if not any(re.fullmatch(reason, said) for said in kept)] == []
