"""Over tables of any history: whatever PyIceberg drops is dropped here too, or a reason says why it must not be.

The tables are Spark's, whose history is made by chance. A file that PyIceberg drops and tamis keeps either holds a
matching row, as Spark finds, so that PyIceberg loses it; or it falls under a reason that is listed here.
"""

from __future__ import annotations

import datetime as dt
import logging
import os
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from pyiceberg import expressions as e
from pyiceberg.manifest import DataFileContent
from pyiceberg.table import StaticTable

import tamis
from tests.engines.conftest import Warehouse
from tests.engines.generated import NARROW, Story
from tests.engines.truth import live_rows, matches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engine

SOAK = os.environ.get("TAMIS_HYPOTHESIS_PROFILE") == "soak"
STORIES, CONDITIONS = (10, 200) if SOAK else (1, 60)
"""Tables of each version, and conditions on each."""
REASONS: Final = {
    r"\[.* in a struct.*\] .*\w\.(a|b|city) IS NULL.*": "of a struct that may be NULL, not every writer counts the "
    "NULLs of its fields",
    r"\[.*float.*\] .*\b(f >=? |NOT \(f <).*": "NaN is greater than any number to Spark: a file with one may match, "
    "unless its row is deleted. PyIceberg never looks for it",
}
"""What stands before a condition is the types of its columns."""
EVOLVED: Final = {
    "id": "int",
    "f": "float",
    "amt": "decimal(6,2)",
    "s": "string",
    "region": "string",
    "d": "date",
    "ts": "timestamp",
    "flag": "boolean",
    "info.a": "int",
    "info.city": "string",
}
"""Columns of the table that every engine test shares, in which numbers may be NaN."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One condition, as both take it."""

    theirs: e.BooleanExpression
    sql: str
    types: str
    """The types of its columns, for the reasons."""

    def __str__(self) -> str:
        return f"[{self.types}] {self.sql}"


@dataclass(slots=True)
class Asking:
    """Conditions by chance on the columns of a table."""

    columns: dict[str, str]
    chance: random.Random

    @classmethod
    def of(cls, story: Story) -> Asking:
        columns: dict[str, str] = {}
        for name, kind in story.columns.items():
            if kind.startswith("struct"):
                columns |= {f"{name}.a": "int", f"{name}.b": "string"}
            else:
                columns[name] = NARROW.get(kind, kind)
        return cls(columns, random.Random(story.name))  # noqa: S311 - the same conditions on every run

    def condition(self) -> Asked:
        """One to three comparisons, joined by AND or by OR."""
        asked = self.comparison()
        for _ in range(self.chance.choice((0, 0, 0, 1, 2))):
            more, join = self.comparison(), self.chance.choice((e.And, e.Or))
            sql = f"({asked.sql}) {join.__name__.upper()} ({more.sql})"
            asked = Asked(join(asked.theirs, more.theirs), sql, f"{asked.types}, {more.types}")
        return asked

    def comparison(self) -> Asked:
        name = self.chance.choice(list(self.columns))
        kind = self.columns[name]
        theirs, sql = self._comparison(name, kind)
        return Asked(theirs, sql, f"{kind}{' in a struct' if '.' in name else ''}")

    def _comparison(self, name: str, kind: str) -> tuple[e.BooleanExpression, str]:
        value, shown = self.value(kind)
        other, too = self.value(kind)
        ways: list[tuple[e.BooleanExpression, str]] = [
            (e.EqualTo(name, value), f"{name} = {shown}"),
            (e.NotEqualTo(name, value), f"{name} != {shown}"),
            (e.In(name, {value, other}), f"{name} IN ({shown}, {too})"),
            (e.NotIn(name, {value, other}), f"{name} NOT IN ({shown}, {too})"),
            (e.IsNull(name), f"{name} IS NULL"),
            (e.NotNull(name), f"{name} IS NOT NULL"),
        ]
        if kind != "boolean":
            ways += [
                (e.LessThan(name, value), f"{name} < {shown}"),
                (e.LessThanOrEqual(name, value), f"{name} <= {shown}"),
                (e.GreaterThan(name, value), f"{name} > {shown}"),
                (e.GreaterThanOrEqual(name, value), f"{name} >= {shown}"),
                (e.Not(e.LessThan(name, value)), f"NOT ({name} < {shown})"),
                (
                    e.And(e.GreaterThan(name, value), e.LessThan(name, other)),
                    f"{name} > {shown} AND {name} < {too}",
                ),
            ]
        if kind == "string":
            prefix = str(value)[: self.chance.randint(1, 3)]
            ways += [
                (e.StartsWith(name, prefix), f"{name} LIKE '{prefix}%'"),
                (e.NotStartsWith(name, prefix), f"{name} NOT LIKE '{prefix}%'"),
            ]
        if kind == "float":
            ways.append((e.IsNaN(name), f"{name} = double('NaN')"))
        return self.chance.choice(ways)

    def value(self, kind: str) -> tuple[object, str]:
        """A value of the type, near those that stories write: for PyIceberg, and as SQL."""
        n = self.chance.randrange(self.chance.choice((70, 640)))
        match kind:
            case "int":
                return n - 10, str(n - 10)
            case "float":
                return n / 4, f"{n / 4}D"
            case "decimal(6,2)":
                number = (Decimal(n) / 2).quantize(Decimal("0.01"))
                return number, str(number)
            case "string":
                text = f"{self.chance.choice('vvvb')}{n % 13}"
                return text, f"'{text}'"
            case "date":
                day = dt.date(1969, 12, 1) + dt.timedelta(days=n)
                return day.isoformat(), f"date '{day}'"
            case "timestamp":
                moment = dt.datetime(1969, 12, 1, 3, tzinfo=dt.UTC) + dt.timedelta(days=n, hours=n)
                return moment.isoformat(), f"timestamp '{moment.isoformat(' ')}'"
        return n % 2 == 0, str(n % 2 == 0).lower()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """PyIceberg logs what it does not know of version 3."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def newest(folder: str) -> StaticTable:
    """The table as PyIceberg opens it, by the Hadoop catalog's hint."""
    metadata = Path(folder) / "metadata"
    hint = (metadata / "version-hint.text").read_text(encoding="utf-8").strip()
    return StaticTable.from_metadata(str(metadata / f"v{hint}.metadata.json"))


def pyiceberg_files(table: StaticTable, asked: e.BooleanExpression) -> set[str]:
    """The data files that are left of its plan. Its plan_files gives up on equality deletes, which take no part."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    planner = table.scan(row_filter=asked)._manifest_planner
    entries = planner.plan_manifest_entries(snapshot.manifests(table.io))
    return {
        entry.data_file.file_path
        for some in entries
        for entry in some
        if entry.data_file.content == DataFileContent.DATA
    }


@dataclass(slots=True)
class Compared:
    """What became of the files of a table, over all conditions."""

    dropped: int = 0
    """By PyIceberg."""
    lost: int = 0
    """By PyIceberg, with a matching row."""
    more: list[str] = field(default_factory=list)
    """Conditions by which tamis keeps a file that PyIceberg drops, and that holds no matching row."""

    def ask(self, spark: SparkSession, name: str, folder: str, conditions: list[Asked]) -> None:
        theirs, ours = newest(folder), tamis.open(folder)
        every = set(ours.plan().files["path"].to_pylist())
        with live_rows(spark, f"ice.db.{name}") as rows:
            truths = matches(rows, [asked.sql for asked in conditions])
        for asked, truth in zip(conditions, truths, strict=True):
            left = pyiceberg_files(theirs, asked.theirs) & every
            kept = set(ours.plan(asked.sql).files["path"].to_pylist())
            assert truth.some <= kept, str(asked)
            self.dropped += len(every - left)
            self.lost += len(truth.some - left)
            if kept - left - truth.some:
                self.more.append(str(asked))

    @property
    def unexplained(self) -> list[str]:
        return [said for said in self.more if not any(re.fullmatch(reason, said) for reason in REASONS)]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_no_file_is_kept_that_pyiceberg_drops_but_for_a_reason(warehouse: Warehouse, version: int) -> None:
    compared = Compared()
    for seed in range(STORIES):
        story = Story.told(warehouse, f"parity_v{version}_{seed}", version, 1000 * version + seed)
        asking = Asking.of(story)
        conditions = [asking.condition() for _ in range(CONDITIONS)]
        compared.ask(warehouse.spark, story.name, warehouse.path(story.name), conditions)
    assert compared.unexplained == []
    assert compared.dropped > CONDITIONS


def test_nor_of_a_table_with_nan_and_times_before_1970(warehouse: Warehouse, evolved: Callable[[int], str]) -> None:
    """Here PyIceberg loses rows: to it no number is less than NaN."""
    name, asking, compared = evolved(2), Asking(EVOLVED, random.Random(8)), Compared()  # noqa: S311 - as above
    conditions = [asking.condition() for _ in range(2 * CONDITIONS)]
    compared.ask(warehouse.spark, name, warehouse.path(name), conditions)
    assert compared.unexplained == []
    assert compared.more, "the reasons are needed no more"
    assert compared.lost > 0
