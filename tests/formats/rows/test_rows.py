"""Columns of data files as the table has them: exact, or an error that names the column."""

from __future__ import annotations

import random
import uuid
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc

from tamis.formats.rows.conform import Misread, absent, conformed, shown_type
from tamis.formats.rows.orc import exact
from tamis.formats.rows.orc_codecs import LZ4, LZO, inflated_chunk
from tamis.formats.rows.orc_footer import patched, read_footer, writer_zones
from tamis.formats.rows.reading import read_rows
from tamis.formats.scan import ReadField

TIMES = [-(10**15) - 1, -1_000_000, -999_999, -1, 0, 1, None, 1_700_000_000_123_456]


@pytest.mark.parametrize("codec", ["uncompressed", "zlib", "zstd", "snappy", "lz4"])
def test_times_read_twice_are_the_times_that_were_written(tmp_path: Path, codec: str) -> None:
    """The second reading takes the footer apart and puts it together: every stripe, codec, and fields in lists."""
    path = tmp_path / "times.orc"
    times = pa.array(TIMES * 1000, pa.timestamp("us"))
    nested = pa.ListArray.from_arrays(pa.array(range(len(times) + 1), pa.int32()), times)
    orc.write_table(pa.table({"at": times, "li": nested}), path, compression=codec)
    with path.open("rb") as stream:
        footer = read_footer(stream)
        assert footer is not None
        seconds = orc.ORCFile(pa.PythonFile(patched(stream, footer), mode="r"))
        nanos = orc.ORCFile(path)
        for name, wanted in (("at", times), ("li", nested)):
            found = [
                exact(nanos.read_stripe(n).column(name), seconds.read_stripe(n).column(name))
                for n in range(nanos.nstripes)
            ]
            assert pa.concat_arrays(found).to_pylist() == wanted.to_pylist()


def test_bytes_that_are_no_footer_tell_nothing() -> None:
    """Nothing is concluded from what is not understood."""
    assert read_footer(BytesIO(b"ORC" + bytes(range(1, 120)))) is None


@pytest.mark.parametrize("codec", ["zlib", "zstd", "snappy", "lz4"])
@pytest.mark.parametrize("columns", [1, 9, 150])
def test_a_footer_says_the_same_however_it_is_compressed(tmp_path: Path, codec: str, columns: int) -> None:
    """Long ones repeat themselves over and over; without them no time of the file could be read."""
    times = pa.array(TIMES, pa.timestamp("us"))
    names = [f"a column of times, number {number}" for number in range(columns)]
    table = pa.table(dict.fromkeys([*names, "x" * 2000, uuid.UUID(int=7**44).hex * 40], times))
    found = []
    for name in ("uncompressed", codec):
        path = tmp_path / f"{name}.orc"
        orc.write_table(table, path, compression=name)
        with path.open("rb") as stream:
            footer = read_footer(stream)
        assert footer is not None
        found.append((footer.kinds, dict(footer.extents)))
    assert found[0] == found[1]


def test_blocks_of_lz4_are_unpacked_whatever_is_in_them() -> None:
    """Arrow leaves the ends of such files as they are, Java packs them: lengths of many bytes, and of none."""
    chance = random.Random(5).randbytes(900)  # noqa: S311 - the same bytes on every run
    for data in (
        b"",
        b"a",
        chance,
        b"a" * 9000,
        chance * 9,
        b"ab" * 700 + chance,
        *(b"x" * n for n in range(14, 300)),
    ):
        assert inflated_chunk(pa.compress(data, "lz4_raw", asbytes=True), LZ4) == data


def test_instructions_of_lzo_are_followed() -> None:
    """Nothing in Python writes LZO: here is each instruction by hand, and an engine test has what Java writes."""
    run, end = bytes([17 + 5]) + b"abcde", bytes([0x11, 0, 0])
    for instruction, wanted in (
        (b"", b""),
        (bytes([0b0110_1001, 0]) + b"z", b"cdecz"),
        (bytes([0b1110_0100, 0]), b"dededede"),
        (bytes([0b0010_0010, 8, 0]), b"cdec"),
        (bytes([0b0010_0000, 0, 2, 0, 0]), b"e" * 290),
        (bytes([0b0110_1001, 0]) + b"z" + bytes([0b0000_0000, 0]), b"cdeczzz"),
    ):
        assert inflated_chunk(run + instruction + end, LZO) == b"abcde" + wanted
    many = bytes(range(250)) * 8 + bytes(100)
    assert inflated_chunk(bytes([*bytes(9), 42]) + many + bytes(2) + end, LZO) == many + many[51:54]


def test_a_damaged_footer_tells_nothing(tmp_path: Path) -> None:
    """Whatever byte of it is another: it is read as something, or not at all, and never goes on without end."""
    path = tmp_path / "times.orc"
    table = pa.table(
        {f"a column of times, number {number}": pa.array(TIMES, pa.timestamp("us")) for number in range(9)}
    )
    for codec in ("snappy", "lz4"):
        orc.write_table(table, path, compression=codec)
        data = path.read_bytes()
        for place in range(len(data) - 400, len(data) - 30):
            for byte in (0, 0x0F, 0xF0, 0xFF):
                read_footer(BytesIO(data[:place] + bytes([byte]) + data[place + 1 :]))


@pytest.mark.parametrize("codec", ["uncompressed", "zlib", "zstd"])
def test_times_of_a_writer_whose_clock_did_not_show_utc_are_refused_where_the_format_says_so(
    tmp_path: Path, codec: str
) -> None:
    """Paimon's Java writes a time with a zone as its own clock shows it: hours off, and nothing says that."""
    path = tmp_path / "times.orc"
    orc.write_table(pa.table({"at": pa.array([0, 1], pa.timestamp("us"))}), path, compression=codec)
    at = ReadField("at", pa.timestamp("us"), None, "at", utc_alone=True)
    with path.open("rb") as stream:
        footer = read_footer(stream)
        assert footer is not None
        assert writer_zones(stream, footer) == {"GMT"}
    assert [rows for rows, _ in read_rows(str(path), BytesIO(path.read_bytes()), "orc", [at])] == [2]
    if codec == "uncompressed":
        other = path.read_bytes().replace(b"GMT", b"MET")
        with pytest.raises(ValueError, match="its writer's clock showed MET"):
            list(read_rows(str(path), BytesIO(other), "orc", [at]))
        anywhere = replace(at, utc_alone=False)
        assert [rows for rows, _ in read_rows(str(path), BytesIO(other), "orc", [anywhere])] == [2]


def test_values_of_an_older_type_are_those_of_todays() -> None:
    old = pa.array([1, None, 1 << 53], pa.int64())
    field = ReadField("v", pa.float64(), None, "v", stored=pa.int64())
    assert conformed(old, pa.field("v", pa.int64()), field).to_pylist() == [1.0, None, float(1 << 53)]
    text = ReadField("v", pa.string(), None, "v", stored=pa.bool_())
    assert conformed(pa.array([True, None]), pa.field("v", pa.bool_()), text).to_pylist() == ["true", None]
    narrow = ReadField("v", pa.int8(), None, "v", stored=pa.int32())
    assert conformed(pa.array([-128, 127], pa.int32()), pa.field("v", pa.int32()), narrow).type == pa.int8()
    filled = ReadField("v", pa.string(), None, "v", filled=True)
    assert conformed(pa.array(["ab  ", " "]), pa.field("v", pa.string()), filled).to_pylist() == ["ab", ""]


def test_uuids_are_text_with_nulls_and_in_slices() -> None:
    values = [uuid.UUID(int=number * 7**40 % 2**128) for number in range(9)]
    array = pa.array([one.bytes for one in values[:4]] + [None] + [one.bytes for one in values[5:]], pa.binary(16))
    field = ReadField("u", pa.uuid(), written_as="u")
    found = conformed(array.slice(2, 6), pa.field("u", array.type), field)
    assert found.to_pylist() == [str(values[2]), str(values[3]), None, *map(str, values[5:8])]


def test_a_type_that_holds_fewer_values_is_refused_by_name() -> None:
    """A long is no int: rather an error than another number."""
    field = ReadField("n", pa.int32(), written_as="n")
    with pytest.raises(Misread, match="column 'n' is int64 in the file, which cannot be read as int32"):
        conformed(pa.array([2**40]), pa.field("n", pa.int64()), field)


def test_what_a_struct_lacks_is_its_default_and_null_where_the_struct_is(tmp_path: Path) -> None:
    path = tmp_path / "structs.orc"
    orc.write_table(pa.table({"st": pa.array([{"a": 1}, None, {"a": None}])}), path)
    children = (
        ReadField("b", pa.int64(), written_as="a"),
        ReadField("c", pa.string(), written_as="absent", default=pa.scalar("x")),
    )
    kind = pa.struct([("b", pa.int64()), ("c", pa.string())])
    with path.open("rb") as stream:
        ((rows, (column, lost)),) = read_rows(
            str(path),
            stream,
            "orc",
            [ReadField("st", kind, written_as="st", children=children), ReadField("no", pa.int64())],
        )
    assert (rows, lost) == (3, None)
    assert column is not None
    assert column.to_pylist() == [{"b": 1, "c": "x"}, None, {"b": None, "c": "x"}]


def test_a_default_of_a_struct_is_made_of_those_of_its_fields() -> None:
    """Such a default has no fields itself, also inside of a list; a struct without one is NULL."""
    children = (
        ReadField("a", pa.int32(), 2, default=pa.scalar(5, pa.int32())),
        ReadField("u", pa.uuid(), 3, default=pa.scalar(bytes(16), pa.binary(16))),
        ReadField("no", pa.int64(), 4),
    )
    kind = pa.struct([(child.name, child.type) for child in children])
    made = {"a": 5, "u": "00000000-0000-0000-0000-000000000000", "no": None}
    struct = ReadField("st", kind, 1, children=children, default=pa.scalar({}, pa.struct([])))
    assert absent(struct, 2).to_pylist() == [made, made]
    assert absent(struct, 2).type == shown_type(struct)
    assert absent(replace(struct, default=None), 2).to_pylist() == [None, None]
    listed = pa.scalar([{}, None], pa.list_(pa.struct([])))
    element = replace(struct, name="element", default=None)
    items = ReadField("l", pa.list_(kind), 5, children=(element,), default=listed)
    assert absent(items, 2).to_pylist() == [[made, None]] * 2
    mapped = pa.scalar([(1, None), (2, "x")], pa.map_(pa.int32(), pa.string()))
    both = (ReadField("key", pa.int32(), 7), ReadField("value", pa.string(), 8))
    entries = ReadField("m", pa.map_(pa.int32(), pa.string()), 6, children=both, default=mapped)
    assert absent(entries, 1).to_pylist() == [[(1, None), (2, "x")]]


def test_a_date_that_has_become_a_time_is_its_midnight() -> None:
    """Version 3 promotes a date to a time without a zone, of micro- or nanoseconds; never to one with a zone."""
    dates = pa.array([-1, None, 19_737], pa.date32())
    column = pa.field("d", dates.type)
    made = conformed(dates, column, ReadField("d", pa.timestamp("us")))
    assert made.equals(dates.cast(pa.timestamp("us")))
    nanos = ReadField("d", pa.int64(), counts=pa.timestamp("ns"))
    assert conformed(dates, column, nanos).equals(dates.cast(pa.timestamp("ns")).view(pa.int64()))
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        conformed(pa.array([200_000], pa.date32()), column, nanos)
    for kind in (ReadField("d", pa.timestamp("us", "UTC")), replace(nanos, counts=pa.timestamp("ns", "UTC"))):
        with pytest.raises(Misread, match="column 'd' is date32"):
            conformed(dates, column, kind)
