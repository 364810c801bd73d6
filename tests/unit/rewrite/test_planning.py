"""The planner of rewrites over files of several specs: what the partition filter leaves, in groups of one key."""

import re
from dataclasses import asdict, replace

import pyarrow as pa
import pytest

import tamis
from tamis.errors import BindError, UnevaluableError, UnknownSpecError
from tamis.sieve.partitions import FilterStats, PartitionKey, PartitionSpec
from tests.making.rewrites import BY_DAY, BY_REGION, MB, TERMS, UNPARTITIONED, File, group_files, planned, sizes

EU = sizes("eu", 1, 1, 1, 1, 1, partition="eu")
US = sizes("us", 1, 1, 1, 1, 1, partition="us")
DAYS = [
    *sizes("d1-", 1, 1, 1, 1, 1, partition=19737, spec_id=2),
    *sizes("d2-", 1, 1, 1, 1, 1, partition=19738, spec_id=2),
]
OLD = sizes("old", 1, 1, 1, 1, 1, spec_id=0)
ODD = sizes("odd", 1, 1, 1, 1, 1, partition="zz", spec_id=3)
EVOLVED = [*EU, *US, *DAYS, *OLD]


def keys(found: tamis.RewriteDataFilesPlanningResult) -> list[tuple[int | None, str | None]]:
    groups = found.plan.groups
    return list(zip(groups["spec_id"].to_pylist(), groups["partition"].to_pylist(), strict=True))


# -- the key ---------------------------------------------------------------------------------------------------


def test_partition_key_from_partitioned_spec() -> None:
    assert PartitionKey.of(BY_REGION, ("eu",)) == PartitionKey(1, ("eu",))


def test_partition_key_from_unpartitioned_spec() -> None:
    """By the file's own spec, not by the table's default: both kinds are in an evolved table."""
    assert PartitionKey.of(UNPARTITIONED, ("eu",)).partition is None
    assert PartitionKey.of(PartitionSpec(5), None).partition is None


def test_partition_key_hash_equality() -> None:
    assert len({PartitionKey.of(BY_REGION, ("eu",)), PartitionKey.of(BY_REGION, ("eu",))}) == 1
    assert PartitionKey.of(BY_REGION, ("eu",)) != PartitionKey.of(BY_DAY, ("eu",))


def test_partition_key_sort_key_stable() -> None:
    one = PartitionKey.of(BY_REGION, ("eu",))
    assert one.sort_key == PartitionKey.of(BY_REGION, ("eu",)).sort_key
    assert PartitionKey(None).sort_key < PartitionKey(0).sort_key < one.sort_key


# -- the stats -------------------------------------------------------------------------------------------------


def test_filter_stats_are_public_and_zero_by_default() -> None:
    assert asdict(tamis.FilterStats()) == dict.fromkeys(
        ("unevaluable_specs", "eval_errors", "fail_open_partitions", "fail_open_files"), 0
    )


def test_planning_result_has_plan_and_filter_stats() -> None:
    found = planned(EVOLVED)
    assert isinstance(found, tamis.RewriteDataFilesPlanningResult)
    assert isinstance(found.plan, tamis.RewritePlan)
    assert found.filter_stats == found.plan.stats.filter_stats == FilterStats()


# -- the filter, per spec --------------------------------------------------------------------------------------


def test_multi_spec_single_spec_table() -> None:
    assert keys(planned([*EU, *US], "region = 'eu'")) == [(1, "region=eu")]


def test_multi_spec_evolved_table() -> None:
    """A filter on region narrows the spec that knows it; days and unpartitioned files pass."""
    found = planned(EVOLVED, "region = 'eu'")
    assert keys(found) == [(0, None), (1, "region=eu"), (2, "ts_day=2024-01-15"), (2, "ts_day=2024-01-16")]
    assert keys(planned(EVOLVED, "ts < timestamp_ntz '2024-01-16'")) == [
        (0, None),
        (1, "region=eu"),
        (1, "region=us"),
        (2, "ts_day=2024-01-15"),
    ]


def test_multi_spec_unevaluable_spec_fail_open() -> None:
    found = planned([*EU, *ODD], "region = 'us'")
    assert keys(found) == [(3, "region_z=zz")]
    assert found.filter_stats == FilterStats(unevaluable_specs=1, fail_open_partitions=1, fail_open_files=5)
    assert [one.code for one in found.plan.stats.warnings] == ["fail-open", "unevaluable-spec"]


def test_multi_spec_eval_error_fail_open() -> None:
    bad = sizes("bad", 1, 1, 1, 1, 1, undecoded="?")
    found = planned([*EU, *bad], "region = 'us'")
    assert group_files(found.plan) == [[one.path for one in bad]]
    assert found.filter_stats == FilterStats(1, eval_errors=1, fail_open_partitions=1, fail_open_files=5)


def test_multi_spec_memoization(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many batches bring a key, it is judged once."""
    from tamis.sieve import partitions

    judged = []
    inner = partitions.try_all
    monkeypatch.setattr(partitions, "try_all", lambda parts, facts: judged.append(facts.count) or inner(parts, facts))
    planned([*EU, *OLD, *EU, *OLD, *EU], "region = 'eu'")
    assert sum(judged) == 2 * 2  # by partition and by bucket, of eu and of the unpartitioned key


def test_multi_spec_stats_counting() -> None:
    two = [*sizes("b", 1, 1, 1, 1, 1, undecoded="?"), *sizes("c", 1, 1, 1, 1, 1, undecoded="!")]
    found = planned([*EU, *two, *ODD], "region = 'eu'")
    assert found.filter_stats == FilterStats(1, 2, 3, 15)  # two values that are written apart are two partitions


def test_multi_spec_unknown_spec_hard_error() -> None:
    from tests.making import rewrites

    foreign = rewrites.batch(EU)
    with pytest.raises(UnknownSpecError) as raised:
        rewrites.plan_batches([rewrites.replace(foreign, spec_id=77)], "region = 'eu'")
    assert raised.value.spec_id == 77


def test_predicate_that_does_not_bind_is_a_hard_error() -> None:
    with pytest.raises(BindError):
        planned(EVOLVED, "nosuch = 1")


def test_negation_is_normalised_before_it_is_projected() -> None:
    assert keys(planned([*EU, *US], "NOT (region = 'eu' OR region IS NULL)")) == [(1, "region=us")]


def test_null_partition_values_go_by_the_rules_of_sql() -> None:
    """A comparison with NULL is not true, for != too."""
    null = sizes("null", 1, 1, 1, 1, 1, partition=None)
    assert keys(planned([*EU, *null], "region <> 'us'")) == [(1, "region=eu")]
    assert keys(planned([*EU, *null], "region IS NULL")) == [(1, "region=null")]


def test_lossy_transform_includes_more_than_it_must() -> None:
    """Inclusive: a day that overlaps is rewritten whole."""
    assert keys(planned(DAYS, "ts = timestamp_ntz '2024-01-15 12:00:00'")) == [(2, "ts_day=2024-01-15")]


def test_strict_refuses_what_cannot_be_evaluated() -> None:
    with pytest.raises(UnevaluableError):
        planned([*EU, *ODD], "region = 'us'", strict=True)
    with pytest.raises(UnevaluableError):
        planned(sizes("bad", 1, 1, undecoded="?"), "region = 'us'", strict=True)


# -- planning --------------------------------------------------------------------------------------------------


def test_plan_evolved_table_no_filter() -> None:
    found = planned(EVOLVED)
    assert keys(found) == [
        (0, None),
        (1, "region=eu"),
        (1, "region=us"),
        (2, "ts_day=2024-01-15"),
        (2, "ts_day=2024-01-16"),
    ]
    assert found.plan.stats.rewritten_files == len(EVOLVED)


def test_plan_evolved_table_with_filter() -> None:
    found = planned(EVOLVED, "region = 'eu' AND ts >= timestamp_ntz '2024-01-16'")
    assert keys(found) == [(0, None), (1, "region=eu"), (2, "ts_day=2024-01-16")]


def test_plan_evolved_table_fail_open_stats() -> None:
    found = planned([*EVOLVED, *ODD], "region = 'eu'")
    assert found.filter_stats.unevaluable_specs == 1
    assert found.filter_stats.fail_open_files == 5


def test_fail_open_files_counts_candidates_not_entries() -> None:
    """A file of a good size is included by the filter, and is no candidate all the same."""
    good = sizes("good", 500, 500, partition="zz", spec_id=3)
    found = planned([*ODD, *good], "region = 'eu'")
    assert found.plan.stats.considered == 7
    assert found.filter_stats.fail_open_files == 5


def test_plan_deterministic_group_ids() -> None:
    first, second = planned(EVOLVED).plan, planned(list(reversed(EVOLVED))).plan
    assert first.groups.equals(second.groups)
    assert first.groups["group_id"].to_pylist() == list(range(5))


def test_without_a_filter_thresholds_still_screen() -> None:
    found = planned([*EU, *sizes("good", 500, 500, 500, partition="uk")])
    assert keys(found) == [(1, "region=eu")]
    assert found.plan.stats.candidates == 5


def test_group_never_mixes_specs_partitions_or_buckets() -> None:
    """An all-NULL partition of one spec and files of an unpartitioned one are two keys."""
    null = sizes("null", 1, 1, 1, 1, 1, partition=None)
    buckets = [
        *sizes("b", 1, 1, 1, 1, 1, partition="eu", bucket=0),
        *sizes("c", 1, 1, 1, 1, 1, partition="eu", bucket=1),
    ]
    groups = planned([*OLD, *null, *OLD, *buckets]).plan.groups.to_pylist()
    assert [(one["spec_id"], one["partition"], one["bucket"]) for one in groups] == [
        (0, None, None),
        (1, "region=null", None),
        (1, "region=eu", 0),
        (1, "region=eu", 1),
    ]
    assert all(len({path[0] for path in one["files"]}) == 1 for one in groups)


def test_values_that_cannot_be_decoded_are_told_apart_by_how_they_are_written() -> None:
    one, two = sizes("a", 1, 1, 1, 1, 1, undecoded="x"), sizes("b", 1, 1, 1, 1, 1, undecoded="y")
    null = sizes("n", 1, 1, 1, 1, 1, partition=None)
    assert sorted(map(len, group_files(planned([*one, *two, *null]).plan))) == [5, 5, 5]


def test_value_that_cannot_be_decoded_and_is_written_as_an_empty_text_is_not_null() -> None:
    from tests.making import rewrites

    made = rewrites.batch(sizes("a", 1, 1, 1, 1, 1, undecoded="?"))
    (fault,) = made.undecoded
    empty = rewrites.replace(made, undecoded=(rewrites.replace(fault, written=pa.array([""] * 5)),))
    null = rewrites.batch(sizes("n", 1, 1, 1, 1, 1, partition=None))
    found = rewrites.plan_batches([empty, null], rewrite_all=True)
    assert [{path[0] for path in files} for files in group_files(found.plan)] == [{"n"}, {"a"}]


def test_files_of_an_unknown_partition_stand_alone() -> None:
    """Nobody knows which of them share a partition: a group of two might mix partitions."""
    found = planned(sizes("u", 1, 1, 1, 1, 1, unknown=True), rewrite_all=True)
    assert group_files(found.plan) == [["u0"], ["u1"], ["u2"], ["u3"], ["u4"]]
    assert ("partition-unknown", 5) in [(one.code, one.files) for one in found.plan.stats.warnings]
    assert not planned(sizes("u", 1, 1, 1, 1, 1, unknown=True)).plan.stats.groups


def test_data_predicate_narrows_by_statistics_too() -> None:
    cheap, dear = (
        sizes("c", 1, 1, 1, 1, 1, partition="eu", price=(1, 5)),
        sizes("d", 1, 1, partition="eu", price=(50, 60)),
    )
    found = planned([*cheap, *dear], "price < 10")
    assert group_files(found.plan) == [[one.path for one in cheap]]
    reasons = dict(zip(*(found.plan.candidates[name].to_pylist() for name in ("path", "reason")), strict=True))
    assert reasons["d0"] == "pruned by stats: price < 10 excludes price in [50, 60]"


def test_file_without_rows_is_rewritten_only_without_a_condition() -> None:
    """No row of it can match, so a condition leaves it out, as Iceberg's own does; otherwise it is a small file."""
    empty = sizes("e", 1, 1, 1, 1, 1, partition="eu", rows=0)
    assert planned(empty).plan.stats.rewritten_files == 5
    assert planned(empty, "price > 1").plan.stats.rewritten_files == 0


def test_spec_upgrade_takes_files_of_other_specs_whatever_their_size() -> None:
    good = sizes("good", 500, partition=19737, spec_id=2)
    found = planned([*EU, *good, *OLD[:1]], only_old_specs=True)
    assert keys(found) == [(0, None), (2, "ts_day=2024-01-15")]
    assert set(found.plan.groups["output_spec_id"].to_pylist()) == {1}
    other = planned([*EU, *good, *OLD[:1]], only_old_specs=True, output_spec_id=2)
    assert keys(other) == [(0, None), (1, "region=eu")]


def test_spec_upgrade_in_bounded_runs_finishes_the_table() -> None:
    left = {one.path: one for one in EVOLVED}
    for _ in range(20):
        found = planned(left.values(), only_old_specs=True, max_files_to_rewrite=4)
        gone = [path for group in group_files(found.plan) for path in group]
        if not gone:
            break
        assert len(gone) <= 4
        for path in gone:
            del left[path]
    assert set(left) == {one.path for one in (*EU, *US)}


def test_files_that_stand_together_are_rewritten_together() -> None:
    """Files of a primary-key table's bucket hold versions of the same rows: none is merged without the rest."""
    small, good = sizes("s", 1, 1, 1, 1, partition="eu", group=1), sizes("t", 500, partition="eu", group=1)
    alone = sizes("x", 500, partition="eu")
    found = planned([*small, *good, *alone], max_file_group_input_files=3)
    assert sorted(group_files(found.plan)[0]) == ["s0", "s1", "s2", "s3", "t0"]
    assert len(found.plan.groups) == 1
    table = found.plan.candidates.to_pylist()
    assert [one["candidate"] for one in table] == [True] * 5 + [False]


def test_bucket_of_a_primary_key_table_is_rewritten_whole_or_not_at_all() -> None:
    """Also if its format does not say so file by file, and with the files that the condition left out."""
    terms = replace(TERMS, whole_keys=True)
    small, other = (
        sizes("s", 1, 500, partition="eu", bucket=0, price=(1, 5)),
        sizes("o", 500, partition="eu", bucket=1),
    )
    rest = sizes("r", 500, partition="eu", bucket=0, price=(50, 60))
    found = planned(
        [*small, *other, *rest], "price < 10", terms=terms, min_input_files=2, max_file_group_input_files=1
    )
    assert group_files(found.plan) == [["r0", "s0", "s1"]]
    assert planned([*small, *rest], terms=terms, min_input_files=2).plan.stats.rewritten_files == 3


def test_reasons_say_why_each_file_is_or_is_not_a_candidate() -> None:
    files = [
        *EU,
        *sizes("large", 2000, partition="eu"),
        *sizes("good", 500, partition="eu"),
        *sizes("few", 1, partition="uk"),
        *sizes("deleted", 500, partition="uk", deletes=3, deleted=40),
    ]
    found = planned(files, delete_file_threshold=3)
    told = {
        one["path"]: (one["candidate"], one["group_id"], one["reason"]) for one in found.plan.candidates.to_pylist()
    }
    assert told["eu0"] == (True, 0, "smaller than min-file-size-bytes (384MB)")
    assert told["large0"][0]
    assert told["large0"][2].startswith("larger than max-file-size-bytes")
    assert told["good0"][:2] == (False, None)
    assert told["good0"][2].startswith("its size is between 384MB and")
    assert told["deleted0"][2] == (
        "at least 3 delete files (delete-file-threshold); "
        "at least 30% of its rows are deleted (delete-ratio-threshold)"
    )
    alone = planned(sizes("few", 1, 1, partition="uk")).plan.candidates.to_pylist()
    assert alone[0]["candidate"]
    assert alone[0]["group_id"] is None
    assert re.search(r"left as it is: .* min-input-files \(5\)", alone[0]["reason"])


def test_plan_tells_all_of_it_as_a_dict() -> None:
    found = planned(EVOLVED, "region = 'eu'").to_dict()
    assert set(found) == {"options", "totals", "filter_stats", "groups", "candidates"}
    assert set(found["filter_stats"]) == {
        "unevaluable_specs",
        "eval_errors",
        "fail_open_partitions",
        "fail_open_files",
    }
    assert {"group_id", "spec_id", "partition", "bucket", "files", "bytes", "rows", "delete_files"} <= set(
        found["groups"][0]
    )
    assert len(found["candidates"]) == len(EVOLVED)


def test_warnings_are_bounded_and_each_is_told_once() -> None:
    many = [File(f"f{n}", MB, undecoded=f"v{n}") for n in range(100)]
    found = planned([*many, *many[:1]], "region = 'eu'", rewrite_all=True)
    assert len(found.plan.stats.warnings) <= 25
    assert len(set(found.plan.stats.warnings)) == len(found.plan.stats.warnings)
    assert found.filter_stats.fail_open_files == 101
