"""Avro that tamis writes, read by its own reader of records and by another library: the rows that went in."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.formats.avro.container import parse_avro
from tamis.formats.avro.encoding import encode
from tamis.formats.avro.records import encode_record, read_records
from tamis.formats.avro.writer import BLOCK_BYTES, CODECS, avro_file

LONG = st.integers(-(1 << 63), (1 << 63) - 1)
INNER = {
    "type": "record",
    "name": "pair",
    "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}],
}
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "long", "type": "long"},
        {"name": "maybe", "type": ["null", "long"]},
        {"name": "text", "type": ["null", "string"]},
        {"name": "flag", "type": "boolean"},
        {"name": "number", "type": ["null", "double"]},
        {"name": "fixed", "type": {"type": "fixed", "name": "three", "size": 3}},
        {"name": "pairs", "type": ["null", {"type": "array", "items": INNER}]},
        {"name": "longs", "type": {"type": "array", "items": "long"}},
        {
            "name": "inside",
            "type": {"type": "record", "name": "r", "fields": [{"name": "x", "type": ["null", "int"]}]},
        },
        {"name": "nothing", "type": ["null", "bytes"]},
    ],
}
ARROW = pa.struct(
    {
        "long": pa.int64(),
        "maybe": pa.int64(),
        "text": pa.string(),
        "flag": pa.bool_(),
        "number": pa.float64(),
        "fixed": pa.binary(3),
        "pairs": pa.list_(pa.struct({"key": pa.int32(), "value": pa.binary()})),
        "longs": pa.list_(pa.int64()),
        "inside": pa.struct({"x": pa.int32()}),
        "nothing": pa.null(),
    }
)
ROW = st.fixed_dictionaries(
    {
        "long": LONG,
        "maybe": st.none() | LONG,
        "text": st.none() | st.text(st.characters(exclude_categories=("Cs",)), max_size=200),
        "flag": st.booleans(),
        "number": st.none() | st.floats(allow_nan=False),
        "fixed": st.binary(min_size=3, max_size=3),
        "pairs": st.none()
        | st.lists(st.fixed_dictionaries({"key": st.integers(-9, 9), "value": st.binary(max_size=9)}), max_size=4),
        "longs": st.lists(LONG, max_size=5),
        "inside": st.fixed_dictionaries({"x": st.none() | st.integers(-(1 << 31), (1 << 31) - 1)}),
        "nothing": st.none(),
    }
)


def written(rows: list[dict[str, Any]], codec: str = "deflate") -> bytes:
    return avro_file([pa.array(rows, ARROW)], SCHEMA, json.dumps(SCHEMA), {"kept": "ä"}, codec, None)


@given(st.lists(ROW, max_size=20), st.integers(0, 3), st.sampled_from(sorted(CODECS.values())))
def test_rows_come_back_as_they_went_in(rows: list[dict[str, Any]], skipped: int, codec: str) -> None:
    """Read by our own reader of records, also from several arrays, which are slices of a longer one."""
    array = pa.array(rows, ARROW).slice(skipped)
    data = avro_file([array.slice(0, skipped), array.slice(skipped)], SCHEMA, json.dumps(SCHEMA), {}, codec, None)
    assert read_records(parse_avro("x.avro", data)) == rows[skipped:]


@given(st.lists(ROW, min_size=1, max_size=5))
def test_another_library_reads_the_same(rows: list[dict[str, Any]]) -> None:
    fastavro = pytest.importorskip("fastavro")
    reader = fastavro.reader(io.BytesIO(written(rows)))
    assert list(reader) == rows
    assert reader.metadata["kept"] == "ä"


@given(ROW)
def test_a_record_is_the_same_by_itself(row: dict[str, Any]) -> None:
    """Two encoders, one for columns and one for single records: the same bytes."""
    assert encode(pa.array([row], ARROW), SCHEMA).data.tobytes() == encode_record(row, SCHEMA)


def test_blocks_have_a_sane_size() -> None:
    """Neither one a row, which is slow to read, nor one for all."""
    row = {"long": 1, "text": "x" * 500, "flag": True, "fixed": b"abc", "longs": [], "inside": {"x": 1}}
    file = parse_avro("x.avro", written([row] * 2000, "null"))
    sizes = [stop - at for _, at, stop, _ in file.blocks]
    assert all(size <= BLOCK_BYTES for size in sizes)
    assert min(sizes[:-1]) > BLOCK_BYTES * 0.9
    assert file.records == 2000


def test_a_row_larger_than_a_block_is_a_block() -> None:
    row = {"long": 1, "text": "x" * (2 * BLOCK_BYTES), "flag": True, "fixed": b"abc", "longs": [], "inside": {"x": 1}}
    file = parse_avro("x.avro", written([row] * 3))
    assert [count for *_, count in file.blocks] == [1, 1, 1]


@pytest.mark.parametrize(
    ("array", "schema"),
    [
        (pa.array([1, None]), "long"),
        (pa.array(["x"]), "long"),
        (pa.array([1]), ["int", "long"]),
        (pa.array([b"ab"], pa.binary(2)), {"type": "fixed", "name": "f", "size": 3}),
    ],
)
def test_what_does_not_fit_the_schema_is_an_error(array: pa.Array, schema: Any) -> None:  # noqa: ANN401 - JSON
    """A null in a required field, above all: it would shift every byte behind it."""
    with pytest.raises(ValueError, match=r"."):
        encode(array, schema)
