"""Deletion vectors of both kinds, against the library that everybody has bitmaps from, and against damage."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from tamis.formats.paimon.deletions import Placed, vectors_of
from tamis.formats.paimon.vectors import FRAME, decode_vector
from tamis.formats.roaring import positions32

POSITIONS = st.sets(st.integers(0, 200_000), max_size=300)
RUNS = st.tuples(st.integers(0, 200_000), st.integers(1, 70_000)).map(lambda run: range(run[0], run[0] + run[1]))
JAVA_32 = "0000001c5e43f2d03a30000001000000000003001000000001000500070032007774f609"
JAVA_64 = "00000028d1d339640100000000000000000000003a300000010000000000030010000000010005000700320056a87603"


def framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def vector_32(deleted: BitMap) -> bytes:
    return framed(bytes.fromhex("5e43f2d0") + deleted.serialize())


def vector_64(deleted: BitMap64) -> bytes:
    return framed(bytes.fromhex("d1d33964") + deleted.serialize())


def test_vectors_that_java_wrote_are_read() -> None:
    """The bytes of Paimon 1.4.2 for the positions 1, 5, 7 and 50, of either kind."""
    assert decode_vector(bytes.fromhex(JAVA_32)).tolist() == [1, 5, 7, 50]
    assert decode_vector(bytes.fromhex(JAVA_64)).tolist() == [1, 5, 7, 50]


@given(POSITIONS, st.lists(RUNS, max_size=2), st.booleans())
def test_every_position_of_either_kind_comes_out(single: set[int], runs: list[range], optimized: bool) -> None:
    deleted = BitMap(single)
    for run in runs:
        deleted |= BitMap(run)
    if optimized:
        deleted.run_optimize()
    assert decode_vector(vector_32(deleted)).tolist() == list(deleted)
    long = BitMap64([*deleted, *(one + (5 << 32) for one in single)])
    assert decode_vector(vector_64(long)).tolist() == list(long)


def test_a_vector_of_64_bits_may_end_with_its_file_or_be_followed_by_another() -> None:
    """Metadata counts its frame as well, so that the bytes that are cut out reach into what follows."""
    alone = vector_64(BitMap64([3, 4]))
    assert decode_vector(alone).tolist() == [3, 4]
    assert decode_vector(alone + bytes(FRAME)).tolist() == [3, 4]
    with pytest.raises(ValueError, match="announces"):
        decode_vector(alone + bytes(FRAME + 1))
    with pytest.raises(ValueError, match="announces"):
        decode_vector(vector_32(BitMap([3, 4])) + bytes(1))


@given(st.data(), st.booleans())
def test_damage_is_never_fewer_deleted_rows(data: st.DataObject, wide: bool) -> None:
    deleted = [*range(0, 90, 3), *range(100_000, 100_050)]
    blob = bytearray(vector_64(BitMap64(deleted)) if wide else vector_32(BitMap(deleted)))
    at = data.draw(st.integers(0, len(blob) - 1))
    blob[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ValueError, match="deletion vector"):
        decode_vector(bytes(blob))
    short = data.draw(st.integers(0, len(blob) - 1))
    with pytest.raises(ValueError, match="deletion vector"):
        decode_vector(bytes(blob[:short]))


@given(POSITIONS)
def test_a_32_bit_bitmap_ends_where_it_says(deleted: set[int]) -> None:
    raw = BitMap(deleted).serialize()
    assert positions32(raw).tolist() == sorted(deleted)
    with pytest.raises(ValueError, match="follow"):
        positions32(raw + b"\0")
    with pytest.raises(ValueError, match="ends too early"):
        positions32(raw[:-1])


def test_vector_of_another_count_than_its_index_says_is_an_error() -> None:
    """One file has the vectors of many: at a wrong offset there is a sound one too, of another data file's rows."""
    blob = vector_32(BitMap([1, 5]))
    for rows in (2, None, 3):
        placed = Placed("index-0", external=False, offset=1, length=9, rows=rows)
        vectors = vectors_of([(0, "index-0", placed)], lambda _: blob)
        assert vectors is not None
        if rows == 3:
            with pytest.raises(ValueError, match="a deletion vector has 2 rows, and the metadata says 3"):
                vectors.positions(0, blob)
        else:
            assert vectors.positions(0, blob).tolist() == [1, 5]
