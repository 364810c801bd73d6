"""Avro container files, written: a header, then blocks of rows, each compressed by itself.

Blocks have about 64 KB before compression, as Java's writer makes them: large enough to compress well and to cost
little a row, small enough to be read in pieces.
"""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tamis.formats.avro.container import header, varint
from tamis.formats.avro.encoding import Runs, encode

__all__ = ["BLOCK_BYTES", "CODECS", "avro_file", "compressed", "framed_blocks"]

BLOCK_BYTES: Final = 64_000
ROWS_AT_ONCE: Final = 4096
"""Rows to encode together: the arrays of places that this takes are some ten megabytes."""
DEFLATE: Final = 6
"""zlib's own default. Level 9 takes four times as long on manifests, and saves one byte in a hundred."""
CODECS: Final[Mapping[str, str]] = {
    "gzip": "deflate",
    "zstd": "zstandard",
    "snappy": "snappy",
    "uncompressed": "null",
}
"""Avro's name of each codec that Iceberg's `write.avro.compression-codec` may name."""


def avro_file(
    rows: Sequence[pa.StructArray],
    schema: Any,  # noqa: ANN401 - JSON
    schema_text: str,
    metadata: Mapping[str, str],
    codec: str,
    level: int | None,
) -> bytes:
    """A whole Avro file of these rows. codec is Avro's name; level its strength, None for the codec's own default.

    Rows may come in several arrays, which need not agree in types that the schema does not tell apart, such as null.
    """
    sync = secrets.token_bytes(16)
    entries = {"avro.schema": schema_text, "avro.codec": codec, **metadata}
    parts = [header(entries, sync)]
    waiting: list[Runs] = []
    for some in rows:
        for start in range(0, len(some), ROWS_AT_ONCE):
            waiting.append(encode(some.slice(start, ROWS_AT_ONCE), schema))
            if sum(len(runs.data) for runs in waiting) >= BLOCK_BYTES:
                parts += framed_blocks(_joined(waiting), sync, codec, level)
                waiting = []
    if waiting:
        parts += framed_blocks(_joined(waiting), sync, codec, level)
    return b"".join(parts)


def _joined(runs: Sequence[Runs]) -> Runs:
    """All rows of these, one after the other."""
    if len(runs) == 1:
        return runs[0]
    return Runs(np.concatenate([one.sizes for one in runs]), np.concatenate([one.data for one in runs]))


def framed_blocks(runs: Runs, sync: bytes, codec: str, level: int | None = None) -> Iterator[bytes]:
    """Blocks of about BLOCK_BYTES, a row never split."""
    ends = np.cumsum(runs.sizes)
    at = byte = 0
    while at < len(ends):
        stop = max(at + 1, int(np.searchsorted(ends, byte + BLOCK_BYTES, "right")))
        end = int(ends[stop - 1])
        packed = compressed(runs.data[byte:end].tobytes(), codec, level)
        yield b"".join([varint(stop - at), varint(len(packed)), packed, sync])
        at, byte = stop, end


def compressed(data: bytes, codec: str, level: int | None) -> bytes:
    """A block's bytes by a codec of Avro's."""
    match codec:
        case "null":
            return data
        case "deflate":
            stream = zlib.compressobj(DEFLATE if level is None else level, wbits=-15)
            return stream.compress(data) + stream.flush()
        case "zstandard":
            return bytes(pa.Codec("zstd", compression_level=level or 3).compress(data, asbytes=True))
        case "snappy":
            # Avro puts a checksum of what was compressed behind it.
            return bytes(pa.compress(data, "snappy", asbytes=True)) + zlib.crc32(data).to_bytes(4, "big")
    raise ValueError(f"no way to compress Avro by {codec}")
