"""What a table and a plan tell of themselves: counts that are those of what was made, in columns scripts rely on."""

from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.formats import FORMATS
from tests.contract.chance import conditions, few, histories
from tests.contract.conftest import MAKERS, Making
from tests.contract.maker import Maker
from tests.contract.tables import plain
from tests.contract.truth import files_of, opened, planned, untouched
from tests.making.cli_tables import run

FILES = ("path", "size", "rows", "spec_id", "partition", "bucket", "deletes", "verdict")
VERDICTS = ("path", "spec_id", "partition", "verdict", "layer", "reason")
LAYERS = ("manifest", "partition", "bucket", "stats", "runtime")


@few(20)
@given(data=st.data())
def test_counts_are_those_of_what_was_made(maker: Maker, making: Making, data: st.DataObject) -> None:
    """Files, rows and bytes, in an inspection as in a plan: every format counts alike."""
    with making(data.draw(histories(maker))) as made, untouched(made.folder):
        table = opened(made)
        files, listed, found = files_of(made, table), table.plan().files, table.inspect()
        rows = dict(zip(listed["path"].to_pylist(), listed["rows"].to_pylist(), strict=True))
        assert rows == {path: len(numbers) for path, numbers in files.items()}
        sizes = [made.file(path).stat().st_size for path in listed["path"].to_pylist()]
        assert listed["size"].to_pylist() == sizes
        total = found.total
        assert (total.files, total.rows, total.bytes) == (len(files), sum(rows.values()), sum(sizes))
        assert {path[0] for path in made.last.types} <= {one.name for one in found.schema}
        document = found.to_dict()
        assert json.loads(json.dumps(document))["total"]["files"] == len(files)
        assert (found.format, found.location) == (table.format, table.location)


@few(20)
@given(data=st.data())
def test_plan_has_the_columns_that_scripts_rely_on(maker: Maker, making: Making, data: st.DataObject) -> None:
    with making(data.draw(histories(maker))) as made:
        table, node = opened(made), data.draw(conditions(made.last))
        plan = planned(table, node)
        every = files_of(made, table)
        assert tuple(plan.files.column_names[: len(FILES)]) == FILES
        assert tuple(plan.verdicts.column_names[: len(VERDICTS)]) == VERDICTS
        assert set(plan.files["verdict"].to_pylist()) <= {"some", "all"}
        verdicts = plan.verdicts.to_pylist()
        assert {one["path"] for one in verdicts} <= every.keys()
        assert all((one["layer"] is None) == (one["verdict"] != "none") for one in verdicts)
        assert {one["layer"] for one in verdicts} <= {None, *LAYERS}
        assert all(one["reason"] for one in verdicts)
        assert plan.stats.files == len(every)
        assert plan.stats.kept == len(plan.files) == sum(one["verdict"] != "none" for one in verdicts)
        document = json.loads(plan.explain("json"))
        assert document["stats"]["kept"] == plan.stats.kept
        assert f"{plan.stats.kept}" in plan.explain()
        again = pickle.loads(pickle.dumps(plan))  # noqa: S301 - our own
        assert again.files.equals(plan.files)
        assert again.verdicts.equals(plan.verdicts)


def test_every_format_that_opens_is_held_to_the_contract() -> None:
    """A new entry of FORMATS needs a maker."""
    assert {one.key for one in FORMATS if one.open is not None} == {one.format for one in MAKERS}


def test_table_tells_what_it_is(maker: Maker, making: Making) -> None:
    with making(plain(maker)) as made:
        table = opened(made)
        (mine,) = (one for one in FORMATS if one.key == maker.format)
        assert table.format.startswith(mine.key)
        assert table.name == made.target
        assert made.target in table.location
        again = pickle.loads(pickle.dumps(table))  # noqa: S301 - our own
        assert (again.name, again.snapshot_id, again.schema) == (table.name, table.snapshot_id, table.schema)
        assert again.plan("region = 'eu'").files.equals(table.plan("region = 'eu'").files)


def test_progress_is_told_up_to_the_last_file(maker: Maker, making: Making) -> None:
    """Of a plan and of an inspection: whoever waits sees an end."""
    with making(plain(maker)) as made:
        table = opened(made)
        for job in (lambda tell: table.plan("row >= 0", progress=tell), table.inspect):
            told: list[tuple[int, int]] = []
            job(lambda done, total, told=told: told.append((done, total)))
            files = len(files_of(made, table))
            assert told[-1][0] == told[-1][1] >= files
            assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.parametrize("arguments", [("explain", "--where", "region = 'eu'"), ("inspect",)])
def test_command_line_prints_text_and_json(
    maker: Maker,
    making: Making,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
) -> None:
    with making(plain(maker)) as made, untouched(made.folder):
        name, *options = arguments
        text, document = (run(capsys, monkeypatch, name, made.target, *options, *form) for form in ((), ("--json",)))
        assert (text.code, document.code) == (0, 0), (text, document)
        assert text.out
        assert json.loads(document.out)
