"""Equality deletes, through Iceberg's Java API: streaming writers leave them, Spark reads but never writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["delete_equal"]


def delete_equal(spark: SparkSession, table: str, column: str, values: Sequence[object], like: str | None) -> None:
    """Commit one equality delete file for these values of a column.

    like is a part of the path of a data file whose spec and partition it gets. Without it, the delete file is of the
    current spec, which must be unpartitioned, and reaches the whole table.
    """
    jvm: Any = spark._jvm
    iceberg = jvm.org.apache.iceberg
    loaded = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    loaded.refresh()
    gateway: Any = spark.sparkContext._gateway
    names = gateway.new_array(jvm.String, 1)
    names[0] = column
    schema = loaded.schema().select(names)
    ids = gateway.new_array(jvm.int, 1)
    ids[0] = schema.findField(column).fieldId()
    spec, partition = (loaded.spec(), None) if like is None else _partition_of(loaded, like)
    place = f"{loaded.location()}/data/equality-{loaded.currentSnapshot().snapshotId()}.parquet"
    output = iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(loaded.io().newOutputFile(place))
    made = getattr(iceberg.data, "GenericFileWriterFactory$Builder")(loaded)
    factory = made.equalityFieldIds(ids).equalityDeleteRowSchema(schema).build()
    writer = factory.newEqualityDeleteWriter(output, spec, partition)
    for value in values:
        record = iceberg.data.GenericRecord.create(schema)
        record.setField(column, value)
        writer.write(record)
    writer.close()
    loaded.newRowDelta().addDeletes(writer.toDeleteFile()).commit()


def _partition_of(loaded: Any, like: str) -> tuple[Any, Any]:  # noqa: ANN401 - objects of the JVM
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
