"""Dates that have become times in nanoseconds, as version 3 allows. Iceberg's own library reads no such table yet.

So rows are held against what was written: a date is its midnight, in whatever file format and however it is deleted.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tamis
from tests.engines.conftest import Warehouse
from tests.engines.generics import value, write_rows
from tests.engines.reading import Java, delete_rows, java_table

pytestmark = pytest.mark.engine

TYPES = {"timestamp_ns": "timestamp_ntz"}
DAY = 86_400_000_000
"""Microseconds."""


def promote(folder: Path, ids: set[int], to: str) -> None:
    """Another schema, in which these fields have that type: as an engine writes it that knows the promotion."""
    hint = folder / "metadata" / "version-hint.text"
    version = int(hint.read_text())
    metadata = json.loads((hint.parent / f"v{version}.metadata.json").read_text())
    schema = json.loads(json.dumps(metadata["schemas"][-1]))
    schema["schema-id"] += 1
    for field in [*schema["fields"], *schema["fields"][2]["type"]["fields"]]:
        if field["id"] in ids:
            field["type"] = to
    metadata["schemas"].append(schema)
    metadata["current-schema-id"] = schema["schema-id"]
    (hint.parent / f"v{version + 1}.metadata.json").write_text(json.dumps(metadata))
    hint.write_text(str(version + 1))


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_dates_that_became_nanoseconds_are_read_planned_and_deleted(warehouse: Warehouse, file_format: str) -> None:
    """Beside files that have nanoseconds; by deletes that name days, and by deletes that name nanoseconds."""
    spark, java, name = warehouse.spark, Java(warehouse.spark), f"promoted_{file_format}"
    date, number = java.types.DateType.get(), java.types.IntegerType.get()
    fields = [
        java.field(1, "id", number),
        java.field(2, "at", date),
        java.field(3, "st", java.struct(java.field(4, "at", date), java.field(5, "k", number))),
    ]
    java_table(warehouse, name, fields, write_format_default=file_format)
    day = java.jvm.java.time.LocalDate.ofEpochDay
    for days in ((-2, -1, None), (0, 1, 2)):
        rows = [{"at": None if one is None else day(one)} for one in days]
        write_rows(
            warehouse,
            name,
            [
                {"id": 19 if one is None else one + 10, **row, "st": {**row, "k": one}}
                for one, row in zip(days, rows, strict=True)
            ],
            file_format,
        )
    delete_rows(warehouse, name, [{"at": day(1)}])
    promote(Path(warehouse.path(name)), {2, 4}, "timestamp_ns")
    moment = value(java, "1970-01-02T00:00:00.000000999")
    write_rows(warehouse, name, [{"id": 30, "at": moment, "st": {"at": moment, "k": 1}}, {"id": 31}], file_format)
    delete_rows(warehouse, name, [{"at": value(java, "1970-01-03T00:00:00")}], refresh=False)
    micros = {8: -2 * DAY, 9: -DAY, 19: None, 10: 0, 30: DAY, 31: None}
    opened = tamis.open(warehouse.path(name))
    plan = opened.plan()
    told = "columns 'at', 'st' are asked for"
    assert any(told in note for note in plan.stats.notes)
    shown = [f"unix_micros(cast({column} as timestamp))" for column in ("at", "st.at")]
    found = plan.read(spark, types=TYPES).selectExpr("id", *shown).collect()
    assert {row[0]: row[1:] for row in found} == {id_: (number, number) for id_, number in micros.items()}
    cases = {
        "at >= timestamp_ntz'1969-12-31 00:00:00' and st.at < timestamp_ntz'1970-01-02 00:00:00'": {9, 10},
        "at < timestamp_ntz'1969-12-30 00:00:00.000001' or st.at in ('1970-01-02', '1970-01-03')": {8, 30},
    }
    for where, wanted in cases.items():
        rows = opened.plan(where, spark=spark).read(spark, types=TYPES, columns=["id"]).collect()
        assert [row.id for row in sorted(rows)] == sorted(wanted), where
    if file_format != "avro":
        assert opened.plan("at > timestamp_ntz'1970-01-03 00:00:00'").stats.kept == 0
        assert opened.plan("at < timestamp_ntz'1969-12-31 12:00:00'").stats.kept == 1


def test_columns_that_were_of_no_type_are_read_as_what_they_became(warehouse: Warehouse) -> None:
    """No file has a value from before: a time in nanoseconds is the number that it is everywhere."""
    spark, java, name = warehouse.spark, Java(warehouse.spark), "promoted_unknown"
    unknown, number = java.types.UnknownType.get(), java.types.IntegerType.get()
    fields = [
        java.field(1, "id", number),
        java.field(2, "at", unknown),
        java.field(3, "st", java.struct(java.field(4, "at", unknown), java.field(5, "k", number))),
    ]
    java_table(warehouse, name, fields)
    write_rows(warehouse, name, [{"id": 1, "st": {"k": 1}}])
    promote(Path(warehouse.path(name)), {2, 4}, "timestamp_ns")
    moment = value(java, "1970-01-02T00:00:00.000000999")
    write_rows(warehouse, name, [{"id": 2, "at": moment, "st": {"at": moment, "k": 1}}])
    plan = tamis.open(warehouse.path(name)).plan()
    assert not plan.stats.notes
    rows = plan.read(spark, types=TYPES).selectExpr(
        "id", "unix_micros(cast(at as timestamp))", "st.k", "isnull(st.at)"
    )
    assert sorted(map(tuple, rows.collect())) == [(1, None, 1, True), (2, DAY, 1, False)]
