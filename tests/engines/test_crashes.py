"""A process killed at every step of a statement: the table is the old one or the new one, and the next works.

Each step is tried on the table that the last one left. tamis, Spark's connector and PyIceberg read what is there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from tests.engines.conftest import Warehouse
from tests.engines.lakes import Lake, lakes, read_by_all, seeded
from tests.making.crashing import KILLED, killed_at, steps_of
from tests.making.statements import SEEDED, Condition, Row, Statement

pytestmark = pytest.mark.engine

SOAK = os.environ.get("TAMIS_HYPOTHESIS_PROFILE") == "soak"
AROUND = 11
"""Steps at the end that are all tried."""
KINDS = [
    ("folder", 3, "merge-on-read"),
    ("folder", 2, "copy-on-write"),
    ("sqlite", 2, "merge-on-read"),
    ("postgresql", 3, "copy-on-write"),
    ("rest", 3, "merge-on-read"),
]


@pytest.fixture(scope="module")
def lake(warehouse: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Lake]]:
    with lakes(warehouse.spark, tmp_path_factory.mktemp, "crash") as start:
        yield start


def statement(step: int, mode: str) -> Statement:
    """Rows leave whole files and parts of some, and others come."""
    name = f"step {step}"
    rows = tuple(Row(10 * number, region, step, name) for number, region in enumerate(("eu", "us", None)))
    return Statement(name, "overwrite", Condition(0, 24), rows, mode)  # type: ignore[arg-type] # one of the two


@pytest.mark.parametrize(("kind", "version", "mode"), KINDS)
def test_a_process_that_is_killed_leaves_the_old_table_or_the_new(
    warehouse: Warehouse, lake: Callable[[str], Lake], kind: str, version: int, mode: str
) -> None:
    """By default at each of the last steps, around the commit, and at some of those before; all in a soak."""
    found, name = lake(kind), f"t{version}"
    seeded(warehouse.spark, found, name, version, {})
    place = (str(found.home), found.target(name), found.properties)
    rows = statement(0, mode).applied(SEEDED)
    steps_of(*place, statement(0, mode))
    many = steps_of(*place, statement(1, mode))
    rows = statement(1, mode).applied(rows)
    assert many > AROUND
    happened: list[bool] = []
    for step in range(1, many + 1) if SOAK else (*range(1, many - AROUND, 5), *range(many - AROUND, many + 1)):
        one = statement(step + 1, mode)
        assert killed_at(step, *place, one) in {KILLED, 0}
        old, new = (sorted(map(repr, each)) for each in (rows, one.applied(rows)))
        read = read_by_all(warehouse.spark, found, name)
        happened.append(read["tamis"] == new)
        assert all(each == (new if happened[-1] else old) for each in read.values()), (step, read)
        rows = one.applied(rows) if happened[-1] else rows
    assert set(happened) == {True, False}  # steps before the commit, and after it
