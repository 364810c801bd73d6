"""Rows as Paimon's Java core tells them, and as Spark gives them: made comparable."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import types as pt

import tamis
from tests.engines.paimon_engine import PaimonEngine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["assert_same", "comparable", "told", "written_by_pypaimon"]


def comparable(rows: Iterable[Mapping[str, Any]], schema: pa.Schema) -> list[str]:
    """A text for each row, sorted: two rows have the same one if every value is the same, -0.0 and NaN included."""
    return sorted(json.dumps({field.name: told(row[field.name], field.type) for field in schema}) for row in rows)


def told(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401 - JSON
    """A value, of either engine, in one form."""
    if value is None:
        return None
    if pt.is_struct(kind):
        return {field.name: told(value[field.name], field.type) for field in kind}
    if pt.is_list(kind):
        return [told(one, kind.value_type) for one in value]
    if pt.is_map(kind):
        pairs = [(told(key, kind.key_type), told(one, kind.item_type)) for key, one in value]
        return sorted(pairs, key=json.dumps)
    if pt.is_floating(kind):
        return repr(float(value))
    if pt.is_timestamp(kind):
        moment = value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(value)
        return (moment if moment.tzinfo is None else moment.astimezone(dt.UTC)).isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value if isinstance(value, bool | int) else str(value)


def assert_same(frame: DataFrame, rows: Sequence[Mapping[str, Any]]) -> None:
    """Spark's rows are these, as often as they stand there."""
    found = frame.toArrow()
    assert comparable(found.to_pylist(), found.schema) == comparable(rows, found.schema)


def same_as_java(spark: SparkSession, paimon: PaimonEngine, table: str, **asked: Any) -> DataFrame:  # noqa: ANN401 - JSON
    """The table read by tamis, once it has been seen to have the rows that Java reads."""
    frame = tamis.open(str(paimon.path(table))).plan().read(spark)
    assert_same(frame, paimon("read", table, **asked)["rows"])
    return frame


def written_by_pypaimon(
    paimon: PaimonEngine,
    table: str,
    batches: Sequence[pa.Table],
    *,
    options: Mapping[str, str] | None = None,
    partition_keys: Sequence[str] = (),
    primary_keys: Sequence[str] = (),
) -> str:
    """A table that pypaimon made, with a commit for each batch; gives its folder."""
    from pypaimon import CatalogFactory, Schema

    catalog = CatalogFactory.create({"warehouse": paimon.warehouse.as_uri()})
    catalog.create_database("db", ignore_if_exists=True)
    schema = Schema.from_pyarrow_schema(
        batches[0].schema,
        partition_keys=list(partition_keys),
        primary_keys=list(primary_keys),
        options=dict(options or {}),
    )
    catalog.create_table(f"db.{table}", schema, ignore_if_exists=False)
    for batch in batches:
        appended_by_pypaimon(paimon, table, batch)
    return str(paimon.path(table))


def appended_by_pypaimon(paimon: PaimonEngine, table: str, batch: pa.Table) -> None:
    """One commit more."""
    from pypaimon import CatalogFactory

    catalog = CatalogFactory.create({"warehouse": paimon.warehouse.as_uri()})
    builder = catalog.get_table(f"db.{table}").new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    try:
        write.write_arrow(batch)
        commit.commit(write.prepare_commit())
    finally:
        write.close()
        commit.close()
