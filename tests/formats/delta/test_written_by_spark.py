"""What delta-spark 4.4.0 wrote, kept: its own texts of values that are known.

The statistics are of one-row files, written by a session in America/New_York; the generated columns of files that
sessions of five time zones wrote, with clocks that were being set and dates back to the year 1.
"""

import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.formats.delta.generated import partition_spec
from tamis.formats.delta.partition_values import partition_columns
from tamis.formats.delta.schema import DeltaSchema, parse_schema
from tamis.formats.delta.statistics import column_stats
from tamis.predicate.schema import Column
from tamis.sieve.domain import stats_domain
from tamis.sieve.order import encode
from tamis.sieve.transforms import preimage

HERE = Path(__file__).parent
EPOCH = dt.datetime(1970, 1, 1)


def _read(name: str) -> tuple[DeltaSchema, list[dict[str, Any]]]:
    meta, *files = [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]
    return parse_schema(meta["schemaString"], {}, meta.get("partitionColumns", [])), files


def micros(*parts: int) -> int:
    return (dt.datetime(*parts) - EPOCH) // dt.timedelta(microseconds=1)  # type: ignore[arg-type]


ROWS: list[dict[str, object]] = [
    {
        "l": 9007199254740993,
        "d": 1.5,
        "f": 1.1,
        "s": "a",
        "dec": Decimal("1.5"),
        "dt": 19_723,
        "ts": micros(2024, 1, 1, 6, 2, 3, 123_456),
        "n": micros(2024, 1, 1, 1, 2, 3, 123_456),
    },
    {
        "l": (1 << 63) - 1,
        "d": math.nan,
        "f": math.nan,
        "s": "x" * 40,
        "dec": Decimal("1234567890123456789012345678.1234567891"),
        "dt": -719_162,
        "ts": micros(1, 1, 1, 4, 56, 2),
        "n": micros(1, 1, 1),
    },
    {
        "l": -1,
        "d": -0.0,
        "s": "😀" * 40,
        "dec": Decimal(0),
        "ts": micros(9999, 12, 31, 23, 59, 59, 999_999) + 5 * 3_600_000_000,
        "n": micros(9999, 12, 31, 23, 59, 59, 999_999),
    },
    {
        "l": -1,
        "d": math.inf,
        "f": -math.inf,
        "s": "a" * 31 + "😀bcd",
        "dec": Decimal("1E-10"),
        "dt": 2_932_897,
        "ts": 253_402_400_000_000_000,
        "n": micros(1969, 12, 31, 23, 59, 59, 999_999),
    },
    {
        "l": None,
        "d": None,
        "s": "a" * 32 + "\uffff\uffff\uffffzz",
        "dec": None,
        "ts": -99_999_999_999_999_999,
        "n": None,
    },
    {"l": 2, "d": math.nan, "f": math.nan, "s": None, "dec": None, "dt": None, "ts": None, "n": None},
    {"l": 1, "d": 1.0, "s": 'a"b\\\\c\x01é', "dec": Decimal("1E-10"), "ts": micros(1900, 1, 1, 5)},
]


@pytest.mark.parametrize("row", range(len(ROWS)))
def test_statistics_hold_the_row(row: int) -> None:
    schema, files = _read("written_by_spark_stats.jsonl")
    found = column_stats(schema, list(ROWS[row]), json=pa.array([files[row]["stats"]]), has_vector=np.zeros(1, bool))
    assert not found.notes
    for name, value in ROWS[row].items():
        type_ = schema.field(name).type
        domain = stats_domain(Column(name, (name,), type_), found.columns[name], 1)
        if value is None:
            assert domain.may_null[0]
        elif isinstance(value, float) and math.isnan(value):
            assert domain.may_nan[0]
        else:
            assert domain.may_value[0]
            key = _key(_array([value], type_), type_)
            for part in domain.ranges:
                assert part.lower is None or not part.lower.valid[0] or _at(part.lower.keys, 0) <= key
                assert part.upper is None or not part.upper.valid[0] or _at(part.upper.keys, 0) >= key


def test_generated_columns_hold_their_sources() -> None:
    schema, files = _read("written_by_spark_generated.jsonl")
    spec = partition_spec(schema)
    maps = pa.array([list(file["partitionValues"].items()) for file in files], pa.map_(pa.string(), pa.string()))
    partition, undecoded = spec.partition(*partition_columns(maps, schema))
    derived = [(place, field) for place, field in enumerate(spec.spec.fields) if field.derived]
    assert len(derived) == 12
    checked = 0
    for place, field in derived:
        source = schema.field(field.source or "")
        unknown = np.zeros(len(files), np.bool_)
        for one in undecoded:
            unknown |= one.rows if one.field == place else False
        values = partition.field(place)
        found = preimage(field.transform, source.type, values, values)
        assert not found.problems
        assert found.range is not None
        for row, file in enumerate(files):
            for value in file["rows"][source.name]:
                if unknown[row]:
                    continue
                if value is None:
                    assert not values[row].is_valid
                    continue
                key = _key(_array([value], source.type), source.type)
                assert _at(found.range.lower.keys, row) <= key <= _at(found.range.upper.keys, row)  # type: ignore[union-attr]
                checked += 1
    assert checked > 200


def test_partition_values_are_what_spark_reads() -> None:
    """The generated columns can be calculated: those of timestamps without a zone exactly."""
    schema, files = _read("written_by_spark_generated.jsonl")
    maps = pa.array([list(file["partitionValues"].items()) for file in files], pa.map_(pa.string(), pa.string()))
    partition, undecoded = partition_columns(maps, schema)
    assert not undecoded
    names = [field.name for field in schema.partition_fields]
    for row, file in enumerate(files):
        (wall,), (day,) = file["rows"]["n"], file["rows"]["d"]
        assert partition.field(names.index("nd")).view(pa.int32())[row].as_py() == wall // 86_400_000_000
        week = partition.field(names.index("tw")).view(pa.int32())[row].as_py()
        assert week == day - (day + 3) % 7  # 1970 began on a Thursday


def _array(values: list[Any], type_: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(type_):
        return pa.array(values, pa.int64()).view(type_)
    return pa.array(values, pa.int32()).view(type_) if pa.types.is_date32(type_) else pa.array(values, type_)


def _key(array: pa.Array, type_: pa.DataType) -> Any:  # noqa: ANN401 - a number or bytes
    return _at(encode(array, type_).keys, 0)


def _at(keys: Any, row: int) -> Any:  # noqa: ANN401 - numbers or bytes
    return keys[row].as_py() if isinstance(keys, pa.Array) else int(keys[row])
