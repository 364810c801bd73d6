"""Tables that the deltalake package made: the same files are live, and a file with a matching row is kept."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import tamis

deltalake = pytest.importorskip("deltalake")

ROWS: list[dict[str, Any]] = [
    {
        "id": number,
        "s": None if number == 3 else f"{'x' * 40}{number}" if number % 2 else f"s{number}",
        "f": float("nan") if number == 5 else number / 2,
        "ts": dt.datetime(2024, 1, 1 + number, 12, 30, 0, 123456, tzinfo=dt.UTC),
        "p_int": None if number == 7 else number % 3,
        "p_date": dt.date(1969, 12, 28) + dt.timedelta(days=number),
        "p_str": ("a b", "c/d", "é%", "e")[number % 4],
        "p_dec": Decimal(number % 2).scaleb(-1).quantize(Decimal("0.01")),
    }
    for number in range(12)
]
TYPES = pa.schema(
    [
        ("id", pa.int64()),
        ("s", pa.string()),
        ("f", pa.float64()),
        ("ts", pa.timestamp("us", "UTC")),
        ("p_int", pa.int32()),
        ("p_date", pa.date32()),
        ("p_str", pa.string()),
        ("p_dec", pa.decimal128(5, 2)),
    ]
)
PARTITIONS = ["p_int", "p_date", "p_str", "p_dec"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve files of a row each, one of them deleted, with a checkpoint between two of the commits."""
    folder = tmp_path_factory.mktemp("deltalake")
    for number, row in enumerate(ROWS):
        deltalake.write_deltalake(folder, pa.Table.from_pylist([row], TYPES), mode="append", partition_by=PARTITIONS)
        if number == 8:
            deltalake.DeltaTable(folder).create_checkpoint()
    deltalake.DeltaTable(folder).delete("id = 4")
    return folder


def _live(path: Path, where: str | None = None) -> set[str]:
    files = tamis.open(path).plan(where).files["path"].to_pylist()
    return {str(path / unquote(one)) for one in files}


def test_the_same_files_are_live(path: Path) -> None:
    expected = {one.removeprefix("file://") for one in deltalake.DeltaTable(path).file_uris()}
    assert _live(path) == {one if one.startswith("/") else str(path / one) for one in expected}
    older = deltalake.DeltaTable(path, version=9).file_uris()
    assert len(tamis.open(path, version=9).plan().files) == len(older)


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("p_int = 1", {1, 10}),
        ("p_int is null", {7}),
        ("p_date < date'1970-01-01'", {0, 1, 2, 3}),
        ("p_str = 'c/d' and p_dec = 0.1", {1, 5, 9}),
        ("p_str like 'é%' or id = 3", {2, 3, 6, 10}),
        ("id between 5 and 6", {5, 6}),
        ("s is null", {3}),
        (f"s = '{'x' * 40}9'", {9}),
        ("f > 5", {5, 11}),
        ("ts >= timestamp'2024-01-12 12:30:00.123456Z'", {11}),
        ("ts > timestamp'2024-01-12 12:30:00.123456Z'", set()),
        ("p_int + 1 = 2 and id > 9", {10}),
        ("not (p_int = 0 or id < 11)", {11}),
    ],
)
def test_a_file_with_a_matching_row_is_kept(path: Path, where: str, ids: set[int]) -> None:
    kept = {pq.ParquetFile(one).read(["id"])["id"][0].as_py() for one in _live(path, where)}
    assert ids <= kept
    only = all(word not in where for word in ("s =", "f >", "ts", "+"))
    assert not only or ids == kept


SQL = {"equal": "=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}


def comparisons() -> dict[str, pc.Expression]:
    """Every column against some of the values that it holds: as SQL, and as Arrow has it."""
    made: dict[str, pc.Expression] = {}
    for name in TYPES.names:
        column, kind = pc.field(name), TYPES.field(name).type
        made |= {f"{name} IS NULL": column.is_null(), f"{name} IS NOT NULL": column.is_valid()}
        values = sorted({row[name] for row in ROWS if row[name] is not None and row[name] == row[name]})
        for value in (*values[:3], values[-1]):
            text = value.isoformat(" ") if isinstance(value, dt.datetime) else value
            shown = f"{TYPE_WORDS.get(name, '')} '{text}'" if not isinstance(value, (int, float)) else f"{value}"
            for function, sign in SQL.items():
                made[f"{name} {sign} {shown}"] = getattr(pc, function)(column, pa.scalar(value, kind))
    return made


TYPE_WORDS = {"ts": "timestamp", "p_date": "date"}
KEPT = {
    r"f .*": "of a file with NaN alone deltalake writes no bounds, and no bounds say nothing",
    r"s >=? .*": "writers cut long texts, so that a bound of 32 characters or more may be a part of the greatest one",
}
"""Conditions by which a file is kept that deltalake's dataset drops, and why."""


def test_no_file_is_kept_that_deltalakes_own_dataset_drops(path: Path) -> None:
    """It prunes by partition values and statistics; what it drops beyond tamis is listed with a reason."""
    dataset = deltalake.DeltaTable(path).to_pyarrow_dataset()
    dropped, more = 0, {}
    every = _live(path)
    for where, asked in comparisons().items():
        theirs = {str(path / unquote(unquote(one.path))) for one in dataset.get_fragments(filter=asked)}
        kept = _live(path, where)
        dropped += len(every) - len(theirs)
        if len(kept) > len(theirs):
            more[where] = (len(kept), len(theirs))
    assert {where: counts for where, counts in more.items() if not any(re.fullmatch(r, where) for r in KEPT)} == {}
    assert [reason for reason in KEPT if not any(re.fullmatch(reason, where) for where in more)] == []
    assert dropped > 500


@pytest.mark.parametrize("value", [10**38 - 1, 1 - 10**38, 1 << 63, (1 << 63) - 1, -(1 << 63), -(1 << 63) - 1])
def test_a_decimal_that_deltalake_cuts_to_a_long_is_kept(tmp_path: Path, value: int) -> None:
    """Its bounds are then the greatest or the least long, and the value lies outside."""
    column = pa.array([Decimal(value)], pa.decimal128(38, 0))
    for number in range(2):
        deltalake.write_deltalake(tmp_path / "t", pa.table({"x": column}), mode="append")
        for where in (f"x = {value}", f"x >= {value}", f"x <= {value}", f"x > {value - 1}", f"x < {value + 1}"):
            if str(10**38) not in where:  # which is no decimal
                assert len(_live(tmp_path / "t", where)) == number + 1, where
        deltalake.DeltaTable(tmp_path / "t").create_checkpoint()
    assert not _live(tmp_path / "t", "x > 0" if value < 0 else "x < 0")
