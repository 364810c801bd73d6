# ruff: noqa: S608 - SQL made of the tests' own names
"""Tables in real catalogs: Spark writes through Iceberg's Java client, tamis opens by name through PyIceberg's.

Hadoop folders, SQLite, PostgreSQL and Iceberg's own REST server.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tamis
from tamis.errors import NoSuchTableError
from tests.engines.conftest import CATALOG, Warehouse
from tests.engines.lakes import postgresql, rest, sqlite
from tests.engines.servers import Unavailable
from tests.engines.tables import execute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engine


@dataclass(frozen=True, slots=True)
class Catalog:
    """A catalog that has one name in Spark and in PyIceberg: SQL catalogs keep it in their tables."""

    name: str
    properties: Mapping[str, str]


@pytest.fixture(scope="module")
def catalog(warehouse: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Catalog]]:
    """Gives the catalog of a kind, with a table `db.events`; started when first asked for, stopped at the end."""
    with ExitStack() as servers:

        @cache
        def start(kind: str) -> Catalog:
            home = tmp_path_factory.mktemp(kind)
            try:
                spark, properties = _START[kind](servers, home)
            except Unavailable as reason:
                pytest.skip(str(reason))
            fill(warehouse.spark, kind, spark)
            return Catalog(kind, properties)

        yield start


_START: dict[str, Callable[[ExitStack, Path], tuple[dict[str, str], dict[str, str]]]] = {
    "sqlite": sqlite,
    "postgresql": postgresql,
    "rest": rest,
}


def fill(spark: SparkSession, name: str, properties: Mapping[str, str]) -> None:
    """Let Spark make `db.events` in the catalog: two specs, four files."""
    spark.conf.set(f"spark.sql.catalog.{name}", CATALOG)
    for key, value in properties.items():
        spark.conf.set(f"spark.sql.catalog.{name}.{key}", value)
    table = f"{name}.db.events"
    execute(
        spark,
        f"create namespace if not exists {name}.db",
        f"create table {table} (id int, region string) using iceberg",
        f"insert into {table} values (1, 'eu')",
        f"alter table {table} add partition field region",
        f"insert into {table} values (2, 'eu'), (3, 'us'), (4, 'uk')",
    )


def paths(table: tamis.Table, where: str | None = None) -> set[str]:
    return set(table.plan(where).files["path"].to_pylist())


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "rest"])
def test_a_table_is_found_by_its_full_name(
    warehouse: Warehouse, catalog: Callable[[str], Catalog], tmp_path: Path, kind: str
) -> None:
    """`catalog.db.table`, by PyIceberg's own configuration file: in a fresh process, for it is read once."""
    found = catalog(kind)
    settings = [f"    {key}: {value}" for key, value in found.properties.items()]
    (tmp_path / ".pyiceberg.yaml").write_text("\n".join(["catalog:", f"  {kind}:", *settings]))
    command = [sys.executable, "-c", _PRINT_PATHS, f"{kind}.db.events", "region = 'us' or id = 1"]
    environment = os.environ | {"PYICEBERG_HOME": str(tmp_path)}
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=120)
    files = warehouse.spark.table(f"{kind}.db.events").where("region = 'us' or id = 1").select("_file").distinct()
    assert sorted(done.stdout.split()) == sorted(row[0] for row in files.collect()), done.stderr
    assert len(done.stdout.split()) == 2


_PRINT_PATHS = """
import sys, tamis
print(*tamis.open(sys.argv[1]).plan(sys.argv[2]).files["path"].to_pylist(), sep="\\n")
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "rest"])
def test_a_table_is_found_with_the_catalogs_properties(
    warehouse: Warehouse, catalog: Callable[[str], Catalog], kind: str
) -> None:
    """The property `name` is the catalog's own name, by which SQL catalogs tell their tables apart."""
    properties = {"name": kind, **catalog(kind).properties}
    table = tamis.open("db.events", catalog=properties)
    assert table.plan("region = 'uk'").files["partition"].to_pylist() == ["region=uk"]
    # Opened anew it is the newest state; what was opened before stays as it was.
    execute(warehouse.spark, f"insert into {kind}.db.events values (5, 'uk')")
    assert len(paths(tamis.open("db.events", catalog=properties), "region = 'uk'")) == 2
    assert len(paths(table, "region = 'uk'")) == 1


def test_a_name_that_a_catalog_does_not_have_is_an_error_that_says_so(catalog: Callable[[str], Catalog]) -> None:
    properties = catalog("rest").properties
    with pytest.raises(NoSuchTableError, match=r"no table 'db\.nowhere'"):
        tamis.open("db.nowhere", catalog=properties)


def test_a_folder_its_uri_and_its_metadata_file_open_the_same_table(warehouse: Warehouse) -> None:
    fill(warehouse.spark, "ice", {})
    folder = Path(warehouse.path("events"))
    hint = int((folder / "metadata" / "version-hint.text").read_text())
    newest = folder / "metadata" / f"v{hint}.metadata.json"
    targets = [str(folder), folder.as_uri(), str(newest), newest.as_uri()]
    found = [paths(tamis.open(target), "id > 1 and region <> 'us'") for target in targets]
    assert found[0] == found[1] == found[2] == found[3]
    assert len(found[0]) == 2
    assert len(paths(tamis.open(str(newest.with_name(f"v{hint - 1}.metadata.json"))))) == 1
