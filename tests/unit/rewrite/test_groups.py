"""Packing, the thresholds of groups, their order, and the sizes of what they become: as Iceberg has them."""

import numpy as np
import pytest

from tamis.rewrite.groups import expected_outputs, split_sizes
from tamis.rewrite.options import RewriteOptions, parse_options
from tamis.rewrite.packing import pack
from tests.making.rewrites import MB, TERMS, File, group_files, planned, sizes


def options(**given: object) -> RewriteOptions:
    return parse_options({"target_file_size_bytes": 100, **given}, TERMS)


@pytest.mark.parametrize(
    ("size", "outputs"),
    [
        (0, 1),
        (99, 1),  # below the target
        (100, 1),
        (109, 1),  # the remainder of 9 is spread: 109 is less than 110
        (111, 2),  # one file of 111 would be more than 10 % too large
        (175, 2),
        (176, 2),  # a remainder of 76 is more than the minimum of 75
        (200, 2),
        (219, 2),  # 109 each
        (222, 3),
        (1050, 10),  # 105 each
        (1099, 11),  # 99 is a file of its own
        (10_000, 100),
    ],
)
def test_expected_outputs_by_iceberg_s_formula(size: int, outputs: int) -> None:
    assert expected_outputs(np.array([size]), options()).tolist() == [outputs]


def test_expected_outputs_are_never_spread_beyond_the_write_limit() -> None:
    """With a maximum just above the target, 10 % more would be beyond what writers stop at."""
    tight = options(max_file_size_bytes=104)
    assert tight.write_max_file_size == 102
    assert expected_outputs(np.array([103]), tight).tolist() == [2]
    assert expected_outputs(np.array([101]), tight).tolist() == [1]


def test_compression_counts_where_rows_are_sorted() -> None:
    assert expected_outputs(np.array([1000]), options(strategy="sort", compression_factor=0.5)).tolist() == [5]


def test_outputs_stay_numbers_whatever_the_compression() -> None:
    """A number beyond 64 bits would turn negative, and a group of a terabyte become one file."""
    huge = options(strategy="sort", compression_factor=1e300)
    found = expected_outputs(np.full(9, 1 << 40), huge)
    assert (found > 1 << 40).all()
    assert found.sum() > 0


def test_more_outputs_than_32_bits_count_are_told() -> None:
    plan = planned(sizes("a", 10_000, 10_000), target_file_size_bytes=2, rewrite_all=True).plan
    assert plan.groups["expected_outputs"].to_pylist() == [10_000 << 20]


def test_write_limit_is_half_way_to_the_maximum() -> None:
    assert options().write_max_file_size == 140


@pytest.mark.parametrize(("size", "split"), [(50, 100_000), (300_000, 105_120), (1_050_000, 110_120)])
def test_split_is_its_share_and_a_little_more_within_its_limits(size: int, split: int) -> None:
    found = options(target_file_size_bytes=100_000)
    assert split_sizes(np.array([size]), found).tolist() == [split]
    tight = options(target_file_size_bytes=100_000, max_file_size_bytes=100_002)
    assert split_sizes(np.array([size]), tight).max() <= 100_001


def packed(sizes_: list[int], most_bytes: int, most_files: int = 100, keys: list[int] | None = None) -> list[int]:
    count = len(sizes_)
    own = np.array(keys or [0] * count)
    return pack(own, np.array(sizes_, np.int64), np.arange(count), most_bytes, most_files).tolist()


def test_packing_goes_in_order_and_never_back() -> None:
    """As Iceberg with a lookback of one: a file that would still fit an earlier group does not join it."""
    assert packed([6, 6, 4, 6, 4], 10) == [0, 1, 3]


def test_packing_limits_are_inclusive() -> None:
    assert packed([5, 5, 5, 5], 10) == [0, 2]
    assert packed([1, 1, 1, 1, 1], 100, 2) == [0, 2, 4]


def test_file_larger_than_a_group_is_a_group_of_its_own() -> None:
    assert packed([1, 50, 1, 1], 10) == [0, 1, 2]


def test_packing_ends_with_its_key() -> None:
    assert packed([1, 1, 1, 1], 100, keys=[0, 0, 1, 2]) == [0, 2, 3]
    assert packed([60, 60, 1, 1], 100, keys=[0, 0, 1, 2]) == [0, 1, 2, 3]
    assert packed([1, 1, 1, 1, 1], 100, 2, keys=[0, 0, 0, 1, 2]) == [0, 2, 3, 4]


def test_packing_survives_sizes_whose_sum_is_no_64_bit_number() -> None:
    assert packed([2**63 - 1] * 3, 100) == [0, 1, 2]
    assert packed([2**63 - 1] * 3, 2**63 - 1)[0] == 0
    assert packed([], 10) == []


@pytest.mark.parametrize(
    ("megabytes", "worth"),
    [
        ([1], False),
        ([1, 1, 1, 1], False),
        ([1, 1, 1, 1, 1], True),  # min-input-files
        ([300, 200], False),
        ([300, 300], True),  # more than the target together
        ([1000], True),  # larger than the maximum
    ],
)
def test_group_is_worth_it_by_count_by_content_or_by_too_much_of_it(megabytes: list[float], worth: bool) -> None:
    assert bool(planned(sizes("f", *megabytes, partition="eu")).plan.stats.groups) is worth


def test_single_small_file_is_never_worth_it_however_few_files_are_asked_for() -> None:
    """It would only be copied."""
    assert planned(sizes("f", 1, partition="eu"), min_input_files=1).plan.stats.groups == 0
    assert planned(sizes("f", 1, 1, partition="eu"), min_input_files=1).plan.stats.groups == 1


def test_single_file_is_worth_it_for_its_deletes() -> None:
    one = [File("a", 500 * MB, "eu", rows=100, deletes=1, deleted=30)]
    assert planned(one).plan.stats.groups == 1
    assert planned(one, delete_ratio_threshold=0.31).plan.stats.groups == 0
    assert planned(one, delete_ratio_threshold=0.31, delete_file_threshold=1).plan.stats.groups == 1
    assert planned(one, delete_ratio_threshold=0.31, delete_file_threshold=2).plan.stats.groups == 0


def test_deleted_rows_count_up_to_the_rows_that_there_are() -> None:
    """Two delete files may list a row twice."""
    one = [File("a", 500 * MB, "eu", rows=100, deletes=2, deleted=900)]
    assert planned(one, delete_ratio_threshold=1).plan.stats.groups == 1


def test_file_of_unknown_size_is_no_candidate_by_it() -> None:
    assert not planned([File(f"f{n}", None, "eu") for n in range(9)]).plan.stats.candidates


@pytest.mark.parametrize(
    ("order", "first"),
    [("none", "a0"), ("bytes-asc", "c0"), ("bytes-desc", "b0"), ("files-asc", "b0"), ("files-desc", "c0")],
)
def test_groups_come_in_the_order_that_is_asked_for(order: str, first: str) -> None:
    files = [
        *sizes("a", 20, 20, 20, partition="a"),
        *sizes("b", 90, 90, partition="b"),
        *sizes("c", 1, 1, 1, 1, partition="c"),
    ]
    plan = planned(files, min_input_files=2, rewrite_job_order=order).plan
    assert group_files(plan)[0][0] == first
    assert plan.groups["group_id"].to_pylist() == [0, 1, 2]


def test_limit_takes_the_first_groups_in_order_and_cuts_the_last_short() -> None:
    files = [*sizes("a", 1, 1, 1, 1, 1, partition="a"), *sizes("b", 9, 9, 9, 9, 9, partition="b")]
    plan = planned(files, rewrite_job_order="bytes-desc", max_files_to_rewrite=7).plan
    assert group_files(plan) == [["b0", "b1", "b2", "b3", "b4"], ["a0", "a1"]]
    assert plan.stats.later == 3
    assert plan.groups["bytes"].to_pylist() == [45 * MB, 2 * MB]


def test_limit_leaves_no_single_small_file_that_would_only_be_copied() -> None:
    """Or every run would rewrite one file into one, and never end."""
    files = [*sizes("a", 1, 1, 1, 1, 1, partition="a"), *sizes("b", 1, 1, 1, 1, 1, partition="b")]
    assert list(map(len, group_files(planned(files, max_files_to_rewrite=6).plan))) == [5]
    assert list(map(len, group_files(planned(files, max_files_to_rewrite=6, rewrite_all=True).plan))) == [5, 1]
