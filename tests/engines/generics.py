"""Iceberg's generic Java writer and reader: tables with types that Spark's connector does not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tests.engines.reading import Java

if TYPE_CHECKING:
    from tests.engines.conftest import Warehouse

__all__ = ["java_rows", "nanos_of", "value", "write_rows"]

SUFFIXES = {"PARQUET": "parquet", "ORC": "orc", "AVRO": "avro"}


def value(java: Java, text: str) -> Any:  # noqa: ANN401
    """A java.time value: a time of day, or a moment with `T` in it, of a zone if it ends in `Z`."""
    of = java.jvm.java.time
    if "T" not in text:
        return of.LocalTime.parse(text)
    return of.OffsetDateTime.parse(text) if text.endswith("Z") else of.LocalDateTime.parse(text)


def nanos_of(java: Java, found: Any) -> int | None:  # noqa: ANN401
    """The nanoseconds since midnight, or since 1970 in UTC."""
    if found is None:
        return None
    if found.getClass().getSimpleName() == "LocalTime":
        return int(found.toNanoOfDay())
    if found.getClass().getSimpleName() == "LocalDateTime":
        found = found.atOffset(java.jvm.java.time.ZoneOffset.UTC)
    return int(found.toEpochSecond()) * 1_000_000_000 + int(found.getNano())


def write_rows(
    warehouse: Warehouse, name: str, rows: Sequence[Mapping[str, Any]], file_format: str = "parquet"
) -> None:
    """Append one data file of these rows, to an unpartitioned table. A value may be a dict, for a struct."""
    java = Java(warehouse.spark)
    loaded, jvm = java.load(name), java.jvm
    kind = getattr(jvm.org.apache.iceberg.FileFormat, file_format.upper())
    place = f"{loaded.location()}/data/{uuid4()}.{file_format}"
    output = java.iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(loaded.io().newOutputFile(place))
    factory = getattr(java.iceberg.data, "GenericFileWriterFactory$Builder")(loaded).dataFileFormat(kind).build()
    writer = factory.newDataWriter(output, loaded.spec(), None)
    for row in rows:
        writer.write(_record(java, loaded.schema().asStruct(), row))
    writer.close()
    loaded.newAppend().appendFile(writer.toDataFile()).commit()


def _record(java: Java, struct: Any, row: Mapping[str, Any]) -> Any:  # noqa: ANN401
    record = java.iceberg.data.GenericRecord.create(struct)
    for column, given in row.items():
        found = given
        if isinstance(given, dict):
            found = _record(java, struct.field(column).type().asStructType(), given)
        elif isinstance(given, list):
            found = java.listed(given)
        record.setField(column, found)
    return record


def java_rows(warehouse: Warehouse, name: str) -> Iterator[Any]:
    """The live rows of the table, as Iceberg's generic reader has them."""
    java = Java(warehouse.spark)
    rows = java.iceberg.data.IcebergGenerics.read(java.load(name)).build()
    try:
        iterator = rows.iterator()
        while iterator.hasNext():
            yield iterator.next()
    finally:
        rows.close()
