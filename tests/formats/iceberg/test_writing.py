"""The pure parts of writing: bounds, manifests, lists that carry on what they do not know, and documents."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tamis.formats.avro.container import parse_avro
from tamis.formats.avro.records import read_records
from tamis.formats.edit import NewFile, WriteField
from tamis.formats.iceberg.bounds import decode_values
from tamis.formats.iceberg.changes import why_unfit
from tamis.formats.iceberg.manifest_schemas import list_schema
from tamis.formats.iceberg.manifest_writing import Codec, carried_entries, counted, manifest_bytes, manifest_list
from tamis.formats.iceberg.metadata import SpecLayout
from tamis.formats.iceberg.metrics import Mode, metrics_modes
from tamis.formats.iceberg.single_values import cut_lower, cut_upper, encoded
from tamis.formats.iceberg.snapshots import with_snapshot
from tamis.formats.iceberg.stage import parquet_options
from tamis.formats.iceberg.statistics import Statistics
from tamis.formats.iceberg.types import parse_schema
from tamis.sieve.partition_keys import PartitionField, PartitionSpec
from tamis.sieve.transforms import Transform

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)


@given(TEXT, st.integers(1, 6))
def test_cut_bounds_of_text_hold_the_text(text: str, length: int) -> None:
    """By UTF-8 bytes, as readers compare them; an upper bound that cannot be cut is none."""
    assert cut_lower(text, length).encode() <= text.encode()  # type: ignore[union-attr] # text
    upper = cut_upper(text, length)
    assert upper is None or (upper.encode() >= text.encode() and len(upper) <= length)  # type: ignore[union-attr]
    assert upper is not None or set(text[:length]) == {chr(0x10FFFF)}


def test_an_upper_bound_steps_over_what_is_no_character() -> None:
    """Surrogates cannot be written as UTF-8; beyond the last character the one before it is raised."""
    assert cut_upper("a\ud7ffx", 2) == "a\ue000"
    assert cut_upper("a\U0010ffffx", 2) == "b"


@given(st.binary(max_size=8), st.integers(1, 6))
def test_cut_bounds_of_binaries_hold_them(data: bytes, length: int) -> None:
    upper = cut_upper(data, length)
    assert cut_lower(data, length) <= data  # type: ignore[operator] # bytes
    assert upper is None or (upper >= data and len(upper) <= length)  # type: ignore[operator]
    assert upper is not None or set(data[:length]) == {0xFF}


@given(st.decimals(Decimal("-9999999.99"), Decimal("9999999.99"), places=2))
def test_decimals_are_read_back_as_they_were_encoded(value: Decimal) -> None:
    raw = pa.array([encoded(pa.decimal128(9, 2), value)], pa.binary())
    assert decode_values(raw, np.array([0]), pa.decimal128(9, 2)).to_pylist() == [value]


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
def test_decimals_of_all_digits_are_encoded_as_they_are(unscaled: int, scale: int) -> None:
    """Python's own arithmetic rounds to 28 digits, and a bound that was rounded excludes values."""
    sign, digits = int(unscaled < 0), tuple(map(int, str(abs(unscaled))))
    raw = encoded(pa.decimal128(38, scale), Decimal((sign, digits, -scale)))
    assert int.from_bytes(raw, "big", signed=True) == unscaled


FLOATS = WriteField(1, "f", pa.float64())


@example([[0.0, -0.0, 1.0]])
@example([[0.0], [-0.0, float("nan")], [None]])
@example([[-0.0], [-1.0]])
@given(st.lists(st.lists(st.none() | st.floats(), max_size=5), min_size=1, max_size=4))
def test_statistics_of_floats_hold_every_number(chunks: list[list[float | None]]) -> None:
    """Over several row groups: NaN is counted and in no bound, and -0.0 lies below 0.0."""
    found = Statistics([FLOATS], {1: Mode()})
    for chunk in chunks:
        found.add([pa.array(chunk, pa.float64())])
    told = found.told()
    every = [value for chunk in chunks for value in chunk]
    numbers = [value for value in every if value is not None and value == value]  # noqa: PLR0124 - NaN
    assert told["value_counts"] == {1: len(every)}
    assert told["null_counts"] == {1: every.count(None)}
    assert told["nan_counts"] == {1: len(every) - every.count(None) - len(numbers)}
    assert (1 in told["lower"]) == bool(numbers)
    for number in numbers:
        lower, upper = (np.frombuffer(told[side][1], "<f8")[0] for side in ("lower", "upper"))
        assert (lower, not np.signbit(lower)) <= (number, not np.signbit(number)) <= (upper, not np.signbit(upper))
        if number == 0:  # to SQL the two are one value: whoever looks for either has to find it
            assert lower < 0 or np.signbit(lower)
            assert upper > 0 or not np.signbit(upper)


FIELDS = (
    WriteField(1, "a", pa.int32()),
    WriteField(2, "s", pa.struct({"b": pa.string()}), children=(WriteField(3, "b", pa.string()),)),
    WriteField(4, "l", pa.list_(pa.int64()), children=(WriteField(5, "element", pa.int64()),)),
)


@pytest.mark.parametrize(
    ("properties", "modes"),
    [
        ({}, {1: Mode(), 5: Mode(), 3: Mode()}),
        ({"write.metadata.metrics.default": "counts"}, dict.fromkeys((1, 3, 5), Mode("counts", None))),
        (
            {"write.metadata.metrics.default": "none", "write.metadata.metrics.column.s.b": "truncate(4)"},
            {1: Mode("none", None), 3: Mode("truncate", 4), 5: Mode("none", None)},
        ),
        ({"write.metadata.metrics.column.a": "full"}, {1: Mode("full", None), 3: Mode(), 5: Mode()}),
        (
            {"write.metadata.metrics.max-inferred-column-defaults": "1"},
            {1: Mode(), 3: Mode("none", None), 5: Mode("none", None)},
        ),
        ({"write.metadata.metrics.default": "truncate(0)"}, {1: Mode(), 3: Mode(), 5: Mode()}),
    ],
)
def test_metrics_modes_are_the_tables(properties: dict[str, str], modes: dict[int, Mode]) -> None:
    assert metrics_modes(FIELDS, properties) == modes


@pytest.mark.parametrize(
    ("codec", "level", "chosen"),
    [(None, None, 3), ("ZSTD", "9", 9), ("zstd", "best", 3), ("gzip", None, 6), ("snappy", "9", None)],
)
def test_files_are_compressed_as_the_table_asks_or_as_icebergs_own_are(
    codec: str | None, level: str | None, chosen: int | None
) -> None:
    """By pyarrow's own level for zstd, 1, files are a third larger, and hardly sooner there."""
    asked = {"write.parquet.compression-codec": codec, "write.parquet.compression-level": level}
    assert parquet_options({key: value for key, value in asked.items() if value}).level == chosen


def test_a_sorted_column_has_bounds_whatever_the_default_is() -> None:
    found = metrics_modes(FIELDS, {"write.metadata.metrics.default": "none"}, frozenset({1}))
    assert (found[1], found[3]) == (Mode(), Mode("none", None))


SPEC = PartitionSpec(7, (PartitionField("a.b", 1, Transform("identity")), PartitionField("d", 2, Transform("day"))))
LAYOUT = SpecLayout(SPEC, (1000, 1001), (pa.float32(), pa.date32()))
FILES = (
    NewFile("/t/data/1.parquet", 10, 3, 7, (float("nan"), -5), value_counts={1: 3}, lower={2: b"a", 1: b"\0"}),
    NewFile("/t/data/2.parquet", 20, 4, 7, (0.0, None), split_offsets=(4,), sort_order_id=0),
    NewFile("/t/data/3.parquet", 30, 5, 7, (2.5, 90_000_000)),
)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_manifest_says_what_the_files_are(version: int) -> None:
    """Partition values beyond what Python has dates for, NaN, names that Avro does not take, maps by ascending id."""
    made = manifest_bytes(
        FILES, LAYOUT, version=version, schema={"schema-id": 4}, spec=[], snapshot_id=9, codec=Codec("zstandard")
    )
    file = parse_avro("m.avro", made.data)
    assert (file.metadata["partition-spec-id"], file.metadata["schema-id"]) == ("7", "4")
    assert file.metadata.get("content") == (None if version == 1 else "data")
    one, two, three = (entry["data_file"] for entry in read_records(file))
    assert three["partition"] == {"a_x2Eb": 2.5, "d": 90_000_000}
    assert one["lower_bounds"] == [{"key": 1, "value": b"\0"}, {"key": 2, "value": b"a"}]
    assert (two["split_offsets"], two["value_counts"], two["sort_order_id"]) == ([4], None, 0)
    assert ("first_row_id" in one, "block_size_in_bytes" in one) == (version == 3, version == 1)
    assert (made.added.files, made.added.rows) == (3, 12)
    floats, days = made.partitions
    assert floats == {
        "contains_null": False,
        "contains_nan": True,
        "lower_bound": encoded(pa.float32(), -0.0),
        "upper_bound": encoded(pa.float32(), 2.5),
    }
    assert (days["contains_null"], days["contains_nan"]) == (True, False)


ENTRY: dict[str, Any] = {
    "manifest_path": "/t/m0.avro",
    "manifest_length": 1,
    "partition_spec_id": 3,
    "content": 1,
    "sequence_number": 5,
    "min_sequence_number": 2,
    "added_snapshot_id": 8,
    "added_files_count": 1,
    "existing_files_count": 2,
    "deleted_files_count": 3,
    "added_rows_count": 4,
    "existing_rows_count": 5,
    "deleted_rows_count": 6,
    "partitions": [{"contains_null": True, "contains_nan": None, "lower_bound": b"a", "upper_bound": None}],
    "key_metadata": b"key",
    "first_row_id": 77,
}


def test_an_entry_of_a_manifest_list_is_carried_on_whole() -> None:
    """Also a field that a later version of the format has, and names that older writers gave."""
    fields = [*list_schema(3)["fields"], {"name": "from_the_future", "type": "string", "field-id": 599}]
    for field in fields:
        field["name"] = {"added_files_count": "added_data_files_count"}.get(field["name"], field["name"])
    old = {**ENTRY, "from_the_future": "x"}
    old["added_data_files_count"] = old.pop("added_files_count")
    schema = {"type": "record", "name": "manifest_file", "fields": fields}
    from tamis.formats.avro.writer import avro_file

    rows = pa.array([old], _arrow_of_list())
    data = avro_file([rows], schema, json.dumps(schema), {}, "deflate", None)
    carried = carried_entries("snap.avro", data)
    new = {**ENTRY, "manifest_path": "/t/m1.avro"}
    again = manifest_list([new, *carried.entries], carried.unknown, 3, {"snapshot-id": "1"}, Codec())
    found = read_records(parse_avro("snap2.avro", again))
    assert found == [{**new, "from_the_future": None}, {**ENTRY, "from_the_future": "x"}]


def _arrow_of_list() -> pa.DataType:
    numbers = {key: pa.int64() for key, value in ENTRY.items() if isinstance(value, int)}
    numbers["added_data_files_count"] = numbers.pop("added_files_count")
    bounds = {"lower_bound": pa.binary(), "upper_bound": pa.binary()}
    summary = pa.struct({"contains_null": pa.bool_(), "contains_nan": pa.bool_(), **bounds})
    texts = {"manifest_path": pa.string(), "from_the_future": pa.string()}
    return pa.struct({**numbers, **texts, "partitions": pa.list_(summary), "key_metadata": pa.binary()})


def test_counts_that_an_old_list_left_out_are_taken_from_the_manifest() -> None:
    """Lists of version 2 must have them; version 1 need not."""
    made = manifest_bytes(FILES, LAYOUT, version=1, schema={}, spec=[], snapshot_id=9, codec=Codec())
    entry = {"manifest_path": "/t/m.avro", "added_files_count": 3, "existing_files_count": None}
    full = counted(entry, lambda _: made.data)
    assert full == {
        "manifest_path": "/t/m.avro",
        **{f"{part}_{what}_count": 0 for part in ("existing", "deleted") for what in ("files", "rows")},
        "added_files_count": 3,
        "added_rows_count": 12,
    }


DOCUMENT: dict[str, Any] = {
    "format-version": 3,
    "last-sequence-number": 4,
    "last-updated-ms": 100,
    "next-row-id": 50,
    "from-the-future": {"x": 1},
    "properties": {"write.metadata.previous-versions-max": "2"},
    "current-snapshot-id": 1,
    "snapshots": [{"snapshot-id": 1}],
    "refs": {"audit": {"snapshot-id": 1, "type": "branch", "max-ref-age-ms": 9}},
    "metadata-log": [{"metadata-file": "a"}, {"metadata-file": "b"}],
}
SNAPSHOT = {"snapshot-id": 2, "timestamp-ms": 200, "sequence-number": 5, "added-rows": 7}


def test_a_document_keeps_what_nobody_here_knows() -> None:
    found = with_snapshot(DOCUMENT, "c", SNAPSHOT, "main")
    assert found["from-the-future"] == {"x": 1}
    assert found["refs"] == {
        "audit": DOCUMENT["refs"]["audit"],
        "main": {"snapshot-id": 2, "type": "branch"},
    }
    assert (found["current-snapshot-id"], found["next-row-id"], found["last-sequence-number"]) == (2, 57, 5)
    assert [one["metadata-file"] for one in found["metadata-log"]] == ["b", "c"]
    assert found["snapshot-log"] == [{"timestamp-ms": 200, "snapshot-id": 2}]
    assert "snapshot-log" not in DOCUMENT


def test_a_commit_to_a_branch_leaves_main_alone() -> None:
    found = with_snapshot(DOCUMENT, "c", SNAPSHOT, "audit")
    assert (found["current-snapshot-id"], found["refs"]["main"]["snapshot-id"]) == (1, 1)
    assert found["refs"]["audit"] == {"snapshot-id": 2, "type": "branch", "max-ref-age-ms": 9}
    assert "snapshot-log" not in found


def schema(id_: int, *fields: dict[str, Any]) -> Any:  # noqa: ANN401 - a TableSchema
    return parse_schema({"schema-id": id_, "fields": list(fields)})


A = {"id": 1, "name": "a", "type": "int", "required": False}
B = {"id": 2, "name": "b", "type": "string", "required": False}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ((A, B), None),
        ((B, {**A, "name": "renamed", "type": "long"}), None),
        ((A, B, {"id": 3, "name": "c", "type": "int", "required": False}), None),
        ((A, B, {"id": 3, "name": "c", "type": "int", "required": True, "initial-default": 1}), None),
        ((A,), "'b' was dropped"),
        (({**A, "type": "string"}, B), "another type"),
        (({**A, "required": True}, B), "is required now"),
        ((A, B, {"id": 3, "name": "c", "type": "int", "required": True}), "is required"),
    ],
)
def test_a_schema_that_changed_meanwhile_takes_the_files_or_not(fields: Any, why: str | None) -> None:  # noqa: ANN401
    found = why_unfit(schema(0, A, B), schema(1, *fields))
    assert found is None if why is None else why in str(found)
