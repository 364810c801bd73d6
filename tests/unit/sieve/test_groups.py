"""Files that stand or fall together: what drops one of them, what drops all, and what is said of it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tamis.predicate.bind import bind
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.sieve.domain import ColumnStats
from tamis.sieve.file_buckets import FileBuckets
from tamis.sieve.files import FileBatch, rows_of
from tamis.sieve.funnel import LAYERS, sift
from tamis.sieve.groups import Groups
from tamis.sieve.join.runtime import RuntimeFilter
from tamis.sieve.partitions import PartitionField, PartitionSpec
from tamis.sieve.plan import ScanPlan
from tamis.sieve.sieve import Sieve
from tamis.sieve.transforms import parse_transform
from tests.making.hashes import ValueHash

LONG = pa.int64()
SCHEMA = Schema.of(p=LONG, k=LONG, v=LONG, w=LONG)
P, K, V, W = (column.id for column in SCHEMA.columns)
SPEC = PartitionSpec(0, (PartitionField("p", P, parse_transform("identity")),))
Span = tuple[int, int] | None


def bounds(spans: list[Span]) -> ColumnStats:
    lower, upper = (pa.array([None if span is None else span[side] for span in spans], LONG) for side in (0, 1))
    return ColumnStats(lower, upper, pa.array([None if span is None else 0 for span in spans], LONG))


def files(*given: tuple[int | None, Span, Span], **more: object) -> FileBatch:
    """Files, each a group, the range of its keys and that of its values."""
    count = len(given)
    found: dict[str, object] = {"rows": pa.array([10] * count), **more}
    return FileBatch(
        path=pa.array([str(place) for place in range(count)]),
        size=pa.array([2**place for place in range(count)]),
        stats={K: bounds([key for _, key, _ in given]), V: bounds([value for _, _, value in given])},
        group=pa.array([group for group, _, _ in given], pa.int32()),
        keys=frozenset({P, K}),
        **found,  # type: ignore[arg-type] # as the fields are
    )


def plan(where: str, *batches: FileBatch, keys: RuntimeFilter | None = None, **more: object) -> ScanPlan:
    filters = () if keys is None else (keys.bind(SCHEMA),)
    sieve = Sieve(bind(parse(where), SCHEMA), (SPEC,), filters)
    return sift(sieve, batches, **more).plan  # type: ignore[arg-type] # the layers, if they are given


def verdicts(found: ScanPlan) -> list[str]:
    return list(found.verdicts["verdict"].to_pylist())


def reasons(found: ScanPlan) -> list[str]:
    return list(found.verdicts["reason"].to_pylist())


def layers(found: ScanPlan) -> list[str | None]:
    return list(found.verdicts["layer"].to_pylist())


# -- what goes, and what stays --------------------------------------------------------------------------------


def test_group_that_no_value_can_match_goes_whole() -> None:
    found = plan("v = 3", files((1, (0, 9), (5, 9)), (1, (0, 9), (6, 9)), (2, (0, 9), (0, 9))))
    assert verdicts(found) == ["none", "none", "some"]
    assert layers(found) == ["stats", "stats", None]
    assert reasons(found)[0] == "dropped with its whole bucket: v = 3 excludes v in [5, 9]"


def test_file_that_no_value_can_match_stays_with_one_that_may() -> None:
    """Its rows are newer versions, perhaps, of what the other holds: without it an old version would come back."""
    found = plan("v = 3", files((1, (0, 9), (5, 9)), (1, (0, 9), (0, 4))))
    assert verdicts(found) == ["some", "some"]
    assert reasons(found) == ["kept: another file of its bucket may match", "may match: v = 3"]
    because = {reason.text: (reason.files, reason.bytes) for reason in found.stats.kept_because}
    assert because == {"v = 3 overlaps their bounds": (1, 2), "another file of their bucket may match": (1, 1)}
    assert "another file of their bucket may match" in found.explain()


def test_file_outside_the_key_range_goes_alone() -> None:
    found = plan("k = 5 AND v = 3", files((1, (6, 9), (0, 9)), (1, (0, 9), (0, 9)), (1, (0, 9), (5, 9))))
    assert verdicts(found) == ["none", "some", "some"]
    assert reasons(found)[0] == "k = 5 excludes k in [6, 9]"


def test_group_is_judged_by_the_files_that_are_left() -> None:
    """The only file whose values may match has other keys: it goes alone, and the rest with it."""
    found = plan("k = 5 AND v = 3", files((1, (6, 9), (0, 9)), (1, (0, 9), (5, 9)), (1, (0, 9), (6, 9))))
    assert verdicts(found) == ["none", "none", "none"]
    told = ["k = 5 excludes", "dropped with its whole bucket", "dropped with its whole bucket"]
    assert all(part in reason for part, reason in zip(told, reasons(found), strict=True))


def test_key_or_value_keeps_the_group_if_either_may_match() -> None:
    batch = files((1, (6, 9), (5, 9)), (1, (6, 9), (0, 4)), (2, (6, 9), (5, 9)), (2, (7, 9), (5, 9)))
    assert verdicts(plan("k = 5 OR v = 3", batch)) == ["some", "some", "none", "none"]
    only_keys = "k = 5 OR (k = 20 AND v = 3)"
    assert verdicts(plan(only_keys, batch)) == ["none"] * 4
    assert not any("whole bucket" in reason for reason in reasons(plan(only_keys, batch)))


def test_negated_condition_is_no_different() -> None:
    batch = files((1, (0, 9), (3, 3)), (1, (0, 9), (2, 3)), (2, (0, 9), (3, 3)), (2, (0, 9), (3, 3)))
    assert verdicts(plan("NOT (v = 3)", batch)) == ["some", "some", "none", "none"]
    assert verdicts(plan("NOT (k < 10 AND v = 3)", batch)) == ["some", "some", "none", "none"]


def test_file_alone_goes_by_its_values() -> None:
    found = plan("v = 3", files((None, (0, 9), (5, 9)), (None, (0, 9), (0, 9)), (7, (0, 9), (5, 9))))
    assert verdicts(found) == ["none", "some", "none"]
    assert not any("bucket" in reason for reason in reasons(found))


def test_different_columns_may_exclude_the_files_of_a_group() -> None:
    """No version in the one has v = 3, none in the other w = 4: no newest version has both."""
    batch = files((1, (0, 9), (5, 9)), (1, (0, 9), (0, 9)))
    batch = FileBatch(
        batch.path,
        batch.size,
        batch.rows,
        stats={**batch.stats, W: bounds([(0, 9), (5, 9)])},
        group=batch.group,
        keys=batch.keys,
    )
    assert verdicts(plan("v = 3 AND w = 4", batch)) == ["none", "none"]
    assert verdicts(plan("v = 3 OR w = 4", batch)) == ["some", "some"]


def test_file_without_rows_goes_alone() -> None:
    found = plan("v = 3", files((1, None, None), (1, (0, 9), (0, 9)), rows=pa.array([0, 10])))
    assert verdicts(found) == ["none", "some"]
    assert reasons(found)[0] == "the file has no rows"


def test_partitions_and_buckets_drop_single_files() -> None:
    """They are the same for a whole group; where files differ in them, each goes by its own."""
    by = ValueHash(lambda keys, total: np.asarray(keys.column(0).fill_null(0)) % total)
    buckets = FileBuckets(pa.array([1, 2, 1]), pa.array([4] * 3), (SCHEMA.columns[1],), by)
    partition = pa.StructArray.from_arrays([pa.array([1, 1, 2])], ["p"])
    batch = files(
        (1, (0, 9), (0, 9)),
        (2, (0, 9), (0, 9)),
        (3, (0, 9), (0, 9)),
        buckets=(buckets,),
        spec_id=0,
        partition=partition,
    )
    found = plan("p = 1 AND k = 5 AND v = 3", batch)
    assert layers(found) == [None, "bucket", "partition"]


# -- ALL ------------------------------------------------------------------------------------------------------


def test_all_is_said_of_a_group_whose_every_version_matches() -> None:
    batch = files((1, (0, 9), (3, 3)), (1, (0, 9), (3, 3)), (2, (0, 9), (3, 3)), (2, (0, 9), (3, 4)))
    found = plan("v = 3", batch)
    assert verdicts(found) == ["all", "all", "some", "some"]
    assert found.stats.kept_whole == 2


def test_all_is_not_said_beside_a_file_that_cannot_match() -> None:
    """What the other holds may be the newer version: the row does not match, though the file's version does."""
    assert verdicts(plan("v = 3", files((1, (0, 9), (3, 3)), (1, (0, 9), (4, 4))))) == ["some", "some"]


def test_all_is_said_of_what_is_left_of_a_group() -> None:
    """The keys that went cannot match, so that no version of them is left."""
    assert verdicts(plan("k < 5 AND v = 3", files((1, (0, 4), (3, 3)), (1, (5, 9), (4, 4))))) == ["all", "none"]


# -- join keys ------------------------------------------------------------------------------------------------


def test_join_on_a_key_column_drops_single_files_and_on_a_value_whole_groups() -> None:
    batch = files((1, (0, 4), (0, 9)), (1, (5, 9), (0, 9)), (2, (5, 9), (6, 9)), (2, (5, 9), (7, 9)))
    assert verdicts(plan("true", batch, keys=RuntimeFilter.of("k", [5]))) == ["none", "some", "some", "some"]
    found = plan("true", batch, keys=RuntimeFilter.of("v", [5]))
    assert verdicts(found) == ["some", "some", "none", "none"]
    assert found.stats.runtime_filters[0].dropped["stats"] == 2
    assert found.stats.runtime_filters[0].idle is None
    assert not [note for note in found.stats.notes if "no statistics" in note]


def test_join_on_key_and_value_columns_is_partly_of_keys() -> None:
    keys = RuntimeFilter.of(["k", "v"], {"k": [5, 6], "v": [1, 2]})
    batch = files((1, (0, 4), (1, 1)), (1, (5, 5), (2, 2)), (1, (5, 6), (1, 1)), (2, (5, 5), (2, 2)))
    assert verdicts(plan("true", batch, keys=keys)) == ["none", "some", "some", "none"]
    held = plan("true", batch, keys=keys)
    assert reasons(held)[1] == "kept: another file of its bucket may match"
    assert held.stats.runtime_filters[0].files == 2


def test_predicate_and_join_keys_may_share_the_work() -> None:
    """The one file's versions fail the predicate, the other's the join: no newest version passes both."""
    batch = files((1, (0, 9), (6, 9)), (1, (0, 9), (0, 3)))
    found = plan("v < 5", batch, keys=RuntimeFilter.of("v", [4]))
    assert verdicts(found) == ["none", "none"]
    assert layers(found) == ["runtime", "runtime"]
    assert found.stats.runtime_filters[0].files == 1
    assert found.stats.layers[-1].files_after == 0


def test_kept_file_is_not_credited_to_a_filter() -> None:
    batch = files((1, (0, 9), (6, 9)), (1, (0, 9), (0, 9)))
    found = plan("true", batch, keys=RuntimeFilter.of("v", [4]))
    assert verdicts(found) == ["some", "some"]
    assert found.stats.runtime_filters[0].files == 0


# -- the batch ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [LAYERS, LAYERS[::-1], LAYERS[2:] + LAYERS[:2]])
def test_order_of_the_layers_changes_no_verdict(order: tuple[object, ...]) -> None:
    partition = pa.StructArray.from_arrays([pa.array([1, 1, 1, 2])], ["p"])
    batch = files(
        (1, (6, 9), (0, 9)),
        (1, (0, 9), (5, 9)),
        (1, (0, 9), (3, 9)),
        (2, (0, 9), (3, 3)),
        spec_id=0,
        partition=partition,
    )
    keys = RuntimeFilter.of("v", [3, 8])
    found = plan("p = 1 AND k = 5 AND v < 5", batch, keys=keys, layers=order)
    assert verdicts(found) == ["none", "some", "some", "none"]
    assert sum(step.files_before - step.files_after for step in found.stats.layers) == 2


def test_group_of_two_partitions_is_an_error() -> None:
    partition = pa.StructArray.from_arrays([pa.array([1, 2])], ["p"])
    batch = files((1, (0, 9), (0, 9)), (1, (0, 9), (0, 9)), spec_id=0, partition=partition)
    with pytest.raises(ValueError, match="a group is of one partition"):
        plan("p = 1", batch)


def test_part_of_a_batch_keeps_its_groups() -> None:
    batch = rows_of(files((1, (0, 9), (5, 9)), (2, (0, 9), (0, 9)), (1, (0, 9), (3, 3))), np.array([0, 2]))
    assert verdicts(plan("v = 3", batch)) == ["some", "some"]
    assert batch.keys == frozenset({P, K})


def test_groups_are_numbered_and_files_alone_have_their_own() -> None:
    groups = Groups.of(pa.array([7, None, 7, None, 3], pa.int32()))
    assert groups.count == 4
    assert groups.shared.tolist() == [True, False, True, False, False]
    mask = np.array([True, True, False, False, True])
    assert groups.whole(np.arange(5), mask).tolist() == [False, True, False, False, True]
    assert groups.whole(np.array([0, 1]), np.array([True, False])).tolist() == [True, False]
    assert groups.astray(np.array([1, 2, 1, 3, 4])) is None
    assert groups.astray(np.array([1, 2, 5, 3, 4])) == 2
