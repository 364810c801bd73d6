"""A plan's tables and counts: the columns that scripts rely on, and numbers that add up."""

import json

import pyarrow as pa
import pytest

from tamis.predicate.bind import bind
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.sieve.domain import ColumnStats
from tamis.sieve.file_buckets import FileBuckets
from tamis.sieve.files import FileBatch
from tamis.sieve.funnel import sift
from tamis.sieve.partitions import PartitionField, PartitionSpec
from tamis.sieve.plan import ScanPlan
from tamis.sieve.sieve import Sieve
from tamis.sieve.transforms import parse_transform

INT = pa.int32()
SCHEMA = Schema.of(ts=pa.timestamp("us"), region=pa.string(), amount=INT)
SPECS = (
    PartitionSpec(0),
    PartitionSpec(
        1,
        (
            PartitionField("ts_day", 1, parse_transform("day")),
            PartitionField("region", 2, parse_transform("identity")),
        ),
    ),
)


def evolved(sql: str = "ts >= timestamp '2024-01-15' AND region = 'eu' AND amount > 5") -> ScanPlan:
    """Two unpartitioned files, then four of day and region."""
    old = FileBatch(
        pa.array(["old-0", "old-1"]),
        pa.array([10, 20]),
        pa.array([1, 2]),
        0,
        stats={3: ColumnStats(pa.array([0, 6], INT), pa.array([5, 9], INT), pa.array([0, 0]))},
    )
    new = FileBatch(
        pa.array(["new-0", "new-1", "new-2", "new-3"]),
        pa.array([1000, 2000, 4000, None], pa.int64()),
        pa.array([1, 2, 3, None], pa.int64()),
        1,
        pa.StructArray.from_arrays(
            [pa.array([19_736, 19_737, 19_737, 19_737], INT), pa.array(["eu", "eu", "us", None])],
            ["ts_day", "region"],
        ),
        stats={3: ColumnStats(pa.array([6] * 4, INT), pa.array([9] * 4, INT), pa.array([0] * 4))},
        deletes=pa.array([0, 2, 1, 0], INT),
    )
    return sift(Sieve(bind(parse(sql), SCHEMA), SPECS), [old, new]).plan


def test_files_have_the_columns_that_scripts_rely_on() -> None:
    files = evolved().files
    assert files.schema.names[:8] == ["path", "size", "rows", "spec_id", "partition", "bucket", "deletes", "verdict"]
    assert [str(field.type) for field in files.schema][:8] == [
        "string", "int64", "int64", "int32", "string", "int32", "int32", "string",
    ]  # fmt: skip


def test_verdicts_have_the_columns_that_scripts_rely_on() -> None:
    verdicts = evolved().verdicts
    assert verdicts.schema.names[:6] == ["path", "spec_id", "partition", "verdict", "layer", "reason"]
    assert [str(field.type) for field in verdicts.schema][:6] == [
        "string",
        "int32",
        "string",
        "string",
        "string",
        "string",
    ]


def test_files_are_the_kept_ones_with_their_facts() -> None:
    assert evolved().files.to_pylist() == [
        {
            "path": "old-1", "size": 20, "rows": 2, "spec_id": 0, "partition": None, "bucket": None, "deletes": None,
            "verdict": "some",
        },
        {
            "path": "new-1", "size": 2000, "rows": 2, "spec_id": 1, "partition": "ts_day=2024-01-15/region=eu",
            "bucket": None, "deletes": 2, "verdict": "all",
        },
    ]  # fmt: skip


def test_verdicts_name_every_file_its_layer_and_a_reason() -> None:
    rows = evolved().verdicts.to_pylist()
    assert [(row["path"], row["verdict"], row["layer"]) for row in rows] == [
        ("old-0", "none", "stats"),
        ("old-1", "some", None),
        ("new-0", "none", "partition"),
        ("new-1", "all", None),
        ("new-2", "none", "partition"),
        ("new-3", "none", "partition"),
    ]
    assert all(row["reason"] for row in rows)


def test_counts_add_up_layer_by_layer() -> None:
    stats = evolved().stats
    assert (stats.files, stats.kept, stats.kept_whole) == (6, 2, 1)
    assert (stats.bytes, stats.kept_bytes) == (7030, 2020)
    assert [(layer.layer, layer.files_before, layer.files_after) for layer in stats.layers] == [
        ("manifest", 6, 6),
        ("partition", 6, 3),
        ("bucket", 3, 3),
        ("stats", 3, 2),
        ("runtime", 2, 2),
    ]
    assert [(layer.bytes_before, layer.bytes_after) for layer in stats.layers] == [
        (7030, 7030),
        (7030, 2030),
        (2030, 2030),
        (2030, 2020),
        (2020, 2020),
    ]
    assert all(layer.seconds >= 0 for layer in stats.layers)


def test_counts_add_up_spec_by_spec() -> None:
    old, new = evolved().stats.specs
    assert (old.spec_id, old.files, old.kept, old.kept_whole, old.bytes, old.kept_bytes) == (0, 2, 1, 0, 30, 20)
    assert (new.spec_id, new.files, new.kept, new.kept_whole, new.bytes, new.kept_bytes) == (1, 4, 1, 1, 7000, 2000)
    assert old.dropped == {"manifest": 0, "partition": 0, "bucket": 0, "stats": 1, "runtime": 0}
    assert new.dropped == {"manifest": 0, "partition": 3, "bucket": 0, "stats": 0, "runtime": 0}


def test_stats_are_ready_for_json() -> None:
    found = evolved().stats.to_dict()
    assert json.loads(json.dumps(found))["kept"] == 2
    assert found["filter_stats"] == {
        "unevaluable_specs": 0, "eval_errors": 0, "fail_open_partitions": 0, "fail_open_files": 0,
    }  # fmt: skip


def test_stats_as_a_dict_are_plain_lists() -> None:
    """What is written as JSON and read again is the same."""
    found = evolved().stats.to_dict()
    assert json.loads(json.dumps(found)) == found


def test_plan_is_a_frozen_value() -> None:
    found = evolved()
    with pytest.raises(AttributeError):
        found.stats.kept = 5  # type: ignore[misc] # that it is refused is the point
    with pytest.raises(AttributeError):
        found.stats = None  # type: ignore[misc,assignment] # as above


def test_unknown_form_of_explain_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'text', 'json'"):
        evolved().explain("yaml")  # type: ignore[arg-type] # that it is refused is the point


def test_buckets_are_shown_where_a_format_has_them() -> None:
    batch = FileBatch(
        pa.array(["a"]), pa.array([1]), pa.array([1]), buckets=(FileBuckets(pa.array([3], INT), pa.array([4], INT)),)
    )
    found = sift(Sieve(bind(parse("amount > 5"), SCHEMA)), [batch]).plan
    assert found.files["bucket"].to_pylist() == [3]
    assert found.files["spec_id"].to_pylist() == [None]


def test_plan_of_days_that_python_does_not_know_is_shown() -> None:
    """The year 12000 is a partition like any other."""
    batch = FileBatch(
        pa.array(["far"]),
        pa.array([1]),
        pa.array([1]),
        1,
        pa.StructArray.from_arrays(
            [pa.array([3_664_000], INT).view(pa.date32()), pa.array(["eu"])], ["ts_day", "region"]
        ),
    )
    found = sift(Sieve(bind(parse("region = 'eu'"), SCHEMA), SPECS), [batch]).plan
    (row,) = found.files.to_pylist()
    assert row["verdict"] == "all"
    assert "region=eu" in row["partition"]
