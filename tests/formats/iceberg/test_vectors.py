"""Deletion vectors: what is damaged is an error, whatever is damaged."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from tamis.formats.iceberg.vectors import MAGIC, decode_vector

DELETED = [0, 3, 4, 5, 100_000, 1 << 33]


def vector(values: list[int], magic: bytes = MAGIC) -> bytes:
    """A blob as Iceberg writes it."""
    body = magic + BitMap64(values).serialize()
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


@given(st.sets(st.integers(0, 1 << 40)))
def test_positions_come_back_in_order(values: set[int]) -> None:
    assert decode_vector(vector(list(values))).tolist() == sorted(values)


@given(st.integers(0, 8 * len(vector(DELETED)) - 1))
def test_any_flipped_bit_is_noticed(bit: int) -> None:
    """Length, magic, bitmap or checksum: no damage passes for another set of rows."""
    blob = bytearray(vector(DELETED))
    blob[bit // 8] ^= 1 << bit % 8
    with pytest.raises(ValueError, match="deletion vector"):
        decode_vector(bytes(blob))


@pytest.mark.parametrize("length", [0, 3, 11, 12, 40])
def test_a_part_of_a_vector_is_an_error(length: int) -> None:
    with pytest.raises(ValueError, match=r"too short|announces"):
        decode_vector(vector(DELETED)[:length])


def test_another_formats_magic_is_an_error() -> None:
    """The checksum is right, and still it is no vector."""
    with pytest.raises(ValueError, match="begins with 00000000"):
        decode_vector(vector(DELETED, b"\0\0\0\0"))
