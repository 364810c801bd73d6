"""Statistics that a checkpoint has in columns, through a whole plan: they prune as the strings do, and never more."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tests.making.delta_logs import DeltaLog, add

TYPES: dict[str, tuple[str, pa.DataType]] = {
    "id": ("long", pa.int64()),
    "name": ("string", pa.string()),
    "day": ("date", pa.date32()),
    "ts": ("timestamp", pa.timestamp("us", tz="UTC")),
    "ntz": ("timestamp_ntz", pa.timestamp("us")),
    "price": ("decimal(9,2)", pa.decimal128(9, 2)),
}
SCHEMA = {
    "type": "struct",
    "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, (kind, _) in TYPES.items()],
}
LOW = {
    "id": 1,
    "name": "a",
    "day": date(2024, 1, 1),
    "ts": datetime(2024, 1, 1, tzinfo=UTC),
    "ntz": datetime(2024, 1, 1),
    "price": Decimal("1.00"),
}
HIGH = {
    "id": 9,
    "name": "m",
    "day": date(2024, 1, 31),
    "ts": datetime(2024, 1, 31, 12, tzinfo=UTC),
    "ntz": datetime(2024, 1, 31),
    "price": Decimal("9.99"),
}


def _table(root: Path, files: dict[str, tuple[dict[str, Any], dict[str, Any]]], **options: Any) -> tamis.Table:  # noqa: ANN401 - of pq.write_table
    """A table whose log is a checkpoint with parsed statistics alone."""
    log = DeltaLog(root)
    log.begin(
        *(add(name, stats=None, values={}) for name in files),
        reader=3,
        features=("timestampNtz",),
        schema=SCHEMA,
        partitions=(),
    )
    (path,) = log.checkpoint(0)
    rows = pq.ParquetFile(path).read()
    bounds = pa.struct([(name, type_) for name, (_, type_) in TYPES.items()])
    stats = pa.struct(
        [
            ("numRecords", pa.int64()),
            ("minValues", bounds),
            ("maxValues", bounds),
            ("nullCount", pa.struct([(name, pa.int64()) for name in TYPES])),
        ]
    )
    adds = rows["add"].combine_chunks()
    parsed = pa.array(
        [
            None
            if one is None
            else {
                "numRecords": 5,
                "minValues": files[one["path"]][0],
                "maxValues": files[one["path"]][1],
                "nullCount": dict.fromkeys(TYPES, 0),
            }
            for one in adds.to_pylist()
        ],
        stats,
    )
    kept = [field for field in adds.type if field.name != "stats"]
    arrays = [*(adds.field(field.name) for field in kept), parsed]
    made = pa.StructArray.from_arrays(arrays, fields=[*kept, pa.field("stats_parsed", stats)], mask=adds.is_null())
    place = rows.column_names.index("add")
    pq.write_table(rows.set_column(place, "add", made), path, **options)
    for commit in log.folder.glob("*.json"):
        commit.unlink()
    return tamis.open(root)


@pytest.mark.parametrize("int96", [False, True])
@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("id = 5", 1),
        ("id = 10", 0),
        ("name >= 'n'", 0),
        ("day > date'2024-01-31'", 0),
        ("day = date'2024-01-31'", 1),
        ("ts > timestamp'2024-01-31 12:00:01Z'", 0),
        ("ts = timestamp'2024-01-31 12:00:00Z'", 1),
        ("ts < timestamp'2024-01-01 00:00:00Z'", 0),
        ("ts is null", 0),
        ("ntz > timestamp_ntz'2024-01-31 00:00:01'", 0),
        ("price > 9.99 or id < 1", 0),
    ],
)
def test_parsed_statistics_prune(tmp_path: Path, where: str, kept: int, *, int96: bool) -> None:
    """Spark writes timestamps as INT96 unless it is told otherwise: such bounds are those of instants."""
    table = _table(tmp_path, {"one": (LOW, HIGH)}, use_deprecated_int96_timestamps=int96)
    plan = table.plan(where)
    if int96 and where.startswith("ntz") and not kept:
        kept = 1  # no writer has a wall clock as INT96: what it means is not known
    assert plan.stats.kept == kept
    if not (int96 and where.startswith("ntz")):
        assert not [note for note in plan.stats.notes if "cannot be read" in note]


@pytest.mark.parametrize("year", [1, 1582, 1677, 1899, 2263, 9999])
def test_int96_of_far_years_never_prunes_wrongly(tmp_path: Path, year: int) -> None:
    """Nanoseconds wrap around beyond 1677 and 2262; before 1900 writers may have had another calendar."""
    far = datetime(year, 6, 1, tzinfo=UTC)
    table = _table(tmp_path, {"far": (LOW | {"ts": far}, HIGH | {"ts": far})}, use_deprecated_int96_timestamps=True)
    assert table.plan(f"ts = timestamp'{year:04d}-06-01 00:00:00Z'").stats.kept == 1
    assert table.plan("ts = timestamp'2024-06-01 00:00:00Z'").stats.kept == (1 if year < 1900 else 0)


def test_files_with_strings_alone_are_read_from_the_strings(tmp_path: Path) -> None:
    """A checkpoint may have both; what parsed columns lack is not lost."""
    log = DeltaLog(tmp_path)
    text = json.dumps({"numRecords": 5, "minValues": {"id": 1}, "maxValues": {"id": 9}, "nullCount": {"id": 0}})
    log.begin(add("one", stats=text, values={}), schema=SCHEMA, partitions=())
    (path,) = log.checkpoint(0)
    rows = pq.ParquetFile(path).read()
    adds = rows["add"].combine_chunks()
    none = pa.nulls(
        len(adds), pa.struct([("numRecords", pa.int64()), ("minValues", pa.struct([("id", pa.int64())]))])
    )
    fields = [*adds.type, pa.field("stats_parsed", none.type)]
    arrays = [*(adds.field(field.name) for field in adds.type), none]
    made = pa.StructArray.from_arrays(arrays, fields=fields, mask=adds.is_null())
    pq.write_table(rows.set_column(rows.column_names.index("add"), "add", made), path)
    assert tamis.open(tmp_path).plan("id = 10").stats.kept == 0
    assert tamis.open(tmp_path).plan("id = 9").stats.kept == 1
