"""Delta tables opened and planned: partition values, statistics, vectors, versions, and what is refused."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tamis
from tamis.errors import (
    AmbiguousTableError,
    NoSuchSnapshotError,
    NoSuchTableError,
    UnreadableMetadataError,
    UnsupportedFormatError,
)
from tamis.formats.delta import files
from tests.making.delta_logs import DeltaLog, add, metadata, protocol, remove, vector


def _stats(low: int, high: int, rows: int = 10, nulls: int = 0) -> str:
    return json.dumps(
        {"numRecords": rows, "minValues": {"id": low}, "maxValues": {"id": high}, "nullCount": {"id": nulls}}
    )


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    """Five files in three partitions; the second version removes one and puts a vector on another."""
    made = DeltaLog(tmp_path / "t")
    made.begin(
        add("1", "a", stats=_stats(0, 9)),
        add("2", "a", stats=_stats(10, 19)),
        add("part=b%20b/3", "b b", stats=_stats(0, 9)),
        add("4", None, stats=_stats(20, 29)),
        reader=3,
        features=("deletionVectors",),
    )
    made.commit(remove("2"), add("5", "a", stats=None))
    dv = vector("ab^-aqEH.-t@S}K{vb[*k^", cardinality=3)
    made.commit(remove("1"), add("1", "a", dv=dv, stats=_stats(0, 9)))
    return made


def _kept(table: tamis.Table, where: str | None = None) -> list[str]:
    return sorted(table.plan(where).files["path"].to_pylist())


def test_a_folder_is_opened_at_its_newest_version(log: DeltaLog) -> None:
    table = tamis.open(log.root)
    assert table.snapshot_id == 2
    assert table.format.startswith("delta")
    assert [column.name for column in table.schema.columns] == ["id", "part"]
    assert _kept(table) == ["1", "4", "5", "part=b%20b/3"]


def test_partition_columns_and_statistics_prune_in_one_pass(log: DeltaLog) -> None:
    table = tamis.open(log.root)
    assert _kept(table, "part = 'a'") == ["1", "5"]
    assert _kept(table, "part = 'b b'") == ["part=b%20b/3"]
    assert _kept(table, "part is null") == ["4"]
    assert _kept(table, "id > 15") == ["4", "5"]
    assert _kept(table, "part = 'a' and id > 15") == ["5"]


def test_a_mixed_or_prunes_by_both(log: DeltaLog) -> None:
    """Java's Kernel gives such a condition whole to one side, which then keeps every file."""
    assert _kept(tamis.open(log.root), "part = 'b b' or id = 25") == ["4", "5", "part=b%20b/3"]


def test_a_missing_leg_does_not_keep_the_other_from_pruning(log: DeltaLog) -> None:
    """File 5 has no statistics: unknown for id, but its partition still says no."""
    assert _kept(tamis.open(log.root), "id = 1 and part = 'b b'") == ["part=b%20b/3"]


def test_files_say_partition_and_vectors_and_have_no_spec(log: DeltaLog) -> None:
    files = {row["path"]: row for row in tamis.open(log.root).plan("id < 5").files.to_pylist()}
    assert files["1"] == {
        "path": "1",
        "size": 10,
        "rows": 10,
        "spec_id": None,
        "partition": "part=a",
        "bucket": None,
        "deletes": 1,
        "verdict": "some",
    }
    assert files["part=b%20b/3"]["deletes"] == 0
    verdicts = {row["path"]: row for row in tamis.open(log.root).plan("part = 'a'").verdicts.to_pylist()}
    assert verdicts["4"]["layer"] == "partition"
    assert "part" in verdicts["4"]["reason"]


@pytest.mark.parametrize("kind", ["classic", "multi-part", "v2-parquet", "v2-json", "v2-classic", "v2-no-sidecars"])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_checkpoint_changes_nothing(log: DeltaLog, kind: str, version: int) -> None:
    before = {where: tamis.open(log.root).plan(where).files.sort_by("path") for where in ("part = 'a'", "id > 15")}
    log.checkpoint(version, kind)
    log.hint({"version": version, "size": 1})
    for number in range(version + 1):
        (log.folder / f"{number:020d}.json").unlink()
    table = tamis.open(log.root)
    assert {where: table.plan(where).files.sort_by("path") for where in before} == before


@pytest.mark.parametrize("kind", ["classic", "multi-part", "v2-json"])
def test_batches_of_any_size_give_the_same_plan(log: DeltaLog, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large table is judged in slices: each has the paths, partitions, statistics and vectors of its own files."""
    wheres = ("part = 'a'", "id > 15", "part is null or id < 3", "true")
    log.checkpoint(2, kind)
    log.commit(*(add(f"more{number}", f"p{number}", stats=_stats(number, number)) for number in range(5)))
    whole = [tamis.open(log.root).plan(where).files for where in wheres]
    for size in (1, 2, 3):
        monkeypatch.setattr(files, "MOST_FILES", size)
        assert [tamis.open(log.root).plan(where).files for where in wheres] == whole


def test_a_version_is_opened_by_its_number(log: DeltaLog) -> None:
    assert _kept(tamis.open(log.root, version=0)) == ["1", "2", "4", "part=b%20b/3"]
    assert tamis.open(log.root, version=1).snapshot_id == 1
    for missing in (3, -1):
        with pytest.raises(NoSuchSnapshotError, match=f"version {missing}"):
            tamis.open(log.root, version=missing)


def test_a_time_chooses_by_when_commits_were_written(log: DeltaLog) -> None:
    """The third file has a clock that went back: its version still follows the second."""
    for version, seconds in enumerate((100, 200, 150)):
        os.utime(log.folder / f"{version:020d}.json", (seconds, seconds))
    found = {at: tamis.open(log.root, as_of_ms=at).snapshot_id for at in (100_000, 199_999, 200_000, 200_001, 10**12)}
    assert found == {100_000: 0, 199_999: 0, 200_000: 1, 200_001: 2, 10**12: 2}
    with pytest.raises(NoSuchSnapshotError, match=r"as of 1970-01-01T00:01:39\.999Z"):
        tamis.open(log.root, as_of_ms=99_999)


def test_in_commit_timestamps_count_and_not_the_files(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    on = {"delta.enableInCommitTimestamps": "true"}
    log.commit({"commitInfo": {"inCommitTimestamp": 1000}}, protocol(), metadata(**on), add("a"))
    log.commit({"commitInfo": {"inCommitTimestamp": 2000}}, add("b"))
    log.commit({"commitInfo": {"inCommitTimestamp": 3000}}, add("c"))
    for version in range(3):
        os.utime(log.folder / f"{version:020d}.json", (10**9, 10**9))
    assert [tamis.open(tmp_path, as_of_ms=at).snapshot_id for at in (1000, 1999, 2000, 9999)] == [0, 0, 1, 2]
    with pytest.raises(NoSuchSnapshotError):
        tamis.open(tmp_path, as_of_ms=999)


def test_in_commit_timestamps_that_came_later(tmp_path: Path) -> None:
    """Versions before they were switched on go by their files."""
    log = DeltaLog(tmp_path)
    log.begin(add("a"))
    log.commit(add("b"))
    on = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": "500000",
    }
    log.commit({"commitInfo": {"inCommitTimestamp": 500_000}}, metadata(**on))
    log.commit({"commitInfo": {"inCommitTimestamp": 600_000}}, add("c"))
    for version, seconds in enumerate((100, 200, 900, 900)):
        os.utime(log.folder / f"{version:020d}.json", (seconds, seconds))
    found = [tamis.open(tmp_path, as_of_ms=at).snapshot_id for at in (100_000, 499_999, 500_000, 599_999, 600_000)]
    assert found == [0, 1, 2, 2, 3]


def test_a_commit_without_its_own_timestamp_is_named(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.commit(protocol(), metadata(**{"delta.enableInCommitTimestamps": "true"}))
    with pytest.raises(UnreadableMetadataError, match="in-commit timestamp"):
        tamis.open(tmp_path, as_of_ms=0)


@pytest.mark.parametrize(
    ("action", "feature"),
    [
        (protocol(3, 7, ["deletionVectors", "someNewThing"]), "someNewThing"),
        (protocol(3, 7, ["redirectReaderWriter-preview"]), "redirectReaderWriter-preview"),
        (protocol(3, 7, ["catalogManaged"]), "catalogManaged"),
        (protocol(3, 7, ["catalogOwned-preview"]), "catalogOwned-preview"),
        (protocol(4, 8), "reader version 4"),
    ],
)
def test_a_feature_that_is_not_known_is_refused_by_name(log: DeltaLog, action: dict[str, Any], feature: str) -> None:
    log.commit(action)
    with pytest.raises(UnsupportedFormatError, match=feature) as raised:
        tamis.open(log.root)
    assert raised.value.feature == feature
    assert tamis.open(log.root, version=2).snapshot_id == 2, "older versions did not have it"


def test_a_repartitioned_table_reads_dead_files_with_their_old_values(log: DeltaLog) -> None:
    """An overwrite changed the partition columns: what it removed has values of another column, and says nothing."""
    schema = {
        "type": "struct",
        "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}],
    }
    dv = vector("ab^-aqEH.-t@S}K{vb[*k^", cardinality=3)
    gone = [remove("1", dv), remove("part=b%20b/3"), remove("4"), remove("5")]
    log.commit(metadata(schema, ("id",)), *gone, add("n1", values={"id": "7"}), add("n2", values={"id": "8"}))
    assert _kept(tamis.open(log.root), "id = 7") == ["n1"]
    log.checkpoint(1)
    assert _kept(tamis.open(log.root), "id = 7") == ["n1"]


def test_an_empty_string_is_kept_by_both_its_readings_and_by_no_other(log: DeltaLog) -> None:
    """Spark reads it as an empty string, and the protocol as NULL; no engine as anything else."""
    log.commit(add("e", "", stats=_stats(0, 9)), add("n", None, stats=_stats(0, 9)))
    for kind in ("commits", "checkpoint"):
        if kind == "checkpoint":
            log.checkpoint(3)
        table = tamis.open(log.root)
        for where in ("part = ''", "part is null", "part <=> null", "part <= 'a'", "part is not null", "part <> 'b'"):
            assert "e" in _kept(table, where), where
        for where in ("part = 'a'", "part > 'a'", "part in ('a', 'x')", "part <> ''"):
            plan = table.plan(where)
            assert "e" not in plan.files["path"].to_pylist(), where
            assert plan.stats.filter_stats.eval_errors == 1
        for where, verdict in (("part = ''", "some"), ("part is null", "some"), ("part = '' or part is null", "all")):
            verdicts = table.plan(where).verdicts
            assert verdicts.filter(pc.field("path") == "e")["verdict"].to_pylist() == [verdict]


def test_an_empty_string_beside_a_value_that_nobody_knows_keeps_both(log: DeltaLog) -> None:
    """What is known of the one says nothing of the other, though neither was decoded."""
    odd = add("odd")
    del odd["add"]["partitionValues"]
    log.commit(add("e", ""), odd)
    log.checkpoint(3)
    assert {"e", "odd"} & set(_kept(tamis.open(log.root), "part = 'x'")) == {"odd"}
    log.commit(add("f", ""))
    assert {"e", "f", "odd"} <= set(_kept(tamis.open(log.root), "part = ''"))
    assert {"e", "f", "odd"} <= set(_kept(tamis.open(log.root), "part is null"))


def test_a_table_can_be_pickled(log: DeltaLog) -> None:
    log.checkpoint(1)
    table = pickle.loads(pickle.dumps(tamis.open(log.root)))  # noqa: S301 - our own
    assert _kept(table, "part = 'a'") == ["1", "5"]


def test_a_table_of_two_formats_is_opened_as_the_one_that_is_named(log: DeltaLog) -> None:
    """UniForm writes Iceberg metadata beside the log."""
    (log.root / "metadata").mkdir()
    (log.root / "metadata" / "v1.metadata.json").write_text("{}")
    with pytest.raises(AmbiguousTableError):
        tamis.open(log.root)
    assert tamis.open(log.root, format="delta").snapshot_id == 2


def test_what_a_delta_table_is_not_opened_by(log: DeltaLog, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="version="):
        tamis.open(log.root, snapshot_id=1)
    with pytest.raises(ValueError, match="version="):
        tamis.open(log.root, ref="main")
    with pytest.raises(ValueError, match="one of version and as_of"):
        tamis.open(log.root, version=1, as_of_ms=1)
    with pytest.raises(NoSuchTableError):
        tamis.open(tmp_path / "nothing", format="delta")
    with pytest.raises(TypeError, match="version"):
        tamis.open(log.root, version="1")  # type: ignore[arg-type] # on purpose


def test_a_log_without_metadata_is_an_error(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.commit(protocol(), add("a"))
    with pytest.raises(UnreadableMetadataError, match="metaData"):
        tamis.open(tmp_path)


def test_a_damaged_checkpoint_is_named(log: DeltaLog) -> None:
    (path,) = log.checkpoint(1)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UnreadableMetadataError, match=r"checkpoint\.parquet"):
        tamis.open(log.root)


def test_a_sidecar_that_is_gone_is_named(log: DeltaLog) -> None:
    log.checkpoint(1, "v2-json")
    for one in (log.folder / "_sidecars").iterdir():
        one.unlink()
    with pytest.raises(UnreadableMetadataError, match="_sidecars"):
        tamis.open(log.root).plan()


def test_inspect_tells_files_vectors_and_the_log(log: DeltaLog) -> None:
    log.checkpoint(1, "v2-json")
    found = tamis.open(log.root).inspect()
    assert (found.total.files, found.total.rows, found.total.deletes.vectors, found.total.deletes.rows) == (
        4,
        30,
        1,
        3,
    )
    document = found.to_dict()
    assert document["checkpoint_version"] == 1
    assert document["tail_commits"] == 1
    assert document["features"] == ["deletionVectors"] or document["features"] == ("deletionVectors",)
    assert json.dumps(document)
    labels = [fact.label for fact in found.facts]
    assert labels[:3] == ["protocol", "checkpoint", "log tail"]


@pytest.mark.parametrize("mode", ["id", "ID", "Name"])
def test_inspect_names_clustering_columns_as_users_do_and_the_mode_is_heeded_in_any_case(
    tmp_path: Path, mode: str
) -> None:
    """The domain has physical names, at every depth. Spark takes the property in any case."""
    inner = {"type": "struct", "fields": [_mapped("x", "c-2", 2, "long")]}
    schema = {"type": "struct", "fields": [_mapped("s", "c-1", 1, inner), _mapped("a.b", "c-3", 3, "long")]}
    columns = {"clusteringColumns": [["c-1", "c-2"], ["c-3"], ["gone"]]}
    log = DeltaLog(tmp_path)
    log.commit(
        protocol(2, 7),
        metadata(schema, (), **{"delta.columnMapping.mode": mode}),
        {"domainMetadata": {"domain": "delta.clustering", "configuration": json.dumps(columns), "removed": False}},
        add("1", values={}),
    )
    table = tamis.open(tmp_path)
    assert table.inspect().clustered_by == ("s.x", "a.b", "gone")
    assert table.inspect().column_mapping == mode.lower()
    column = table.source.scan(table.plan()).fields[0]
    assert (column.id, column.written_as) == ((1, None) if mode.lower() == "id" else (None, "c-1"))


def test_inspect_names_types_as_users_do_whatever_their_values_compare_as(tmp_path: Path) -> None:
    """What does not compare as Arrow's values do has no type here: it is no void for that."""
    part = {"name": "v", "type": "variant", "nullable": True, "metadata": {}}
    collated: dict[str, Any] = {"__COLLATIONS": {"c": "icu.UNICODE_CI"}}
    columns = {
        "id": ("long", {}, "bigint"),
        "v": ("variant", {}, "variant"),
        "n": ("void", {}, "void"),
        "h": ("string", {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}, "char(3)"),
        "c": ("string", collated, "string collate UNICODE_CI"),
        "s": ({"type": "struct", "fields": [part]}, {}, "struct<v:variant>"),
        "e": ({"type": "struct", "fields": []}, {}, "struct<>"),
        "a": ({"type": "array", "elementType": "variant", "containsNull": True}, {}, "array<variant>"),
        "m": ({"type": "map", "keyType": "string", "valueType": "date"}, {}, "map<string,date>"),
    }
    log = DeltaLog(tmp_path)
    log.begin(schema=_fields(*((name, type_, told) for name, (type_, told, _) in columns.items())), partitions=())
    found = {column.name: column.type for column in tamis.open(tmp_path).inspect().schema}
    assert found == {name: said for name, (_, _, said) in columns.items()}


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_readers_are_told_of_types_that_are_sparks_alone(tmp_path: Path, mode: str) -> None:
    """A column of which no value was ever seen is in no file, and one with a collation compares by it."""
    told: dict[str, Any] = {"__COLLATIONS": {"c": "icu.UNICODE_CI"}}
    columns = [_mapped("n", "p-1", 1, "void"), _mapped("c", "p-2", 2, "string"), _mapped("v", "p-3", 3, "variant")]
    columns += [_mapped("t", "p-4", 4, "string")]
    columns[1]["metadata"] |= told
    columns[3]["metadata"] |= {"__CHAR_VARCHAR_TYPE_STRING": "char(12)"}
    log = DeltaLog(tmp_path)
    log.commit(
        protocol(2, 5), metadata({"type": "struct", "fields": columns}, (), **{"delta.columnMapping.mode": mode})
    )
    table = tamis.open(tmp_path)
    void, collated, variant, padded = table.source.scan(table.plan()).fields
    assert (void.spark_type, void.id, void.written_as) == ("void", None, None)
    assert collated.spark_type == "string collate UNICODE_CI"
    assert (collated.id, collated.written_as) == {"none": (None, "c"), "name": (None, "p-2"), "id": (2, None)}[mode]
    assert (variant.variant, variant.spark_type, variant.described) == (True, "", "variant")
    assert (padded.type, padded.padded, padded.described) == (pa.string(), 12, "char(12)")


def _mapped(name: str, physical: str, number: int, type_: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    told = {"delta.columnMapping.physicalName": physical, "delta.columnMapping.id": number}
    return {"name": name, "type": type_, "nullable": True, "metadata": told}


def _fields(*fields: tuple[str, Any, dict[str, Any]]) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [{"name": name, "type": type_, "nullable": True, "metadata": told} for name, type_, told in fields],
    }


@pytest.mark.parametrize(
    ("writer", "features", "pruned"),
    [
        (2, None, False),
        (3, None, False),
        (4, None, True),
        (6, None, True),
        (7, ["appendOnly"], False),
        (7, ["generatedColumns"], True),
    ],
)
def test_a_generation_expression_counts_only_where_the_protocol_has_writers_keep_to_it(
    tmp_path: Path, writer: int, features: list[str] | None, *, pruned: bool
) -> None:
    """A schema keeps the expression when it is copied to a table whose writers do not know generated columns."""
    made = DeltaLog(tmp_path / "t")
    told = {"minReaderVersion": 1, "minWriterVersion": writer}
    schema = _fields(("d", "date", {}), ("y", "integer", {"delta.generationExpression": "year(d)"}))
    made.commit(
        {"protocol": told if features is None else {**told, "writerFeatures": features}},
        metadata(schema, ("y",)),
        add("1", values={"y": "1999"}),
    )
    assert _kept(tamis.open(made.root), "d = date'2024-05-05'") == ([] if pruned else ["1"])
    assert _kept(tamis.open(made.root), "y = 2024") == []


def test_a_partition_column_has_no_statistics_whatever_a_file_has_under_its_name(tmp_path: Path) -> None:
    """The rows have the log's value: files that were there before the table may have another in them."""
    made = DeltaLog(tmp_path / "t")
    own = {"numRecords": 1, "minValues": {"part": "z"}, "maxValues": {"part": "z"}, "nullCount": {"part": 0}}
    made.begin(add("1", "a", stats=json.dumps(own)), add("2", None, stats=json.dumps(own)))
    table = tamis.open(made.root)
    assert _kept(table, "part = 'a'") == ["1"]
    assert _kept(table, "part is null") == ["2"]
    assert _kept(table, "part = 'z'") == []


def test_a_null_count_of_an_array_or_a_map_may_be_that_of_its_elements(tmp_path: Path) -> None:
    """delta-rs takes it from Parquet's leaves: two rows of [NULL] have as many NULLs as rows, and none is NULL."""
    array = {"type": "array", "elementType": "long", "containsNull": True}
    map_ = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}
    made = DeltaLog(tmp_path / "t")
    many, none = ({"numRecords": 2, "nullCount": {"x": count, "m": count, "n": count}} for count in (2, 0))
    made.begin(
        add("1", values={}, stats=json.dumps(many)),
        add("2", values={}, stats=json.dumps(none)),
        schema=_fields(("x", array, {}), ("m", map_, {}), ("n", "long", {})),
        partitions=(),
    )
    table = tamis.open(made.root)
    assert _kept(table, "x is not null") == _kept(table, "m is not null") == ["1", "2"]
    assert _kept(table, "x is null") == _kept(table, "m is null") == ["1"]
    assert _kept(table, "n is not null") == ["2"]


@pytest.mark.parametrize(
    "told", [{"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}, {"__COLLATIONS": {"part": "icu.UNICODE_CI"}}]
)
def test_a_partition_column_that_does_not_compare_by_bytes_leaves_its_table_readable(
    tmp_path: Path, told: dict[str, Any]
) -> None:
    """Nothing is pruned by it, and whoever reads the other columns needs no value of it."""
    made = DeltaLog(tmp_path / "t")
    made.begin(
        add("1", "a"), add("2", None), add("3", ""), schema=_fields(("id", "long", {}), ("part", "string", told))
    )
    table = tamis.open(made.root)
    assert _kept(table, "part = 'A'") == ["1", "2", "3"]
    assert table.source.scan(table.plan()).constants["part"].to_pylist() == ["a", None, ""]


def test_times_of_partitions_without_a_zone_prune_only_in_a_zone_that_is_named(tmp_path: Path) -> None:
    """12:00 is another instant in each zone: nobody knows which one until the session that reads is known."""
    log = DeltaLog(tmp_path)
    field = {"name": "ts", "type": "timestamp", "nullable": True, "metadata": {}}
    texts = {"bare": "2024-01-15 12:00:00", "zoned": "2024-01-15T12:00:00Z", "none": None}
    log.begin(
        *(add(name, values={"ts": text}) for name, text in texts.items()),
        schema={"type": "struct", "fields": [field]},
        partitions=("ts",),
    )
    table, noon = tamis.open(tmp_path), "ts = timestamp'2024-01-15 12:00:00Z'"
    unknown = table.plan(noon)
    assert unknown.files["path"].to_pylist() == ["bare", "zoned"]
    assert [note for note in unknown.stats.notes if "'2024-01-15 12:00:00' says no time zone" in note]
    assert table.plan(noon, time_zone="UTC").files["path"].to_pylist() == ["bare", "zoned"]
    assert table.plan(noon, time_zone="+05:00").files["path"].to_pylist() == ["zoned"]
    earlier = "ts = timestamp'2024-01-15 07:00:00Z'"
    assert table.plan(earlier, time_zone="+05:00").files["path"].to_pylist() == ["bare"]
    assert table.plan(earlier, time_zone="+05:00").files["verdict"].to_pylist() == ["all"]
    # The rules of a region are those of a session, and none was asked: the file may be of either side of noon.
    assert table.plan(noon, time_zone="Asia/Kolkata").stats.kept == 2
    assert table.plan("ts is null", time_zone="UTC").files["path"].to_pylist() == ["none"]
    assert table.plan("ts is null").files["path"].to_pylist() == ["bare", "none"]
