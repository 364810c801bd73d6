"""The bucket of every row is the one that Paimon's Java core, and pypaimon, place it in: bytes, hash and bucket."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tamis.formats.paimon.bucket_keys import Dialect, binary_rows
from tamis.formats.paimon.hashing import DefaultHash, HiveHash, ModHash
from tests.engines.paimon_engine import PaimonEngine
from tests.making.paimon_keys import TYPES, for_java, for_python, key_types, keys_of, random_value

pytestmark = pytest.mark.engine

NUMBERS = itertools.count()
COMPOSITES: list[tuple[str, ...]] = [
    ("INT", "STRING"),
    ("STRING", "STRING", "BIGINT"),
    ("DECIMAL(38, 10)", "STRING", "TIMESTAMP(6)"),
    ("TIMESTAMP(9)", "DECIMAL(19, 4)", "BYTES", "BOOLEAN"),
    ("BYTES", "TIMESTAMP(6) WITH LOCAL TIME ZONE", "DECIMAL(5, 2)", "DATE", "TIME(3)"),
    ("TINYINT",) * 60,  # the null bits need a second word
]
ALL = [*[(type_,) for type_ in TYPES], *COMPOSITES]


def random_columns(types: Mapping[str, str], count: int, seed: object) -> dict[str, list[Any]]:
    by = random.Random(str(seed))  # noqa: S311 - test data
    return {name: [random_value(type_, by) for _ in range(count)] for name, type_ in types.items()}


def asked(
    paimon: PaimonEngine, types: Mapping[str, str], columns: Mapping[str, Sequence[Any]], total: int, function: str
) -> list[dict[str, Any]]:
    """What Java says of each row."""
    table = f"placed_{next(NUMBERS)}"
    options = {"bucket": str(total), "bucket-key": ",".join(types), "bucket-function.type": function}
    paimon.create(table, dict(types), options=options)
    count = len(next(iter(columns.values())))
    rows = [{name: for_java(columns[name][row], types[name]) for name in types} for row in range(count)]
    return list(paimon("bucket_of", table, rows=rows)["buckets"])


def named(types: Sequence[str]) -> dict[str, str]:
    return {f"k{place}": type_ for place, type_ in enumerate(types)}


@pytest.mark.parametrize(
    "types", [*[(type_,) for type_ in TYPES], *COMPOSITES], ids=lambda types: "+".join(types)[:60]
)
def test_default_function_has_java_s_bytes_hash_and_bucket(paimon: PaimonEngine, types: tuple[str, ...]) -> None:
    keys = named(types)
    columns = random_columns(keys, 150, types)
    answers = asked(paimon, keys, columns, 13, "default")
    arrays, arrow = keys_of(columns, keys), [TYPES[type_] for type_ in types]
    rows = binary_rows(arrays, arrow, key_types(keys), Dialect.JAVA)
    assert [rows.to_bytes(row).hex() for row in range(150)] == [answer["key_hex"] for answer in answers]
    by = DefaultHash(key_types(keys))
    assert by.hashes(arrays, arrow).tolist() == [answer["key_hash"] for answer in answers]
    assert np.asarray(by.buckets(arrays, arrow, 13)).tolist() == [answer["bucket"] for answer in answers]


@pytest.mark.parametrize("type_", ["INT", "BIGINT"])
def test_mod_function_has_java_s_bucket(paimon: PaimonEngine, type_: str) -> None:
    keys = named([type_])
    columns = random_columns(keys, 200, type_)
    answers = asked(paimon, keys, columns, 7, "mod")
    found = ModHash(key_types(keys)).buckets(keys_of(columns, keys), [TYPES[type_]], 7)
    assert np.asarray(found).tolist() == [answer["bucket"] for answer in answers]


HIVE = [type_ for type_ in TYPES if not type_.startswith("TIMESTAMP")]


@pytest.mark.parametrize("types", [*[(type_,) for type_ in HIVE], ("INT", "STRING", "DECIMAL(38, 10)", "BIGINT")])
def test_hive_function_has_java_s_bucket(paimon: PaimonEngine, types: tuple[str, ...]) -> None:
    keys = named(types)
    columns = random_columns(keys, 150, types)
    answers = asked(paimon, keys, columns, 11, "hive")
    found = HiveHash(key_types(keys)).buckets(keys_of(columns, keys), [TYPES[type_] for type_ in types], 11)
    assert np.asarray(found).tolist() == [answer["bucket"] for answer in answers]


@pytest.mark.parametrize(
    "types", [*[(type_,) for type_ in TYPES], *COMPOSITES], ids=lambda types: "+".join(types)[:60]
)
def test_pypaimon_s_bytes_are_its_dialect(types: tuple[str, ...]) -> None:
    """Its writer hashes what its serializer makes, from the fifth byte on."""
    row_of = pytest.importorskip("pypaimon.table.row.generic_row")
    fields = pytest.importorskip("pypaimon.schema.data_types")
    keys = named(types)
    columns = random_columns(keys, 60, types)
    made = [
        fields.DataField(place, name, fields.AtomicType(type_)) for place, (name, type_) in enumerate(keys.items())
    ]
    rows = binary_rows(keys_of(columns, keys), [TYPES[type_] for type_ in types], key_types(keys), Dialect.PYTHON)
    for row in range(60):
        values = [for_python(columns[name][row], type_) for name, type_ in keys.items()]
        expected = row_of.GenericRowSerializer.to_bytes(row_of.GenericRow(values, made))[4:]
        assert rows.to_bytes(row).hex() == expected.hex(), values
