"""Plans of rewrites beside those of Iceberg's own action, over the same tables with the same options.

Iceberg's planner is the one that `rewrite_data_files` runs. It reads manifests by several threads, in any order;
groups of a partition depend on it if there are several, so that the table of one spec has one data manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pytest

import tamis

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.engines.conftest import Warehouse

pytestmark = pytest.mark.engine

Groups = set[frozenset[str]]


class Action:
    """Iceberg's own planner of rewrite_data_files."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.jvm: Any = spark._jvm

    def groups(self, table: str, options: dict[str, str], where: str | None = None) -> list[dict[str, Any]]:
        """The groups that the action would rewrite, each with its files and figures."""
        loaded = self.jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.spark._jsparkSession, table)
        expressions = self.jvm.org.apache.iceberg.expressions.Expressions
        condition = expressions.alwaysTrue()
        if where is not None:
            converter = self.jvm.org.apache.spark.sql.execution.datasources.SparkExpressionConverter
            resolved = converter.collectResolvedSparkExpression(self.spark._jsparkSession, table, where)
            condition = converter.convertToIcebergExpression(resolved)
        planner = self.jvm.org.apache.iceberg.actions.BinPackRewriteFilePlanner(loaded, condition)
        given = self.jvm.java.util.HashMap()
        for name, value in options.items():
            given.put(name, value)
        planner.init(given)
        found = []
        groups = planner.plan().groups().iterator()
        while groups.hasNext():
            group = groups.next()
            files = [(one.location(), one.specId()) for one in _each(group.rewrittenFiles())]
            found.append(
                {
                    "files": [path for path, _ in files],
                    "specs": {spec for _, spec in files},
                    "bytes": group.inputFilesSizeInBytes(),
                    "outputs": group.expectedOutputFiles(),
                    "split": group.inputSplitSize(),
                }
            )
        return found


def _each(values: Any) -> Iterable[Any]:  # noqa: ANN401 - of Java
    iterator = values.iterator()
    while iterator.hasNext():
        yield iterator.next()


@pytest.fixture(scope="module")
def action(warehouse: Warehouse) -> Action:
    return Action(warehouse.spark)


@pytest.fixture(scope="module")
def one_spec(warehouse: Warehouse) -> str:
    """A table with one spec: files of very different sizes, some with deletes, and a NULL partition."""
    spark = warehouse.spark
    name = "ice.db.rewrite_one_spec"
    spark.sql(
        f"create table {name} (id bigint, region string, text string) using iceberg partitioned by (region) "
        "tblproperties ('format-version'='2', 'write.delete.mode'='merge-on-read', "
        "'write.target-file-size-bytes'='65536', 'write.parquet.compression-codec'='uncompressed', "
        "'write.delete.granularity'='file', 'write.distribution-mode'='none')"
    )
    for number, (rows, width) in enumerate(
        ((20, 10), (2000, 8), (300, 300), (10, 10), (400, 200), (1500, 60), (5, 5))
    ):
        spark.range(rows).selectExpr(
            f"id + {number} * 10000 as id",
            "case when id % 5 = 0 then null when id % 2 = 0 then 'eu' else 'us' end as region",
            f"substr(repeat(sha2(cast(id as string), 256), 6), 1, {width}) as text",
        ).coalesce(1).sortWithinPartitions("region").writeTo(name).append()
    for where in ("id between 10000 and 11200 or id in (3, 20007, 50001)", "id between 40000 and 40050"):
        spark.sql(f"delete from {name} where {where}")  # noqa: S608 - our own
    spark.sql("call ice.system.rewrite_manifests('db.rewrite_one_spec')")
    manifests = spark.sql(f"select content from {name}.manifests where content = 0").count()  # noqa: S608 - our own
    assert manifests == 1
    return "rewrite_one_spec"


def ours(path: str, options: dict[str, str], where: str | None = None) -> tamis.RewritePlan:
    return tamis.open(path, cache=False).rewrite(where, options=dict(options)).plan()


def as_sets(plan: tamis.RewritePlan) -> Groups:
    return {frozenset(files) for files in plan.groups["files"].to_pylist()}


OPTIONS: list[dict[str, str]] = [
    {},
    {"min-input-files": "2"},
    {"min-input-files": "3", "target-file-size-bytes": "100000"},
    {"rewrite-all": "true"},
    {"delete-file-threshold": "1"},
    {"delete-file-threshold": "2", "min-file-size-bytes": "0"},
    {"delete-ratio-threshold": "0.9", "min-file-size-bytes": "0"},
    {"delete-ratio-threshold": "0.05", "min-file-size-bytes": "0", "max-file-size-bytes": "900000000"},
    {"target-file-size-bytes": "20000", "min-file-size-bytes": "5000", "max-file-size-bytes": "30000"},
    {"max-file-group-size-bytes": "60000", "min-input-files": "2"},
    {"max-file-group-input-files": "2", "min-input-files": "2"},
    {"rewrite-all": "true", "max-file-group-size-bytes": "150000", "max-file-group-input-files": "3"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda one: " ".join(f"{key}={value}" for key, value in one.items()))
def test_one_spec_has_the_candidates_and_groups_of_iceberg_s_own_action(
    action: Action, warehouse: Warehouse, one_spec: str, options: dict[str, str]
) -> None:
    theirs = action.groups(f"ice.db.{one_spec}", options)
    plan = ours(warehouse.path(one_spec), options)
    assert as_sets(plan) == {frozenset(group["files"]) for group in theirs}
    figures = {
        frozenset(group["files"]): (group["bytes"], group["expected_outputs"], group["split_size"])
        for group in plan.groups.to_pylist()
    }
    assert figures == {
        frozenset(group["files"]): (group["bytes"], group["outputs"], group["split"]) for group in theirs
    }


@pytest.mark.parametrize(
    "where", ["region = 'eu'", "region is null", "id < 10000", "region = 'us' and id >= 40000", "region <> 'eu'"]
)
def test_condition_leaves_the_files_of_iceberg_s_own_action(
    action: Action, warehouse: Warehouse, one_spec: str, where: str
) -> None:
    """Every file that may match is rewritten whole. In SQL `<>` is not true of NULL, in Iceberg it is."""
    options = {"rewrite-all": "true"}
    theirs = {frozenset(group["files"]) for group in action.groups(f"ice.db.{one_spec}", options, where)}
    plan = ours(warehouse.path(one_spec), options, where)
    assert as_sets(plan) <= theirs if "<>" in where else as_sets(plan) == theirs
    assert as_sets(plan)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("options", [{"min-input-files": "1"}, {"rewrite-all": "true"}], ids=["defaults", "all"])
def test_evolved_table_never_has_a_group_of_two_specs_and_misses_no_candidate(
    action: Action, warehouse: Warehouse, evolved: Callable[[int], str], version: int, options: dict[str, str]
) -> None:
    """Iceberg's own action mixes the files of all older specs; the files that it takes are ours as well."""
    name = evolved(version)
    theirs = action.groups(f"ice.db.{name}", options)
    assert any(len(group["specs"]) > 1 for group in theirs), "nothing is shown: Iceberg mixes no specs here"
    plan = ours(warehouse.path(name), options)
    candidates = plan.candidates.to_pylist()
    spec_of = {one["path"]: (one["spec_id"], one["partition"]) for one in candidates}
    for files in plan.groups["files"].to_pylist():
        assert len({spec_of[path] for path in files}) == 1
    chosen = {one["path"] for one in candidates if one["candidate"]}
    assert {path for group in theirs for path in group["files"]} <= chosen
    if "rewrite-all" in options:
        assert {path for files in plan.groups["files"].to_pylist() for path in files} == chosen


def test_procedure_rewrites_the_files_that_were_planned(warehouse: Warehouse, one_spec: str) -> None:
    """The last word: what `rewrite_data_files` has replaced. It changes the table, so that it comes last."""
    options = {"min-input-files": "2", "max-concurrent-file-group-rewrites": "1"}
    path = warehouse.path(one_spec)
    before = set(tamis.open(path, cache=False).plan().files["path"].to_pylist())
    planned = {file for files in as_sets(ours(path, options)) for file in files}
    pairs = ", ".join(f"'{key}', '{value}'" for key, value in options.items())
    warehouse.spark.sql(f"call ice.system.rewrite_data_files(table => 'db.{one_spec}', options => map({pairs}))")
    after = set(tamis.open(path, cache=False).plan().files["path"].to_pylist())
    assert planned == before - after
