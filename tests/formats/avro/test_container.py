"""The frame of an Avro file is checked byte by byte: a decoder that stops early loses rows in silence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tamis.errors import UnreadableMetadataError
from tamis.formats.avro.container import parse_avro
from tamis.formats.avro.reading import decode_columns
from tests.making.manifests import avro_bytes

SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long", "field-id": 1}]}
ROOT = Path(__file__).parents[3]
ROWS = [{"n": number} for number in range(100)]


def numbers(*files: bytes) -> list[int]:
    parsed = [parse_avro(f"{place}.avro", data) for place, data in enumerate(files)]
    return [number for part in decode_columns(parsed, [(1,)], {}) for number in part.columns[(1,)].to_pylist()]


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"])
@pytest.mark.parametrize("block", [1, 64_000])
def test_every_codec_and_block_size_is_read(codec: str, block: int) -> None:
    assert numbers(avro_bytes(SCHEMA, ROWS, codec=codec, block=block)) == list(range(100))


def test_files_of_one_layout_are_joined_in_order() -> None:
    files = [
        avro_bytes(SCHEMA, ROWS[start : start + 30], block=block) for start, block in ((0, 1), (30, 99), (60, 1))
    ]
    parsed = [parse_avro(f"{place}.avro", data) for place, data in enumerate(files)]
    (found,) = decode_columns(parsed, [(1,)], {})
    assert found.columns[(1,)].to_pylist() == list(range(90))
    assert found.files.tolist() == [0] * 30 + [1] * 30 + [2] * 30


def test_file_without_records_has_none() -> None:
    assert numbers(avro_bytes(SCHEMA, [])) == []
    assert numbers(avro_bytes(SCHEMA, []), avro_bytes(SCHEMA, ROWS)) == list(range(100))


def test_cut_anywhere_is_an_error_or_a_file_of_fewer_whole_blocks() -> None:
    """DataFusion returns the rows before the cut without a word. Only a cut between blocks cannot be seen."""
    data = avro_bytes(SCHEMA, ROWS[:6], block=1)
    whole = parse_avro("a.avro", data)
    ends = {whole.start, *(stop + 16 for _, _, stop, _ in whole.blocks)}
    for cut in range(len(data)):
        if cut in ends:
            assert len(numbers(data[:cut])) < 6
        else:
            with pytest.raises(UnreadableMetadataError, match=r"cannot read a\.avro at byte \d+"):
                parse_avro("a.avro", data[:cut])


def test_damaged_block_names_its_file_among_those_joined() -> None:
    good = avro_bytes(SCHEMA, ROWS)
    parsed = parse_avro("x", good)
    _, begin, stop, _ = parsed.blocks[0]
    bad = good[:begin] + b"\xff" * (stop - begin) + good[stop:]
    with pytest.raises(UnreadableMetadataError, match=r"cannot read 1\.avro"):
        numbers(good, bad, good)


def test_block_that_lies_about_its_count_is_an_error() -> None:
    data = avro_bytes(SCHEMA, ROWS[:3], codec="null")
    begin = parse_avro("x", data).start
    assert data[begin] == 6
    with pytest.raises(UnreadableMetadataError, match=r"cannot read 0\.avro"):
        numbers(data[:begin] + bytes([8]) + data[begin + 1 :])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is empty"),
        (b"PAR1aaaa", "it is not an Avro file"),
        (b"AGS1\x00\x00", "it is encrypted"),
        (b"Obj\x01", "truncated"),
        (b"Obj\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "longer than 64 bits"),
        (b"Obj\x01\x00" + b"s" * 16, "no readable schema"),
    ],
)
def test_what_is_no_avro_file_is_a_clear_error(data: bytes, why: str) -> None:
    with pytest.raises(UnreadableMetadataError, match=why) as caught:
        parse_avro("https://host/a.avro?token=secret", data)
    assert "secret" not in str(caught.value)


def test_records_flatten_and_references_resolve() -> None:
    """A type may be named once and used twice, inside a namespace; a record without fields adds nothing."""
    pair = {"type": "record", "name": "pair", "namespace": "x.y", "fields": [{"name": "a", "type": "int"}]}
    inner = [
        {"name": "one", "type": ["null", {"type": "array", "items": pair}], "field-id": 3},
        {"name": "two", "type": ["null", {"type": "array", "items": "x.y.pair"}], "field-id": 4},
        {"name": "nothing", "type": {"type": "record", "name": "empty", "fields": []}, "field-id": 5},
        {"name": "odd", "type": ["null", "int", "string"], "field-id": 6},
    ]
    schema = {
        "type": "record",
        "name": "outer",
        "fields": [
            {"name": "in", "type": {"type": "record", "name": "inner", "fields": inner}, "field-id": 2},
            {"name": "last", "type": "string", "field-id": 7},
        ],
    }
    row = {"in": {"one": [{"a": 1}], "two": [{"a": 2}, {"a": 3}], "nothing": {}, "odd": "x"}, "last": "end"}
    (found,) = decode_columns([parse_avro("a", avro_bytes(schema, [row, row]))], [(2, 4), (7,)], {})
    assert found.columns[(2, 4)].to_pylist() == [[{"a": 2}, {"a": 3}]] * 2
    assert found.columns[(7,)].to_pylist() == ["end"] * 2
    assert found.columns[(7,)].type == pa.string()


def test_recursive_schema_is_an_error() -> None:
    item = {"name": "again", "type": ["null", {"type": "array", "items": "r"}], "field-id": 2}
    schema = {"type": "record", "name": "r", "fields": [item]}
    with pytest.raises(UnreadableMetadataError, match="recursive"):
        decode_columns([parse_avro("a", avro_bytes(schema, [{"again": None}]))], [(2,)], {})


def test_decoding_loads_neither_pandas_nor_the_python_package_and_both_still_import() -> None:
    """The package around the native module takes more than a second; a user may import it all the same."""
    program = """
import sys
from tamis.formats.avro.decoder import _native
native = _native()
assert "pandas" not in sys.modules and "datafusion" not in sys.modules
import datafusion
assert datafusion.SessionContext().sql("select 1 as a").to_pydict() == {"a": [1]}
assert _native() is native
"""
    subprocess.run([sys.executable, "-c", program], check=True)
