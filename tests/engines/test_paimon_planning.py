"""Over tables that Paimon's Java core and pypaimon wrote: what a plan keeps gives every matching row, and no other.

The rows are read from the data files themselves and merged as Paimon does it. Each table has a history that has made
some planner lose rows: rescaled partitions, keys of another type, NULL keys, writers that disagree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tests.engines.paimon_engine import PaimonEngine, Refusal
from tests.engines.paimon_truth import Truth, conditions, kept_names, python_write, truth_of

pytestmark = pytest.mark.engine

COUNT = 30
"""Conditions for each table."""


def opened(paimon: PaimonEngine, table: str) -> tamis.Table:
    return tamis.open(str(paimon.path(table)))


def check(paimon: PaimonEngine, table: str, columns: list[str], truth: Truth | None = None) -> float:
    """Ask many conditions; gives the share of files that was dropped of those that no matching row needs."""
    truth = truth or truth_of(paimon, table)
    found = opened(paimon, table)
    assert kept_names(found) == truth.files
    needless = dropped = 0
    for node in conditions(truth, columns, COUNT, len(table)):
        kept = kept_names(found, node)
        expected = truth.matching(node)
        assert truth.matching(node, kept) == expected, node
        needed = {text.split(" ")[0] for text in expected}
        needless += len(truth.files - needed)
        dropped += len(truth.files - kept)
    return dropped / max(needless, 1)


def append_with_nulls_and_nan(paimon: PaimonEngine) -> tuple[str, list[str]]:
    """Partitions of NULL, keys of NULL, NaN; rescaled, and appended to by both writers with a newer schema."""
    options = {"bucket": "4", "bucket-key": "id", "write-only": "true"}
    types = {"id": "BIGINT", "day": "STRING", "x": "DOUBLE", "v": "INT"}
    paimon.create("odd_append", types, partition_keys=["day"], options=options)

    def rows(start: int, **more: object) -> list[dict[str, object]]:
        return [
            {
                "id": None if i % 13 == 0 else i - 30,
                "day": None if i % 5 == 0 else f"d{i % 3}",
                "x": "NaN" if i % 7 == 0 else i / 4,
                "v": None if i % 9 == 0 else i,
                **more,
            }
            for i in range(start, start + 60)
        ]

    paimon("write", "odd_append", rows=rows(0))
    paimon("rescale", "odd_append", buckets=7, partition={"day": "d1"})
    paimon("write", "odd_append", rows=[row | {"day": "d1"} for row in rows(60)])
    changes = [
        {"op": "rename_column", "name": "v", "to": "w"},
        {"op": "change_type", "name": "w", "type": "BIGINT"},
        {"op": "add_column", "name": "more", "type": "STRING"},
    ]
    paimon("alter", "odd_append", changes=changes)
    later = [{**row, "day": "new", "w": row["v"], "more": f"m{i}"} for i, row in enumerate(rows(120))]
    paimon("write", "odd_append", rows=later)
    python_write(
        paimon,
        "odd_append",
        pa.table(
            {
                "id": pa.array([7, None, -29, 99], pa.int64()),
                "day": ["new", "newer", "newer", "new"],
                "x": [-0.0, math.nan, None, math.inf],
                "w": pa.array([1, 2, None, 4], pa.int64()),
                "more": ["a", None, "b", "c"],
            }
        ),
    )
    return "odd_append", ["id", "day", "x", "w", "more"]


def append_by_several_columns(paimon: PaimonEngine) -> tuple[str, list[str]]:
    """A bucket key of three columns, one of which pypaimon lays out otherwise where it is NULL."""
    options = {"bucket": "16", "bucket-key": "b,a,t", "write-only": "true"}
    types = {"a": "INT", "b": "STRING", "t": "TIMESTAMP(6)", "v": "INT"}
    paimon.create("wide_key", types, options=options)
    rows = [
        {
            "a": None if i % 11 == 0 else i % 4 - 2,
            "b": None if i % 6 == 0 else "b" * (i % 12),
            "t": None if i % 4 == 0 else f"2024-01-0{i % 3 + 1}T00:00:00.00000{i % 2}",
            "v": i,
        }
        for i in range(120)
    ]
    paimon("write", "wide_key", rows=rows)
    stamps = [None if row["t"] is None else datetime.fromisoformat(str(row["t"])) for row in rows]
    table = {
        name: pa.array([row[name] for row in rows], type_) for name, type_ in [("a", pa.int32()), ("v", pa.int32())]
    }
    python_write(
        paimon,
        "wide_key",
        pa.table({**table, "b": [row["b"] for row in rows], "t": pa.array(stamps, pa.timestamp("us"))}),
    )
    return "wide_key", ["a", "b", "t"]


def key_table(paimon: PaimonEngine) -> tuple[str, list[str]]:
    """Versions of rows in several files and levels, and rows removed; the key in another order than the columns."""
    options = {"bucket": "3", "write-only": "true"}
    types = {"v": "INT", "s": "STRING NOT NULL", "id": "INT NOT NULL", "day": "STRING NOT NULL"}
    paimon.create("keyed", types, partition_keys=["day"], primary_keys=["id", "day", "s"], options=options)

    def rows(ids: range, v: int) -> list[dict[str, object]]:
        return [{"v": v + i, "s": f"s{i % 5}", "id": i - 10, "day": f"d{i % 2}"} for i in ids]

    paimon("write", "keyed", rows=rows(range(40), 0))
    paimon("write", "keyed", rows=rows(range(10, 30), 1000))
    paimon("compact", "keyed", partition={"day": "d1"})
    paimon("delete", "keyed", rows=rows(range(5, 12), 0))
    paimon("write", "keyed", rows=rows(range(35, 60), 2000))
    python_write(
        paimon,
        "keyed",
        pa.table(
            {
                "v": pa.array([7, 8], pa.int32()),
                "s": ["s1", "s9"],
                "id": pa.array([-9, 77], pa.int32()),
                "day": ["d1", "d0"],
            }
        ),
    )
    return "keyed", ["id", "s", "v", "day"]


def dynamic_keys(paimon: PaimonEngine) -> tuple[str, list[str]]:
    """Buckets that no hash chose."""
    types = {"id": "INT NOT NULL", "v": "INT"}
    options = {"bucket": "-1", "write-only": "true", "dynamic-bucket.target-row-num": "7"}
    paimon.create("dynamic", types, primary_keys=["id"], options=options)
    for start in range(0, 40, 8):
        paimon("write", "dynamic", rows=[{"id": i, "v": i} for i in range(start, start + 8)], bucket=start // 16)
    return "dynamic", ["id", "v"]


def unaware(paimon: PaimonEngine) -> tuple[str, list[str]]:
    types = {"id": "INT", "s": "STRING", "x": "FLOAT"}
    paimon.create("unaware", types, options={"bucket": "-1", "write-only": "true"})
    for start in range(0, 50, 10):
        rows = [{"id": i, "s": f"s{i}" * 9, "x": "NaN" if i % 8 == 0 else i / 3} for i in range(start, start + 10)]
        paimon("write", "unaware", rows=rows)
    python_write(
        paimon,
        "unaware",
        pa.table({"id": pa.array([3], pa.int32()), "s": ["s"], "x": pa.array([-0.0], pa.float32())}),
    )
    return "unaware", ["id", "s", "x"]


def mod_by_two_writers(paimon: PaimonEngine) -> tuple[str, list[str]]:
    """Java places rows by mod; pypaimon ignores that, and places them by the default hash."""
    options = {"bucket": "8", "bucket-key": "id", "bucket-function.type": "mod", "write-only": "true"}
    paimon.create("modulo", {"id": "BIGINT", "v": "INT"}, options=options)
    paimon("write", "modulo", rows=[{"id": i - 20, "v": i} for i in range(60)])
    numbers = range(-30, 30)
    python_write(
        paimon, "modulo", pa.table({"id": pa.array(numbers, pa.int64()), "v": pa.array(numbers, pa.int32())})
    )
    return "modulo", ["id", "v"]


def widened_and_compacted(paimon: PaimonEngine) -> tuple[str, list[str]]:
    """Rows hashed as INT, moved by a compaction into files of BIGINT, beside rows that were hashed as such."""
    paimon.create(
        "widened", {"id": "INT", "v": "INT"}, options={"bucket": "6", "bucket-key": "id", "write-only": "true"}
    )
    paimon("write", "widened", rows=[{"id": i - 30, "v": i} for i in range(40)])
    paimon("write", "widened", rows=[{"id": i - 50, "v": i} for i in range(40)])
    paimon("alter", "widened", changes=[{"op": "change_type", "name": "id", "type": "BIGINT"}])
    paimon("compact", "widened")
    paimon("write", "widened", rows=[{"id": i - 2**40, "v": i} for i in range(10)] + [{"id": -5, "v": 0}])
    return "widened", ["id", "v"]


def wide_decimals(paimon: PaimonEngine) -> tuple[str, list[str]]:
    """Decimals on which pypaimon spends a byte more than Java, and NULL, for which it keeps no room."""
    options = {"bucket": "9", "bucket-key": "n", "write-only": "true"}
    paimon.create("decimals", {"n": "DECIMAL(20, 2)", "v": "INT"}, options=options)
    numbers = [
        None,
        *(Decimal(value) for value in ("-1.28", "-327.68", "1.28", "0.00", "-0.01", "123456789012345678.90")),
    ]
    paimon("write", "decimals", rows=[{"n": None if n is None else str(n), "v": 1} for n in numbers])
    table = {"n": pa.array(numbers, pa.decimal128(20, 2)), "v": pa.array([2] * len(numbers), pa.int32())}
    python_write(paimon, "decimals", pa.table(table))
    return "decimals", ["n", "v"]


def vectors(paimon: PaimonEngine) -> tuple[str, list[str]]:
    """A primary-key table whose compaction marks old versions deleted by vectors; level 0 is not read."""
    options = {"bucket": "2", "deletion-vectors.enabled": "true", "write-only": "true"}
    paimon.create("vectored", {"id": "INT NOT NULL", "v": "INT"}, primary_keys=["id"], options=options)
    paimon("write", "vectored", rows=[{"id": i, "v": i} for i in range(50)])
    paimon("compact", "vectored")
    paimon("write", "vectored", rows=[{"id": i, "v": 100 + i} for i in range(0, 50, 7)])
    paimon("compact", "vectored", full=False)
    return "vectored", ["id", "v"]


MADE: list[tuple[Callable[[PaimonEngine], tuple[str, list[str]]], float]] = [
    (append_with_nulls_and_nan, 0.6),
    (append_by_several_columns, 0.4),
    (key_table, 0.5),
    (dynamic_keys, 0.3),
    (unaware, 0.3),
    (mod_by_two_writers, 0.4),
    (widened_and_compacted, 0.4),
    (wide_decimals, 0.4),
    (vectors, 0.2),
]
"""Tables, and the least share of needless files that has to be dropped."""


@pytest.mark.parametrize(("make", "least"), MADE, ids=lambda made: getattr(made, "__name__", ""))
def test_kept_files_give_every_matching_row(
    paimon: PaimonEngine, make: Callable[[PaimonEngine], tuple[str, list[str]]], least: float
) -> None:
    table, columns = make(paimon)
    truth = replace(truth_of(paimon, table), vectors=table == "vectored")
    assert len(paimon("read", table)["rows"]) == len(truth.merged()), "the truth is Java's"
    share = check(paimon, table, columns, truth)
    assert share >= least


def placed_alone(paimon: PaimonEngine, table: str, where: str, *, at_most: int) -> frozenset[str]:
    found = kept_names(opened(paimon, table), where)
    assert len(found) <= at_most
    return found


def test_key_whose_type_was_changed_is_found(paimon: PaimonEngine) -> None:
    """`id = -5` after INT became BIGINT: pypaimon and Java return nothing."""
    paimon.create(
        "retyped", {"id": "INT", "v": "INT"}, options={"bucket": "8", "bucket-key": "id", "write-only": "true"}
    )
    paimon("write", "retyped", rows=[{"id": i, "v": i} for i in range(-20, 20)])
    paimon("alter", "retyped", changes=[{"op": "change_type", "name": "id", "type": "BIGINT"}])
    truth = truth_of(paimon, "retyped")
    for key in range(-20, 20):
        where = f"id = {key}"
        (needed,) = {held.file for held in truth.held if held.row[("id",)] == key}
        assert needed in placed_alone(paimon, "retyped", where, at_most=2)


def test_key_narrowed_or_of_floats_prunes_nothing_and_says_so(paimon: PaimonEngine) -> None:
    paimon.create("floats", {"id": "DOUBLE", "v": "INT"}, options={"bucket": "4", "bucket-key": "id"})
    paimon("write", "floats", rows=[{"id": value, "v": 1} for value in (-0.0, 0.0, "NaN", 2.5, None)])
    truth = truth_of(paimon, "floats")
    plan = opened(paimon, "floats").plan("id = 0.0D")
    assert "buckets of id ignored: id is DOUBLE" in " ".join(plan.stats.notes)
    zeros = {held.file for held in truth.held if held.row[("id",)] == 0}
    assert zeros <= kept_names(opened(paimon, "floats"), "id = 0.0D")
    assert {held.file for held in truth.held if held.row[("id",)] == 2.5} <= kept_names(
        opened(paimon, "floats"), "id = 2.5D"
    )


def test_nan_in_a_file_loses_no_other_value_of_it(paimon: PaimonEngine) -> None:
    """Java stores NaN as the greatest value, and pypaimon then skips the file for every value."""
    paimon.create("nans", {"f": "DOUBLE", "v": "INT"}, options={"bucket": "-1"})
    paimon("write", "nans", rows=[{"f": -2.5, "v": 1}, {"f": "NaN", "v": 2}, {"f": -0.0, "v": 3}])
    for where in ("f = -2.5D", "f = double('NaN')", "f > 0D", "f = 0.0D", "f < 0D", "f between -0.5D and 0.5D"):
        assert len(kept_names(opened(paimon, "nans"), where)) == 1, where
    assert not kept_names(opened(paimon, "nans"), "f < -3D")


def test_partition_of_several_totals_is_looked_for_by_each(paimon: PaimonEngine) -> None:
    """Java takes new buckets of another total into a partition: `id = 3` lies by the total that each file has."""
    options = {"bucket": "2", "bucket-key": "id", "write-only": "true"}
    paimon.create("mixed", {"id": "INT", "v": "INT"}, options=options)
    paimon("write", "mixed", rows=[{"id": i, "v": i} for i in range(30)])
    paimon("rescale", "mixed", buckets=8, rewrite=False)
    # Each commit of rows in one of the new buckets alone: a bucket that is there already is refused.
    placed = paimon("bucket_of", "mixed", rows=[{"id": i, "v": i} for i in range(30)])["buckets"]
    for bucket in range(2, 8):
        rows = [{"id": i, "v": 100 + i} for i in range(30) if placed[i]["bucket"] == bucket]
        if rows:
            paimon("write", "mixed", rows=rows)
    truth = truth_of(paimon, "mixed")
    totals = {entry["total_buckets"] for entry in paimon("files", "mixed")["files"]}
    assert totals == {2, 8}
    for key in range(30):
        needed = {held.file for held in truth.held if held.row[("id",)] == key}
        assert needed <= placed_alone(paimon, "mixed", f"id = {key}", at_most=2)
    check(paimon, "mixed", ["id", "v"], truth)


def test_postponed_rows_are_seen_by_no_reader_and_real_buckets_are_chosen(paimon: PaimonEngine) -> None:
    paimon.create("later", {"id": "INT NOT NULL", "v": "INT"}, primary_keys=["id"], options={"bucket": "-2"})
    paimon("write", "later", rows=[{"id": i, "v": i} for i in range(20)])
    assert paimon("read", "later")["rows"] == []
    plan = opened(paimon, "later").plan()
    assert plan.files.num_rows == 0
    assert "bucket-postpone" in " ".join(plan.stats.notes)


def test_plans_of_keys_are_java_s(paimon: PaimonEngine) -> None:
    """Point look-ups of a whole key keep the buckets that Java's planner keeps; a contradiction keeps none."""
    options = {"bucket": "16", "bucket-key": "a,b", "write-only": "true"}
    paimon.create("points", {"a": "INT", "b": "STRING", "v": "INT"}, options=options)
    paimon("write", "points", rows=[{"a": i % 20, "b": f"b{i % 7}", "v": i} for i in range(300)])

    def eq(field: str, value: object) -> dict[str, Any]:
        return {"op": "eq", "field": field, "value": value}

    for i in range(10):
        asked = {"op": "and", "children": [eq("a", i), eq("b", f"b{i % 7}")]}
        java = {name for split in paimon("plan", "points", predicate=asked)["splits"] for name in split["files"]}
        assert kept_names(opened(paimon, "points"), f"a = {i} and b = 'b{i % 7}'") == java
    some = {"op": "in", "field": "a", "values": [1, 2, 3]}
    asked = {"op": "and", "children": [some, {"op": "or", "children": [eq("b", "b1"), eq("b", "b2")]}]}
    java = {name for split in paimon("plan", "points", predicate=asked)["splits"] for name in split["files"]}
    assert kept_names(opened(paimon, "points"), "a in (1, 2, 3) and (b = 'b1' or b = 'b2')") <= java
    assert not kept_names(opened(paimon, "points"), "a = 1 and a = 2 and b = 'b1'")
    assert not kept_names(opened(paimon, "points"), "a = null and b = 'b1'")
    two = "(a = 1 and b = 'b1') or (a = 2 and b = 'b2')"
    assert len(kept_names(opened(paimon, "points"), two)) <= 2


def test_join_keys_open_only_the_buckets_that_hold_one(paimon: PaimonEngine) -> None:
    """No engine of Paimon's does that on Spark; for keys of one and of several columns."""
    options = {"bucket": "32", "bucket-key": "a,b", "write-only": "true"}
    paimon.create("joined", {"a": "INT", "b": "STRING", "v": "INT"}, options=options)
    rows = [{"a": i, "b": f"b{i}", "v": i} for i in range(300)]
    paimon("write", "joined", rows=rows)
    placed = [each["bucket"] for each in paimon("bucket_of", "joined", rows=rows)["buckets"]]
    truth = truth_of(paimon, "joined")
    keys = [3, 77, 200]
    joined = tamis.RuntimeFilter.of(["a", "b"], {"a": pa.array(keys, pa.int32()), "b": [f"b{key}" for key in keys]})
    found = kept_names(opened(paimon, "joined"), None, runtime_filters=[joined])
    buckets = {placed[key] for key in keys}
    assert found == {held.file for held in truth.held if held.bucket[1] in buckets}
    alone = tamis.RuntimeFilter.of("a", pa.array([77], pa.int32()))
    together = kept_names(opened(paimon, "joined"), "b = 'b77'", runtime_filters=[alone])
    assert together <= {held.file for held in truth.held if held.bucket[1] == placed[77]}
    assert {held.file for held in truth.held if held.row[("a",)] == 77} <= together


def test_null_of_a_wide_type_is_found_whoever_wrote_it(paimon: PaimonEngine) -> None:
    """Java keeps room for such a NULL in what it hashes and pypaimon does not: its rows are in two buckets."""
    paimon.create("nulls", {"id": "INT", "t": "TIMESTAMP(6)"}, options={"bucket": "64", "bucket-key": "id,t"})
    paimon("write", "nulls", rows=[{"id": i, "t": None} for i in range(12)])
    numbers = pa.array(range(12), pa.int32())
    python_write(paimon, "nulls", pa.table({"id": numbers, "t": pa.nulls(12, pa.timestamp("us"))}))
    truth = truth_of(paimon, "nulls")
    for key in range(12):
        needed = {held.file for held in truth.held if held.row[("id",)] == key}
        assert len(needed) == 2
        assert needed <= placed_alone(paimon, "nulls", f"id = {key} and t is null", at_most=4)


def test_bucket_count_changed_without_overwrite_is_refused_by_java(paimon: PaimonEngine) -> None:
    """What pypaimon lets through: the same key twice, in buckets of two totals. Java's guard is by bucket."""
    paimon.create(
        "guarded", {"id": "INT", "v": "INT"}, options={"bucket": "2", "bucket-key": "id", "write-only": "true"}
    )
    paimon("write", "guarded", rows=[{"id": i, "v": i} for i in range(30)])
    paimon("rescale", "guarded", buckets=4, rewrite=False)
    with pytest.raises(Refusal):
        paimon("write", "guarded", rows=[{"id": i, "v": i} for i in range(30)])
    numbers = pa.array(range(30), pa.int32())
    python_write(paimon, "guarded", pa.table({"id": numbers, "v": numbers}))
    check(paimon, "guarded", ["id", "v"])
