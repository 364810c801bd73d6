"""A few rows of every type, in Spark and as a schema, that odd conditions are asked of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException

from tamis.predicate.schema import Column, Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SCHEMA", "fails", "odd_rows", "refused_by_spark"]

INT = pa.int32()
TYPES = (
    *(("i", INT), ("l", pa.int64()), ("d", pa.float64()), ("f", pa.float32()), ("s", pa.string()), ("b", pa.bool_())),
    *(("dt", pa.date32()), ("ts", pa.timestamp("us", "UTC")), ("ntz", pa.timestamp("us"))),
    *(("dec", pa.decimal128(9, 2)), ("bin", pa.binary()), ("st", pa.struct([("p", INT)])), ("st.p", INT)),
    *(("arr", pa.list_(INT)), ("m", pa.map_(pa.string(), INT))),
)
SCHEMA = Schema(tuple(Column(id_, tuple(name.split(".")), type_) for id_, (name, type_) in enumerate(TYPES, 1)))
ROWS = """
    (5, 5L, 5D, 5F, 'a', true, date '2024-01-15', timestamp '2024-01-15 00:00:00Z', 1.00, X'1F', 1, 2, 1),
    (5, 1L, 5D, 1F, 'b', false, date '2024-01-16', timestamp '2024-02-15 00:00:00Z', 1.00, X'1E', 1, 0, 2),
    (5, NULL, 5D, 1F, 'b', NULL, date '2024-01-16', timestamp '2024-02-15 00:00:00Z', 1.00, X'1E', 1, 1, 5),
    (1, 1L, double('NaN'), float('NaN'), 'it\\'s', false, date '2024-01-20', timestamp '2024-01-15 10:00:00Z', 5.00,
     X'61', NULL, 1, 1),
    (-128, -5L, -0.0D, 1.1F, 'a%b', NULL, date '1969-12-31', timestamp '1969-12-31 10:00:00Z', -1.00, X'', 2, 5, 1),
    (2, 2L, 2.5D, 2.5F, 'abc', true, date '2024-01-14', timestamp '2030-01-01 00:00:00Z', 1.01, X'0100', 2, 5, 5),
    (-1, 0L, 1e10D, 1e10F, '', false, date '2024-01-10', timestamp '2024-01-14 23:00:00Z', 99.99, X'31', 5, 1, 0),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
"""


def odd_rows(spark: SparkSession) -> DataFrame:
    """The rows, in a relation that Spark evaluates while it optimizes: to ask it starts no job."""
    values = spark.sql(f"VALUES {ROWS} AS t(i, l, d, f, s, b, dt, ts, dec, bin, p, a, k)")
    return values.selectExpr(
        *("i", "l", "d", "f", "s", "b", "dt", "ts", "ts::timestamp_ntz AS ntz", "dec::decimal(9, 2) AS dec", "bin"),
        "if(p = 5, NULL, named_struct('p', p)) AS st",
        "array(a, 5) AS arr",
        "map('k', k) AS m",
    ).alias("t")


def refused_by_spark(rows: DataFrame, text: str) -> str:
    """`parser`, `analysis` or nothing."""
    try:
        rows.where(text)
    except ParseException:
        return "parser"
    except (AnalysisException, Py4JJavaError):
        return "analysis"  # the latter where Spark lacks the words for its error
    except PySparkException as error:
        return "parser" if "INTERVAL" in str(error) or "DECIMAL" in str(error) else "analysis"
    return ""


def fails(rows: DataFrame, text: str) -> bool:
    """Whether a row makes Spark fail, by its ANSI rules."""
    try:
        rows.selectExpr(f"({text}\n) AS c").collect()
    except PySparkException:
        return True
    return False
