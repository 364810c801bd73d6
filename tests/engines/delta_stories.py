# ruff: noqa: S311, S608 - chance for tests, and SQL made of the tests' own names
"""Delta tables whose history is made by chance: rows come and go, columns and types change, the log is folded.

The same seed makes the same table. A change that the connector refuses is left out of the history, which `log` tells.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException

from tests.engines.generated import NAMES, VALUES, Story

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DeltaStory"]

PARTITIONS: Final = ("int", "string", "date", "timestamp", "decimal(6,2)", "boolean", "float")


@dataclass(frozen=True, slots=True)
class _Home:
    """What a story asks of a warehouse."""

    spark: SparkSession


@dataclass(slots=True)
class DeltaStory(Story):
    """A table, by its path, and its history so far."""

    settings: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, spark: SparkSession, path: str, seed: int, steps: tuple[int, int]) -> DeltaStory:
        """A table with a life behind it."""
        story = cls(_Home(spark), path, 0, random.Random(seed))  # type: ignore[arg-type] # of which spark alone is asked
        story.log.append(f"-- seed {seed}")
        chance = story.chance
        story.columns |= {column: chance.choice(list(VALUES)) for column in NAMES[: chance.randint(3, 5)]}
        story.settings = {
            "delta.columnMapping.mode": chance.choice(("name", "id")),
            "delta.enableDeletionVectors": chance.choice(("true", "true", "false")),
            "delta.enableTypeWidening": "true",
            "delta.checkpointInterval": chance.choice(("2", "3", "100")),
            "delta.checkpointPolicy": chance.choice(("classic", "v2")),
            "delta.checkpoint.writeStatsAsStruct": chance.choice(("true", "false")),
            "delta.checkpoint.writeStatsAsJson": chance.choice(("true", "false")),
            "delta.enableInCommitTimestamps": chance.choice(("true", "false")),
            "delta.enableRowTracking": chance.choice(("true", "false", "false")),
        }
        able = [one for one, kind in story.columns.items() if kind in PARTITIONS and one != "id"]
        story.partitions = chance.sample(able, min(len(able), chance.randint(0, 2)))
        story.create()
        story.insert()
        for _ in range(chance.randint(*steps)):
            story.change()
        story.insert()
        return story

    @property
    def table(self) -> str:
        """Its name in Spark."""
        return f"delta.`{self.name}`"

    def create(self) -> None:
        """With every setting that it begins with; by chance clustered, if it is not partitioned."""
        columns = ", ".join(f"{column} {kind}" for column, kind in self.columns.items())
        layout = f"partitioned by ({', '.join(self.partitions)})" if self.partitions else ""
        if not layout and self.chance.random() < 1 / 2:
            layout = "cluster by (id)"
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in self.settings.items())
        self.sql(f"create table {self.table} ({columns}) using delta {layout} tblproperties ({properties})")

    def change(self) -> None:
        """One thing that happens to a table; nothing, if the connector does not allow it."""
        ways = (
            *(self.insert, self.delete, self.delete, self.update, self.rename, self.drop, self.add, self.widen),
            *(self.merge, self.overwrite, self.optimize, self.restore, self.purge, self.repartition),
        )
        try:
            self.chance.choice(ways)()
        except PySparkException as error:
            self.log.append(f"-- refused: {str(error).splitlines()[0]}")

    def delete(self) -> None:
        """Some rows go; now and then a whole partition, or all."""
        if self.chance.random() < 1 / 6:
            self.sql(f"delete from {self.table} where {self._comparison()}")
        else:
            Story.delete(self)

    def merge(self) -> None:
        """Rows are replaced, go, and come, in one commit."""
        column = self.column()
        value = self.value(column)
        if value is None:
            return
        first, self.rows = self.rows, self.rows + 2
        names = ", ".join(self.columns)
        values = ", ".join("s.id" if one == "id" else "null" for one in self.columns)
        self.sql(
            f"merge into {self.table} t using (select cast(id as int) id from range({first - 8}, {self.rows})) s "
            f"on t.id = s.id when matched and s.id % 3 = 0 then delete "
            f"when matched then update set {column} = {value} "
            f"when not matched then insert ({names}) values ({values})"
        )

    def overwrite(self) -> None:
        """All rows, or those of some condition, are replaced."""
        self.sql(f"insert overwrite {self.table} select * from {self.table} where id % 3 > 0")

    def optimize(self) -> None:
        """Small files become large ones; vectors are applied."""
        self.sql(f"optimize {self.table}")

    def purge(self) -> None:
        """Files with vectors, and with dropped columns, are written anew."""
        self.sql(f"reorg table {self.table} apply (purge)")

    def restore(self) -> None:
        """The table is what it was at an older version; its columns are, too."""
        version = self.chance.randint(1, max(self.version_now, 1))
        self.sql(f"restore table {self.table} to version as of {version}")
        self.look()

    def repartition(self) -> None:
        """All rows are written anew, in other partitions."""
        able = [one for one, kind in self.columns.items() if kind in PARTITIONS and one != "id"]
        chosen = self.chance.sample(able, min(len(able), self.chance.randint(0, 2)))
        frame = self.frame().localCheckpoint()
        writer = frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        (writer.partitionBy(*chosen) if chosen else writer).save(self.name)
        self.log.append(f"-- repartitioned by {chosen}")
        self.look()

    def look(self) -> None:
        """The columns as they are now."""
        self.columns = dict(self.frame().dtypes)
        detail = self.warehouse.spark.sql(f"describe detail {self.table}").first()
        self.partitions = [] if detail is None else list(detail.partitionColumns)

    @property
    def version_now(self) -> int:
        """The newest version."""
        row = self.warehouse.spark.sql(f"describe history {self.table} limit 1").first()
        return 0 if row is None else int(row.version)

    def frame(self, version: int | None = None) -> DataFrame:
        """The table as the connector reads it."""
        reader = self.warehouse.spark.read.format("delta")
        return (reader if version is None else reader.option("versionAsOf", version)).load(self.name)

    def partition_condition(self) -> str | None:
        """A condition on partition columns alone; None if there is none."""
        self.look()
        if not self.partitions:
            return None
        columns, self.columns = self.columns, {one: self.columns[one] for one in self.partitions}
        try:
            return self.condition()
        finally:
            self.columns = columns
