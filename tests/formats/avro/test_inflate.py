"""Deflated blocks: the bytes that zlib gives, an error exactly where zlib has one, and nothing beyond the limit."""

from __future__ import annotations

import random
import sys
import tracemalloc
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tamis.formats.storage import inflate as inflating
from tamis.formats.storage.inflate import ZLIB, TooLarge, inflate

CASES = 40
ROOMY = 1 << 40
LAX = {
    "fixed code 286": "7b380ee80d00",
    "distances that leave codes unused": "05c10101000008c3a071fb77163763557b",
    "lengths that leave codes unused": "e5c1010100000082a0f30d7748c0000000b811",
    "a distance where no code has one": "0dc0810d00000c8320b5ffffbc0592f2a56e23581c",
    "code lengths that leave codes unused": "15c6c11900000c823094fd77ae3d1ec110d7c09f5629029503",
}
"""Blocks that zlib rejects, and that isal 1.8 or libdeflate reads to their end."""


def by_zlib(data: bytes) -> bytes | None:
    """What zlib makes of a block, bit by bit and without limits; None if it is damaged."""
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        found = stream.decompress(data)
    except zlib.error:
        return None
    return found if stream.eof else None


def test_zlib_ng_inflates_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a requirement; executors of a Spark cluster may do without."""
    pytest.importorskip("zlib_ng")
    assert inflating.quick_inflater() is not ZLIB
    monkeypatch.setitem(sys.modules, "zlib_ng.zlib_ng", None)
    assert inflating.quick_inflater() is ZLIB


@pytest.fixture(autouse=True, params=["quick", "zlib"], scope="module")
def inflater(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test here holds of both."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "zlib":
            patch.setattr(inflating, "_QUICK", ZLIB)
        yield


def by_us(data: bytes, limit: int) -> bytes | None:
    try:
        return bytes(inflate("deflate", memoryview(data), limit))
    except TooLarge:
        raise
    except ValueError:
        return None


def content(chance: random.Random) -> bytes:
    """Bytes of all kinds: few values and many, long runs, repeated pieces, more than a block's usual size."""
    size = chance.choice([0, 1, 10, 100, 1000, 10_000, 100_000])
    match chance.randrange(4):
        case 0:
            return bytes(chance.choices(range(chance.choice([1, 3, 20, 256])), k=min(size, 2000)))
        case 1:
            return chance.randbytes(1) * size
        case 2:
            return chance.randbytes(chance.randrange(1, 300)) * (size // 200)
    return b"".join(b"s3://bucket/data/%d.parquet" % chance.randrange(1 << 30) for _ in range(size // 30))


def deflated(chance: random.Random, data: bytes) -> bytes:
    kinds = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_FIXED)
    stream = zlib.compressobj(
        chance.randrange(10), zlib.DEFLATED, -zlib.MAX_WBITS, chance.randrange(1, 10), chance.choice(kinds)
    )
    return stream.compress(data) + stream.flush()


def damaged(chance: random.Random, block: bytes) -> bytes:
    """The block with bits flipped (most where its codes are told), cut, lengthened, or with bytes more or less."""
    found = bytearray(block)
    at = chance.randrange(min(len(found), chance.choice([2, 8, 40, 1 << 20])))
    match chance.randrange(7):
        case 0 | 1 | 2:
            for _ in range(chance.choice([1, 1, 2, 3])):
                found[chance.randrange(at + 1)] ^= 1 << chance.randrange(8)
        case 3:
            del found[chance.randrange(len(found)) :]
        case 4:
            found += chance.randbytes(chance.randrange(1, 20))
        case 5:
            del found[at : at + chance.randrange(1, 5)]
        case 6:
            found[at:at] = chance.randbytes(chance.randrange(1, 5))
    return bytes(found)


@given(st.integers(0, 1 << 60))
def test_blocks_sound_or_damaged_are_what_zlib_says(seed: int) -> None:
    """A block has no checksum. An inflater that reads damage to its end gives entries that nobody wrote."""
    chance = random.Random(seed)  # noqa: S311 - chance of no consequence
    for _ in range(CASES):
        sound = deflated(chance, content(chance))
        for block in (sound, damaged(chance, sound)):
            assert by_us(block, ROOMY) == by_zlib(block), block.hex()


@given(st.integers(0, 1 << 60), st.integers(-2, 2))
@example(0, 0)
def test_limit_is_kept_to_the_byte_whichever_way_a_block_is_inflated(seed: int, beside: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - chance of no consequence
    for _ in range(10):
        data = content(chance)
        block = deflated(chance, data)
        limit = max(len(data) + beside, 0)
        if len(data) > limit:
            with pytest.raises(TooLarge):
                by_us(block, limit)
        else:
            assert by_us(block, limit) == data
        # A limit by which no block of this length can pass, and one byte less.
        for roomy in (1032 * len(block), 1032 * len(block) - 1):
            if len(data) <= roomy:
                assert by_us(block, roomy) == data


@pytest.mark.parametrize("block", LAX.values(), ids=LAX.keys())
def test_damage_that_others_overlook_is_an_error(block: str) -> None:
    with pytest.raises(ValueError, match="cannot be decompressed"):
        inflate("deflate", memoryview(bytes.fromhex(block)), ROOMY)


@pytest.mark.parametrize("length", [0, 1, 1000, 1 << 20, 16 << 20])
def test_no_block_inflates_to_more_than_its_length_allows(length: int) -> None:
    """The ratio by which a short block is inflated without counting: the best case of all comes close to it."""
    stream = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block = stream.compress(bytes(length)) + stream.flush()
    assert length <= 1032 * len(block)
    if length >= 16 << 20:
        assert length > 1020 * len(block)


@pytest.mark.parametrize("inflated", [1 << 20, 64 << 20])
def test_no_more_than_the_limit_is_ever_held(inflated: int) -> None:
    """What passes the limit must not be inflated first and measured then."""
    stream = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    bomb = stream.compress(bytes(inflated)) + stream.flush()
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            by_us(bomb, 300_000)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1_000_000
