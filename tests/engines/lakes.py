"""Every way to keep an Iceberg table, as Spark and as tamis know it: a folder, SQL catalogs, Iceberg's own server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tamis
from tests.engines.conftest import CATALOG
from tests.engines.servers import Unavailable, postgres, rest_server
from tests.engines.tables import execute
from tests.making.arrow_moves import live_rows
from tests.making.statements import COLUMNS, SEEDED, Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Lake", "lakes", "postgresql", "read_by_all", "rest", "seeded", "sqlite"]

Properties = dict[str, str]


@dataclass(frozen=True, slots=True)
class Lake:
    """A catalog that has one name in Spark and in PyIceberg; or a folder that Spark takes for a catalog."""

    name: str
    home: Path
    properties: Mapping[str, str] | None
    """PyIceberg's; None for a folder."""

    def target(self, table: str) -> str:
        """What tamis opens as `db.<table>`."""
        return f"db.{table}" if self.properties is not None else str(self.home / "db" / table)

    def open(self, table: str) -> tamis.Table:
        """The table as it is now."""
        return tamis.open(self.target(table), catalog=self.properties, cache=False)

    def read_by_pyiceberg(self, table: str) -> list[dict[str, Any]]:
        """Its rows, as PyIceberg reads them."""
        from pyiceberg.catalog import load_catalog
        from pyiceberg.table import StaticTable

        if self.properties is None:
            found = self.open(table).source.metadata  # type: ignore[attr-defined] # an IcebergTable
            newest = max(
                (self.home / "db" / table / "metadata").glob("v*.metadata.json"),
                key=lambda path: int(path.name[1:].split(".")[0]),
            )
            loaded = StaticTable.from_metadata(str(newest))
            assert loaded.metadata.current_snapshot_id == found.current_snapshot_id
        else:
            loaded = load_catalog(**self.properties).load_table(f"db.{table}")  # type: ignore[assignment]
        rows: list[dict[str, Any]] = loaded.scan().to_arrow().to_pylist()
        return rows


@contextmanager
def lakes(spark: SparkSession, folder: Callable[[str], Path], prefix: str) -> Iterator[Callable[[str], Lake]]:
    """Gives the lake of a kind, with a namespace `db`; started when first asked for, stopped at the end."""
    with ExitStack() as servers:

        @cache
        def start(kind: str) -> Lake:
            home = folder(kind)
            try:
                theirs, ours = _START[kind](servers, home)
            except Unavailable as reason:
                pytest.skip(str(reason))
            name = f"{prefix}_{kind}"
            for key, value in {"": CATALOG, **{f".{key}": value for key, value in theirs.items()}}.items():
                spark.conf.set(f"spark.sql.catalog.{name}{key}", value)
            spark.sql(f"create namespace if not exists {name}.db")
            return Lake(name, home, {"name": name, **ours} if ours else None)

        yield start


def seeded(spark: SparkSession, lake: Lake, name: str, version: int, properties: Mapping[str, str]) -> None:
    """Let Spark make `db.<name>` with its first rows: files of two specs, and a third spec for what comes."""
    table = f"{lake.name}.db.{name}"
    said = ", ".join(f"'{key}' = '{value}'" for key, value in {"format-version": str(version), **properties}.items())
    execute(spark, f"create table {table} ({COLUMNS}) using iceberg tblproperties ({said})")
    for rows, change in ((SEEDED[:20], "region"), (SEEDED[20:], "bucket(2, id)")):
        spark.createDataFrame(list(rows), COLUMNS).coalesce(1).writeTo(table).append()
        execute(spark, f"alter table {table} add partition field {change}")


def read_by_all(spark: SparkSession, lake: Lake, name: str) -> dict[str, list[str]]:
    """The rows of `db.<name>` in an order of their own, as each reader has them."""
    spark.sql(f"refresh table {lake.name}.db.{name}")
    found = {
        "Spark": (Row(*row) for row in spark.table(f"{lake.name}.db.{name}").collect()),
        "tamis": live_rows(lake.open(name)),
        "PyIceberg": (Row(**row) for row in lake.read_by_pyiceberg(name)),
    }
    return {reader: sorted(map(repr, rows)) for reader, rows in found.items()}


def _folder(_: ExitStack, home: Path) -> tuple[Properties, Properties]:
    return {"type": "hadoop", "warehouse": str(home)}, {}


def sqlite(_: ExitStack, home: Path) -> tuple[Properties, Properties]:
    """A SQL catalog in a file."""
    return _jdbc(f"sqlite:file:{home / 'catalog.db'}", home), _sql(f"sqlite:///{home / 'catalog.db'}", home)


def postgresql(servers: ExitStack, home: Path) -> tuple[Properties, Properties]:
    """A SQL catalog in a server."""
    pytest.importorskip("psycopg2", reason="psycopg2, with which PyIceberg enters PostgreSQL, is not installed")
    place = servers.enter_context(postgres())
    spark = _jdbc(f"postgresql://{place}", home) | {"jdbc.user": "postgres", "jdbc.password": "none"}
    return spark, _sql(f"postgresql+psycopg2://postgres:none@{place}", home)


def rest(servers: ExitStack, home: Path) -> tuple[Properties, Properties]:
    """Iceberg's own REST server."""
    import pyspark

    uri = servers.enter_context(rest_server(home, Path(pyspark.__file__).parent / "jars"))
    return {"type": "rest", "uri": uri}, {"type": "rest", "uri": uri}


def _jdbc(uri: str, home: Path) -> Properties:
    return {"type": "jdbc", "uri": f"jdbc:{uri}", "warehouse": home.as_uri(), "jdbc.schema-version": "V1"}


def _sql(uri: str, home: Path) -> Properties:
    return {"type": "sql", "uri": uri, "warehouse": home.as_uri()}


_START: dict[str, Callable[[ExitStack, Path], tuple[Properties, Properties]]] = {
    "folder": _folder,
    "sqlite": sqlite,
    "postgresql": postgresql,
    "rest": rest,
}
