"""Laws of rewrite plans, over random files of several specs, conditions and options."""

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tamis.rewrite.plan import RewritePlan
from tests.making.rewrites import MB, File, plan_batches, planned
from tests.making.rewrites import batch as batch_of

FEW = settings(max_examples=settings().max_examples // 3)
TARGET = 100 * MB
SIZES = st.sampled_from([0, 1, 10, 74, 75, 80, 100, 150, 179, 181, 300, 2000]).map(lambda size: size * MB)
PARTITIONS = {0: st.none(), 1: st.sampled_from(["eu", "us", None, ""]), 2: st.integers(19735, 19738), 3: st.just("z")}
WHERES = st.sampled_from(
    [
        "region = 'eu'",
        "region <> 'eu' OR region IS NULL",
        "region IS NULL",
        "ts >= timestamp_ntz '2024-01-15' AND region IN ('eu', 'us')",
        "ts < timestamp_ntz '2024-01-14 12:00:00'",
        "NOT region = 'eu'",
        "false",
    ]
)


@st.composite
def some_files(draw: DrawFn) -> list[File]:
    """Files of random specs, sizes and deletes; names tell them apart."""
    files = []
    for number in range(draw(st.integers(0, 24))):
        spec_id = draw(st.sampled_from([0, 1, 1, 2, 3]))
        deletes = draw(st.sampled_from([0, 0, 0, 1, 3]))
        files.append(
            File(
                f"f{number:02}",
                draw(SIZES),
                draw(PARTITIONS[spec_id]),
                spec_id,
                deletes=deletes,
                deleted=draw(st.integers(0, 120)) if deletes else 0,
            )
        )
    return files


@st.composite
def some_options(draw: DrawFn) -> dict[str, Any]:
    """Options with small limits, so that they matter."""
    options: dict[str, Any] = {"target_file_size_bytes": TARGET, "min_input_files": draw(st.integers(1, 4))}
    if draw(st.booleans()):
        options["max_file_group_size_bytes"] = draw(st.sampled_from([1, 100, 200, 500])) * MB
    if draw(st.booleans()):
        options["max_file_group_input_files"] = draw(st.integers(1, 4))
    if draw(st.booleans()):
        options["delete_file_threshold"] = draw(st.integers(0, 3))
    mode = draw(st.sampled_from(["", "", "rewrite_all", "only_old_specs"]))
    if mode:
        options[mode] = True
    options["rewrite_job_order"] = draw(
        st.sampled_from(["none", "none", "bytes-asc", "bytes-desc", "files-asc", "files-desc"])
    )
    return options


def members(plan: RewritePlan) -> list[str]:
    return [path for files in plan.groups["files"].to_pylist() for path in files]


def told(plan: RewritePlan) -> dict[str, dict[str, Any]]:
    return {one["path"]: one for one in plan.candidates.to_pylist()}


@FEW
@given(some_files(), some_options(), st.none() | WHERES)
def test_every_candidate_is_in_exactly_one_group_or_says_why_not(
    files: list[File], options: dict[str, Any], where: str | None
) -> None:
    plan = planned(files, where, **options).plan
    rows = told(plan)
    assert len(rows) == len(files)
    counted = Counter(members(plan))
    assert set(counted.values()) <= {1}
    for path, row in rows.items():
        assert (row["group_id"] is not None) == (path in counted)
        assert row["candidate"] or row["group_id"] is None
        if row["candidate"] and row["group_id"] is None:
            assert "; left " in row["reason"]
        elif row["group_id"] is not None:
            assert path in plan.groups["files"][row["group_id"]].as_py()
            assert "; left " not in row["reason"]


@FEW
@given(some_files(), some_options(), st.none() | WHERES)
def test_no_group_is_above_its_limits_or_of_two_keys(
    files: list[File], options: dict[str, Any], where: str | None
) -> None:
    """A file that is larger than a group may be has a group of its own."""
    plan = planned(files, where, **options).plan
    by_path = {one.path: one for one in files}
    for group in plan.groups.to_pylist():
        own = [by_path[path] for path in group["files"]]
        assert len({(one.spec_id, one.partition) for one in own}) == 1
        assert group["spec_id"] == own[0].spec_id
        assert group["bytes"] == sum(one.size or 0 for one in own)
        assert group["rows"] == sum(one.rows for one in own)
        assert len(own) <= options.get("max_file_group_input_files", len(own))
        assert len(own) == 1 or group["bytes"] <= options.get("max_file_group_size_bytes", group["bytes"])
        assert len(group["delete_files"]) == sum(one.deletes for one in own)


@FEW
@given(some_files(), some_options(), WHERES)
def test_dropping_the_filter_never_drops_a_candidate(files: list[File], options: dict[str, Any], where: str) -> None:
    with_filter, without = (told(planned(files, one, **options).plan) for one in (where, None))
    assert {path for path, one in with_filter.items() if one["candidate"]} <= {
        path for path, one in without.items() if one["candidate"]
    }


@FEW
@given(some_files(), some_options(), WHERES)
def test_plan_of_a_filter_is_the_plan_without_one_restricted_to_the_keys_that_it_keeps(
    files: list[File], options: dict[str, Any], where: str
) -> None:
    """No file of these has statistics, so that a key stays or goes whole."""
    filtered, plain = planned(files, where, **options).plan, planned(files, None, **options).plan
    kept = {path for path, one in told(filtered).items() if not one["reason"].startswith("pruned by")}
    keys = {(one.spec_id, one.partition) for one in files if one.path in kept}
    assert kept == {one.path for one in files if (one.spec_id, one.partition) in keys}
    mine = filtered.groups.drop_columns(["group_id"]).to_pylist()
    assert mine == [one for one in plain.groups.drop_columns(["group_id"]).to_pylist() if one["files"][0] in kept]


@FEW
@given(some_files(), some_options(), st.none() | WHERES, st.randoms(use_true_random=False))
def test_permuted_files_give_the_same_plan(
    files: list[File],
    options: dict[str, Any],
    where: str | None,
    chance: Any,  # noqa: ANN401 - a Random
) -> None:
    """In whatever order and batches the files come."""
    other = list(files)
    chance.shuffle(other)
    runs: list[list[File]] = []
    for one in other:
        if not runs or runs[-1][0].spec_id != one.spec_id or chance.random() < 0.3:
            runs.append([])
        runs[-1].append(one)
    first, second = planned(files, where, **options), plan_batches([batch_of(run) for run in runs], where, **options)
    assert first.plan.groups.equals(second.plan.groups)
    assert told(first.plan) == told(second.plan)
    assert first.filter_stats == second.filter_stats
    assert replace(first.plan.stats, seconds=0) == replace(second.plan.stats, seconds=0)


@FEW
@given(some_files(), some_options(), st.integers(1, 12))
def test_limited_run_takes_the_first_groups_and_no_more_files(
    files: list[File], options: dict[str, Any], most: int
) -> None:
    """The last group is cut short; a single small file of it, which would only be copied, is left."""
    every = planned(files, None, **options).plan
    some = planned(files, None, max_files_to_rewrite=most, **options).plan
    taken, whole = some.groups["files"].to_pylist(), every.groups["files"].to_pylist()
    assert sum(map(len, taken)) <= most
    assert taken[:-1] == whole[: max(len(taken) - 1, 0)]
    if taken:
        assert taken[-1] == whole[len(taken) - 1][: len(taken[-1])]
    left = most - sum(map(len, taken))
    assert len(taken) == len(whole) or left <= 1
