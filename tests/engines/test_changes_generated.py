# ruff: noqa: S311, S608 - chance for tests, and SQL made of the tests' own names
"""Updates and merges made by chance, of tables made by chance: what tamis leaves is what Spark leaves on a copy.

A copy is a table of the same story: the same seed makes the same history, partitioning and deletes.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

import tamis
from tests.engines.changing import SOAK, check_manifests, ours, rows
from tests.engines.conftest import Warehouse
from tests.engines.generated import Story

pytestmark = pytest.mark.engine

SEEDS = range(40) if SOAK else range(2)
STEPS = 4 if SOAK else 2


def settable(story: Story) -> list[str]:
    """Columns of which the story knows values."""
    return [one for one in story.columns if one == "id" or story.value(one) is not None]


def assigned(story: Story, chance: random.Random) -> dict[str, Any]:
    """One or two columns with new values: another column's of the same type, or a constant."""
    found = {}
    for column in chance.sample(settable(story), min(2, len(settable(story)))):
        alike = [one for one, kind in story.columns.items() if kind == story.columns[column]]
        value = "id + 100000" if column == "id" else story.value(column)
        found[column] = chance.choice(alike) if column != "id" and chance.random() < 0.4 else value
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_changes_leave_what_sparks_own_leave(warehouse: Warehouse, seed: int) -> None:
    """No ORDER of NaN: the story's floats have none, and Java skips files by bounds that leave it out."""
    spark, chance = warehouse.spark, random.Random(seed)
    version = 1 + seed % 3 if SOAK else 2 + seed % 2
    mine = Story.told(warehouse, f"chg_{seed}", version, seed)
    other = Story.told(warehouse, f"chg_{seed}_spark", version, seed)
    path = warehouse.path(mine.name)
    assert rows(spark, mine.table) == rows(spark, other.table)
    modes = ["copy-on-write"] if version == 1 else ["copy-on-write", "merge-on-read"]
    for step in range(STEPS):
        mode: Any = chance.choice(modes)
        divisor, rest = chance.randint(2, 4), chance.randrange(2)
        table = tamis.open(path, cache=False)
        if step % 2:
            values = assigned(mine, chance)
            frame = spark.table(other.table).where(f"id % {divisor} = {rest}").dropDuplicates(["id"])
            frame = frame.union(frame.withColumn("id", frame["id"] + 5000)).localCheckpoint()
            frame.createOrReplaceTempView("chg_source")
            said = ", ".join(f"t.{column} = {qualified(value, mine)}" for column, value in values.items())
            condition = f"t.id % 3 <> {rest}"
            spark.sql(
                f"merge into {other.table} t using chg_source s on t.id = s.id "
                f"when matched and {condition} then update set {said} when matched then delete "
                "when not matched and s.id % 2 = 0 then insert * "
                f"when not matched by source and t.id % 7 = {rest} then delete"
            )
            assert table.plan("id is not null").stats.files > 0
            (
                table.merge(frame, "t.id = s.id", mode=mode)
                .when_matched_update({name: qualified(value, mine) for name, value in values.items()}, condition)
                .when_matched_delete()
                .when_not_matched_insert_all("s.id % 2 = 0")
                .when_not_matched_by_source_delete(f"t.id % 7 = {rest}")
                .run()
            )
        else:
            values, where = assigned(mine, chance), f"id % {divisor} = {rest} or {mine.condition()}"
            said = ", ".join(f"{column} = {value}" for column, value in values.items())
            spark.sql(f"update {other.table} set {said} where {where}")
            table.update(values, where=where, spark=spark, mode=mode)
        assert rows(spark, mine.table) == rows(spark, other.table), (step, mine.log)
        assert ours(spark, path) == rows(spark, other.table), (step, mine.log)
        check_manifests(path)


def qualified(value: str, story: Story) -> str:
    """A value that may be a column, as the source's."""
    return f"s.{value}" if value in story.columns else value.replace("id +", "s.id +")
