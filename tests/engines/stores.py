"""One story, told on disk and in a store: a table with deletes, and work on any that has to give the same rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

import tamis
from tamis.spark.planning import NOTE
from tests.contract.iceberg_deletes import commit_deletes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CONDITIONS", "deleted_from", "properties", "told", "upgraded"]

CONDITIONS = ("true", "id < 12 and region = 'eu'")
SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "row", LongType()),
    NestedField(3, "region", StringType()),
    NestedField(4, "label", StringType()),
)


def properties(endpoint: str, uri: str, key: str, secret: str) -> dict[str, str]:
    """Of a catalog in a SQLite file with its warehouse in the store."""
    return {
        "name": "tamis",
        "type": "sql",
        "uri": uri,
        "warehouse": "s3://lake/warehouse",
        "s3.endpoint": endpoint,
        "s3.region": "us-east-1",
        "s3.access-key-id": key,
        "s3.secret-access-key": secret,
    }


def deleted_from(catalog: Catalog, name: str = "events") -> Table:
    """A table of three specs and a renamed column, with position deletes of some files, equality of others."""
    catalog.create_namespace_if_not_exists("db")
    table = catalog.create_table(f"db.{name}", SCHEMA)
    with table.update_spec() as spec:
        spec.add_field("region", IdentityTransform(), "region")
    table.append(_rows("label", 0, 16))
    commit_deletes(table, frozenset({1, 4}), frozenset(), by_value=False)
    with table.update_schema() as schema:
        schema.rename_column("label", "name")
    with table.update_spec() as spec:
        spec.remove_field("region")
        spec.add_field("id", BucketTransform(3), "id_bucket")
    table.append(_rows("name", 16, 32))
    commit_deletes(table, frozenset({17, 18}), frozenset({17, 18}), by_value=True)
    return catalog.load_table(f"db.{name}")


def upgraded(catalog: Catalog, table: Table) -> Table:
    """The table at format version 3: PyIceberg upgrades to 2 at most, but registers what is given to it."""
    with table.io.new_input(table.metadata_location).open() as file:
        document = json.loads(file.read())
    document |= {"format-version": 3, "next-row-id": 0}
    location = f"{table.location()}/metadata/{len(document['metadata-log']) + 1:05d}-{uuid4()}.metadata.json"
    with table.io.new_output(location).create() as file:
        file.write(json.dumps(document).encode())
    catalog.drop_table(table.name())
    return catalog.register_table(table.name(), location)


def _rows(label: str, first: int, end: int) -> pa.Table:
    ids = list(range(first, end))
    regions = pa.array([("eu", "us", None)[id_ % 3] for id_ in ids], pa.string())
    return pa.table({"id": ids, "row": ids, "region": regions, label: [f"n{id_ % 8}" for id_ in ids]})


def told(
    table: tamis.Table, spark: SparkSession, storage: Literal["session", "catalog"], *, places: bool = True
) -> Mapping[str, Any]:
    """What the jobs of a table give: rows under conditions, where they lie, a join, and a plan made by executors."""
    rows = {}
    for where in CONDITIONS:
        plan = table.plan(where, spark=spark, storage=storage)
        rows[where] = sorted(map(repr, plan.read(spark, columns=["id", "region", "name"]).collect()))
    found: dict[str, Any] = {"rows": rows}
    if places:
        frame = table.plan("id < 20").read(spark, columns=["id"], metadata_columns=["_file"], storage=storage)
        listed = set(table.plan().files["path"].to_pylist())
        lie = frame.collect()
        found["places"] = (sorted(row["id"] for row in lie), {row["_file"] in listed for row in lie})
    other = spark.createDataFrame([(3, "three"), (20, "twenty"), (99, "none")], "id bigint, word string")
    joined = table.join(other, "id", where="region is not null", storage=storage)
    found["joined"] = sorted(map(repr, joined.select("id", "name", "word").collect()))
    here = table.plan(CONDITIONS[1])
    if table.format.startswith("iceberg"):
        there = table.plan(CONDITIONS[1], spark=spark, executors="always", storage=storage)
        found["planned"] = (there.files.equals(here.files), NOTE in there.stats.notes)
    return found
