"""Blocks of zstd: what the library gives, whichever way a frame says its length, and nothing beyond the limit."""

from __future__ import annotations

import random
from typing import NoReturn

import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tamis.formats.storage.inflate import TooLarge, inflate

ROOMY = 1 << 40
SIZES = [1, 255, 256, 257, 65_535, 65_791, 65_792, 300_000]


def frame(data: bytes, *, sized: bool = True, checksum: bool = False) -> bytes:
    """One frame; pypaimon's say how long their content is, Java's do not."""
    made = zstandard.ZstdCompressor(write_content_size=sized, write_checksum=checksum)
    if sized:
        return made.compress(data)
    stream = made.compressobj()
    return stream.compress(data) + stream.flush()


def by_us(data: bytes, limit: int = ROOMY) -> bytes:
    return bytes(inflate("zstandard", memoryview(data), limit))


def by_stream(data: bytes) -> bytes | None:
    """What Arrow's stream makes of all frames; None if they are damaged."""
    try:
        return bytes(pa.CompressedInputStream(pa.BufferReader(data), "zstd").read())
    except OSError:
        return None


def content(seed: int, size: int) -> bytes:
    chance = random.Random(seed)  # noqa: S311 - chance of no consequence
    return b"".join(b"data-%d.parquet" % chance.randrange(1 << 30) for _ in range(size // 12 + 1))[:size]


def unwanted(*_: object) -> NoReturn:
    raise AssertionError("another way should have been taken")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("checksum", [False, True])
def test_frame_that_says_its_length_is_inflated_in_one_call(
    monkeypatch: pytest.MonkeyPatch, size: int, checksum: bool
) -> None:
    """A stream costs more to set up than a small block takes to inflate, and a table has thousands of them."""
    data = content(size, size)
    monkeypatch.setattr(pa, "CompressedInputStream", unwanted)
    assert by_us(frame(data, checksum=checksum)) == data
    assert by_us(frame(data, checksum=checksum), size) == data


@pytest.mark.parametrize("size", [0, *SIZES])
def test_frames_of_any_kind_are_all_inflated(size: int) -> None:
    """Behind the first frame there may be others, and some that are to be skipped; they say no length, or one."""
    data = content(size, size)
    skipped = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
    for first in (frame(data), frame(data, sized=False)):
        assert by_us(first) == data
        assert by_us(first + frame(b"more")) == data + b"more"
        assert by_us(first + frame(b"more", sized=False)) == data + b"more"
        assert by_us(skipped + first) == data
        assert by_us(first + skipped) == data


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sized", [False, True])
def test_limit_is_kept_to_the_byte(size: int, sized: bool) -> None:
    data = content(size, size)
    block = frame(data, sized=sized)
    assert by_us(block, size) == data
    with pytest.raises(TooLarge):
        by_us(block, size - 1)
    with pytest.raises(TooLarge):
        by_us(block + frame(b"more"), size)


def test_no_memory_is_made_for_a_length_that_is_only_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame of some bytes may say that it has gigabytes."""
    block = bytearray(frame(content(0, 70_000)))
    assert block[4] >> 6 == 2, "the length has four bytes"
    block[5:9] = (1 << 31).to_bytes(4, "little")
    monkeypatch.setattr(pa, "Codec", unwanted)
    with pytest.raises(ValueError, match="cannot be decompressed"):
        by_us(bytes(block))


@given(st.integers(0, 1 << 60))
def test_damaged_blocks_are_what_the_stream_says(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - chance of no consequence
    for _ in range(20):
        data = content(seed, chance.choice(SIZES[:4]))
        block = bytearray(frame(data, sized=chance.random() < 0.8, checksum=chance.random() < 0.5))
        for _ in range(chance.choice([0, 1, 3])):
            place = chance.randrange(chance.choice([8, len(block)]))
            block[place] ^= 1 << chance.randrange(8)
        cut = bytes(block[: chance.choice([len(block), chance.randrange(len(block) + 1)])])
        wanted = by_stream(cut)
        if wanted is None:
            with pytest.raises(ValueError, match="cannot be decompressed"):
                by_us(cut)
        else:
            assert by_us(cut) == wanted, cut.hex()
