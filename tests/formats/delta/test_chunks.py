"""Statistics that are decoded late, in parts or again are those that are decoded at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.formats.delta.checkpoints import vectors_of
from tamis.formats.delta.files import FileMaker
from tamis.formats.delta.schema import parse_schema
from tamis.formats.delta.statistics import column_stats
from tamis.formats.delta.stats_counts import read_counts
from tamis.formats.delta.stats_json import read_stats
from tamis.sieve.domain import ColumnStats
from tamis.sieve.files import FileBatch, rows_of
from tamis.sieve.order import mask_of
from tests.making.delta_logs import VECTOR, vector

SCHEMA = parse_schema(
    json.dumps(
        {
            "type": "struct",
            "fields": [
                {"name": name, "type": type_, "nullable": True, "metadata": {}}
                for name, type_ in (("id", "long"), ("name", "string"), ("ts", "timestamp"))
            ],
        }
    ),
    {},
    (),
)
COLUMNS = {column.name: column for column in SCHEMA.columns().columns}
PARTS = ("lower", "upper", "null_count", "value_count")
NUMBERS = st.one_of(st.integers(0, 3), st.integers(-(10**20), 10**20), st.sampled_from([1.5, "7", None, True]))


@st.composite
def _texts(draw: st.DrawFn) -> str | None:
    """Statistics as writers write them, in any order of keys, and what is left of damaged ones."""
    values: dict[str, Any] = {
        "numRecords": draw(NUMBERS),
        "minValues": {"id": draw(st.integers(-5, 5)), "name": draw(st.text(max_size=3))},
        "maxValues": {"id": draw(st.integers(5, 9)), "ts": "2024-01-15T10:20:30.123Z"},
        "nullCount": {"id": draw(st.integers(0, 3)), "name": 0},
        "tightBounds": draw(st.booleans()),
    }
    keys = draw(st.permutations(sorted(values))) if draw(st.booleans()) else list(values)
    text = json.dumps(
        {key: values[key] for key in keys}, separators=draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    )
    damage = draw(st.integers(0, 9))
    if damage == 0:
        return None
    if damage == 1:
        return text[: draw(st.integers(0, len(text)))]
    return text


def _adds(texts: Sequence[str | None], dv: Sequence[bool]) -> pa.StructArray:
    rows = [
        {"path": f"f{place}", "size": 1, "stats": text, "deletionVector": vector("x") if has else None}
        for place, (text, has) in enumerate(zip(texts, dv, strict=True))
    ]
    fields = [("path", pa.string()), ("size", pa.int64()), ("stats", pa.string()), ("deletionVector", VECTOR)]
    return pa.array(rows, pa.struct(fields))


def _said(stats: ColumnStats, row: int) -> list[object]:
    arrays = [getattr(stats, part) for part in PARTS]
    return [None if array is None else array[row].as_py() for array in arrays]


@given(st.data())
def test_statistics_are_the_same_however_they_are_asked_for(data: st.DataObject) -> None:
    texts = data.draw(st.lists(_texts(), min_size=1, max_size=8))
    add = _adds(texts, data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts))))
    vectors = vectors_of(add)
    has_vector = np.zeros(len(add), np.bool_) if vectors is None else mask_of(vectors.is_valid())
    chunk = FileMaker(SCHEMA, ()).chunk(add)
    places = st.lists(st.integers(0, len(texts) - 1), unique=True).map(lambda rows: np.array(sorted(rows), np.int64))
    kept = data.draw(st.one_of(st.none(), places))
    for _ in range(data.draw(st.integers(1, 4))):
        wanted = tuple(COLUMNS[name] for name in data.draw(st.lists(st.sampled_from(sorted(COLUMNS)), unique=True)))
        eager = column_stats(SCHEMA, wanted, json=add.field("stats"), has_vector=has_vector)
        batch = FileMaker(SCHEMA, wanted).late(chunk, kept, thorough=data.draw(st.booleans()))
        among = np.arange(len(add)) if kept is None else kept
        rows = data.draw(places)
        rows = rows[rows < len(among)]
        found = batch.stated(rows)
        assert found.late is None
        assert len(found.rows) == len(among)
        assert found.stats.keys() == eager.columns.keys()
        for row in rows.tolist():
            for id_, stats in eager.columns.items():
                assert _said(found.stats[id_], row) == _said(stats, int(among[row]))
            count = eager.num_records[int(among[row])].as_py()
            assert found.rows[row].as_py() in ((count,) if wanted else (count, _leading(texts[int(among[row])])))


def _leading(text: str | None) -> int | None:
    """The count that a damaged text begins with."""
    digits = (text or "").removeprefix('{"numRecords":').partition(",")[0]
    return int(digits) if digits.isdecimal() and digits != "0" else None


@given(
    st.lists(st.one_of(_texts(), st.sampled_from(['{"numRecords":0}', '{"numRecords":01}', '{"numRecords":1e2}'])))
)
def test_row_counts_are_those_that_a_parser_finds(texts: list[str | None]) -> None:
    array = pa.array([None, *texts], pa.string()).slice(1)
    found = read_counts(array)
    parsed = read_stats(array, pa.struct([("numRecords", pa.int64())]), floats=False)
    for place, text in enumerate(texts):
        count, told = parsed.values.field(0)[place].as_py(), found.values.field(0)[place].as_py()
        if parsed.failed[place] and told is not None:  # damaged behind the count, which is not 0
            assert told == _leading(text) != 0
        else:
            assert told == count
            assert found.failed[place] == parsed.failed[place]


@pytest.mark.parametrize("text", ['{"numRecords":0', '{"numRecords":0,"minValues":{', '{"numRecords":00}'])
def test_a_damaged_count_of_0_is_none(text: str) -> None:
    found = read_counts(pa.array([text, '{"numRecords":3,']))
    assert found.values.field(0).to_pylist() == [None, 3]
    assert found.failed.tolist() == [True, False]


def test_a_batch_is_asked_for_the_files_that_are_taken() -> None:
    texts = [f'{{"numRecords":{rows}}}' for rows in (4, 5, 6)]
    chunk = FileMaker(SCHEMA, ()).chunk(_adds(texts, [False] * 3))
    batch = FileMaker(SCHEMA, (COLUMNS["id"],)).late(chunk)
    assert batch.rows.null_count == 3
    taken: FileBatch = rows_of(batch, np.array([2]))
    assert taken.path.to_pylist() == ["f2"]
    assert taken.rows.to_pylist() == [6]
    assert taken.late is None
