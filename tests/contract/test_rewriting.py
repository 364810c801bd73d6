"""Plans of rewrites, asked of every format: groups of one key, every file accounted for, the same plan each time."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.predicate.build import Expression
from tamis.rewrite.plan import RewritePlan
from tests.contract.chance import conditions, few, histories
from tests.contract.conftest import Making
from tests.contract.maker import Maker
from tests.contract.tables import plain
from tests.contract.truth import files_of, opened, untouched
from tests.making.cli_tables import run

GROUPS = ("group_id", "spec_id", "partition", "bucket", "files", "bytes", "rows", "delete_files", "expected_outputs")
CANDIDATES = ("path", "size", "rows", "spec_id", "partition", "bucket", "candidate", "group_id", "reason")


def grouped(plan: RewritePlan) -> list[str]:
    return [path for files in plan.groups["files"].to_pylist() for path in files]


def key_of(row: dict[str, Any]) -> tuple[object, ...]:
    return row["spec_id"], row["partition"], row["bucket"]


@few(20)
@given(data=st.data())
def test_rewrite_of_all_puts_each_file_into_one_group_of_its_own_key(
    maker: Maker, making: Making, data: st.DataObject
) -> None:
    """Never two specs, partitions or buckets in a group; no file twice, none forgotten."""
    with making(data.draw(histories(maker))) as made, untouched(made.folder):
        table = opened(made)
        plan = table.rewrite(rewrite_all=True).plan()
        assert tuple(plan.groups.column_names[: len(GROUPS)]) == GROUPS
        assert set(CANDIDATES) <= set(plan.candidates.column_names)
        assert Counter(grouped(plan)) == Counter(files_of(made, table).keys())
        rows = {row["path"]: row for row in plan.candidates.to_pylist()}
        for group in plan.groups.to_pylist():
            own = [rows[path] for path in group["files"]]
            assert {key_of(row) for row in own} == {key_of(group)}
            assert group["bytes"] == sum(row["size"] for row in own)
            assert group["rows"] == sum(row["rows"] for row in own)
        deletes = dict(zip(*(table.plan().files[name].to_pylist() for name in ("path", "deletes")), strict=True))
        for group in plan.groups.to_pylist():
            most = sum(deletes[path] or 0 for path in group["files"])
            assert len(group["delete_files"]) <= most
        again = opened(made).rewrite(rewrite_all=True).plan()
        assert plan.groups.equals(again.groups)


@few(20)
@given(data=st.data())
def test_condition_leaves_no_matching_file_out(maker: Maker, making: Making, data: st.DataObject) -> None:
    """What a query has to read, a rewrite under its condition rewrites; and thresholds choose among these."""
    with making(data.draw(histories(maker))) as made:
        table, node = opened(made), data.draw(conditions(made.last))
        where = Expression(node)
        kept = set(table.plan(where).files["path"].to_pylist())
        plan = table.rewrite(where, rewrite_all=True).plan()
        assert kept <= set(grouped(plan))
        few_ = table.rewrite(where, min_input_files=2).plan()
        assert set(grouped(few_)) <= set(grouped(plan))


def test_command_line_shows_a_plan_as_text_and_as_json(
    maker: Maker, making: Making, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with making(plain(maker)) as made:
        arguments = ("rewrite", made.target, "--dry-run", "--rewrite-all", "--table-format", maker.format)
        said = run(capsys, monkeypatch, *arguments)
        assert said.code == 0, said.err
        assert "would rewrite" in said.out
        told = run(capsys, monkeypatch, *arguments, "--json", "--candidates")
        document = json.loads(told.out)
        assert {"version", "table", "options", "totals", "filter_stats", "groups", "candidates"} <= document.keys()
        assert len(document["candidates"]) == document["totals"]["files"]
