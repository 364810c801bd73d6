"""Spark with Iceberg in it, a warehouse folder, Paimon's Java core, an object store, tables for several tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engines.paimon_engine import PaimonEngine, paimon_engine
from tests.engines.servers import ObjectStore, Unavailable, object_store
from tests.engines.tables import evolve
from tests.making.sparks import Started, spark, started_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Warehouse", "evolved", "paimon", "paimon_process", "spark", "started_spark", "store", "warehouse"]

CATALOG = "org.apache.iceberg.spark.SparkCatalog"


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A folder that Spark sees as the catalog `ice`, and tamis as folders."""

    spark: SparkSession
    folder: Path

    def path(self, table: str) -> str:
        """The folder of the table that Spark calls `ice.db.<table>`."""
        return str(self.folder / "db" / table)


@pytest.fixture(scope="session")
def warehouse(started_spark: Started, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """The catalog `ice`: a Hadoop folder."""
    if started_spark.missing:
        pytest.skip(started_spark.missing)
    session, folder = started_spark.session, tmp_path_factory.mktemp("warehouse")
    for key, value in {"": CATALOG, ".type": "hadoop", ".warehouse": str(folder)}.items():
        session.conf.set(f"spark.sql.catalog.ice{key}", value)
    return Warehouse(session, folder)


@pytest.fixture(scope="session")
def evolved(warehouse: Warehouse) -> Callable[[int], str]:
    """Gives the evolved table of a format version: `ice.db.evolved_v<version>`, made when it is first asked for."""

    @cache
    def make(version: int) -> str:
        name = f"evolved_v{version}"
        evolve(warehouse.spark, f"ice.db.{name}", version)
        return name

    return make


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """A real object store with a bucket `lake`."""
    try:
        with object_store(tmp_path_factory.mktemp("store")) as found:
            (found.folder / "lake").mkdir()
            yield found
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def paimon_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaimonEngine]:
    """Paimon's own Java core: one process for all tests that ask it."""
    try:
        with paimon_engine(tmp_path_factory.mktemp("paimon")) as engine:
            yield engine
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def paimon(paimon_process: PaimonEngine, tmp_path_factory: pytest.TempPathFactory) -> PaimonEngine:
    """That engine over a warehouse of this module alone: two modules may call a table by one name."""
    return replace(paimon_process, warehouse=tmp_path_factory.mktemp("paimon"))
