# ruff: noqa: S311, S608 - chance for tests, and SQL made of the tests' own names
"""Tables whose history is made by chance: inserts, deletes, updates, and every change of schema and partitioning.

The same seed makes the same table. A change that the connector refuses is left out of the history, which `log` tells.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

from pyspark.errors import PySparkException

from tests.engines.conftest import Warehouse
from tests.engines.reading import delete_rows

__all__ = ["Story"]

VALUES: Final = {
    "int": "cast({0} % 50 - 10 as int)",
    "float": "cast({0} % 40 / 4 as float)",
    "decimal(6,2)": "cast({0} % 300 / 7 as decimal(6, 2))",
    "string": "'v' || {0} % 12",
    "date": "date_add(date'1969-12-01', cast({0} % 60 as int))",
    "timestamp": "timestamp_micros(({0} - 500) * 40000000001)",
    "boolean": "{0} % 2 = 0",
    "struct<a:int,b:string>": "named_struct('a', cast({0} % 9 as int), 'b', 'b' || {0} % 4)",
}
WIDER: Final = {"int": "bigint", "float": "double", "decimal(6,2)": "decimal(20,2)"}
NARROW: Final = {wide: narrow for narrow, wide in WIDER.items()}
TRANSFORMS: Final = {
    "int": ("bucket(3, {})", "truncate(7, {})", "{}"),
    "string": ("bucket(3, {})", "truncate(2, {})", "{}"),
    "date": ("days({})", "months({})", "years({})", "{}"),
    "timestamp": ("days({})", "hours({})"),
    "decimal(6,2)": ("bucket(2, {})", "truncate(3, {})", "{}"),
    "boolean": ("{}",),
}
NAMES: Final = ("c0", "c1", "c2", "x", "y", "z")
MERGE_ON_READ: Final = ", 'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read'"


@dataclass(slots=True)
class Story:
    """A table, `ice.db.<name>`, and its history so far."""

    warehouse: Warehouse
    name: str
    version: int
    chance: random.Random
    columns: dict[str, str] = field(default_factory=lambda: {"id": "int"})
    partitions: list[str] = field(default_factory=list)
    rows: int = 0
    log: list[str] = field(default_factory=list)

    @classmethod
    def told(cls, warehouse: Warehouse, name: str, version: int, seed: int, file_format: str = "parquet") -> Story:
        """A table with a life behind it."""
        story = cls(warehouse, name, version, random.Random(seed))
        chance = story.chance
        story.columns |= {column: chance.choice(list(VALUES)) for column in NAMES[: chance.randint(3, 5)]}
        columns = ", ".join(f"{column} {kind}" for column, kind in story.columns.items())
        story.sql(
            f"create table {story.table} ({columns}) using iceberg tblproperties ('format-version' = '{version}', "
            "'write.distribution-mode' = 'none', 'write.spark.fanout.enabled' = 'true', "
            f"'write.format.default' = '{file_format}'"
            f"{MERGE_ON_READ if version > 1 else ''})"
        )
        story.insert()
        for _ in range(chance.randint(6, 14)):
            story.change()
        story.insert()
        return story

    @property
    def table(self) -> str:
        """Its name in Spark."""
        return f"ice.db.{self.name}"

    def sql(self, statement: str) -> None:
        """Run a statement, and remember it."""
        self.warehouse.spark.sql(statement)
        self.log.append(statement)

    def insert(self) -> None:
        """A few rows, by two tasks; a seventh of the values is NULL."""
        first, self.rows = self.rows, self.rows + self.chance.randint(3, 12)
        values = ["cast(id as " + self.columns["id"] + ") as id"]
        for place, (column, kind) in enumerate(self.columns.items()):
            if column != "id":
                value = VALUES[NARROW.get(kind, kind)].format(f"h{place}")
                values.append(f"cast(case when h{place} % 7 > 0 then {value} end as {kind}) as {column}")
        hashes = ", ".join(
            f"pmod(xxhash64(id, {place}), 1000)::int as h{place}" for place in range(len(self.columns))
        )
        source = f"(select id, {hashes} from range({first}, {self.rows}, 1, 2))"
        ordered = ", ".join(self.columns)
        self.sql(f"insert into {self.table} select {ordered} from (select {', '.join(values)} from {source})")

    def change(self) -> None:
        """One thing that happens to a table; nothing, if the connector does not allow it."""
        ways = (
            *(self.insert, self.insert, self.delete, self.update, self.rename, self.drop, self.add, self.widen),
            *(self.partition, self.partition, self.delete_equal),
        )
        try:
            self.chance.choice(ways)()
        except PySparkException as error:
            self.log.append(f"-- refused: {str(error).splitlines()[0]}")

    def delete(self) -> None:
        """Some rows go."""
        divisor = self.chance.randint(2, 9)
        self.sql(f"delete from {self.table} where id % {divisor} = {self.chance.randrange(divisor)}")

    def update(self) -> None:
        """Some rows get another value."""
        column = self.column()
        value = self.value(column)
        if value is not None:
            self.sql(f"update {self.table} set {column} = {value} where id % 5 = {self.chance.randrange(5)}")

    def rename(self) -> None:
        """A column gets a new name, perhaps one that another had before."""
        old, new = self.column(), self.chance.choice(NAMES)
        if new not in self.columns:
            self.sql(f"alter table {self.table} rename column {old} to {new}")
            self.columns = {new if one == old else one: kind for one, kind in self.columns.items()}

    def drop(self) -> None:
        """A column goes; not while a partition may need it, which Java cannot read afterwards."""
        if len(self.columns) > 3 and not self.partitions:
            column = self.column()
            self.sql(f"alter table {self.table} drop column {column}")
            del self.columns[column]

    def add(self) -> None:
        """A column comes, perhaps under an old name, and of another type."""
        column, kind = self.chance.choice(NAMES), self.chance.choice(list(VALUES))
        if column not in self.columns:
            self.sql(f"alter table {self.table} add column {column} {kind}")
            self.columns[column] = kind

    def widen(self) -> None:
        """A column's type is promoted."""
        column = self.chance.choice(list(self.columns))
        if self.columns[column] in WIDER:
            self.sql(f"alter table {self.table} alter column {column} type {WIDER[self.columns[column]]}")
            self.columns[column] = WIDER[self.columns[column]]

    def partition(self) -> None:
        """A partition field comes, or the last one goes."""
        if self.partitions and self.chance.random() < 1 / 2:
            self.sql(f"alter table {self.table} drop partition field {self.partitions[-1]}")
            self.partitions.pop()
            return
        column = self.chance.choice(list(self.columns))
        known = TRANSFORMS.get(NARROW.get(self.columns[column], self.columns[column]), ())
        if known:
            added = self.chance.choice(known).format(column)
            self.sql(f"alter table {self.table} add partition field {added}")
            self.partitions.append(added)

    def delete_equal(self) -> None:
        """A streaming writer deletes by value, in the whole table."""
        columns = [one for one, kind in self.columns.items() if kind in {"int", "string"}]
        if columns and self.version > 1 and not self.partitions:
            column = self.chance.choice(columns)
            number = [self.chance.randrange(30) for _ in range(2)]
            values = number if self.columns[column] == "int" else [f"v{one % 12}" for one in number]
            delete_rows(self.warehouse, self.name, [{column: value} for value in values])
            self.log.append(f"-- deleted by value: {column} in {values}")

    def column(self) -> str:
        """Any column but id."""
        return self.chance.choice([one for one in self.columns if one != "id"])

    def value(self, column: str) -> str | None:
        """A literal for the column; None if its type has none."""
        n = self.chance.randrange(50)
        kind = NARROW.get(self.columns[column], self.columns[column])
        return {
            "int": str(n - 10),
            "float": str(n / 4),
            "decimal(6,2)": f"{n / 7:.2f}",
            "string": f"'v{n % 12}'",
            "date": f"date'1969-12-{1 + n % 30:02}'",
            "timestamp": f"timestamp'1969-12-{1 + n % 30:02} 03:00:00'",
            "boolean": "true",
        }.get(kind)

    def condition(self) -> str:
        """One to three comparisons, joined by AND or by OR."""
        parts = [self._comparison() for _ in range(self.chance.randint(1, 3))]
        return self.chance.choice((" and ", " or ")).join(parts)

    def _comparison(self) -> str:
        column = self.chance.choice(list(self.columns))
        if self.columns[column].startswith("struct"):
            n = self.chance.randrange(9)
            return self.chance.choice((f"{column}.a > {n}", f"{column}.b = 'b{n % 4}'", f"{column} is null"))
        form = self.chance.choice(
            (
                "{} is null",
                "{} is not null",
                "{} = {}",
                "{} > {}",
                "{} <= {}",
                "{} != {}",
                "{} in ({}, {})",
                "not ({} < {})",
            )
        )
        return form.format(column, self.value(column), self.value(column))
