"""The oracle that the sieve is held against answers as the real Spark does, cell by cell.

Some hundreds of random predicates over every type that Spark holds, in a zone without and zones with clock changes.
None of them may fail in Spark: predicates that would are not made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from pyarrow import types as pt

from tamis.predicate.nodes import Node, Ref
from tamis.predicate.sql.rendering import render
from tests.making.drawing import drawn
from tests.making.oracle import Path, evaluate
from tests.making.strategies import Row, Types, predicates, values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.engine

ROWS = 24
LEAVES = 16
"""Predicates of one leaf, for each column and zone."""
TREES = 50
"""Deep predicates over several columns, for each zone."""
BATCH = 90
"""Expressions in one query: Spark compiles a whole stage only up to 100 columns."""

_DIGITS: Path = ("digits",)
_DAYS: Path = ("days",)
_TYPES: Types = {
    ("bool",): pa.bool_(),
    ("i8",): pa.int8(),
    ("i16",): pa.int16(),
    ("i32",): pa.int32(),
    ("i64",): pa.int64(),
    ("f32",): pa.float32(),
    ("f64",): pa.float64(),
    ("d5_2",): pa.decimal128(5, 2),
    ("d20_10",): pa.decimal128(20, 10),
    ("d38_0",): pa.decimal128(38, 0),
    ("d38_18",): pa.decimal128(38, 18),
    ("d38_38",): pa.decimal128(38, 38),
    ("day",): pa.date32(),
    ("ntz_s",): pa.timestamp("s"),
    ("ntz",): pa.timestamp("us"),
    ("ltz_ms",): pa.timestamp("ms", tz="UTC"),
    ("ltz",): pa.timestamp("us", tz="UTC"),
    ("clock_s",): pa.time32("s"),
    ("clock",): pa.time64("us"),
    ("text",): pa.string(),
    ("bytes",): pa.binary(),
    ("fixed",): pa.binary(4),
    ("uuid",): pa.uuid(),
    _DIGITS: pa.string(),
    _DAYS: pa.string(),
    ("a struct", "x"): pa.int32(),
    ("a struct", "deep", "y"): pa.timestamp("us", tz="UTC"),
}
_ZONED = {path: type_ for path, type_ in _TYPES.items() if pt.is_date(type_) or pt.is_timestamp(type_)}
"""What a zone can change: the rest is asked once, in UTC."""
_TEXTS = {
    _DIGITS: st.sampled_from(["0", "-0", "1", " 7 ", "+12", "007", "-3", "128", "9007199254740993"]),
    _DAYS: st.sampled_from(["2024-01-15", " 2024-1-15 ", "2024", "1969-12-31", "2024-01-15 12:00:00", "0001-01-01"]),
}


def table_rows() -> list[Row]:
    """Rows of all columns, whose values know nothing of each other; the last one is NULL throughout."""
    by_column = {}
    for number, (path, type_) in enumerate(_TYPES.items()):
        pool = drawn(_TEXTS[path] if path in _TEXTS else values(type_), 4 * ROWS, number)
        known = pool[:: max(len(pool) // ROWS, 1)]
        by_column[path] = [known[i % len(known)] for i in range(ROWS)] + [None]
    return [{path: column[i] for path, column in by_column.items()} for i in range(ROWS + 1)]


def questions(types: Types, rows: Sequence[Row], start: int) -> list[Node]:
    """Leaves over each column by itself, then trees over some of them."""
    found: list[Node] = []
    for number, (path, type_) in enumerate(types.items()):
        found += drawn(predicates({path: type_}, rows, depth=1, opaque=False), LEAVES, start + number)
    some = st.lists(st.sampled_from(sorted(types)), min_size=1, max_size=4, unique=True)
    trees = some.flatmap(lambda paths: predicates({path: types[path] for path in paths}, rows, opaque=False))
    return list(dict.fromkeys(found + drawn(trees, TREES, start)))


def spark_table(spark: SparkSession, rows: Sequence[Row]) -> DataFrame:
    """The rows as Spark has such columns: a uuid is text, bytes have no fixed length, timestamps are microseconds."""
    arrays: dict[Path, pa.Array] = {}
    for path, type_ in _TYPES.items():
        column: list[Any] = [row[path] for row in rows]
        if type_ == pa.uuid():
            arrays[path] = pa.array([None if v is None else str(v) for v in column], pa.string())
        elif pt.is_time(type_):
            arrays[path] = pa.array(column, pa.time64("us"))
        elif pt.is_timestamp(type_):
            arrays[path] = pa.array(column, pa.timestamp("us", tz=type_.tz))
        else:
            arrays[path] = pa.array(column, pa.binary() if pt.is_fixed_size_binary(type_) else type_)
    flat = {path[0]: array for path, array in arrays.items() if len(path) == 1}
    deep = pa.StructArray.from_arrays([arrays["a struct", "deep", "y"]], ["y"])
    flat["a struct"] = pa.StructArray.from_arrays([arrays["a struct", "x"], deep], ["x", "deep"])
    flat["row"] = pa.array(range(len(rows)), pa.int32())
    types = ", ".join(f"`{name}` {_spark_type(array.type)}" for name, array in flat.items())
    # Through an exchange: Spark would otherwise evaluate so small a table while it optimises, without compiling.
    return spark.createDataFrame(pa.table(flat), types).repartition(1)


def _spark_type(type_: pa.DataType) -> str:
    if pt.is_struct(type_):
        return f"struct<{', '.join(f'{field.name}: {_spark_type(field.type)}' for field in type_)}>"
    if pt.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pt.is_timestamp(type_):
        return "timestamp" if type_.tz else "timestamp_ntz"
    if pt.is_time(type_):
        return "time(6)"
    names = {"bool": "boolean", "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint"}
    return names.get(str(type_)) or {"date32[day]": "date"}.get(str(type_), str(type_))


@pytest.mark.parametrize(
    ("zone", "types", "start"),
    [("UTC", _TYPES, 1_000), ("Europe/Paris", _ZONED, 2_000), ("America/St_Johns", _ZONED, 3_000)],
    ids=["UTC", "Paris", "StJohns"],
)
def test_random_predicates_get_sparks_own_answer(spark: SparkSession, zone: str, types: Types, start: int) -> None:
    """A mistake here would make the proof of the sieve worthless: both would be wrong together."""
    rows = table_rows()
    nodes = questions(types, rows, start)
    assert len(nodes) > LEAVES * len(types) / 2
    spark.conf.set("spark.sql.session.timeZone", zone)
    spark.conf.set("spark.sql.timeType.enabled", "true")  # there, but not yet on by default
    try:
        frame = spark_table(spark, rows)
        answers: list[list[bool | None]] = []
        for first in range(0, len(nodes), BATCH):
            asked = [f"({render(node)}) AS p{i}" for i, node in enumerate(nodes[first : first + BATCH])]
            found = frame.selectExpr("row", *asked).toArrow().sort_by("row")
            answers += [column.to_pylist() for column in found.columns[1:]]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        spark.conf.unset("spark.sql.timeType.enabled")
    wrong = []
    for node, column in zip(nodes, answers, strict=True):
        paths = columns_of(node)
        for row, said in zip(rows, column, strict=True):
            ours = evaluate(node, row, _TYPES, zone)
            if ours is not said:
                seen = {".".join(path): row[path] for path in paths}
                wrong.append(f"{render(node)}\n  over {seen}\n  Spark: {said}, oracle: {ours}")
                break
    assert not wrong, f"{len(wrong)} predicates differ\n" + "\n".join(wrong[:20])


def columns_of(node: object) -> list[Path]:
    """The columns that a predicate reads, to show their values."""
    if isinstance(node, Ref):
        return [node.path]
    parts = node if isinstance(node, tuple) else [getattr(node, name) for name in getattr(node, "__slots__", ())]
    return sorted({path for part in parts for path in columns_of(part)})
