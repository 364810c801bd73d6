"""Stripes of ORC files that are inflated before pyarrow reads them: the same rows, and the same errors."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

from tamis.errors import TamisError
from tamis.formats.rows import orc_stripes
from tamis.formats.rows.orc import read_orc
from tamis.formats.rows.orc_footer import read_footer
from tamis.formats.rows.orc_stripes import quick_stripes
from tamis.formats.storage.inflate import ZLIB

ROWS = 900


@pytest.fixture(autouse=True)
def _any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small stripes are inflated too."""
    monkeypatch.setattr(orc_stripes, "LEAST_BYTES", 0)


def rows() -> pa.Table:
    """Every kind of stream: values, lengths, dictionaries, nanoseconds, nulls at every depth."""
    kinds = {
        "id": pa.int64(),
        "name": pa.string(),
        "at": pa.timestamp("ns", "UTC"),
        "inner": pa.struct({"price": pa.decimal128(20, 3), "tags": pa.list_(pa.string())}),
        "few": pa.string(),
        "wide": pa.decimal128(30, 2),
        "share": pa.float64(),
        "flag": pa.bool_(),
        "raw": pa.binary(),
        "map": pa.map_(pa.string(), pa.int32()),
        "day": pa.date32(),
        "tiny": pa.int8(),
    }
    start = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    columns: dict[str, list[object]] = {name: [] for name in kinds}
    for row in range(ROWS):
        price = None if row % 5 == 0 else Decimal(row).scaleb(-3)
        tags = None if row % 4 == 0 else [None if row % 3 == 0 else f"tag {row % 11}"] * (row % 3)
        values: Sequence[object] = (
            row * row,
            f"name {row * 7919}",
            start + dt.timedelta(seconds=row, microseconds=row * 17),
            None if row % 6 == 0 else {"price": price, "tags": tags},
            f"few {row % 3}",
            Decimal(row * 10**20).scaleb(-2),
            row / 3,
            row % 3 == 0,
            bytes([row % 256]) * (row % 4),
            [(f"key {row % 7}", row)] * (row % 2),
            dt.date(2000, 1, 1) + dt.timedelta(days=row),
            row % 100,
        )
        for place, (column, value) in enumerate(zip(columns.values(), values, strict=True)):
            column.append(None if (row + place) % 9 == 0 else value)
    return pa.table({name: pa.array(column, kinds[name]) for name, column in columns.items()})


def written(compression: str = "zlib", block: int = 1 << 12) -> bytes:
    """The rows as a file of several stripes."""
    sink = pa.BufferOutputStream()
    with orc.ORCWriter(
        sink,
        compression=compression,
        compression_block_size=block,
        stripe_size=64,
        batch_size=100,
        dictionary_key_size_threshold=0.5,
    ) as writer:
        for start in range(0, ROWS, 300):
            writer.write(rows().slice(start, 300))
    return bytes(sink.getvalue())


FILE = written()
COLUMNS = len(rows().schema)


def read(content: bytes, places: Sequence[int]) -> list[pa.RecordBatch] | str:
    """What comes out, or that something is wrong."""
    try:
        with pa.BufferReader(content) as stream:
            return list(read_orc("file", stream).batches(places))
    except (TamisError, ValueError, OSError, pa.ArrowException) as error:
        return type(error).__name__


def plainly(content: bytes, places: Sequence[int]) -> list[pa.RecordBatch] | str:
    """The same of pyarrow alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(orc_stripes, "_QUICK", ZLIB)
        return read(content, places)


def test_every_stripe_alone_is_a_file_that_pyarrow_reads() -> None:
    """Or pyarrow would read the stripe once more from the file itself, and the tests below compare it with itself."""
    stream = io.BytesIO(FILE)
    stripes = quick_stripes(stream, read_footer(stream))
    assert stripes is not None
    assert len(stripes.stripes) > 1
    for number in range(len(stripes.stripes)):
        alone = stripes.alone(number, range(COLUMNS))
        assert alone is not None
        assert orc.ORCFile(pa.BufferReader(alone)).read_stripe(0) == orc.ORCFile(io.BytesIO(FILE)).read_stripe(number)


@given(st.lists(st.integers(0, COLUMNS - 1), min_size=1, max_size=COLUMNS))
def test_any_columns_in_any_order_are_those_that_pyarrow_reads(places: list[int]) -> None:
    inflated, plain = read(FILE, places), plainly(FILE, places)
    assert not isinstance(inflated, str)
    assert inflated == plain
    assert [batch.schema.metadata for batch in inflated] == [batch.schema.metadata for batch in plain]


@pytest.mark.parametrize("block", [1 << 10, 1 << 16, 1 << 19])
def test_chunks_may_have_any_size(block: int) -> None:
    content = written(block=block)
    assert read(content, range(COLUMNS)) == plainly(FILE, range(COLUMNS))


@pytest.mark.parametrize("compression", ["uncompressed", "snappy", "lz4", "zstd"])
def test_files_that_zlib_has_not_compressed_are_left_to_pyarrow(compression: str) -> None:
    content = written(compression)
    stream = io.BytesIO(content)
    assert quick_stripes(stream, read_footer(stream)) is None
    without_times = [place for place, kind in enumerate(rows().schema.types) if not pa.types.is_timestamp(kind)]
    assert read(content, without_times) == plainly(FILE, without_times)


def test_rows_do_not_change_when_the_next_stripe_is_read_into_the_same_memory() -> None:
    wanted = plainly(FILE, range(COLUMNS))
    with pa.BufferReader(FILE) as one, pa.BufferReader(FILE) as other:
        left, right = (read_orc("file", stream).batches(range(COLUMNS)) for stream in (one, other))
        pairs = [(next(left), next(right)) for _ in wanted]
    assert [pair[0] for pair in pairs] == [pair[1] for pair in pairs] == wanted


def test_stripes_of_few_bytes_are_left_to_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orc_stripes, "LEAST_BYTES", 1 << 20)
    stream = io.BytesIO(FILE)
    stripes = quick_stripes(stream, read_footer(stream))
    assert stripes is not None
    assert stripes.alone(0, range(COLUMNS)) is None


def test_stripes_that_may_inflate_to_too_much_are_left_to_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orc_stripes, "_MOST_BYTES", 1 << 10)
    stream = io.BytesIO(FILE)
    stripes = quick_stripes(stream, read_footer(stream))
    assert stripes is not None
    assert stripes.alone(0, range(COLUMNS)) is None
    assert read(FILE, range(COLUMNS)) == plainly(FILE, range(COLUMNS))


@given(st.integers(3, len(FILE) // 2), st.integers(1, 255))
def test_damaged_stripes_are_read_as_pyarrow_reads_them(place: int, change: int) -> None:
    """Rows or an error: what is wrong with a file is for pyarrow to say."""
    content = bytearray(FILE)
    content[place] ^= change
    assert read(bytes(content), range(COLUMNS)) == plainly(bytes(content), range(COLUMNS))
