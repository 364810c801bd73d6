"""Avro blocks that lie about what they hold: no record more or less than announced, and no work beyond it."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import SettingError, UnreadableMetadataError
from tamis.formats.avro import framing, sheet
from tamis.formats.avro.container import header, parse_avro, pieces, varint
from tamis.formats.avro.reading import decode_columns
from tamis.formats.storage import inflate
from tamis.formats.storage.inflate import LIMIT_VARIABLE, inflate_gzip
from tests.making.manifests import avro_bytes

SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long", "field-id": 1}]}
SYNC = b"s" * 16
ROOT = Path(__file__).parents[3]
CODECS = ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"]


def records(*numbers: int) -> bytes:
    return b"".join(map(varint, numbers))


def deflated(data: bytes) -> bytes:
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    return stream.compress(data) + stream.flush()


def container(*blocks: tuple[int, bytes], codec: str = "null", schema: object = SCHEMA) -> bytes:
    """An Avro file whose blocks announce what they are told to."""
    parts = [header({"avro.schema": json.dumps(schema), "avro.codec": codec}, SYNC)]
    for count, body in blocks:
        parts += [varint(count), varint(len(body)), body, SYNC]
    return b"".join(parts)


def numbers(*files: bytes) -> list[int]:
    parsed = [parse_avro(f"{place}.avro", data) for place, data in enumerate(files)]
    return [number for part in decode_columns(parsed, [(1,)], {}) for number in part.columns[(1,)].to_pylist()]


def test_block_that_announces_no_record_and_holds_some_is_an_error() -> None:
    """One flipped bit makes 1 record 0. The plan would be empty."""
    with pytest.raises(UnreadableMetadataError, match=r"0\.avro at byte \d+: the block announces 0 records"):
        numbers(container((0, records(1))))
    with pytest.raises(UnreadableMetadataError, match="announces 0 records"):
        numbers(container((0, deflated(records(1, 2, 3))), codec="deflate"))


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_empty_block_is_sound(codec: str) -> None:
    empty = b"" if codec == "null" else deflated(b"")
    assert numbers(container((0, empty), codec=codec)) == []
    body = records(7) if codec == "null" else deflated(records(7))
    assert numbers(container((0, empty), (1, body), (0, empty), codec=codec)) == [7]


@pytest.mark.parametrize("announced", [1, 2, 4, 5, 1 << 39])
def test_block_that_lies_about_its_count_names_file_and_place_at_once(announced: int) -> None:
    """DataFusion never ends on a block that holds more than it announces; its thread would spin for ever."""
    good, bad = container((3, records(1, 2, 3))), container((3, records(1, 2, 3)), (announced, records(4, 5, 6)))
    place = parse_avro("bad", bad).blocks[1][0]
    with pytest.raises(UnreadableMetadataError, match=rf"cannot read 1\.avro at byte {place}: .* announce") as caught:
        numbers(good, bad, good)
    assert caught.value.offset == place


def test_lies_that_cancel_out_between_files_are_seen() -> None:
    """Else a file's entries would inherit the sequence number of its neighbour, and with it other deletes."""
    less, more = container((3, records(100, 200))), container((2, records(3, 4, 5)))
    with pytest.raises(UnreadableMetadataError, match=r"cannot read 0\.avro"):
        numbers(less, more)
    with pytest.raises(UnreadableMetadataError, match=r"cannot read 0\.avro"):
        numbers(more, less)


@pytest.mark.parametrize("count", [65_535, 65_536, 131_071, 200_000])
def test_files_of_several_batches_come_out_whole(count: int) -> None:
    half = count // 2
    first = container((half, records(*range(half))))
    second = container((count - half, deflated(records(*range(half, count)))), codec="deflate")
    assert numbers(first, second) == list(range(count))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.sampled_from([0, 3, 1 << 40]))
def test_files_with_and_without_records_come_out_in_order(counts: list[int], long_run: int) -> None:
    """Records of files are taken by slices or by a filter, whichever is less work: both are the same records."""
    starts = [sum(counts[:place]) for place in range(len(counts))]
    files = [
        container((count, records(*range(start, start + count)))) for start, count in zip(starts, counts, strict=True)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(framing, "_LONG_RUN", long_run)
        assert numbers(*files) == list(range(sum(counts)))
        parsed = [parse_avro(f"{place}.avro", data) for place, data in enumerate(files)]
        (found,) = decode_columns(parsed, [(1,)], {})
    assert found.files.tolist() == [place for place, count in enumerate(counts) for _ in range(count)]


@pytest.mark.parametrize("taken", [1, 7, 1000])
def test_pieces_that_the_system_takes_in_part_are_written_whole(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write may end early: a signal comes, or it is more than 2 GiB. What is missing is written after it."""
    writev, write = os.writev, os.write

    def some_of(descriptor: int, pieces: Sequence[bytes]) -> int:
        return write(descriptor, b"".join(pieces)[:taken])

    monkeypatch.setattr(sheet, "_PIECES", 3)
    monkeypatch.setattr(os, "writev", some_of)
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:taken]))
    blocks = [(1, records(number)) for number in range(50)]
    assert numbers(container(*blocks)) == list(range(50))
    monkeypatch.setattr(os, "writev", writev)
    assert numbers(container(*blocks)) == list(range(50))


def test_half_a_record_behind_the_last_one_is_an_error() -> None:
    with pytest.raises(UnreadableMetadataError, match="do not hold the 3 records"):
        numbers(container((3, records(1, 2, 3) + b"\x80")))


def squeezed(codec: str, data: bytes) -> bytes:
    """A block of that codec, by way of a writer that is not ours."""
    schema = {"type": "record", "name": "r", "fields": [{"name": "b", "type": "bytes", "field-id": 1}]}
    made = avro_bytes(schema, [{"b": data}], codec=codec)
    _, begin, end, _ = parse_avro("x", made).blocks[0]
    return made[begin:end]


@pytest.mark.parametrize("codec", CODECS)
def test_bomb_is_an_error_that_names_the_limit(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "1000000")
    schema = {"type": "record", "name": "r", "fields": [{"name": "b", "type": "bytes", "field-id": 1}]}
    body = squeezed(codec, bytes(2_000_000))
    with pytest.raises(UnreadableMetadataError, match=r"more than 1000000 bytes.*TAMIS_METADATA_BYTES"):
        decode_columns([parse_avro("a", container((1, body), codec=codec, schema=schema))], [(1,)], {})
    monkeypatch.setenv(LIMIT_VARIABLE, "3000000")
    (found,) = decode_columns([parse_avro("a", container((1, body), codec=codec, schema=schema))], [(1,)], {})
    assert found.columns[(1,)].to_pylist() == [bytes(2_000_000)]


def test_block_inflates_to_no_more_than_its_records_can_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "_BLOCK_BYTES", 1000)
    monkeypatch.setattr(framing, "_RECORD_BYTES", 10)
    with pytest.raises(UnreadableMetadataError, match="announces 2 records, and inflates to more than 1020 bytes"):
        numbers(container((2, deflated(records(1, 2) + bytes(5000))), codec="deflate"))


def test_more_records_than_bytes_are_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "_FREE_RECORDS", 100)
    data = container((9000, deflated(bytes(9000))), codec="deflate")
    with pytest.raises(UnreadableMetadataError, match="bytes announce 9000 records"):
        numbers(data)


@pytest.mark.parametrize("codec", CODECS[1:])
@pytest.mark.parametrize("break_it", [lambda body: body[:-5], lambda body: body[:4] + b"\xff" * (len(body) - 4)])
def test_damaged_block_is_an_error_at_its_place(codec: str, break_it: Callable[[bytes], bytes]) -> None:
    body = squeezed(codec, bytes(range(256)) * 8)
    data = container((1, break_it(body)), codec=codec, schema={"type": "record", "name": "r", "fields": FIELDS})
    with pytest.raises(UnreadableMetadataError, match=r"cannot read a at byte \d+"):
        decode_columns([parse_avro("a", data)], [(1,)], {})


FIELDS: list[dict[str, Any]] = [{"name": "b", "type": "bytes", "field-id": 1}]


def test_snappy_checksum_is_checked() -> None:
    body = squeezed("snappy", b"abc")
    flipped = body[:-1] + bytes([body[-1] ^ 1])
    data = container((1, flipped), codec="snappy", schema={"type": "record", "name": "r", "fields": FIELDS})
    with pytest.raises(UnreadableMetadataError, match="checksum"):
        decode_columns([parse_avro("a", data)], [(1,)], {})


def test_unknown_codec_is_an_error() -> None:
    with pytest.raises(UnreadableMetadataError, match="its codec, lzo, is not known"):
        numbers(container((1, records(1)), codec="lzo"))


def test_gzip_bomb_is_an_error_that_names_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "1000000")
    bomb = gzip.compress(bytes(900_000)) + gzip.compress(bytes(200_000))
    with pytest.raises(UnreadableMetadataError, match=r"m\.gz: .*more than 1000000 bytes.*TAMIS_METADATA_BYTES"):
        inflate_gzip("m.gz", bomb)
    monkeypatch.setenv(LIMIT_VARIABLE, "1100000")
    assert inflate_gzip("m.gz", bomb + bytes(3)) == bytes(1_100_000)


@pytest.mark.parametrize("data", [gzip.compress(b"abc")[:-3], b"\x1f\x8bxx", gzip.compress(b"abc") + b"tail"])
def test_damaged_gzip_is_a_clear_error(data: bytes) -> None:
    with pytest.raises(UnreadableMetadataError, match=r"cannot read m\.gz: it cannot be decompressed"):
        inflate_gzip("m.gz", data)


@pytest.mark.parametrize("text", ["0", "-1", "1G", "x"])
def test_limit_that_is_no_number_is_a_clear_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, text)
    with pytest.raises(SettingError, match=f"TAMIS_METADATA_BYTES is '{text}'"):
        inflate.inflation_limit()


def test_work_and_memory_are_bounded_by_what_is_announced() -> None:
    """13 KB that inflate to 10 MB behind the records cost 42 s and 2.5 GB once; in a process of its own."""
    program = """
import resource
from tamis.errors import UnreadableMetadataError
from tests.making.manifests import avro_bytes, entry, entry_schema
from tests.formats.avro.test_framing import container, deflated, numbers, records
from tests.formats.iceberg.test_manifests_odd import read
from tamis.formats.avro.container import parse_avro
sound = avro_bytes(entry_schema(), [entry()], codec="null")
read({"m": sound})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
_, begin, stop, _ = parse_avro("x", sound).blocks[0]
bomb = container((1, deflated(sound[begin:stop] + bytes(10 << 20))), codec="deflate", schema=entry_schema())
assert len(bomb) < 20_000
try:
    read({"m": bomb})
except UnreadableMetadataError as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=ROOT, timeout=120
    )
    message, grown = done.stdout.splitlines()
    assert message.startswith("cannot read m at byte ")
    assert int(grown) < 200


def test_lists_of_nothing_and_records_of_nothing_are_refused() -> None:
    """Any number of items without bytes fits into any block: a decoder would count them for years."""
    nothing = {"type": "record", "name": "e", "fields": []}
    for items in ("null", nothing, {"type": "fixed", "name": "f", "size": 0}):
        fields = [*SCHEMA["fields"], {"name": "a", "type": {"type": "array", "items": items}}]
        data = container((1, records(1, 1 << 50, 0)), schema={"type": "record", "name": "r", "fields": fields})
        with pytest.raises(UnreadableMetadataError, match="items that take no bytes"):
            numbers(data)
    with pytest.raises(UnreadableMetadataError, match="its records take no bytes"):
        numbers(container((1 << 40, b""), schema=nothing))


def test_schemas_that_grow_without_end_are_refused() -> None:
    """Types that name each other, and few types that name each other so often that they are billions."""
    loop = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "r"}]}
    with pytest.raises(UnreadableMetadataError, match="recursive"):
        numbers(container((1, records(1)), schema=loop))
    inner: Any = "long"
    for depth in range(8):
        pair = [
            {"name": "a", "type": inner},
            *({"name": f"b{i}", "type": f"t{depth - 1}"} for i in range(9) if depth),
        ]
        inner = {"type": "record", "name": f"t{depth}", "fields": pair}
    schema = {"type": "record", "name": "r", "fields": [{"name": "u", "type": ["null", inner]}]}
    with pytest.raises(UnreadableMetadataError, match="more than 100000 types"):
        numbers(container((1, records(0)), schema=schema))
    deep = '{"type":' * 5000 + '"long"' + "}" * 5000
    data = header({"avro.schema": deep, "avro.codec": "null"}, SYNC)
    with pytest.raises(UnreadableMetadataError, match="schema"):
        numbers(data)


@pytest.mark.parametrize("codec", CODECS)
def test_limit_of_a_file_is_that_of_all_its_pieces(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in pieces, each below the limit, would pass it a piece at a time."""
    schema = {"type": "record", "name": "r", "fields": [{"name": "b", "type": "bytes", "field-id": 1}]}
    body = squeezed(codec, bytes(range(250)) * 400)
    data = container(*((1, body) for _ in range(20)), codec=codec, schema=schema)
    monkeypatch.setenv(LIMIT_VARIABLE, "2100000")
    parts = list(pieces(parse_avro("a", data), 1))
    assert len(parts) == 20
    assert sum(found.count for part in parts for found in decode_columns([part], [(1,)], {})) == 20
    monkeypatch.setenv(LIMIT_VARIABLE, "1500000")
    parts = list(pieces(parse_avro("a", data), 1))
    with pytest.raises(UnreadableMetadataError, match="more than 1500000 bytes"):
        [decode_columns([part], [(1,)], {}) for part in parts]


def test_records_that_a_file_announces_are_those_of_all_its_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "_FREE_RECORDS", 100)
    data = container(*((900, deflated(bytes(900))) for _ in range(10)), codec="deflate")
    with pytest.raises(UnreadableMetadataError, match="bytes announce 9000 records"):
        decode_columns([next(pieces(parse_avro("0.avro", data), 1))], [(1,)], {})


@given(st.lists(st.integers(0, 5), max_size=12), st.integers(1, 60))
def test_pieces_hold_the_blocks_of_their_file_in_order(counts: list[int], size: int) -> None:
    file = parse_avro("a", container(*((count, records(*range(count))) for count in counts)))
    parts = list(pieces(file, size))
    assert tuple(block for part in parts for block in part.blocks) == file.blocks
    assert all(part.blocks or part is file for part in parts)
