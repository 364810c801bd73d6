"""A plan for people: what was asked, the funnel, the specs, and what was kept without proof."""

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tamis.explain.text import readable_bytes
from tamis.predicate.bind import bind
from tamis.predicate.parse import parse
from tamis.predicate.schema import Schema
from tamis.sieve.domain import ColumnStats
from tamis.sieve.files import FileBatch
from tamis.sieve.funnel import sift
from tamis.sieve.outcome import Sieve
from tamis.sieve.partitions import PartitionField, PartitionSpec, Undecoded
from tamis.sieve.plan import ScanPlan, Unread
from tamis.sieve.runtime import Collected, RuntimeFilter
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
    return sift(Sieve(bind(parse(sql), SCHEMA, sql=sql), SPECS), [batch])


def timeless(text: str) -> str:
    return re.sub(r"\d+\.\d ms", "0.0 ms", text)


def test_funnel_of_a_small_plan() -> None:
    lines = [line.split() for line in timeless(plan().explain()).splitlines()]
    assert lines == [
        ["WHERE", "region", "=", "'eu'", "AND", "amount", ">", "5"],
        [],
        ["reads", "1", "of", "3", "files", "(33.3%),", "1", "of", "them", "whole:", "1.0", "KiB", "of", "3.0", "MiB"],
        [],
        ["layer", "files", "in", "dropped", "files", "out", "bytes", "out", "time"],
        ["manifest", "3", "0", "3", "3.0", "MiB", "0.0", "ms"],
        ["partition", "3", "1", "2", "3.0", "MiB", "0.0", "ms"],
        ["bucket", "2", "0", "2", "3.0", "MiB", "0.0", "ms"],
        ["stats", "2", "1", "1", "1.0", "KiB", "0.0", "ms"],
        ["runtime", "1", "0", "1", "1.0", "KiB", "0.0", "ms"],
        [],
        [
            "spec",
            "files",
            "-manifest",
            "-partition",
            "-bucket",
            "-stats",
            "-runtime",
            "kept",
            "whole",
            "bytes",
            "kept",
        ],
        ["1", "3", "0", "1", "0", "1", "0", "1", "1", "1.0", "KiB"],
    ]


def test_columns_stand_under_their_names() -> None:
    """Numbers end where their heading ends; no line ends in blanks."""
    lines = timeless(plan().explain()).splitlines()
    table = lines[lines.index("") + 3 :][:6]
    end = table[0].index("dropped") + len("dropped")
    assert all(line[end - 1].isdigit() or line[end - 1] == "d" for line in table)
    assert all(line == line.rstrip() for line in lines)


def test_plan_of_nothing_is_explained() -> None:
    text = sift(Sieve(bind(parse("amount > 5"), SCHEMA)), []).explain()
    assert "reads 0 of 0 files: 0 B of 0 B" in text


def test_one_file_is_no_files() -> None:
    batch = FileBatch(pa.array(["a"]), pa.array([5]), pa.array([1]))
    text = sift(Sieve(bind(parse("amount > 5"), SCHEMA)), [batch]).explain()
    assert "reads 1 of 1 file (100.0%): 5 B of 5 B" in text
    assert re.search(r"^none +1 ", text, re.MULTILINE)


def test_what_was_kept_without_proof_is_told() -> None:
    text = plan(second=None, undecoded=(Undecoded(0, np.array([False, True, False]), "not UTF-8"),)).explain()
    assert "kept without proof: 1 file in 1 partition" in text
    assert re.search(r"1 (partition )?values? not decoded", text)
    assert "notes\n  partition value ignored:" in text
    assert "not UTF-8" in text


def test_plan_with_proof_has_no_such_lines() -> None:
    text = plan().explain()
    assert "kept without proof" not in text
    assert "notes" not in text


def test_join_keys_stand_under_the_condition() -> None:
    keys = RuntimeFilter.of("amount", [7]).bind(SCHEMA)
    batch = FileBatch(pa.array(["a"]), pa.array([5]), pa.array([1]))
    text = sift(Sieve(bind(parse("true"), SCHEMA), runtime_filters=(keys,)), [batch]).explain()
    assert text.splitlines()[1] == f"JOIN   {keys.text}"


def test_large_counts_are_grouped() -> None:
    text = sift(Sieve(bind(parse("amount > 5"), SCHEMA)), [], unread=[Unread(None, 1_234_567, 5 * 1024**4)]).explain()
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
    text = sift(replace(made.sieve, runtime_filters=bound), [made.outcomes[0].batch]).explain()
    rows = [line.split() for line in text.splitlines()[text.splitlines().index("") :]]
    start = next(place for place, row in enumerate(rows) if row[:2] == ["join", "keys"])
    assert rows[start + 1 : start + 5] == [
        ["region", "1", "250.0", "ms", "0", "0", "0", "0", "0", "0", "B"],
        ["amount", "~2,000,000", "1,500.0", "ms", "0", "0", "0", "0", "0", "0", "B"],
        ["amount", "-", "-", "0", "0", "0", "0", "0", "0", "B"],
        ["amount", "cannot", "prune:", "any", "value,", "and", "NULL,", "may", "be", "a", "join", "key"],
    ]
