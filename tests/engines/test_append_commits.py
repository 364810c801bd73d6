# ruff: noqa: S608 - SQL made of the tests' own names
"""Commits of appends: to real catalogs, in races, after changes of the schema, and when they fail half-way."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tamis
from tamis.errors import CommitConflict, CommitRefused, CommitStateUnknown
from tamis.formats import writable_table
from tamis.formats.edit import Edit, new_snapshot_id
from tamis.formats.iceberg.homes import FolderHome
from tamis.jobs.retrying import committed
from tamis.spark.write import write_rows
from tests.engines.conftest import CATALOG, Warehouse
from tests.engines.servers import Unavailable, rest_server
from tests.engines.tables import execute

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.engine


def frame(spark: SparkSession, *ids: int) -> DataFrame:
    return spark.createDataFrame([(id_, f"r{id_ % 3}") for id_ in ids], "id bigint, region string").coalesce(1)


def ids(spark: SparkSession, table: str) -> list[int]:
    spark.sql(f"refresh table {table}")
    return sorted(row.id for row in spark.table(table).collect())


def folder_table(warehouse: Warehouse, name: str, properties: Mapping[str, str] | None = None) -> str:
    said = "".join(f", '{key}' = '{value}'" for key, value in (properties or {}).items())
    warehouse.spark.sql(
        f"create table ice.db.{name} (id bigint, region string) using iceberg partitioned by (region) "
        f"tblproperties ('format-version' = '2'{said})"
    )
    return warehouse.path(name)


def staged(warehouse: Warehouse, path: str, *numbers: int) -> tuple[Any, Edit]:
    """Rows that are written and not committed yet, as an append has them for a moment."""
    table = writable_table(tamis.open(path, cache=False).source)
    files = tuple(write_rows(frame(warehouse.spark, *numbers), table.stage(), "token"))
    return table, Edit("append", table.head("main"), table.schema_id, new_snapshot_id(), files)


def metadata_files(path: str) -> set[str]:
    return {one.name for one in (Path(path) / "metadata").iterdir() if not one.name.endswith(".crc")}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Iceberg's own REST catalog."""
    import pyspark

    with ExitStack() as servers:
        try:
            home = tmp_path_factory.mktemp("append_rest")
            uri = servers.enter_context(rest_server(home, Path(pyspark.__file__).parent / "jars"))
        except Unavailable as reason:
            pytest.skip(str(reason))
        yield {"type": "rest", "uri": uri}


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("kind", ["sqlite", "rest"])
def test_an_append_goes_through_the_catalog(
    warehouse: Warehouse, request: pytest.FixtureRequest, tmp_path: Path, kind: str, version: int
) -> None:
    """The SQL catalog's metadata file is written by tamis, a REST catalog's by its server: Spark reads both."""
    spark, name = warehouse.spark, f"append_{kind}_{version}"
    if kind == "rest":
        theirs = ours = request.getfixturevalue("server")
    else:
        place = f"{tmp_path / 'catalog.db'}"
        theirs = {"type": "jdbc", "uri": f"jdbc:sqlite:file:{place}", "jdbc.schema-version": "V1"}
        theirs |= {"warehouse": tmp_path.as_uri()}
        ours = {"type": "sql", "uri": f"sqlite:///{place}", "warehouse": tmp_path.as_uri()}
    for key, value in {"": CATALOG, **{f".{key}": value for key, value in theirs.items()}}.items():
        spark.conf.set(f"spark.sql.catalog.{name}{key}", value)
    execute(
        spark,
        f"create namespace if not exists {name}.db{version}",
        f"create table {name}.db{version}.t (id bigint, region string) using iceberg partitioned by (region) "
        f"tblproperties ('format-version' = '{version}')",
        f"insert into {name}.db{version}.t values (0, 'r0')",
    )
    table = tamis.open(f"db{version}.t", catalog={"name": name, **ours}, cache=False)
    done = table.append(frame(spark, 1, 2, 3))
    assert ids(spark, f"{name}.db{version}.t") == [0, 1, 2, 3]
    assert sorted(row.id for row in done.table.plan().read(spark).collect()) == [0, 1, 2, 3]
    frame(spark, 4).writeTo(f"{name}.db{version}.t").append()
    again = done.table.append(frame(spark, 5), snapshot_properties={"mark": "x"})
    assert ids(spark, f"{name}.db{version}.t") == [0, 1, 2, 3, 4, 5]
    assert tamis.open(f"db{version}.t", catalog={"name": name, **ours}).snapshot_id == again.snapshot_id
    # A connection is not pickled, and so a commit has nowhere to go.
    with pytest.raises(CommitRefused, match="pickled"):
        pickle.loads(pickle.dumps(table)).append(frame(spark, 6))  # noqa: S301 - our own


def test_appends_at_once_all_land(warehouse: Warehouse) -> None:
    """Each loses races against the others, and is run again on top of them."""
    path = folder_table(warehouse, "append_race", {"commit.retry.num-retries": "20"})
    edits = [staged(warehouse, path, number) for number in range(6)]

    def commit(pair: tuple[Any, Edit]) -> int:
        return committed(*pair, sleep=lambda _: None)[1]

    with ThreadPoolExecutor(6) as pool:
        attempts = list(pool.map(commit, edits))
    assert ids(warehouse.spark, "ice.db.append_race") == list(range(6))
    assert max(attempts) > 1
    document = json.loads(max((Path(path) / "metadata").glob("v*.json"), key=_version).read_text())
    assert [one["sequence-number"] for one in document["snapshots"]] == [1, 2, 3, 4, 5, 6]
    assert sum(name.startswith("snap-") for name in metadata_files(path)) == 6  # lost tries leave none behind


def _version(path: Path) -> int:
    return int(path.name.split(".")[0][1:])


def test_a_column_that_goes_between_staging_and_commit_is_a_conflict(warehouse: Warehouse) -> None:
    """The rows' values would be lost in silence; a column that comes is none."""
    path = folder_table(warehouse, "append_schema")
    table, edit = staged(warehouse, path, 1)
    execute(warehouse.spark, "alter table ice.db.append_schema add column extra int")
    assert table.commit(edit).snapshot_id == edit.snapshot_id
    execute(
        warehouse.spark,
        "alter table ice.db.append_schema add column more int",
        "alter table ice.db.append_schema rename column extra to other",
    )
    table, edit = staged(warehouse, path, 2)
    execute(warehouse.spark, "alter table ice.db.append_schema drop column more")
    before = metadata_files(path)
    with pytest.raises(CommitConflict) as caught:
        committed(table, edit)
    assert (caught.value.retryable, "'more' was dropped" in caught.value.reason) == (False, True)
    assert metadata_files(path) == before
    assert ids(warehouse.spark, "ice.db.append_schema") == [1]


def test_another_spec_between_staging_and_commit_keeps_the_files_where_they_are(warehouse: Warehouse) -> None:
    """Files of an older spec are as good: they are listed under their own."""
    path = folder_table(warehouse, "append_spec")
    table, edit = staged(warehouse, path, 1, 2)
    execute(warehouse.spark, "alter table ice.db.append_spec add partition field bucket(4, id)")
    done = table.commit(edit)
    assert ids(warehouse.spark, "ice.db.append_spec") == [1, 2]
    assert set(tamis.Table(done.table).plan().files["spec_id"].to_pylist()) == {0}
    assert tamis.open(path).append(frame(warehouse.spark, 3)).table.plan("id = 3").files["spec_id"].to_pylist() == [1]


def test_a_table_that_was_replaced_is_a_conflict(warehouse: Warehouse) -> None:
    path = folder_table(warehouse, "append_other")
    table, edit = staged(warehouse, path, 1)
    execute(warehouse.spark, "drop table ice.db.append_other purge")
    folder_table(warehouse, "append_other")
    with pytest.raises(CommitConflict, match="another table has its name"):
        committed(table, edit)


def test_a_crash_before_the_commit_leaves_the_old_table(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data and manifests are written, and nothing refers to them: all of them are removed again."""
    path = folder_table(warehouse, "append_crash")
    tamis.open(path).append(frame(warehouse.spark, 1))
    before, data = metadata_files(path), set(Path(path).rglob("*.parquet"))

    put = FolderHome.put

    def crash(home: FolderHome, path: str, data: bytes) -> None:
        put(home, path, data)
        if "/snap-" in path:
            raise KeyboardInterrupt

    monkeypatch.setattr(FolderHome, "put", crash)
    with pytest.raises(KeyboardInterrupt):
        tamis.open(path).append(frame(warehouse.spark, 2))
    assert (metadata_files(path), set(Path(path).rglob("*.parquet"))) == (before, data)
    assert ids(warehouse.spark, "ice.db.append_crash") == [1]


@pytest.mark.parametrize("happened", [True, False])
def test_an_interrupt_while_publishing_removes_nothing(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, *, happened: bool
) -> None:
    """Whoever interrupts does not know how far the catalog was: the files may be the table's by now."""
    name = f"append_interrupted_{happened}".lower()
    path = folder_table(warehouse, name)
    publish: Callable[..., str] = FolderHome.publish

    def interrupted(*arguments: object) -> str:
        if happened:
            publish(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(FolderHome, "publish", interrupted)
    with pytest.raises(CommitStateUnknown) as caught:
        tamis.open(path).append(frame(warehouse.spark, 1))
    assert list(Path(path).rglob(f"snap-{caught.value.snapshot_id}-*.avro"))
    assert list(Path(path).rglob("*.parquet"))
    assert ids(warehouse.spark, f"ice.db.{name}") == ([1] if happened else [])


@pytest.mark.parametrize("happened", [True, False])
def test_an_unknown_outcome_removes_nothing(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, *, happened: bool
) -> None:
    """If the answer is lost, the table is looked at: there is the snapshot, or nobody knows."""
    name = f"append_unknown_{happened}".lower()
    path = folder_table(warehouse, name)
    publish: Callable[..., str] = FolderHome.publish

    def lost(*arguments: object) -> str:
        if happened:
            publish(*arguments)
        raise ConnectionResetError

    monkeypatch.setattr(FolderHome, "publish", lost)
    table = tamis.open(path)
    if happened:
        assert table.append(frame(warehouse.spark, 1)).rows == 1
    else:
        with pytest.raises(CommitStateUnknown) as caught:
            table.append(frame(warehouse.spark, 1))
        assert list(Path(path).rglob(f"snap-{caught.value.snapshot_id}-*.avro"))
        assert list(Path(path).rglob("*.parquet"))
    assert ids(warehouse.spark, f"ice.db.{name}") == ([1] if happened else [])


def test_a_try_that_was_taken_for_lost_is_recognised(warehouse: Warehouse) -> None:
    """The snapshot's id is the same for every try: rows come once."""
    path = folder_table(warehouse, "append_twice")
    table, edit = staged(warehouse, path, 1)
    assert table.commit(edit).snapshot_id == table.commit(edit).snapshot_id
    assert ids(warehouse.spark, "ice.db.append_twice") == [1]


def test_a_branch_takes_rows_that_main_does_not_have(warehouse: Warehouse) -> None:
    spark = warehouse.spark
    path = folder_table(warehouse, "append_branch")
    tamis.open(path).append(frame(spark, 1))
    execute(
        spark,
        "alter table ice.db.append_branch create branch audit",
        "alter table ice.db.append_branch create tag old",
    )
    done = tamis.open(path).append(frame(spark, 2), branch="audit")
    assert ids(spark, "ice.db.append_branch") == [1]
    assert ids(spark, "ice.db.append_branch.branch_audit") == [1, 2]
    assert sorted(row.id for row in done.table.plan().read(spark).collect()) == [1, 2]
    for wrong in ("nowhere", "old"):
        with pytest.raises(CommitRefused, match=wrong):
            tamis.open(path).append(frame(spark, 3), branch=wrong)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("write.format.default", "orc"),
        ("write.location-provider.impl", "com.example.Provider"),
        ("encryption.key-id", "k"),
    ],
)
def test_what_tamis_does_not_do_is_refused_by_name(warehouse: Warehouse, key: str, value: str) -> None:
    name = "append_no_" + "".join(letter for letter in key if letter.isalpha()).lower()
    path = folder_table(warehouse, name)
    newest = Path(path) / "metadata" / "v1.metadata.json"
    document = json.loads(newest.read_text())
    document["properties"][key] = value
    newest.write_text(json.dumps(document))
    with pytest.raises(CommitRefused) as caught:
        tamis.open(path).append(frame(warehouse.spark, 1))
    assert caught.value.feature in {key, "encryption"}
    assert not list(Path(path).rglob("*.parquet"))


@pytest.mark.parametrize("setting", ["spark.wap.id", "spark.wap.branch"])
def test_what_is_to_be_audited_is_not_published(warehouse: Warehouse, setting: str) -> None:
    """A table that allows audits is written as any, but by a session that asks for one."""
    spark, name = warehouse.spark, f"append_{setting.rpartition('.')[2]}_audit"
    path = folder_table(warehouse, name)
    execute(spark, f"alter table ice.db.{name} set tblproperties ('write.wap.enabled' = 'true')")
    tamis.open(path, cache=False).append(frame(spark, 1))
    execute(spark, f"alter table ice.db.{name} create branch audit")
    spark.conf.set(setting, "audit")
    try:
        with pytest.raises(CommitRefused) as caught:
            tamis.open(path, cache=False).append(frame(spark, 2))
        assert caught.value.feature == setting
        if setting == "spark.wap.branch":
            tamis.open(path, cache=False).append(frame(spark, 3), branch="audit")
    finally:
        spark.conf.unset(setting)
    assert tamis.open(path, cache=False).delete("id = 1", spark=spark).rows == 1


def test_a_metadata_file_or_a_catalogs_folder_is_refused(warehouse: Warehouse, tmp_path: Path) -> None:
    """Nobody but the catalog can say what is the newest state, and make another so."""
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.schema import Schema

    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", Schema())
    for target in (str(tmp_path / "db" / "t"), made.metadata_location):
        with pytest.raises(CommitRefused, match="catalog"):
            tamis.open(target).append(frame(warehouse.spark, 1))
    catalog.close()
