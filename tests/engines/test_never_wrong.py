"""Over tables that Spark wrote and evolved: no file with a matching row is dropped, and ALL means all of them.

Hundreds of conditions a table, each held against the rows themselves, file by file. And most of what can be dropped
is: a sieve that drops nothing would lose no row either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

import tamis
from tests.engines.conftest import Warehouse
from tests.engines.predicates import conditions
from tests.engines.truth import Matches, java_files, live_rows, matches, session_zone

pytestmark = pytest.mark.engine

COUNT = 200
"""Conditions for each format version."""
ZONE = "America/New_York"


@dataclass(frozen=True, slots=True)
class Judged:
    """A condition, where it is true, and what tamis makes of it."""

    where: str
    truth: Matches
    kept: frozenset[str]
    whole: frozenset[str]


@dataclass(frozen=True, slots=True)
class Trial:
    """All conditions over one table."""

    table: str
    files: frozenset[str]
    live: frozenset[str]
    """Files with at least one row that is not deleted."""
    judged: list[Judged]


def judge(warehouse: Warehouse, name: str, wheres: list[str], zone: str = "UTC") -> Trial:
    with live_rows(warehouse.spark, f"ice.db.{name}") as rows, session_zone(warehouse.spark, zone):
        live, *truths = matches(rows, ["true", *wheres])
    table = tamis.open(warehouse.path(name))
    judged = []
    for where, truth in zip(wheres, truths, strict=True):
        found = table.plan(where, time_zone=zone).files.to_pydict()
        whole = (path for path, verdict in zip(found["path"], found["verdict"], strict=True) if verdict == "all")
        judged.append(Judged(where, truth, frozenset(found["path"]), frozenset(whole)))
    return Trial(f"ice.db.{name}", frozenset(table.plan().files["path"].to_pylist()), live.some, judged)


@pytest.fixture(scope="module", params=[1, 2, 3], ids="v{}".format)
def trial(request: pytest.FixtureRequest, warehouse: Warehouse, evolved: Callable[[int], str]) -> Iterator[Trial]:
    return judge(warehouse, evolved(request.param), conditions(request.param, COUNT))


def lost(trial: Trial) -> dict[str, list[str]]:
    return {one.where: sorted(one.truth.some - one.kept) for one in trial.judged if one.truth.some - one.kept}


def overclaimed(trial: Trial) -> dict[str, list[str]]:
    """A file without live rows may be called either: nothing in it fails to match."""
    found = {one.where: sorted((one.whole & trial.live) - one.truth.every) for one in trial.judged}
    return {where: files for where, files in found.items() if files}


def test_every_file_with_a_matching_row_is_kept(trial: Trial) -> None:
    assert lost(trial) == {}


def test_all_is_said_only_of_files_whose_live_rows_all_match(trial: Trial) -> None:
    assert overclaimed(trial) == {}


def test_conditions_do_split_the_table(trial: Trial) -> None:
    """The conditions are worth something: most are true of some files and not of others."""
    splitting = [one for one in trial.judged if 0 < len(one.truth.some) < len(trial.live)]
    assert len(splitting) > 0.5 * len(trial.judged)


def test_most_files_that_cannot_match_are_dropped(trial: Trial) -> None:
    """Over conditions that are true in at most a fifth of the files; some of them cannot be judged by anything."""
    selective = [one for one in trial.judged if len(one.truth.some) <= len(trial.files) / 5]
    assert len(selective) > 0.3 * len(trial.judged)
    droppable = sum(len(trial.files - one.truth.some) for one in selective)
    dropped = sum(len(trial.files - one.kept) for one in selective)
    assert dropped > 0.85 * droppable


def test_most_files_that_match_whole_are_known_to(trial: Trial) -> None:
    whole = sum(len(one.truth.every) for one in trial.judged)
    known = sum(len(one.whole & one.truth.every) for one in trial.judged)
    assert known > 0.75 * whole


def test_sessions_in_another_zone_lose_nothing(warehouse: Warehouse, evolved: Callable[[int], str]) -> None:
    """Dates and times meet in the session's zone, while partitions are cut in UTC."""
    wheres = conditions(4, 60, only=("ts", "ntz", "d"))
    found = judge(warehouse, evolved(3), wheres, ZONE)
    assert lost(found) == {}
    assert overclaimed(found) == {}


def test_nothing_is_kept_that_iceberg_itself_drops(warehouse: Warehouse, evolved: Callable[[int], str]) -> None:
    """Iceberg's own planner on the same conditions, where it can translate them and does not lose a row itself.

    Fields of structs are left out: Iceberg trusts null counts of them, on which writers disagree.
    """
    trial = judge(
        warehouse, evolved(2), conditions(5, 60, only=("id", "amt", "s", "region", "d", "ts", "ntz", "flag"))
    )
    compared, more = 0, {}
    for one in trial.judged:
        java = java_files(warehouse.spark, trial.table, one.where)
        if java is not None and one.truth.some <= java.keys():
            compared += 1
            if not one.kept <= java.keys():
                more[one.where] = len(one.kept - java.keys())
    assert compared > 25
    assert more == {}


def test_the_rows_that_a_filtering_query_finds_are_in_kept_files(
    warehouse: Warehouse, evolved: Callable[[int], str]
) -> None:
    """The same truth, asked as a user would: SELECT with WHERE, through Iceberg's own pruning."""
    name = evolved(2)
    table = tamis.open(warehouse.path(name))
    for where in (
        "id between 100 and 120",
        "d < date'1969-06-01' and region = 'eu'",
        "s like '😀%'",
        "info.city = 'c1'",
    ):
        frame = warehouse.spark.table(f"ice.db.{name}").where(where).selectExpr("_file").distinct()
        found = {row[0] for row in frame.collect()}
        kept = set(table.plan(where).files["path"].to_pylist())
        assert found
        assert found <= kept
        assert len(kept) < 292
