"""Primary-key tables, merged by key on the executors, have the rows that Java's merge read gives, by either way.

A section is merged file by file with Arrow, or by Spark's sort: every table here is read both ways.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pypaimon import CatalogFactory

import tamis
from tamis.errors import UnsupportedFormatError
from tamis.spark import merging_tasks
from tests.engines.paimon_engine import PaimonEngine, Refusal
from tests.engines.paimon_rows import assert_same

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.engine

WRITE_ONLY = {"write-only": "true", "bucket": "2"}


def create(
    paimon: PaimonEngine,
    table: str,
    columns: Mapping[str, object],
    keys: Sequence[str] = ("id",),
    *,
    options: Mapping[str, str] | None = None,
    partition_keys: Sequence[str] = (),
) -> None:
    listed = [[name, kind] for name, kind in columns.items()]
    told = {**WRITE_ONLY, **(options or {})}
    paimon("create_table", table, columns=listed, primary_keys=keys, partition_keys=partition_keys, options=told)


def same_both_ways(spark: SparkSession, paimon: PaimonEngine, table: str) -> DataFrame:
    """The table, once both ways have been seen to give Java's rows."""
    rows = paimon("read", table)["rows"]
    opened = tamis.open(str(paimon.path(table)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging_tasks, "MOST_ROWS", -1)
        assert_same(opened.plan().read(spark), rows)
    frame = opened.plan().read(spark)
    assert_same(frame, rows)
    return frame


def rows(ids: range, **values: object) -> list[dict[str, object]]:
    return [{"id": row, **values} for row in ids]


def test_the_newest_version_of_a_row_counts_and_removed_rows_stay_away(
    spark: SparkSession, paimon: PaimonEngine
) -> None:
    """Versions at three levels, and removals at two of them."""
    create(paimon, "newest", {"v": "STRING", "id": "INT NOT NULL", "n": "INT"})
    paimon("write", "newest", rows=rows(range(200), v="first", n=1))
    paimon("compact", "newest")
    paimon("write", "newest", rows=rows(range(50, 120), v="second", n=2))
    paimon("delete", "newest", rows=rows(range(60, 70), v="gone", n=None))
    paimon("compact", "newest", full=False, dynamic={"num-sorted-run.compaction-trigger": "2"})
    paimon("write", "newest", rows=rows(range(65, 80), v="third", n=None))
    paimon("delete", "newest", rows=rows(range(75, 90), v=None, n=None))
    assert len({one["file"]["level"] for one in paimon("files", "newest")["files"]}) >= 2
    frame = same_both_ways(spark, paimon, "newest")
    assert frame.count() == 180
    opened = tamis.open(str(paimon.path("newest")))
    for where in ("v = 'first' and id < 62", "n is null", "id between 60 and 72 and v = 'third'"):
        told = sorted(frame.filter(where).select("n", "id").collect(), key=str)
        assert sorted(opened.plan(where).read(spark, columns=["n", "id"]).collect(), key=str) == told, where


def test_keys_of_several_columns_in_another_order_and_partitions_are_told_apart(
    spark: SparkSession, paimon: PaimonEngine
) -> None:
    """The key's columns stand otherwise in the table: whoever mixes them up returns rows twice."""
    columns = {"v": "INT", "b": "STRING NOT NULL", "day": "STRING NOT NULL", "a": "INT NOT NULL"}
    create(paimon, "several", columns, ("a", "b", "day"), partition_keys=["day"])
    for version in range(3):
        written = [
            {"v": version, "b": text, "day": day, "a": number}
            for number in range(version, 6)
            for text in ("", "x", "1x")
            for day in ("d1", "d2")
        ]
        paimon("write", "several", rows=written)
    frame = same_both_ways(spark, paimon, "several")
    assert frame.count() == frame.select("a", "b", "day").distinct().count() == 36


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_a_sequence_field_decides_before_the_order_of_writing(
    spark: SparkSession, paimon: PaimonEngine, order: str
) -> None:
    """NULL comes before every value, and of equal ones the later write counts."""
    table = f"sequenced_{order}"
    options = {"sequence.field": "s,t", "sequence.field.sort-order": order, "bucket": "1"}
    create(paimon, table, {"id": "INT NOT NULL", "s": "INT", "t": "STRING", "v": "INT"}, options=options)
    values: list[tuple[int | None, str | None]] = [(5, "a"), (None, "z"), (5, None), (7, ""), (5, "b"), (None, None)]
    for version, start in enumerate(range(6)):
        turned = values[start:] + values[:start]
        written = [{"id": key, "s": s, "t": t, "v": version} for key, (s, t) in enumerate(turned)]
        paimon("write", table, rows=written[: 6 - version])
    same_both_ways(spark, paimon, table)


def test_of_versions_with_one_sequence_number_the_later_file_counts(
    spark: SparkSession, paimon: PaimonEngine
) -> None:
    """Writers that know nothing of one another give the same numbers. Java's choice is another from row to row."""
    create(paimon, "alike", {"id": "INT NOT NULL", "v": "STRING"}, options={"bucket": "1"})
    table = CatalogFactory.create({"warehouse": paimon.warehouse.as_uri()}).get_table("db.alike")
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False), ("v", pa.string())])
    prepared = []
    for version in ("first", "second", "third"):
        builder = table.new_batch_write_builder()
        write = builder.new_write()
        write.write_arrow(pa.table({"id": range(500), "v": [version] * 500}, schema=schema))
        prepared.append((builder, write.prepare_commit()))
    for builder, messages in prepared:
        builder.new_commit().commit(messages)
    assert {one["file"]["max_seq"] for one in paimon("files", "alike")["files"]} == {499}
    told = [{"id": key, "v": "third"} for key in range(500)]
    for most in (merging_tasks.MOST_ROWS, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(merging_tasks, "MOST_ROWS", most)
            assert_same(tamis.open(str(paimon.path("alike"))).plan().read(spark), told)


def test_columns_that_spark_has_no_type_for_are_left_alone_unless_asked_for(
    spark: SparkSession, paimon: PaimonEngine
) -> None:
    """Their names stand inside words of the condition, and are not named by it."""
    columns = {"id": "INT NOT NULL", "state": "STRING", "t": "TIME(3)", "s": "TIMESTAMP(9)"}
    create(paimon, "untyped", columns, options={"bucket": "1"})
    for state in ("old", "new"):
        paimon("write", "untyped", rows=rows(range(3), state=state, t=None, s=None))
    plan = tamis.open(str(paimon.path("untyped"))).plan("state = 'new'")
    for most in (merging_tasks.MOST_ROWS, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(merging_tasks, "MOST_ROWS", most)
            assert plan.read(spark, columns=["id"]).count() == 3


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "aggregation", "vectors"])
def test_read_optimized_rows_are_those_of_the_last_full_compaction(
    spark: SparkSession, paimon: PaimonEngine, engine: str
) -> None:
    """`orders$ro` shows what compaction has made, unmerged, as Java does; what came since is counted in a note."""
    name = f"optimized_{engine}".replace("-", "_")
    options = {"merge-engine": engine}
    if engine == "aggregation":
        options["fields.n.aggregate-function"] = "sum"
    if engine == "vectors":
        options = {"deletion-vectors.enabled": "true", "write-only": "false"}
    create(paimon, name, {"id": "INT NOT NULL", "n": "INT", "s": "STRING"}, options=options)
    paimon("write", name, rows=rows(range(40), n=1, s="old"))
    form = f"{paimon.path(name)}$ro"
    assert_same(tamis.open(form).plan().read(spark), paimon("read_optimized", name)["rows"])
    paimon("write", name, rows=rows(range(10, 50), n=2, s="middle"))
    paimon("compact", name)
    compacted = paimon("read_optimized", name)["rows"]
    assert_same(tamis.open(form).plan().read(spark), compacted)
    paimon("write", name, rows=rows(range(45, 60), n=3, s="new"))
    told = paimon("read_optimized", name)["rows"]
    opened = tamis.open(form)
    assert_same(opened.plan().read(spark), told)
    assert len(told) == (45 if engine == "vectors" else 50)  # vectors are told at once
    plan = opened.plan("n = 2")
    assert_same(plan.read(spark), [row for row in told if row["n"] == 2])
    assert not opened.plan("n = 77").files.num_rows
    assert any("below level 5" in note for note in opened.plan().stats.to_dict()["notes"])
    same_both_ways(spark, paimon, name)
    by_name = tamis.open(f"db.{name}$ro", catalog={"warehouse": str(paimon.warehouse)}, format="paimon")
    assert by_name.plan("n = 2").files["path"].equals(plan.files["path"])


def test_removals_are_ignored_where_the_table_says_so(spark: SparkSession, paimon: PaimonEngine) -> None:
    create(paimon, "kept", {"id": "INT NOT NULL", "v": "INT"}, options={"bucket": "1"})
    paimon("write", "kept", rows=rows(range(10), v=1))
    paimon("delete", "kept", rows=rows(range(5, 15), v=2))
    paimon("alter", "kept", changes=[{"op": "set_option", "key": "ignore-delete", "value": "true"}])
    assert same_both_ways(spark, paimon, "kept").count() == 10


def test_the_first_row_counts_once_a_compaction_has_seen_it(spark: SparkSession, paimon: PaimonEngine) -> None:
    create(paimon, "first", {"id": "INT NOT NULL", "v": "INT"}, options={"merge-engine": "first-row"})
    paimon("write", "first", rows=rows(range(20), v=1))
    paimon("write", "first", rows=rows(range(10, 30), v=2))
    assert same_both_ways(spark, paimon, "first").count() == 0
    paimon("compact", "first")
    paimon("write", "first", rows=rows(range(25, 40), v=3))
    paimon("compact", "first", full=False, dynamic={"num-sorted-run.compaction-trigger": "1"})
    paimon("write", "first", rows=rows(range(50, 60), v=4))
    same_both_ways(spark, paimon, "first")


def test_partial_updates_are_put_together(spark: SparkSession, paimon: PaimonEngine) -> None:
    """Of each column the newest value that is not NULL; a row that was only ever removed is none."""
    columns = {
        "id": "INT NOT NULL",
        "a": "INT",
        "b": "STRING",
        "c": "DOUBLE",
        "d": {"type": "ARRAY", "element": "INT"},
    }
    create(paimon, "parts", columns, options={"merge-engine": "partial-update", "bucket": "1"})
    nothing = {"a": None, "b": None, "c": None, "d": None}
    paimon("write", "parts", rows=[{"id": key, **nothing, "a": key, "d": [key]} for key in range(8)])
    paimon("write", "parts", rows=[{"id": key, **nothing, "b": f"b{key}", "c": "NaN"} for key in range(3, 12)])
    paimon("write", "parts", rows=[{"id": key, **nothing, "a": -key, "d": []} for key in range(6, 14)])
    frame = same_both_ways(spark, paimon, "parts")
    opened = tamis.open(str(paimon.path("parts")))
    for where in ("a = 3 and b = 'b3'", "a = -7 and b = 'b7'", "b is null"):
        assert str(opened.plan(where).read(spark).collect()) == str(frame.filter(where).collect()), where


def test_a_removal_among_partial_updates_fails_as_java_does(spark: SparkSession, paimon: PaimonEngine) -> None:
    """Paimon refuses to merge it as well: which columns it takes back nobody knows."""
    create(paimon, "taken", {"id": "INT NOT NULL", "a": "INT"}, options={"merge-engine": "partial-update"})
    paimon("alter", "taken", changes=[{"op": "set_option", "key": "ignore-delete", "value": "false"}])
    paimon("write", "taken", rows=[{"id": 1, "a": 1}])
    paimon("write", "taken", rows=[{"id": 1, "a": 1, "_ROW_KIND": "-D"}])
    with pytest.raises(Refusal, match="can not accept delete"):
        paimon("read", "taken")
    with pytest.raises(Exception, match="partial-update puts together was deleted"):
        tamis.open(str(paimon.path("taken"))).plan().read(spark).collect()


def test_aggregated_columns_are_what_their_functions_make_of_all_versions(
    spark: SparkSession, paimon: PaimonEngine
) -> None:
    functions = {
        "s": ("BIGINT", "sum"),
        "sd": ("DECIMAL(20, 3)", "sum"),
        "sf": ("DOUBLE", "sum"),
        "p": ("INT", "product"),
        "mx": ("DOUBLE", "max"),
        "mn": ("DOUBLE", "min"),
        "mt": ("STRING", "max"),
        "lv": ("INT", "last_value"),
        "ln": ("INT", "last_non_null_value"),
        "fv": ("INT", "first_value"),
        "fn": ("INT", "first_non_null_value"),
        "ba": ("BOOLEAN", "bool_and"),
        "bo": ("BOOLEAN", "bool_or"),
        "ls": ("STRING", "listagg"),
        "ld": ("STRING", "listagg"),
        "un": ("INT", None),
    }
    options = {f"fields.{name}.aggregate-function": how for name, (_, how) in functions.items() if how}
    options |= {"merge-engine": "aggregation", "bucket": "1", "fields.ld.list-agg-delimiter": "; "}
    columns = {"id": "INT NOT NULL", **{name: kind for name, (kind, _) in functions.items()}}
    create(paimon, "summed", columns, options=options)
    values: list[dict[str, Any]] = [
        {"s": 1, "sd": "1.500", "sf": 0.1, "p": 3, "mx": "-0.0", "mn": 0.0, "mt": "ä", "lv": 1, "ln": 1, "fv": None},
        {"s": 2, "sd": "2.250", "sf": 0.2, "p": 4, "mx": 0.0, "mn": "-0.0", "mt": "b", "lv": 2, "ln": 2, "fv": 2},
        {"s": None, "sf": 0.3, "p": None, "mx": "NaN", "mn": "NaN", "mt": None, "lv": None, "ln": None, "fv": 3},
    ]
    more = [
        {"fn": None, "ba": True, "bo": False, "ls": "x", "ld": "", "un": 5},
        {"fn": 7, "ba": None, "bo": None, "ls": "", "ld": "y", "un": None},
        {"fn": 8, "ba": False, "bo": True, "ls": "z", "ld": "z", "un": 6},
    ]
    nothing = dict.fromkeys(functions)
    for version in range(3):
        row = {**nothing, **values[version], **more[version]}
        written = [{**row, "id": key} for key in range(version, 6)]
        if version == 2:
            written.append({**nothing, "id": 0})
        paimon("write", "summed", rows=written)
    same_both_ways(spark, paimon, "summed")
    paimon("compact", "summed")
    paimon("write", "summed", rows=[{**nothing, **values[0], **more[1], "id": 2}])
    same_both_ways(spark, paimon, "summed")


def test_what_merging_does_not_follow_is_refused_by_its_option(spark: SparkSession, paimon: PaimonEngine) -> None:
    columns = {"id": "INT NOT NULL", "a": "INT", "b": "INT", "g": "INT"}
    refused = {
        "fields.g.sequence-group": {"merge-engine": "partial-update", "fields.g.sequence-group": "a,b"},
        "fields.a.aggregate-function": {"merge-engine": "aggregation", "fields.a.aggregate-function": "rbm64"},
        "partial-update.remove-record-on-delete": {
            "merge-engine": "partial-update",
            "partial-update.remove-record-on-delete": "true",
        },
    }
    for number, (option, options) in enumerate(refused.items()):
        kind = {"a": "VARBINARY(100)"} if option.startswith("fields.a") else {}
        create(paimon, f"refused_{number}", {**columns, **kind}, options=options)
        plain = {"id": 1, "a": None, "b": 1, "g": 1}
        for _ in range(2):
            paimon("write", f"refused_{number}", rows=[plain])
        with pytest.raises(UnsupportedFormatError) as error:
            tamis.open(str(paimon.path(f"refused_{number}"))).plan().read(spark)
        assert error.value.facts["feature"] == option


def test_floats_as_keys_are_compared_as_java_compares_them(spark: SparkSession, paimon: PaimonEngine) -> None:
    """-0.0 and 0.0 are two keys, and NaN is one: Spark takes the first two for one."""
    create(paimon, "floats", {"id": "DOUBLE NOT NULL", "v": "INT"}, options={"bucket": "1"})
    for version in range(2):
        keys: list[Any] = ["-0.0", 0.0, "NaN", "Infinity", 1.5]
        paimon("write", "floats", rows=[{"id": key, "v": version} for key in keys[version:]])
    same_both_ways(spark, paimon, "floats")


def test_evolved_key_tables_are_merged_across_schemas(spark: SparkSession, paimon: PaimonEngine) -> None:
    create(paimon, "evolved_keys", {"id": "INT NOT NULL", "a": "INT", "b": "STRING"})
    paimon("write", "evolved_keys", rows=rows(range(20), a=1, b="old"))
    changes = [{"op": "rename_column", "name": "a", "to": "b2"}, {"op": "drop_column", "name": "b"}]
    paimon("alter", "evolved_keys", changes=[*changes, {"op": "add_column", "name": "a", "type": "STRING"}])
    paimon("write", "evolved_keys", rows=rows(range(10, 30), b2=2, a="new"))
    same_both_ways(spark, paimon, "evolved_keys")
    paimon("alter", "evolved_keys", changes=[{"op": "change_type", "name": "b2", "type": "BIGINT"}])
    paimon("write", "evolved_keys", rows=rows(range(25, 35), b2=1 << 40, a=None))
    frame = same_both_ways(spark, paimon, "evolved_keys")
    opened = tamis.open(str(paimon.path("evolved_keys")))
    for where in ("b2 = 1", "a is null", "b2 > 2 and a is null"):
        assert sorted(opened.plan(where).read(spark).collect()) == sorted(frame.filter(where).collect()), where


def test_joins_prune_key_and_append_tables_and_give_the_same_rows(spark: SparkSession, paimon: PaimonEngine) -> None:
    for table, keys in (("joined_keys", ("id",)), ("joined_append", ())):
        options = {"bucket": "8", "bucket-key": "id"}
        create(paimon, table, {"id": "INT NOT NULL", "v": "INT"}, keys, options=options)
        paimon("write", table, rows=rows(range(400), v=1))
        paimon("write", table, rows=rows(range(100, 300), v=2))
        opened = tamis.open(str(paimon.path(table)))
        other = spark.createDataFrame([(7, "a"), (150, "b"), (999, "c")], "id int, t string")
        for how in ("inner", "left"):
            told = opened.plan().read(spark).join(other, "id", how)
            assert sorted(opened.join(other, "id", how=how).collect(), key=str) == sorted(told.collect(), key=str)
