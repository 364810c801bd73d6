"""Paimon's bucket functions: what Java says of stored rows, and every row alike alone and among others."""

from __future__ import annotations

import base64
import json
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.formats.paimon.bucket_keys import Dialect, KeyType, Root, binary_rows, key_type
from tamis.formats.paimon.hashing import DefaultHash, HiveHash, ModHash, bucket_hash
from tamis.sieve.hashing import ANY_BUCKET, EitherHash, hash_keys
from tamis.sieve.order import encode
from tests.making.paimon_keys import TYPES, Value, key_types, keys_of, random_value

VECTORS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("bucket_vectors.json").read_text("utf-8"))
"""Rows and the hashes and buckets, of 13, that Paimon's Java core 1.4.2 gives them."""
FUNCTIONS = {"default": DefaultHash, "mod": ModHash, "hive": HiveHash}


def from_json(value: Value, type_: str) -> Value:
    """The value of a stored row."""
    arrow = TYPES[type_]
    if value is None:
        return None
    if pa.types.is_binary(arrow):
        return base64.b64decode(value)
    if pa.types.is_decimal(arrow):
        return Decimal(value)
    if pa.types.is_date(arrow):
        return date.fromisoformat(value)
    if pa.types.is_timestamp(arrow):
        seconds, fraction = value.removesuffix("Z").split(".")
        whole = int(datetime.fromisoformat(seconds).replace(tzinfo=UTC).timestamp())
        return whole * 10 ** len(fraction) + int(fraction)
    return value


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector['function']}-{'+'.join(vector['types'])}")
def test_stored_rows_have_java_s_buckets(vector: dict[str, Any]) -> None:
    types = {f"k{place}": type_ for place, type_ in enumerate(vector["types"])}
    columns = {
        name: [from_json(row[place], type_) for row in vector["rows"]]
        for place, (name, type_) in enumerate(types.items())
    }
    by = FUNCTIONS[vector["function"]](key_types(types))
    arrays, arrow = keys_of(columns, types), [TYPES[type_] for type_ in types.values()]
    found = by.buckets(arrays, arrow, 13)
    assert np.asarray(found).tolist() == vector["buckets"]
    if isinstance(by, DefaultHash):
        assert by.hashes(arrays, arrow).tolist() == vector["hashes"]


@given(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=4), st.integers(), st.integers(0, 40))
def test_each_row_is_hashed_as_if_it_were_alone(names: list[str], seed: int, count: int) -> None:
    """Rows of different lengths are hashed together: none may see another's bytes, and the hash is murmur3's."""
    by = random.Random(seed)  # noqa: S311 - test data
    types = {f"k{place}": type_ for place, type_ in enumerate(names)}
    columns = {name: [random_value(type_, by) for _ in range(count)] for name, type_ in types.items()}
    arrow = [TYPES[type_] for type_ in names]
    for dialect in Dialect:
        hashed = DefaultHash(key_types(types), dialect).hashes(keys_of(columns, types), arrow).tolist()
        for row in range(count):
            alone = keys_of({name: values[row : row + 1] for name, values in columns.items()}, types)
            written = binary_rows(alone, arrow, key_types(types), dialect).to_bytes(0)
            assert len(written) % 8 == 0
            assert hashed[row] == mmh3.hash(written, 42)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 15, 16, 511, 512, 513, 100_000])
def test_text_of_any_length_is_hashed_whole(size: int) -> None:
    """Long text is copied in another way than short text."""
    texts = ["x" * size, "é" * (size // 2), None, "y" * size + "z"]
    keys = [encode(pa.array(texts), pa.string())]
    rows = binary_rows(keys, [pa.string()], (KeyType(Root.TEXT),), Dialect.JAVA)
    for row, text in enumerate(texts):
        raw = (text or "").encode()
        written = rows.to_bytes(row)
        if text is None:
            expected = bytes(8)
        elif len(raw) <= 7:
            expected = raw.ljust(7, b"\0") + bytes([0x80 | len(raw)])
        else:
            expected = len(raw).to_bytes(4, "little") + (16).to_bytes(4, "little")
            expected += raw + bytes(-len(raw) % 8)
        assert written[8:] == expected


def test_a_null_of_a_wide_type_is_placed_differently_by_java_and_pypaimon() -> None:
    """So nothing says in which of two buckets it lies: both are read, and no other."""
    types = (KeyType(Root.TIMESTAMP, 6),)
    by = bucket_hash("default", [types])
    assert isinstance(by, EitherHash)
    key = [encode(pa.array([None, 0], pa.timestamp("us")), pa.timestamp("us"))]
    found = [np.asarray(each.buckets(key, [pa.timestamp("us")], 997)).tolist() for each in by.hashes]
    assert found[0][0] != found[1][0]
    assert found[0][1] == found[1][1]
    assert np.asarray(hash_keys(by, key, [pa.timestamp("us")], 997)).tolist() == [ANY_BUCKET, found[0][1]]


def test_under_another_function_rows_may_lie_where_the_default_places_them() -> None:
    """Since pypaimon ignores `bucket-function.type`: a reader that believed it alone would lose its rows."""
    by = bucket_hash("mod", [(KeyType(Root.INT),)])
    assert by == EitherHash((ModHash((KeyType(Root.INT),)), DefaultHash((KeyType(Root.INT),))))
    assert bucket_hash("default", [(KeyType(Root.INT),)]) == DefaultHash((KeyType(Root.INT),))
    assert "not known" in str(bucket_hash("modulo", [(KeyType(Root.INT),)]))


@pytest.mark.parametrize(
    ("by", "type_"),
    [
        (DefaultHash((KeyType(Root.INT),)), pa.float64()),
        (DefaultHash((KeyType(Root.INT),)), pa.string()),
        (DefaultHash((KeyType(Root.TEXT),)), pa.int32()),
        (DefaultHash((KeyType(Root.DECIMAL, 20),)), pa.decimal128(10, 2)),
        (DefaultHash((KeyType(Root.INT), KeyType(Root.INT))), pa.int32()),
        (ModHash((KeyType(Root.TINYINT),)), pa.int8()),
        (HiveHash((KeyType(Root.TIMESTAMP, 3),)), pa.timestamp("ms")),
    ],
)
def test_keys_that_were_never_hashed_so_are_refused(by: DefaultHash | ModHash | HiveHash, type_: pa.DataType) -> None:
    assert isinstance(hash_keys(by, [encode(pa.nulls(1), type_)], [type_], 4), str)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INT NOT NULL", KeyType(Root.INT)),
        ("INTEGER", KeyType(Root.INT)),
        ("DECIMAL", KeyType(Root.DECIMAL, 10)),
        ("DECIMAL(38, 18) NOT NULL", KeyType(Root.DECIMAL, 38)),
        ("TIMESTAMP", KeyType(Root.TIMESTAMP, 6)),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL", KeyType(Root.TIMESTAMP, 3)),
        ("TIMESTAMP_LTZ(9)", KeyType(Root.TIMESTAMP, 9)),
        ("VARCHAR(7)", KeyType(Root.TEXT)),
        ("BYTES", KeyType(Root.BYTES)),
        ("TIME(3)", KeyType(Root.TIME)),
        ("FLOAT", None),
        ("DOUBLE NOT NULL", None),
        ({"type": "ARRAY", "element": "INT"}, None),
        ("VARIANT", None),
    ],
)
def test_type_of_a_key_is_read_from_the_schema(text: object, expected: KeyType | None) -> None:
    assert key_type(text) == expected
