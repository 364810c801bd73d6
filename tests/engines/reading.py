"""What the tests of reading share: tables of Iceberg's Java API, and bags of rows to compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import tamis

if TYPE_CHECKING:
    from tests.engines.conftest import Warehouse

__all__ = [
    "METADATA",
    "Java",
    "bag",
    "connector",
    "delete_rows",
    "fingerprints",
    "java_table",
    "make",
    "same",
    "tamis_rows",
    "true_fingerprints",
]

METADATA: Final = ("_file", "_pos", "_spec_id", "_partition")
MERGE_ON_READ: Final = {"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"}
ADAPTIVE: Final = "spark.sql.adaptive.enabled"
BATCH: Final = 4
"""Reads in one Spark job: planning costs more than reading, and grows faster than their number."""


def bag(frame: DataFrame) -> Counter[str]:
    """The rows, in no order, each as often as it is there."""
    return Counter(map(str, frame.collect()))


def make(
    warehouse: Warehouse,
    name: str,
    columns: str,
    *statements: str,
    version: int = 2,
    partition: str = "",
    **properties: str,
) -> str:
    """A table made by SQL; `{t}` in the statements is the table. Properties have `_` for `.` and `__` for `-`."""
    every = {"format-version": str(version), **MERGE_ON_READ, **_named(properties)}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in every.items())
    layout = f"partitioned by ({partition})" if partition else ""
    spark = warehouse.spark
    spark.sql(f"create table ice.db.{name} ({columns}) using iceberg {layout} tblproperties ({listed})")
    for statement in statements:
        spark.sql(statement.replace("{t}", f"ice.db.{name}"))
    return name


def _named(properties: Mapping[str, str]) -> dict[str, str]:
    return {key.replace("__", "-").replace("_", "."): value for key, value in properties.items()}


def tamis_rows(warehouse: Warehouse, name: str, where: str | None = None, **options: Any) -> DataFrame:  # noqa: ANN401
    """What plan.read gives."""
    return tamis.open(warehouse.path(name)).plan(where).read(warehouse.spark, **options)


def connector(warehouse: Warehouse, name: str, where: str | None = None, columns: Sequence[str] = ()) -> DataFrame:
    """What Iceberg's connector gives."""
    warehouse.spark.sql(f"refresh table ice.db.{name}")
    rows = warehouse.spark.table(f"ice.db.{name}")
    rows = rows if where is None else rows.where(where)
    return rows.select(*("`" + one.replace("`", "``") + "`" for one in columns)) if columns else rows


def same(warehouse: Warehouse, name: str, where: str | None = None, columns: Sequence[str] | None = None) -> int:
    """Assert that both give the same bag of rows under the same names and types; how many rows there are."""
    ours, theirs = (
        tamis_rows(warehouse, name, where, columns=columns),
        connector(warehouse, name, where, columns or ()),
    )
    assert ours.schema.simpleString() == theirs.schema.simpleString()
    found, wanted = bag(ours), bag(theirs)
    assert found == wanted, where
    return found.total()


def fingerprints(plans: Sequence[DataFrame]) -> list[tuple[int, int]]:
    """For each of many DataFrames how many rows it has, and the sum of their hashes: several to one job."""
    if plans:
        plans[0].sparkSession.conf.set(
            ADAPTIVE, "false"
        )  # plans of many small parts: planning them again takes longest
    try:
        return _fingerprints(plans)
    finally:
        if plans:
            plans[0].sparkSession.conf.set(ADAPTIVE, "true")


def _fingerprints(plans: Sequence[DataFrame]) -> list[tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    hashed = [
        frame.select(f.lit(place).alias("place_"), f.xxhash64(*frame.columns).alias("h_"))
        for place, frame in enumerate(plans)
    ]
    for start in range(0, len(hashed), BATCH):
        united = reduce(lambda a, b: a.union(b), hashed[start : start + BATCH]).groupBy("place_")
        for row in united.agg(f.expr("count(*) as n"), f.expr("sum(cast(h_ as decimal(38))) as s")).collect():
            found[row.place_] = (row.n, int(row.s))
    return [found.get(place, (0, 0)) for place in range(len(plans))]


def true_fingerprints(rows: DataFrame, conditions: Sequence[str]) -> list[tuple[int, int]]:
    """The same of the rows of which each condition is true: rows that are there, no pruning, no filter."""
    columns = [column for column in rows.columns if column != "path_"]
    hashed = rows.withColumn("h_", f.xxhash64(*columns))
    found = []
    for start in range(0, len(conditions), 40):
        batch = conditions[start : start + 40]
        counts = [f.expr(f"count_if({one})") for one in batch]
        sums = [f.expr(f"coalesce(sum(if({one}, cast(h_ as decimal(38)), 0)), 0)") for one in batch]
        answer = hashed.agg(*counts, *sums).first()
        assert answer is not None
        found += [(answer[place], int(answer[len(batch) + place])) for place in range(len(batch))]
    return found


class Java:
    """Iceberg's Java API, for what SQL cannot make."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.jvm: Any = spark._jvm
        self.iceberg = self.jvm.org.apache.iceberg
        self.types = self.iceberg.types.Types

    def field(self, number: int, name: str, type_: Any, *, required: bool = False) -> Any:  # noqa: ANN401
        """A field of a schema."""
        kind = self.types.NestedField
        return (kind.required if required else kind.optional)(number, name, type_)

    def struct(self, *fields: Any) -> Any:  # noqa: ANN401
        """A struct type."""
        return self.types.StructType.of(self.listed(fields))

    def listed(self, values: Sequence[Any]) -> Any:  # noqa: ANN401
        """A Java list."""
        found = self.jvm.java.util.ArrayList()
        for one in values:
            found.add(one)
        return found

    def load(self, name: str) -> Any:  # noqa: ANN401
        """The table, as it is now."""
        loaded = self.iceberg.spark.Spark3Util.loadIcebergTable(self.spark._jsparkSession, f"ice.db.{name}")
        loaded.refresh()
        return loaded

    def data_file(self, name: str) -> Any:  # noqa: ANN401
        """One data file of the table."""
        tasks = self.load(name).newScan().planFiles()
        try:
            return tasks.iterator().next().file()
        finally:
            tasks.close()


def java_table(
    warehouse: Warehouse, name: str, fields: Sequence[Any], version: int = 3, identity: str = "", **properties: str
) -> Java:
    """A table with a schema of Java's own types, perhaps partitioned by a column."""
    java = Java(warehouse.spark)
    schema = java.iceberg.Schema(java.listed(fields))
    spec = java.iceberg.PartitionSpec.builderFor(schema)
    spec = spec.identity(identity) if identity else spec
    every = java.jvm.java.util.HashMap()
    for key, value in {"format-version": str(version), **MERGE_ON_READ, **_named(properties)}.items():
        every.put(key, value)
    catalog = java.iceberg.hadoop.HadoopCatalog(warehouse.spark._jsc.hadoopConfiguration(), str(warehouse.folder))
    identifier = java.iceberg.catalog.TableIdentifier.parse(f"db.{name}")
    catalog.createTable(identifier, schema, spec.build(), every)
    return java


def delete_rows(
    warehouse: Warehouse,
    name: str,
    rows: Sequence[Mapping[str, Any]],
    like: str | None = None,
    folder: str = "data",
    *,
    refresh: bool = True,
) -> None:
    """Commit an equality delete of these rows: values by column, `struct.field` for one inside.

    like is a part of the path of a data file whose spec and partition it gets; else it is of the current spec, which
    must be unpartitioned, and reaches the whole table. The connector cannot refresh a table that it cannot read.
    """
    java = Java(warehouse.spark)
    loaded, jvm = java.load(name), java.jvm
    gateway: Any = warehouse.spark.sparkContext._gateway
    columns = list(rows[0])
    names, ids = gateway.new_array(jvm.String, len(columns)), gateway.new_array(jvm.int, len(columns))
    for place, column in enumerate(columns):
        names[place], ids[place] = column, loaded.schema().findField(column).fieldId()
    schema = loaded.schema().select(names)
    spec, partition = (loaded.spec(), None) if like is None else _partition_of(loaded, like)
    place = f"{loaded.location()}/{folder}/equality-{uuid4()}.parquet"
    output = java.iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(loaded.io().newOutputFile(place))
    made = getattr(java.iceberg.data, "GenericFileWriterFactory$Builder")(loaded)
    factory = made.equalityFieldIds(ids).equalityDeleteRowSchema(schema).build()
    writer = factory.newEqualityDeleteWriter(output, spec, partition)
    for row in rows:
        writer.write(_record(java, schema, row))
    writer.close()
    loaded.newRowDelta().addDeletes(writer.toDeleteFile()).commit()
    if refresh:
        warehouse.spark.sql(f"refresh table ice.db.{name}")


def _record(java: Java, schema: Any, row: Mapping[str, Any]) -> Any:  # noqa: ANN401
    record = java.iceberg.data.GenericRecord.create(schema)
    for column, value in row.items():
        outer, _, inner = column.partition(".")
        if not inner:
            record.setField(outer, value)
            continue
        below = record.getField(outer)
        if below is None:
            below = java.iceberg.data.GenericRecord.create(schema.findField(outer).type().asStructType())
        below.setField(inner, value)
        record.setField(outer, below)
    return record


def _partition_of(loaded: Any, like: str) -> tuple[Any, Any]:  # noqa: ANN401
    tasks = loaded.newScan().planFiles()
    try:
        iterator = tasks.iterator()
        while iterator.hasNext():
            file = iterator.next().file()
            if like in file.location():
                return loaded.specs().get(file.specId()), file.partition()
    finally:
        tasks.close()
    raise AssertionError(f"no data file has {like!r} in its path")
