"""Manifests that are left unread, and what may not be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis.errors import UnreadableMetadataError
from tests.making.paimon_manifests import MadeTable, entry, row, stats

COLUMNS = [
    {"id": 0, "name": "dt", "type": "STRING"},
    {"id": 1, "name": "n", "type": "INT"},
    {"id": 2, "name": "f", "type": "DOUBLE"},
]


def table_of(folder: Path, *partition: str) -> MadeTable:
    return MadeTable(folder / "t", COLUMNS, partition=partition)


def dt(value: str | None) -> bytes:
    return row(dt=("STRING", value))


def ranged(low: str | None, high: str | None, nulls: int = 0, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - fields
    return {"_PARTITION_STATS": stats(dt(low), dt(high), [nulls]), **more}


def plan(table: MadeTable, where: str) -> tamis.TablePlan:
    return tamis.open(table.folder).plan(where)


def names(plan: tamis.TablePlan) -> list[str]:
    return [path.rpartition("/")[2] for path in plan.files["path"].to_pylist()]


def test_manifest_of_other_partitions_is_not_read(tmp_path: Path) -> None:
    table = table_of(tmp_path, "dt")
    table.commit(entry("a", partition=dt("a")), entry("b", partition=dt("b")), meta=ranged("a", "b"))
    gone = table.commit(entry("x", partition=dt("x")), meta=ranged("x", "x"))
    gone.unlink()
    found = plan(table, "dt = 'b'")
    assert names(found) == ["b"]
    assert (found.stats.files, found.stats.layers[0].files_after) == (3, 2)


def test_manifest_with_a_null_partition_is_read_for_null(tmp_path: Path) -> None:
    table = table_of(tmp_path, "dt")
    table.commit(entry("a", partition=dt("a")), meta=ranged("a", "a"))
    table.commit(entry("n", partition=dt(None)), entry("b", partition=dt("b")), meta=ranged("b", "b", 1))
    table.commit(entry("m", partition=dt(None)), meta=ranged(None, None, 1))
    assert names(plan(table, "dt is null")) == ["n", "m"]
    assert plan(table, "dt is null").stats.layers[0].files_after == 3
    assert plan(table, "dt = 'b'").stats.layers[0].files_after == 2


def test_what_a_list_does_not_say_keeps_a_manifest(tmp_path: Path) -> None:
    """No statistics, no null count, one bound of two, or another number of fields."""
    table = table_of(tmp_path, "dt")
    two = row(dt=("STRING", "x"), n=("INT", 1))
    for number, told in enumerate(
        [stats(), stats(dt("x"), dt("x"), None), stats(dt("x"), dt(None), [0]), stats(two, two, [0, 0])]
    ):
        table.commit(entry(f"a{number}", partition=dt("a")), meta={"_PARTITION_STATS": told})
    assert names(plan(table, "dt = 'a'")) == ["a0", "a1", "a2", "a3"]


@pytest.mark.parametrize("added", [0, 1, (1 << 63) - 1])
def test_number_of_files_that_cannot_be_is_no_traceback_and_loses_no_file(tmp_path: Path, added: int) -> None:
    """Taken for all the values that a partition has, a wrong count says that all are NULL, or none.

    Of more than there are, some are lost: that is an error.
    """
    table = table_of(tmp_path, "dt")
    table.commit(entry("gone", kind=1, partition=dt("a")))
    told = ranged("a", "b") | {"_NUM_ADDED_FILES": added, "_NUM_DELETED_FILES": 0}
    table.commit(entry("a", partition=dt("a")), entry("b", partition=dt("b")), meta=told)
    for where in ("dt = 'a'", "dt is not null", "dt <> 'b'"):
        if added > 2:
            with pytest.raises(UnreadableMetadataError, match="it has 2 entries that add a file, but"):
                plan(table, where)
        else:
            assert "a" in names(plan(table, where))


def test_floats_of_a_partition_say_nothing(tmp_path: Path) -> None:
    """Writers disagree on where NaN lies: it may be in none of the bounds."""
    table = table_of(tmp_path, "f")
    low, nan = (row(f=("DOUBLE", value)) for value in (1.0, float("nan")))
    table.commit(entry("nan", partition=nan), meta={"_PARTITION_STATS": stats(low, low, [0])})
    assert names(plan(table, "f > 5")) == ["nan"]


def test_file_that_another_manifest_deletes_is_not_counted(tmp_path: Path) -> None:
    """A manifest that may have had it is read, for else nobody could count what is left."""
    table = table_of(tmp_path, "dt")
    table.commit(entry("a", partition=dt("a")), entry("b", partition=dt("b")), meta=ranged("a", "b"))
    table.commit(entry("c", partition=dt("c")), entry("d", partition=dt("d")), meta=ranged("c", "d"))
    table.commit(entry("a", kind=1, partition=dt("a")), entry("z", partition=dt("z")), meta=ranged("a", "z"))
    found = plan(table, "dt = 'z'")
    assert names(found) == ["z"]
    assert (found.stats.files, found.stats.layers[0].files_after) == (4, 2)


def test_buckets_tell_which_manifest_may_have_had_a_deleted_file(tmp_path: Path) -> None:
    table = table_of(tmp_path, "dt")
    both = {"_MIN_BUCKET": 0, "_MAX_BUCKET": 0}, {"_MIN_BUCKET": 1, "_MAX_BUCKET": 1}
    for bucket in (0, 1):
        meta = ranged("a", "b", **both[bucket])
        table.commit(entry(f"f{bucket}", partition=dt("a"), bucket=bucket), meta=meta)
    table.commit(entry("f1", kind=1, partition=dt("a"), bucket=1), meta=ranged("a", "a", **both[1]))
    found = plan(table, "dt = 'z'")
    assert (found.stats.files, found.stats.layers[0].files_after) == (1, 0)


def test_manifest_of_another_bucket_is_not_read(tmp_path: Path) -> None:
    """Where all its files are of one bucket, and of one number of buckets; else it is read."""
    table = MadeTable(tmp_path / "t", COLUMNS, options={"bucket": "4", "bucket-key": "n"})
    for bucket in range(4):
        one = {"_MIN_BUCKET": bucket, "_MAX_BUCKET": bucket, "_TOTAL_BUCKETS": 4}
        table.commit(entry(f"b{bucket}", bucket=bucket, total=4), meta=one)
    several = {"_MIN_BUCKET": 0, "_MAX_BUCKET": 3, "_TOTAL_BUCKETS": 4}
    table.commit(*(entry(f"c{bucket}", bucket=bucket, total=4) for bucket in range(4)), meta=several)
    unsaid = {"_MIN_BUCKET": 0, "_MAX_BUCKET": 0}
    table.commit(entry("d0", bucket=0, total=1), meta=unsaid)
    found = plan(table, "n = 7")
    assert found.stats.files == 9
    assert found.stats.layers[0].files_after == 6
    (bucket,) = {path[1:] for path in names(found)} - {"0"}
    assert names(found) == [f"b{bucket}", f"c{bucket}", "d0"]


def test_runtime_filter_leaves_manifests_unread(tmp_path: Path) -> None:
    table = table_of(tmp_path, "dt")
    for name in "abc":
        table.commit(entry(name, partition=dt(name)), meta=ranged(name, name))
    keys = tamis.RuntimeFilter.of("dt", ["b"])
    found = tamis.open(table.folder).plan(runtime_filters=[keys])
    assert names(found) == ["b"]
    assert found.stats.runtime_filters[0].files == 2
    assert found.verdicts.num_rows == 1


# -- what is deleted ---------------------------------------------------------------------------------------------


def test_deleted_file_is_known_by_all_that_makes_it_one(tmp_path: Path) -> None:
    """A file that compaction moves to another level is deleted from the one and added to the other."""
    table = table_of(tmp_path, "dt")
    same = {"partition": dt("a"), "extra_files": ["x.index"], "embedded_file_index": b"i", "external_path": "/e/f"}
    table.commit(
        entry("f", **same, level=0),  # type: ignore[arg-type] # fields of any type
        entry("g", partition=dt("a"), bucket=1),
        entry("h", partition=dt("b")),
        entry("i", partition=dt("a"), embedded_file_index=b"1"),
        entry("j", partition=dt("a"), extra_files=["1"]),
        entry("k", partition=dt("a"), external_path="/1/k"),
    )
    table.commit(
        entry("f", kind=1, **same, level=0),  # type: ignore[arg-type] # fields of any type
        entry("f", **same, level=5),  # type: ignore[arg-type] # fields of any type
        entry("g", kind=1, partition=dt("a"), bucket=2),
        entry("h", kind=1, partition=dt("a")),
        entry("i", kind=1, partition=dt("a"), embedded_file_index=b"2"),
        entry("j", kind=1, partition=dt("a"), extra_files=["2"]),
        entry("k", kind=1, partition=dt("a"), external_path="/2/k"),
    )
    files = plan(table, "true").files
    assert files["path"].to_pylist() == [
        "dt=a/bucket-1/g",
        "dt=b/bucket-0/h",
        "dt=a/bucket-0/i",
        "dt=a/bucket-0/j",
        "/1/k",
        "/e/f",
    ]


def test_deleted_entries_without_statistics_delete_all_the_same(tmp_path: Path) -> None:
    table = table_of(tmp_path, "dt")
    table.commit(entry("f", partition=dt("a"), value_stats=stats(row(a=("INT", 1)), row(a=("INT", 1)), [0])))
    table.commit(entry("f", kind=1, partition=dt("a"), value_stats_cols=[]))
    assert names(plan(table, "n = 1")) == []
