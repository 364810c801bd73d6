"""Summaries and metrics that contradict themselves: they prune nothing, and the plan says so."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.errors import UnevaluableError
from tamis.formats.iceberg.bounds import decode_values
from tamis.formats.iceberg.manifest_list import DATA, Manifest
from tamis.formats.iceberg.pruning import may_match
from tamis.predicate.bind import bind
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.sieve.sieve import Sieve
from tests.formats.iceberg.test_damage import LIST_SCHEMA, listed
from tests.formats.iceberg.test_manifests_odd import with_spec
from tests.making.manifests import avro_bytes, entry, entry_schema, parsed, table_document

Summary = tuple[bool | None, bool | None, bytes | None, bytes | None]
SCHEMA = Schema.of(c1=pa.int64(), c2=pa.float64())
METADATA = parsed(with_spec((1, "identity", "p"), (2, "identity", "q"), types=("long", "double")))
BUCKETED = parsed(with_spec((1, "bucket[8]", "p"), types=("long", "double")))
LONG, DOUBLE = (struct.Struct(code) for code in ("<q", "<d"))
WIDE: Summary = (True, None, LONG.pack(-(2**62)), LONG.pack(2**62))
WIDE_DOUBLE: Summary = (True, True, DOUBLE.pack(-1e9), DOUBLE.pack(1e9))
CONDITIONS = ["= 5", "> 1000", "< -1000", "is null", "is not null", "<> 5"]


def kept(where: str, p: Summary = WIDE, q: Summary = WIDE_DOUBLE) -> bool:
    sieve = Sieve(bind(parse(where), SCHEMA), tuple(one.spec for one in METADATA.specs))
    (found,) = may_match(sieve, METADATA, [Manifest("m", 1, 0, DATA, summaries=(p, q))])
    return found


@pytest.mark.parametrize("condition", [*CONDITIONS, "= double('NaN')"])
@pytest.mark.parametrize(("lower", "upper"), [(1.0, math.nan), (math.nan, 1.0), (math.nan, math.nan)])
def test_summary_that_denies_nan_and_has_it_as_a_bound_says_nothing(
    condition: str, lower: float, upper: float
) -> None:
    """DuckDB writes such."""
    assert kept(f"c2 {condition}", q=(False, False, DOUBLE.pack(lower), DOUBLE.pack(upper)))


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("nulls", [False, None])
def test_summary_without_bounds_and_without_nulls_says_nothing(condition: str, nulls: bool | None) -> None:
    """It looked like a manifest without any value, which matches nothing."""
    assert kept(f"c1 {condition}", (nulls, None, None, None))
    assert kept(f"c1 {condition}", (nulls, True, None, None)), "a long is never NaN"
    assert kept(f"c2 {condition}", q=(nulls, False, None, None))
    assert kept(f"c2 {condition}", q=(nulls, None, None, None))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_summary_with_one_bound_or_an_unreadable_one_says_nothing(condition: str) -> None:
    for bounds in ((LONG.pack(5), None), (None, LONG.pack(5)), (b"\1", LONG.pack(5)), (LONG.pack(5), b"\1")):
        assert kept(f"c1 {condition}", (False, None, *bounds))


def test_bucket_summary_that_contradicts_itself_says_nothing() -> None:
    sieve = Sieve(bind(parse("c1 = 5"), SCHEMA), tuple(one.spec for one in BUCKETED.specs))
    bucket = struct.Struct("<i")
    summaries: list[Summary] = [
        *((False, None, bucket.pack(number), bucket.pack(number)) for number in range(8)),
        *((False, None, bucket.pack(number), None) for number in range(8)),
        (False, None, None, None),
    ]
    found = may_match(sieve, BUCKETED, [Manifest("m", 1, 0, DATA, summaries=(one,)) for one in summaries])
    assert sum(found[:8]) == 1, "one bucket holds the value"
    assert all(found[8:])


def test_summaries_that_are_right_still_prune() -> None:
    assert not kept("c1 is not null", (True, None, None, None))
    assert not kept("c2 < 5", q=(False, True, None, None)), "nothing but NaN"
    assert kept("c2 > 5", q=(False, True, None, None))
    assert not kept("c2 is null", q=(False, True, None, None))
    assert not kept("c1 = 5", (False, None, LONG.pack(6), LONG.pack(9)))
    assert not kept("c2 = double('NaN')", q=(False, False, DOUBLE.pack(1.0), DOUBLE.pack(2.0)))


def test_boolean_bound_is_a_zero_or_a_one() -> None:
    raw = pa.array([b"\0", b"\1", b"\2", b"\xff", b""])
    assert decode_values(raw, pa.array(range(5)).to_numpy(), pa.bool_()).to_pylist() == [
        False,
        True,
        None,
        None,
        None,
    ]


def table(folder: Path, **metrics: Any) -> tamis.Table:  # noqa: ANN401 - of an entry
    """A table of one file of ten rows, of a long 1 and a string 2, with these metrics."""
    data = avro_bytes(entry_schema(), [entry("a.parquet", **({"rows": 10} | metrics)), entry("b.parquet", rows=10)])
    (folder / "m").write_bytes(data)
    row = listed(f"{folder}/m", len(data), added_files_count=2)
    (folder / "list").write_bytes(avro_bytes(LIST_SCHEMA, [row]))
    snapshot = {"snapshot-id": 2, "timestamp-ms": 1, "sequence-number": 1, "manifest-list": f"{folder}/list"}
    document = table_document(**{"snapshots": [snapshot], "current-snapshot-id": 2, "last-sequence-number": 1})
    (folder / "v1.metadata.json").write_text(json.dumps(document), encoding="utf-8")
    return tamis.open(str(folder / "v1.metadata.json"), cache=False)


@pytest.mark.parametrize(
    "metrics",
    [
        {"null_value_counts": {1: 11}},
        {"null_value_counts": {1: 11}, "lower_bounds": {1: LONG.pack(1)}, "upper_bounds": {1: LONG.pack(2)}},
        {"null_value_counts": {1: 10}, "lower_bounds": {1: LONG.pack(1)}, "upper_bounds": {1: LONG.pack(2)}},
        {"rows": 0, "null_value_counts": {1: 3}},
        {"rows": 0, "lower_bounds": {1: LONG.pack(1)}},
    ],
)
def test_metrics_that_contradict_themselves_keep_the_file_and_are_noted(
    tmp_path: Path, metrics: dict[str, Any]
) -> None:
    found = table(tmp_path, **metrics)
    plan = found.plan("id = 7")
    assert plan.files["path"].to_pylist() == ["a.parquet", "b.parquet"]
    assert any("statistics of id contradict themselves" in note for note in plan.stats.notes)
    with pytest.raises(UnevaluableError, match="contradict themselves"):
        found.plan("id = 7", strict=True)


def test_metrics_that_are_right_still_prune(tmp_path: Path) -> None:
    plan = table(tmp_path, null_value_counts={1: 10}).plan("id = 7")
    assert plan.files["path"].to_pylist() == ["b.parquet"]
    plan = table(tmp_path, rows=0, null_value_counts={1: 0}).plan("id = 7")
    assert plan.files["path"].to_pylist() == ["b.parquet"]
    assert not plan.stats.notes
