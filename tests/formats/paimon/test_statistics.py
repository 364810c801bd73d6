"""Statistics of manifest entries: what they prune, and what they must not."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import tamis
from tamis.errors import UnreadableMetadataError
from tamis.formats.paimon.schema import PaimonField
from tamis.formats.paimon.statistics import widens
from tamis.formats.paimon.types import atomic
from tamis.sieve.domain import ColumnStats
from tests.making.paimon_manifests import MadeTable, avro, entry, entry_schema, row, stats

ID = {"id": 0, "name": "id", "type": "BIGINT NOT NULL"}
V = {"id": 1, "name": "v", "type": "INT"}
S = {"id": 2, "name": "s", "type": "STRING"}


def kept(table: MadeTable, where: str, **at: Any) -> list[str]:  # noqa: ANN401 - what tamis.open takes
    files = tamis.open(table.folder, **at).plan(where).files
    return [path.rpartition("/")[2] for path in files["path"].to_pylist()]


def notes(table: MadeTable, where: str) -> str:
    return " ".join(tamis.open(table.folder).plan(where).stats.notes)


def values(lower: Sequence[Any], upper: Sequence[Any], nulls: Sequence[int], *types: str) -> dict[str, Any]:
    named = [f"c{place}" for place in range(len(types))]
    rows = [
        row(**{name: (type_, value) for name, type_, value in zip(named, types, side, strict=True)})
        for side in (lower, upper)
    ]
    return stats(*rows, nulls)


def ranged(name: str, low: int, high: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of the file
    """A file whose ids are 0 to 9, and whose v lies in a range."""
    return entry(name, value_stats=values([0, low], [9, high], [0, 0], "BIGINT", "INT"), **more)


def test_bounds_and_null_counts_prune_append_tables(tmp_path: Path) -> None:
    table = MadeTable(tmp_path / "t", [ID, V])
    table.commit(ranged("a", 0, 5), ranged("b", 6, 9), entry("c"))
    assert kept(table, "v = 3") == ["a", "c"]
    assert kept(table, "v is null") == ["c"]
    assert kept(table, "id > 20") == ["c"]


def test_columns_are_found_in_the_list_of_a_files_statistics(tmp_path: Path) -> None:
    """Dense statistics have some of the columns, in an order of their own; an empty list has none."""
    table = MadeTable(tmp_path / "t", [ID, V])
    dense = values([6], [9], [0], "INT")
    swapped = values([6, 0], [9, 9], [0, 0], "INT", "BIGINT")
    table.commit(
        entry("dense", value_stats=dense, value_stats_cols=["v"]),
        entry("swapped", value_stats=swapped, value_stats_cols=["v", "id"]),
        entry("none", value_stats_cols=[]),
        entry("misfit", value_stats=dense),
    )
    assert kept(table, "v = 3") == ["none", "misfit"]
    assert kept(table, "id = 30") == ["dense", "none", "misfit"]
    assert "1 files are not used: they do not have the columns" in notes(table, "v = 3")


def test_manifests_of_older_and_newer_writers_are_read(tmp_path: Path) -> None:
    """The pypaimon package could not plan a table that Java 0.9 had compacted: _VALUE_STATS_COLS was missing."""
    table = MadeTable(tmp_path / "t", [ID, V])
    old = ("_VALUE_STATS_COLS", "_EXTERNAL_PATH", "_FIRST_ROW_ID", "_WRITE_COLS", "_FILE_SOURCE", "_DELETE_ROW_COUNT")
    table.commit(ranged("a", 0, 5), ranged("b", 6, 9), without=old)
    new = {"name": "_SOME_DAY", "type": ["null", "string"], "default": None}
    table.commit(ranged("c", 0, 5), ranged("d", 6, 9), more=[new])
    assert kept(table, "v = 7") == ["b", "d"]


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "zstandard"])
def test_codecs(tmp_path: Path, codec: str) -> None:
    table = MadeTable(tmp_path / "t", [ID, V], codec=codec)
    table.commit(ranged("a", 0, 5), ranged("b", 6, 9))
    assert kept(table, "v = 7") == ["b"]


def test_files_of_older_schemas_are_read_by_ids(tmp_path: Path) -> None:
    """Column v was INT, is BIGINT and has another place and name; t is younger than the first file."""
    table = MadeTable(tmp_path / "t", [ID, V])
    wide = [{"id": 7, "name": "t", "type": "INT"}, {"id": 1, "name": "w", "type": "BIGINT"}, ID]
    table.schema(1, wide)
    late = values([1, 6, 0], [2, 9, 9], [0, 0, 0], "INT", "BIGINT", "BIGINT")
    table.commit(ranged("old", 0, 5), entry("new", value_stats=late, schema_id=1), schema_id=1)
    assert kept(table, "w = 3") == ["old"]
    assert kept(table, "w = 7") == ["new"]
    assert kept(table, "t = 1") == ["new"]
    assert kept(table, "t is null") == ["old"]
    plan = tamis.open(table.folder).plan("t is null")
    assert plan.files["verdict"].to_pylist() == ["all"]


@pytest.mark.parametrize(
    ("past", "today", "used"),
    [
        ("INT", "BIGINT", True),
        ("INT", "STRING", False),
        ("BIGINT", "INT", False),
        ("FLOAT", "DOUBLE", True),
        ("INT", "DOUBLE", False),
        ("DECIMAL(4, 1)", "DECIMAL(9, 1)", True),
        ("DECIMAL(4, 1)", "DECIMAL(9, 0)", False),
        ("DECIMAL(4, 1)", "DECIMAL(3, 1)", False),
        ("TIMESTAMP(3)", "TIMESTAMP(6)", True),
        ("TIMESTAMP(6)", "TIMESTAMP(3)", False),
        ("DATE", "TIMESTAMP(6)", False),
        ("VARCHAR(5)", "STRING", True),
        ("VARCHAR(5)", "VARCHAR(9)", True),
        ("STRING", "VARCHAR(5)", False),
    ],
)
def test_bounds_of_an_older_type_hold_only_if_it_was_widened(past: str, today: str, used: bool) -> None:
    """Numbers that became texts have another order; what was cut may be less than its bound."""
    old, new = (
        PaimonField(1, "v", one.arrow, one.name, precision=one.precision, length=one.length)
        for one in (atomic(past), atomic(today))
    )
    assert widens(old, new) == used


def test_bounds_of_a_changed_type_are_not_used_and_counted(tmp_path: Path) -> None:
    table = MadeTable(tmp_path / "t", [ID, V])
    table.schema(1, [ID, {**V, "type": "STRING"}])
    table.commit(ranged("old", 10, 90), schema_id=1)
    assert kept(table, "v = '5'") == ["old"]
    assert "bounds of v in 1 files are not used: it had another type" in notes(table, "v = '5'")


def test_column_with_a_default_says_nothing_of_files_that_are_older(tmp_path: Path) -> None:
    table = MadeTable(tmp_path / "t", [ID, V])
    table.schema(1, [ID, V, {"id": 5, "name": "d", "type": "INT", "defaultValue": "7"}])
    table.commit(ranged("old", 0, 5), schema_id=1)
    assert kept(table, "d = 7") == ["old"]


def test_default_that_readers_put_for_null_leaves_no_statistics(tmp_path: Path) -> None:
    table = MadeTable(tmp_path / "t", [ID, V], options={"fields.v.default-value": "100"})
    table.commit(ranged("a", 0, 5))
    assert kept(table, "v = 100") == ["a"]


def test_nan_as_a_bound_says_nothing(tmp_path: Path) -> None:
    """The pypaimon package skipped a file with max = NaN for f = -2.5, though the row was there."""
    table = MadeTable(tmp_path / "t", [{"id": 0, "name": "f", "type": "DOUBLE"}])
    table.commit(
        entry("nan", value_stats=values([-5.0], [math.nan], [0], "DOUBLE")),
        entry("all nan", value_stats=values([math.nan], [math.nan], [0], "DOUBLE")),
        entry("zero", value_stats=values([-0.0], [-0.0], [0], "DOUBLE")),
    )
    assert kept(table, "f = -2.5") == ["nan", "all nan"]
    assert kept(table, "f = -9.5") == ["all nan"]
    assert kept(table, "f = 0.0") == ["nan", "all nan", "zero"]


def test_upper_bound_that_was_cut_at_half_a_character_reaches_above_it(tmp_path: Path) -> None:
    """Java makes U+D800 of U+D7FF in the place where it cuts, and UTF-8 has `?` for it."""
    table = MadeTable(tmp_path / "t", [S])
    table.commit(entry("a", value_stats=values(["xx"], ["xx?"], [0], "STRING")))
    assert kept(table, "s = 'xx\ud7ffzzz'") == ["a"]
    assert kept(table, "s = 'xy'") == []


def test_nanoseconds_reach_to_the_end_of_the_microsecond(tmp_path: Path) -> None:
    """The pypaimon package cuts them when it writes bounds."""
    table = MadeTable(tmp_path / "t", [{"id": 0, "name": "ts", "type": "TIMESTAMP(9)"}])
    moment = dt.datetime(2024, 1, 1, 0, 0, 0, 5)
    table.commit(entry("a", value_stats=values([moment], [moment], [0], "TIMESTAMP(9)")))
    batch = next(iter(tamis.open(table.folder).source.list(_sieve(table, "ts is not null")).batches()))
    upper = batch.stated().stats[0].upper
    assert upper is not None
    assert upper.cast("int64").to_pylist()[0] % 1_000_000 == 5_999


def _sieve(table: MadeTable, where: str) -> Any:  # noqa: ANN401 - a Sieve
    return tamis.open(table.folder).plan(where).sieve


# -- what nobody counted -----------------------------------------------------------------------------------------


def manifest_table(records: Sequence[dict[str, Any]]) -> pa.Table:
    """Entries as a manifest of ORC or Parquet has them."""
    counts = pa.list_(pa.int64())
    kind = pa.struct([("_MIN_VALUES", pa.binary()), ("_MAX_VALUES", pa.binary()), ("_NULL_COUNTS", counts)])
    file = pa.Table.from_pylist([one["_FILE"] for one in records])
    file = file.drop_columns(["_KEY_STATS", "_VALUE_STATS", "_EXTRA_FILES"])
    for name in ("_KEY_STATS", "_VALUE_STATS"):
        file = file.append_column(name, pa.array([one["_FILE"][name] for one in records], kind))
    whole = pa.Table.from_pylist([{key: one[key] for key in one if key != "_FILE"} for one in records])
    columns = [column.combine_chunks() for column in file.itercolumns()]
    return whole.append_column("_FILE", pa.StructArray.from_arrays(columns, file.column_names))


UNCOUNTED: dict[str, list[int | None] | None] = {
    "none": None,
    "nulls": [None, None],
    "negative": [-1, -1],
    "empty": [],
    "short": [0],
}


@pytest.mark.parametrize("form", ["avro", "orc", "parquet"])
def test_null_count_that_nobody_gave_is_unknown(tmp_path: Path, form: str) -> None:
    """Read as zero, it would drop the files that hold the rows which are asked for."""
    lower, upper = (row(id=("BIGINT", bound), v=("INT", bound)) for bound in (0, 9))
    table = MadeTable(tmp_path / "t", [ID, V])
    given = entry("given", value_stats=stats(lower, upper, [0, 0]))
    made = [given, *(entry(name, value_stats=stats(lower, upper, nulls)) for name, nulls in UNCOUNTED.items())]
    path = table.commit(*made)
    if form == "orc":
        orc.write_table(manifest_table(made), path)
    elif form == "parquet":
        pq.write_table(manifest_table(made), path)
    assert kept(table, "v is null") == list(UNCOUNTED)
    files = tamis.open(table.folder).plan("v is not null").files
    assert files["verdict"].to_pylist() == ["all", *["some"] * len(UNCOUNTED)]


def test_zero_of_a_writer_that_had_no_word_for_unknown_needs_a_bound_beside_it(tmp_path: Path) -> None:
    """Counts could not be null once: columns without statistics were written as 0, without bounds."""
    table = MadeTable(tmp_path / "t", [ID, V])
    nothing, lower = row(id=("BIGINT", None), v=("INT", None)), row(id=("BIGINT", 0), v=("INT", 0))
    made = [
        entry("bounded", value_stats=stats(lower, lower, [0, 0])),
        entry("zeros", value_stats=stats(nothing, nothing, [0, 0])),
        entry("nulls", value_stats=stats(nothing, nothing, [0, 10])),
    ]
    old = json.loads(json.dumps(entry_schema()).replace('"items": ["null", "long"]', '"items": "long"'))
    path = table.commit(*made)
    assert kept(table, "v is null") == ["nulls"], "who can say unknown has counted"
    path.write_bytes(avro(old, made))
    assert kept(table, "v is null") == ["zeros", "nulls"]
    assert kept(table, "v is not null") == ["bounded", "zeros"]
    assert kept(table, "v = 0") == ["bounded", "zeros"]


def test_row_count_that_nobody_gave_is_unknown(tmp_path: Path) -> None:
    """A negative count is neither added to others, nor taken for that of the nulls in a column that is younger."""
    table = MadeTable(tmp_path / "t", [ID, V])
    table.schema(1, [ID, V, {"id": 7, "name": "t", "type": "INT"}])
    unknown = {"row_count": -1, "file_size": -1, "delete_row_count": -1}
    table.commit(ranged("a", 0, 5), ranged("b", 0, 5, **unknown), schema_id=1)
    opened = tamis.open(table.folder)
    assert opened.plan().files["rows"].to_pylist() == [10, None]
    assert opened.plan().files["size"].to_pylist() == [100, None]
    assert kept(table, "v = 3") == kept(table, "t is null") == ["a", "b"]
    assert opened.inspect().to_dict()["total"]["rows"] == 10


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"_NUM_ADDED_FILES": 2}, "it has 1 entries that add a file, but the manifest list counts 2"),
        ({"_NUM_ADDED_FILES": 0, "_NUM_DELETED_FILES": 1}, "it has 0 entries that delete a file, but the manifest"),
    ],
)
def test_manifest_that_lacks_entries_of_its_list_is_an_error(tmp_path: Path, said: dict[str, int], why: str) -> None:
    """A record that was lost, or one flipped bit in a kind: a file is missing, or one comes back."""
    table = MadeTable(tmp_path / "t", [ID, V])
    table.commit(ranged("b", 0, 5))
    table.commit(ranged("a", 0, 5), meta=said)
    with pytest.raises(UnreadableMetadataError, match=why) as caught:
        tamis.open(table.folder).plan()
    assert "manifest-2" in caught.value.path


def test_manifest_whose_files_nobody_counted_is_read(tmp_path: Path) -> None:
    """Left out for a number that stands beside it, its files would be lost."""
    table = MadeTable(tmp_path / "t", [ID, V])
    table.commit(ranged("a", 0, 5), meta={"_NUM_ADDED_FILES": 0})
    assert kept(table, "v = 3") == ["a"]
    assert tamis.open(table.folder).inspect().to_dict()["total"]["files"] == 1


# -- primary keys ------------------------------------------------------------------------------------------------


def keyed(name: str, keys: tuple[int, int], low: int, high: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - fields
    return entry(
        name,
        total=-1,  # unknown, so that statistics alone are asked and not where a key hashes to
        key_stats=values([keys[0]], [keys[1]], [0], "BIGINT"),
        value_stats=values([keys[0], low], [keys[1], high], [0, 0], "BIGINT", "INT"),
        **{"delete_row_count": 0, **more},
    )


def key_table(folder: Path, **options: str) -> MadeTable:
    spelled = {name.replace("__", "-").replace("_", "."): value for name, value in options.items()}
    return MadeTable(folder / "t", [ID, V], key=["id"], options={"bucket": "4", **spelled})


def test_newer_version_that_does_not_match_keeps_its_bucket(tmp_path: Path) -> None:
    """If the newer file went, the old version of a row would come back."""
    table = key_table(tmp_path)
    table.commit(keyed("old", (0, 9), 0, 5), keyed("other bucket", (0, 9), 6, 9, bucket=1))
    table.commit(keyed("new", (0, 9), 6, 9))
    assert kept(table, "v = 3") == ["old", "new"]
    assert kept(table, "v = 77") == []
    assert kept(table, "id = 30") == []


def test_keys_drop_single_files(tmp_path: Path) -> None:
    table = key_table(tmp_path)
    table.commit(keyed("low", (0, 4), 0, 5), keyed("high", (5, 9), 0, 5))
    assert kept(table, "id = 3") == ["low"]
    assert kept(table, "id = 3 and v = 2") == ["low"]
    assert kept(table, "id = 3 or v = 77") == ["low", "high"]


def test_one_sorted_run_has_no_other_versions(tmp_path: Path) -> None:
    table = key_table(tmp_path)
    table.commit(keyed("low", (0, 4), 0, 5, level=5), keyed("high", (5, 9), 6, 9, level=5))
    assert kept(table, "v = 3") == ["low"]
    table.commit(keyed("fresh", (2, 7), 20, 20))
    assert kept(table, "v = 3") == ["low", "high", "fresh"]


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_rows_of_several_versions_have_no_statistics_of_values(tmp_path: Path, engine: str) -> None:
    """A sum is in none of the files that it is made of."""
    table = key_table(tmp_path, merge__engine=engine)
    table.commit(keyed("a", (0, 4), 0, 5, level=5), keyed("b", (5, 9), 6, 9, level=5))
    assert kept(table, "v = 77") == ["a", "b"]
    assert kept(table, "id = 3") == ["a"]


@pytest.mark.parametrize("options", [{"merge__engine": "first-row"}, {"deletion__vectors_enabled": "true"}])
def test_level_0_is_not_seen_where_compaction_decides(tmp_path: Path, options: dict[str, str]) -> None:
    """So does Java's batch read; what is left of a row is in one file."""
    table = key_table(tmp_path, **options)
    table.commit(
        keyed("low", (0, 9), 0, 5, level=1), keyed("high", (0, 9), 6, 9, level=5), keyed("fresh", (0, 9), 0, 9)
    )
    assert kept(table, "true") == ["low", "high"]
    assert "1 file of level 0 holds" in notes(table, "true")
    assert kept(table, "v = 3") == ["low"]


@pytest.mark.parametrize(("engine", "left"), [("deduplicate", []), ("partial-update", ["low", "high"])])
def test_rows_that_remove_keep_a_bucket_together(tmp_path: Path, engine: str, left: list[str]) -> None:
    table = key_table(tmp_path, deletion__vectors_enabled="true", merge__engine=engine)
    table.commit(keyed("low", (0, 9), 0, 5, level=1, delete_row_count=1), keyed("high", (0, 9), 6, 9, level=5))
    assert kept(table, "v = 3") == ["low", "high"]
    assert kept(table, "v = 77") == left


def test_postponed_rows_are_not_seen(tmp_path: Path) -> None:
    table = key_table(tmp_path, bucket="-2")
    table.commit(keyed("real", (0, 9), 0, 5), keyed("later", (0, 9), 0, 5, bucket=-2))
    assert kept(table, "true") == ["real"]
    assert "1 file in bucket-postpone holds" in notes(table, "true")


def test_statistics_of_some_files_are_those_of_all(tmp_path: Path) -> None:
    """They are decoded for the files that partitions and buckets leave: each file's have to be its own."""
    table = MadeTable(tmp_path / "t", [S])
    texts = ["a", "b", None, "d", "e", "f"]
    made = [values([text], [text], [int(text is None)], "STRING") for text in texts]
    table.commit(*(entry(str(place), value_stats=one) for place, one in enumerate(made)))
    (batch,) = tamis.open(table.folder).source.list(_sieve(table, "s is not null")).batches()
    assert not batch.stats, "nothing was asked for yet"
    every = batch.stated().stats[2]
    assert not batch.stated(np.zeros(0, np.int64)).stats
    for rows in ([0], [2, 3, 5], [1, 2, 4], [0, 1, 2, 3, 4, 5]):
        some = batch.stated(np.array(rows, np.int64))
        assert some.rows == batch.rows
        assert some.late is None
        for ours, theirs in zip(_parts(some.stats[2]), _parts(every), strict=True):
            assert ours == [value if place in rows else None for place, value in enumerate(theirs)]
    assert _parts(every)[0] == texts


def _parts(stats: ColumnStats) -> list[list[object]]:
    return [part.to_pylist() for part in (stats.lower, stats.upper, stats.null_count) if part is not None]
