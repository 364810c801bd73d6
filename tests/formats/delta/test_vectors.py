"""Deletion vectors: where they are, and which rows they remove."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

import tamis
from tamis.formats.delta.vectors import MAGIC, decode_vector, from_z85, inline_vector, vector_location
from tests.making.delta_logs import DeltaLog, add, vector
from tests.making.delta_logs import inline_vector as inline_in_log

_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
ROWS = [3, 4, 7, 11, 18, 29]


def _bitmap(rows: list[int]) -> bytes:
    """One array container, as the portable format has it."""
    body = struct.pack("<II", 12346, 1) + struct.pack("<HH", 0, len(rows) - 1) + struct.pack("<I", 16)
    body += struct.pack(f"<{len(rows)}H", *rows)
    return MAGIC + struct.pack("<QI", 1, 0) + body


def _z85(data: bytes) -> str:
    found = ""
    for start in range(0, len(data), 4):
        number, word = int.from_bytes(data[start : start + 4], "big"), ""
        for _ in range(5):
            number, rest = divmod(number, 85)
            word = _LETTERS[rest] + word
        found += word
    return found


def _framed(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def test_base_85_is_zeromqs() -> None:
    assert from_z85("HelloWorld") == bytes.fromhex("864fd26fb559f75b")
    for wrong in ("abcd", "ab~de", "#####"):
        with pytest.raises(ValueError, match="base 85"):
            from_z85(wrong)


def test_the_protocols_own_examples_of_where_a_vector_is() -> None:
    """As PROTOCOL.md has them: a relative path with and without a prefix, and an absolute one."""
    name = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert vector_location("s3://b/t", vector("ab^-aqEH.-t@S}K{vb[*k^")) == f"s3://b/t/ab/{name}"
    assert vector_location("/t/", vector("^-aqEH.-t@S}K{vb[*k^")) == f"/t/{name}"
    assert vector_location("/t", vector(f"s3://b/t/a%20b/{name}", 4, "p")) == f"s3://b/t/a b/{name}"


def test_an_inline_vector_in_another_serialisation_is_refused() -> None:
    """The protocol's own example: it is in a form that no engine writes any more."""
    found = vector("wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", None, "i", cardinality=6)
    assert vector_location("/t", found) is None
    with pytest.raises(ValueError, match="begins with 6439d3d0"):
        decode_vector(inline_vector({**found, "sizeInBytes": 40}))


def test_an_inline_vector_of_any_length_is_read() -> None:
    data = _bitmap(ROWS[:5])
    padded = data + b"\0" * (-len(data) % 4)
    found = {**vector(_z85(padded), None, "i"), "sizeInBytes": len(data)}
    assert decode_vector(inline_vector(found)).tolist() == ROWS[:5]


def test_a_stored_vector_is_checked() -> None:
    data = _bitmap(ROWS)
    blob = _framed(data)
    assert decode_vector(blob).tolist() == ROWS
    damaged = bytearray(blob)
    damaged[-9] ^= 1
    for wrong, why in (
        (bytes(damaged), "checksum"),
        (blob[:-1], "announces"),
        (b"", "too short"),
        (_framed(b"abcd" + data[4:]), "begins with"),
    ):
        with pytest.raises(ValueError, match=why):
            decode_vector(wrong)


@pytest.mark.parametrize("kind", ["x", "", "u"])
def test_a_vector_that_is_nowhere_is_an_error(kind: str) -> None:
    with pytest.raises(ValueError, match="storage type"):
        vector_location("/t", vector("short", 1, kind))


def test_an_inline_vector_of_another_size_than_it_says_is_an_error() -> None:
    with pytest.raises(ValueError, match="announced"):
        inline_vector({**vector("HelloWorld", None, "i"), "sizeInBytes": 40})


def test_an_inline_vector_without_its_text_is_an_error() -> None:
    with pytest.raises(ValueError, match="of 0 bytes is announced with 40"):
        inline_vector({**vector("", None, "i"), "pathOrInlineDv": None, "sizeInBytes": 40})


@pytest.mark.parametrize("cardinality", [5, 7, 0, None])
def test_a_vector_of_another_count_than_the_log_says_is_damaged(tmp_path: Path, cardinality: int | None) -> None:
    """Either is wrong: rows would come back, or be lost. A log need not say it."""
    log = DeltaLog(tmp_path)
    found = {**inline_in_log(ROWS), "cardinality": cardinality}
    log.begin(add("1", dv=found), add("2", dv=inline_in_log(ROWS)), reader=3, features=("deletionVectors",))
    table = tamis.open(tmp_path)
    vectors = table.source.scan(table.plan()).vectors
    assert vectors is not None
    assert vectors.positions(1, vectors.held[1]).tolist() == ROWS
    if cardinality is None:
        assert vectors.positions(0, vectors.held[0]).tolist() == ROWS
    else:
        with pytest.raises(ValueError, match=f"has 6 rows, and the metadata says {cardinality}"):
            vectors.positions(0, vectors.held[0])
