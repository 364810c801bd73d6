"""What peers got wrong on Delta tables, each as a test that we do not. Names of issues are the peers' own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tamis
from tests.making.delta_logs import DeltaLog, add, metadata, remove, vector

NAMES = {"id": "long", "name": "string", "price": "double", "ts": "timestamp", "part": "string"}
SCHEMA = {
    "type": "struct",
    "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in NAMES.items()],
}


def _stats(**bounds: tuple[object, object]) -> str:
    low, high = ({name: pair[side] for name, pair in bounds.items()} for side in (0, 1))
    return json.dumps({"numRecords": 9, "minValues": low, "maxValues": high, "nullCount": dict.fromkeys(bounds, 0)})


def _kept(root: Path, where: str, **options: str) -> list[str]:
    return sorted(tamis.open(root).plan(where, **options).files["path"].to_pylist())  # type: ignore[arg-type] # time_zone


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    """One file with bounds of id alone, one with bounds of all, one without."""
    log = DeltaLog(tmp_path)
    log.begin(
        add("some", "a", stats=_stats(id=(0, 9))),
        add("every", "b", stats=_stats(id=(10, 19), name=("k", "m"), price=(1.0, 2.0))),
        add("none", "c", stats=None),
        schema=SCHEMA,
    )
    return log


def test_one_column_without_statistics_does_not_keep_another_from_pruning(log: DeltaLog) -> None:
    """delta#6755: AND loses the skipping of both sides if one column lacks its bounds."""
    assert _kept(log.root, "id = 15 and name = 'l'") == ["every", "none"]
    assert _kept(log.root, "name = 'l' and id = 15 and price > 1") == ["every", "none"]
    assert _kept(log.root, "id = 99 and name = 'l'") == ["none"]


def test_a_condition_on_partitions_alone_prunes(log: DeltaLog) -> None:
    """kernel-rs#263: partition-only predicates skip nothing."""
    assert _kept(log.root, "part = 'b'") == ["every"]
    assert _kept(log.root, "part in ('a', 'c')") == ["none", "some"]


def test_a_condition_on_partitions_or_data_prunes_by_both(log: DeltaLog) -> None:
    """Java's Kernel gives an OR of both whole to the data side, where it keeps every file."""
    assert _kept(log.root, "part = 'a' or id = 15") == ["every", "none", "some"]
    assert _kept(log.root, "(part = 'a' or id = 15) and part <> 'c'") == ["every", "some"]
    assert _kept(log.root, "(part = 'c' or id = 99) and name >= ''") == ["none"]


@pytest.mark.parametrize(
    "where",
    ["name like '%x%'", "id + 1 = 2", "year(ts) = 2024", "upper(name) = 'L'", "id <=> null", "length(name) > 3"],
)
def test_what_cannot_be_judged_is_kept_and_not_an_error(log: DeltaLog, where: str) -> None:
    """The deltalake package raises for LIKE, `<=> NULL` and year(). Files without statistics may hold such rows."""
    assert "none" in _kept(log.root, where)
    assert _kept(log.root, f"({where}) and part = 'c'") == ["none"]


def test_arithmetic_never_prunes(log: DeltaLog) -> None:
    """It may overflow: bounds of a column are none of what is calculated of it."""
    assert _kept(log.root, "id * 9223372036854775807 < 0") == ["every", "none", "some"]


def test_a_comparison_with_null_matches_nothing(log: DeltaLog) -> None:
    """The deltalake package keeps all files for `x = NULL`."""
    assert _kept(log.root, "id = null") == []


def test_a_negation_is_pushed_down_and_never_negates_a_verdict(log: DeltaLog) -> None:
    """A file that may match `id < 15` may match its negation as well."""
    assert _kept(log.root, "not (id < 15)") == ["every", "none"]
    assert _kept(log.root, "not (id < 15 or part = 'c')") == ["every"]
    assert _kept(log.root, "not (id >= 0 and part = 'a')") == ["every", "none"]


def test_names_are_found_in_any_case(log: DeltaLog) -> None:
    """The deltalake package tells them apart: a condition on PART is an error there."""
    assert _kept(log.root, "PART = 'b' and ID = 15") == ["every"]


@pytest.mark.parametrize(
    "text", ["2024-01-15T12:00:00.000000Z", "2024-01-15T12:00:00Z", "2024-01-15 12:00:00", "2024-01-15 12:00:00.000"]
)
def test_both_forms_of_a_timestamp_filter(tmp_path: Path, text: str) -> None:
    """delta#6034: partitions in ISO 8601 fail to filter; delta#420: those without a zone mean another instant."""
    log = DeltaLog(tmp_path)
    log.begin(
        add("noon", values={"ts": text}),
        add("later", values={"ts": "2024-01-16T12:00:00Z"}),
        schema=SCHEMA,
        partitions=("ts",),
    )
    assert _kept(tmp_path, "ts = timestamp'2024-01-15 12:00:00Z'", time_zone="UTC") == ["noon"]
    assert _kept(tmp_path, "ts > timestamp'2024-01-15 12:00:00Z'", time_zone="UTC") == ["later"]


def test_removes_work_before_anything_is_pruned(log: DeltaLog) -> None:
    """A remove has no statistics, and perhaps no partition: pruned early, it leaves its file in the table."""
    log.commit(remove("every"))
    assert _kept(log.root, "part = 'b'") == []
    log.checkpoint(0)
    log.hint({"version": 0})
    assert _kept(log.root, "part = 'b' or id = 15") == ["none"]


def test_a_remove_of_another_vector_leaves_the_file(log: DeltaLog) -> None:
    """A RemoveAction of the deltalake package has no vector: its commit removes nothing, and Spark reads on."""
    old, new = vector("ab^-aqEH.-t@S}K{vb[*k^", 1), vector("ab^-aqEH.-t@S}K{vb[*k^", 40)
    log.commit(remove("some"), add("some", "a", dv=old))
    log.commit(remove("some"))
    assert _kept(log.root, "part = 'a'") == ["some"]
    log.commit(remove("some", dv=old), add("some", "a", dv=new))
    assert _kept(log.root, "part = 'a'") == ["some"]
    log.commit(remove("some", dv=new))
    assert _kept(log.root, "part = 'a'") == []


def test_a_remove_of_a_path_that_is_escaped_once_too_often_removes_another(tmp_path: Path) -> None:
    """The deltalake package escapes what get_add_actions gives once more: for every reader the file stays."""
    log = DeltaLog(tmp_path)
    log.begin(add("part=a%20b/1", "a b"), add("part=a%20b/2", "a b"))
    log.commit(remove("part=a%2520b/1"), remove("part=a%20b/2"))
    assert _kept(tmp_path, "part = 'a b'") == ["part=a%20b/1"]


def test_a_remove_of_a_file_that_is_not_there_does_nothing(log: DeltaLog) -> None:
    """The deltalake package accepts it in a commit."""
    log.commit(remove("nowhere"))
    assert _kept(log.root, "true") == ["every", "none", "some"]


def test_not_a_number_in_a_partition_of_a_checkpoint_is_found(tmp_path: Path) -> None:
    """Parquet's own bounds leave NaN out: a reader that prunes row groups of a checkpoint by them loses the file."""
    log = DeltaLog(tmp_path)
    log.begin(
        *(add(text, values={"price": text}) for text in ("NaN", "1.5", "-0.0")), schema=SCHEMA, partitions=("price",)
    )
    log.checkpoint(0)
    for commit in log.folder.glob("*.json"):
        commit.unlink()
    assert "NaN" in _kept(tmp_path, "isnan(price)")
    assert "NaN" in _kept(tmp_path, "price > 100")
    assert _kept(tmp_path, "price = 0") == ["-0.0"]


def test_a_dead_file_with_a_value_of_another_type_is_no_error(tmp_path: Path) -> None:
    """A table that was partitioned by other columns has removed files whose texts do not parse any more."""
    log = DeltaLog(tmp_path)
    log.begin(add("old", values={"name": "word"}), schema=SCHEMA, partitions=("name",))
    changed = {"type": "struct", "fields": [field | {"type": "long"} for field in SCHEMA["fields"]]}  # type: ignore[operator]
    log.commit(metadata(changed, ("name",)), remove("old"), add("new", values={"name": "5"}))
    plan = tamis.open(tmp_path).plan("name = 5", strict=True)
    assert plan.files["path"].to_pylist() == ["new"]
