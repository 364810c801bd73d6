"""A plan for people: what was asked, the funnel, the specs, and what was kept without proof."""

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tamis.explain.words import WIDTH, readable_bytes
from tamis.predicate.bind import bind
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.sieve.domain import ColumnStats
from tamis.sieve.files import FileBatch
from tamis.sieve.funnel import sift
from tamis.sieve.join.runtime import Collected, RuntimeFilter
from tamis.sieve.partitions import PartitionField, PartitionSpec, Undecoded
from tamis.sieve.plan import ScanPlan, Unread
from tamis.sieve.sieve import Sieve
from tamis.sieve.transforms import parse_transform

INT = pa.int32()
SCHEMA = Schema.of(region=pa.string(), amount=INT)
SPECS = (PartitionSpec(0), PartitionSpec(1, (PartitionField("region", 1, parse_transform("identity")),)))


def plan(sql: str = "region = 'eu' AND amount > 5", second: str | None = "us", **more: object) -> ScanPlan:
    """Three files of region eu, us and eu; the last one is excluded by its bounds."""
    batch = FileBatch(
        pa.array(["a", "b", "c"]),
        pa.array([1024, 2048, 3 * 1024**2]),
        pa.array([1, 2, 3]),
        1,
        pa.StructArray.from_arrays([pa.array(["eu", second, "eu"])], ["region"]),
        stats={2: ColumnStats(pa.array([6, 6, 0], INT), pa.array([9, 9, 5], INT), pa.array([0, 0, 0]))},
        **more,  # type: ignore[arg-type] # as the fields are
    )
    return sift(Sieve(bind(parse(sql), SCHEMA, sql=sql), SPECS), [batch]).plan


def test_sentences_come_first_and_add_up() -> None:
    assert plan().explain().splitlines() == [
        "WHERE  region = 'eu' AND amount > 5",
        "",
        "would read 1 of 3 files (33.3%): 1.0 KiB of 3.0 MiB",
        "",
        "    3 in the table",
        "  - 1 by partition value",
        "  - 1 by column statistics",
        "  = 1 to read",
        "",
        "why files are kept",
        "    1  every row matches",
    ]


def test_kept_files_are_summed_up_by_reason() -> None:
    """The question when a query reads too much: which part of it, and for want of what."""
    both = "amount > 7 AND upper(region) = 'EU'"
    counts = pa.array([0, 0, 0])
    bounds = {2: ColumnStats(pa.array([6, None, 8], INT), pa.array([9, None, 9], INT), counts)}
    batch = FileBatch(pa.array(["a", "b", "c"]), pa.array([1, 2, 4]), pa.array([5, 5, 5]), stats=bounds)
    made = sift(Sieve(bind(parse(both), SCHEMA, sql=both)), [batch]).plan
    lines = made.explain().splitlines()
    start = lines.index("why files are kept")
    assert lines[start + 1 : start + 4] == [
        "    1  amount > 7 overlaps their bounds",
        "    1  no statistics for amount: amount > 7",
        "    1  not used for pruning: upper(region) = 'EU'",
    ]
    assert [(reason.files, reason.bytes) for reason in made.stats.kept_because] == [(1, 1), (1, 2), (1, 4)]
    assert sum(reason.files for reason in made.stats.kept_because) == made.stats.kept


def test_file_kept_by_its_partition_alone_says_so() -> None:
    by_region = pa.StructArray.from_arrays([pa.array(["eu"])], ["region"])
    batch = FileBatch(pa.array(["a"]), pa.array([1]), pa.array([5]), 1, by_region)
    text = sift(Sieve(bind(parse("region LIKE 'e%u'"), SCHEMA), SPECS), [batch]).plan.explain()
    assert "1  region LIKE 'e%u' is not ruled out by their partition" in text


def test_condition_that_cannot_prune_is_named_with_its_cause() -> None:
    text = plan("upper(region) = 'EU' AND amount > 5").explain()
    assert "not used for pruning: upper(region) = 'EU' (function of a column)" in text
    assert "not used for pruning" not in plan().explain()


def test_layers_that_dropped_nothing_are_left_out() -> None:
    lines = plan().explain().splitlines()
    assert not any("bucket" in line or "manifest" in line or "join" in line for line in lines)
    assert all(line == line.rstrip() for line in lines)


def test_times_are_shown_on_request_alone() -> None:
    assert not re.search(r"\d m?s$", plan().explain(), re.MULTILINE)
    timed = plan().explain(timing=True)
    assert re.search(r"^reading +[\d.]+ m?s$", timed, re.MULTILINE)
    assert re.search(r"^stats +[\d.]+ m?s$", timed, re.MULTILINE)


def test_long_list_is_cut_and_every_line_fits_a_terminal() -> None:
    sql = f"amount IN ({', '.join(map(str, range(10_000)))}) AND region = 'eu'"
    text = plan(sql).explain()
    assert len(text) < 2_000
    assert max(map(len, text.splitlines())) <= WIDTH


def test_wide_numbers_of_specs_become_sentences() -> None:
    unread = [Unread(number, 10**12 + number, 10**15) for number in range(2)]
    huge = sift(Sieve(bind(parse("amount > 5"), SCHEMA), SPECS), [], unread=unread).plan.explain()
    assert max(map(len, huge.splitlines())) <= WIDTH


def test_one_row_a_spec_if_there_are_several() -> None:
    unread = [Unread(0, 4, 100), Unread(1, 2, 50)]
    lines = [
        line.split()
        for line in sift(Sieve(bind(parse("amount > 5"), SCHEMA), SPECS), [], unread=unread)
        .plan.explain()
        .splitlines()
    ]
    start = lines.index(["spec", "files", "manifest", "kept", "size", "kept"])
    assert lines[start + 1 : start + 3] == [["0", "4", "4", "0", "0", "B"], ["1", "2", "2", "0", "0", "B"]]


def test_many_specs_are_counted_not_listed() -> None:
    specs = tuple(PartitionSpec(number) for number in range(100))
    unread = [Unread(number, 1) for number in range(100)]
    text = sift(Sieve(bind(parse("amount > 5"), SCHEMA), specs), [], unread=unread).plan.explain()
    assert "and 80 more specs" in text


def test_plan_of_nothing_is_explained() -> None:
    text = sift(Sieve(bind(parse("amount > 5"), SCHEMA)), []).plan.explain()
    assert "would read 0 of 0 files: 0 B of 0 B" in text


def test_one_file_is_no_files() -> None:
    batch = FileBatch(pa.array(["a"]), pa.array([5]), pa.array([1]))
    text = sift(Sieve(bind(parse("amount > 5"), SCHEMA)), [batch]).plan.explain()
    assert "would read 1 of 1 file (100.0%): 5 B of 5 B" in text


def test_nothing_that_a_table_s_writer_chose_reaches_the_terminal_raw() -> None:
    """A partition value once changed the window's title."""
    hostile = "eu\x1b]0;owned\x07\n\u202e"
    found = plan(second=hostile, undecoded=(Undecoded(0, np.array([False, True, False]), hostile),))
    text = found.explain()
    assert "owned" in text
    assert not set(text) & {"\x1b", "\x07", "\u202e"}
    assert "\\x1b]0;owned\\x07\\n\\u202e" in "".join(line.strip() for line in text.splitlines())


def test_what_was_kept_without_proof_is_told() -> None:
    text = plan(second=None, undecoded=(Undecoded(0, np.array([False, True, False]), "not UTF-8"),)).explain()
    assert "kept without proof: 1 file in 1 partition" in text
    assert re.search(r"1 (partition )?values? not decoded", " ".join(text.split()))
    assert "notes\n  partition value ignored:" in text
    assert "not UTF-8" in text


def test_plan_with_proof_has_no_such_lines() -> None:
    text = plan().explain()
    assert "kept without proof" not in text
    assert "notes" not in text


def test_join_keys_stand_under_the_condition() -> None:
    keys = RuntimeFilter.of("amount", [7]).bind(SCHEMA)
    batch = FileBatch(pa.array(["a"]), pa.array([5]), pa.array([1]))
    text = sift(Sieve(bind(parse("true"), SCHEMA), runtime_filters=(keys,)), [batch]).plan.explain()
    assert text.splitlines()[1] == f"JOIN   {keys.text}"


def test_large_counts_are_grouped() -> None:
    text = sift(
        Sieve(bind(parse("amount > 5"), SCHEMA)), [], unread=[Unread(None, 1_234_567, 5 * 1024**4)]
    ).plan.explain()
    assert "1,234,567 files" in text
    assert "5.0 TiB" in text


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1024**2, "1.0 MiB"),
        (1024**5, "1.0 PiB"),
        (5000 * 1024**5, "5000.0 PiB"),
    ],
)
def test_bytes_are_shown_in_the_unit_that_fits(count: int, shown: str) -> None:
    assert readable_bytes(count) == shown


def test_each_filter_has_its_keys_its_time_and_what_it_removed() -> None:
    keys = replace(RuntimeFilter.of("region", ["eu"]), collected=Collected(1, exact=True, seconds=0.25))
    about = replace(RuntimeFilter.of_range("amount", 0, 9), collected=Collected(2_000_000, exact=False, seconds=1.5))
    bound = tuple(
        one.bind(SCHEMA) for one in (keys, about, RuntimeFilter.of_range("amount", None, None, null_safe=True))
    )
    made = plan()
    text = sift(replace(made.sieve, runtime_filters=bound), [made.outcomes[0].batch]).plan.explain()
    lines = " ".join(text.split())
    assert "join keys of region (1 key, collected in 250 ms) prune no further file" in lines
    assert "join keys of amount (about 2,000,000 keys, collected in 1.5 s) prune no further file" in lines
    assert "join keys of amount cannot prune: any value, and NULL, may be a join key" in lines


def test_filter_that_prunes_says_how_many_and_by_which_facts() -> None:
    made = plan("true")
    keys = RuntimeFilter.of("region", ["us"]).bind(SCHEMA)
    text = sift(replace(made.sieve, runtime_filters=(keys,)), [made.outcomes[0].batch]).plan.explain()
    assert "prune 2 files (3.0 MiB) that the condition leaves: 2 by partition" in " ".join(text.split())
    assert "they may hold a join key" in text
