"""Manifests that no library here would write, and some that old or careless ones did."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.io import load_file_io
from pyiceberg.manifest import DataFileContent, ManifestContent, ManifestFile

from tamis.errors import UnknownSpecError, UnreadableMetadataError
from tamis.formats.iceberg.manifest_list import (
    DATA,
    DELETES,
    Manifest,
    parse_manifest_list,
    read_manifest_list,
    summaries,
)
from tamis.formats.iceberg.manifests import THREADS, DeleteBatch, read_data_files, read_delete_files
from tamis.formats.iceberg.metadata import Snapshot
from tamis.formats.storage.local import fetch_local
from tamis.sieve.files import FileBatch
from tests.making.manifests import avro_bytes, entry, entry_schema, parsed, scalars, table_document

LONG, STRING = pa.int64(), pa.string()


def read(
    files: Mapping[str, bytes],
    wanted: Mapping[int, pa.DataType] | None = None,
    document: dict[str, Any] | None = None,
    **facts: Any,  # noqa: ANN401 - fields of Manifest
) -> list[FileBatch]:
    """The batches of manifests that are given by name and content."""
    manifests = [replace(Manifest(path, len(data), 0, DATA), **facts) for path, data in files.items()]
    return list(read_data_files(parsed(document or table_document()), manifests, files.__getitem__, wanted or {}))


def with_spec(*fields: tuple[int, str, str], types: Sequence[str] = ("long", "string")) -> dict[str, Any]:
    """A table whose one spec has these fields: source id, transform, name; columns 1, 2 and so on have the types."""
    columns = [{"id": i, "name": f"c{i}", "required": False, "type": type_} for i, type_ in enumerate(types, 1)]
    spec = [
        {"source-id": source, "field-id": 1000 + place, "transform": transform, "name": name}
        for place, (source, transform, name) in enumerate(fields)
    ]
    return table_document(
        **{"schemas": [{"schema-id": 0, "fields": columns}], "partition-specs": [{"spec-id": 0, "fields": spec}]}
    )


def partition(name: str, type_: object, id_: int | None = 1000) -> dict[str, Any]:
    return {"name": name, "type": ["null", type_], "default": None} | ({} if id_ is None else {"field-id": id_})


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
@pytest.mark.parametrize("block", [1, 64_000])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_version_codec_and_block_size_reads_as_pyiceberg_reads_it(
    tmp_path: Path, version: int, codec: str, block: int
) -> None:
    records = [
        entry(
            f"f{i}.parquet",
            status=i % 3,
            rows=i,
            snapshot_id=None if i % 3 == 1 else 70 + i,
            sequence_number=None if i % 3 == 1 else 3,
            file_sequence_number=None if i % 3 == 1 else 2,
            lower_bounds=None if i % 5 == 0 else {1: struct.pack("<q", i), 2: b"a"},
            upper_bounds=None if i % 5 == 0 else {2: b"z", 1: struct.pack("<q", i + 1)},
            null_value_counts={} if i % 4 == 0 else {1: i, 2: 0},
        )
        for i in range(40)
    ]
    schema = entry_schema(version=version)
    path = tmp_path / "m.avro"
    # PyIceberg reads snappy only with a package more; what the entries are is the same in any codec.
    path.write_bytes(avro_bytes(schema, records))
    sequence = 0 if version == 1 else 9
    data = avro_bytes(schema, records, codec=codec, block=block)
    (batch,) = read({"m": data}, {1: LONG, 2: STRING}, snapshot_id=77, sequence_number=sequence)
    theirs = ManifestFile.from_args(
        manifest_path=str(path),
        manifest_length=path.stat().st_size,
        partition_spec_id=0,
        content=ManifestContent.DATA,
        sequence_number=sequence,
        min_sequence_number=0,
        added_snapshot_id=77,
    ).fetch_manifest_entry(load_file_io({}))
    assert batch.path.to_pylist() == [one.data_file.file_path for one in theirs]
    assert batch.rows.to_pylist() == [one.data_file.record_count for one in theirs]
    assert batch.extra["sequence_number"].to_pylist() == [one.sequence_number for one in theirs]
    assert batch.extra["file_sequence_number"].to_pylist() == [one.file_sequence_number for one in theirs]
    assert batch.extra["snapshot_id"].to_pylist() == [one.snapshot_id for one in theirs]
    assert batch.extra["entry"].to_pylist() == [i for i in range(40) if i % 3 != 2]
    for id_ in (1, 2):
        stats = batch.stats[id_]
        for mine, name in ((stats.lower, "lower_bounds"), (stats.upper, "upper_bounds")):
            maps = [getattr(one.data_file, name) or {} for one in theirs]
            raw = [one.get(id_) for one in maps]
            decoded = [
                None if one is None else struct.unpack("<q", one)[0] if id_ == 1 else one.decode() for one in raw
            ]
            assert mine.to_pylist() == decoded
        counts = [(one.data_file.null_value_counts or {}).get(id_) for one in theirs]
        assert stats.null_count is not None
        assert stats.null_count.to_pylist() == counts


def test_optional_fields_that_are_missing_say_nothing() -> None:
    schema = entry_schema(version=1)
    file = next(one for one in schema["fields"] if one["name"] == "data_file")["type"]
    file["fields"] = [one for one in file["fields"] if one["field-id"] in (100, 102, 103, 104)]
    (batch,) = read({"m": avro_bytes(schema, [entry()])}, {1: LONG})
    assert batch.stats[1].lower is None
    assert batch.stats[1].null_count is None
    assert batch.extra["file_format"].to_pylist() == [None]
    assert batch.partition is None


def test_fields_without_ids_are_known_by_name() -> None:
    schema = entry_schema([partition("c2", "string", None)])

    def forget(node: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(node, dict):
            return {key: forget(value) for key, value in node.items() if key != "field-id"}
        return [forget(one) for one in node] if isinstance(node, list) else node

    data = avro_bytes(forget(schema), [entry(partition={"c2": "eu"}, lower_bounds={1: struct.pack("<q", 4)})])
    (batch,) = read({"m": data}, {1: LONG}, with_spec((2, "identity", "c2")))
    assert batch.stats[1].lower.to_pylist() == [4]
    assert batch.partition is not None
    assert batch.partition.to_pylist() == [{"c2": "eu"}]


@pytest.mark.parametrize(
    ("column", "transform", "avro", "value", "expected"),
    [
        ("date", "identity", {"type": "int", "logicalType": "date"}, date(2024, 1, 15), date(2024, 1, 15)),
        ("timestamp", "day", {"type": "int", "logicalType": "date"}, date(2024, 1, 15), date(2024, 1, 15)),
        ("timestamp", "day", "int", 19737, date(2024, 1, 15)),
        ("timestamp", "month", "int", 648, 648),
        ("long", "identity", "int", 5, 5),
        ("double", "identity", "float", 0.5, 0.5),
        (
            "decimal(9,2)",
            "identity",
            {"type": "fixed", "name": "d", "size": 4},
            b"\xff\xff\xff\x38",
            Decimal("-2.00"),
        ),
        (
            "decimal(20,2)",
            "identity",
            {"type": "fixed", "name": "d", "size": 9, "logicalType": "decimal", "precision": 20, "scale": 2},
            Decimal("123456789012345678.25"),
            Decimal("123456789012345678.25"),
        ),
        ("decimal(9,2)", "identity", "bytes", b"\x7f", Decimal("1.27")),
        ("uuid", "identity", {"type": "fixed", "name": "u", "size": 16}, b"u" * 16, b"u" * 16),
        ("fixed[3]", "identity", {"type": "fixed", "name": "f", "size": 3}, b"abc", b"abc"),
        ("binary", "truncate[2]", "bytes", b"ab", b"ab"),
        ("boolean", "identity", "boolean", True, True),
        ("string", "truncate[1]", "string", "😀", "😀"),
        ("long", "void", "long", None, None),
        ("long", "frobnicate", "string", "x", "x"),
    ],
)
def test_partition_value_has_the_type_that_its_spec_gives(
    column: str, transform: str, avro: object, value: object, expected: object
) -> None:
    data = avro_bytes(
        entry_schema([partition("p", avro)]), [entry(partition={"p": value}), entry(partition={"p": None})]
    )
    (batch,) = read({"m": data}, None, with_spec((1, transform, "p"), types=(column,)))
    assert batch.partition is not None
    assert scalars(batch.partition.field(0)) == [expected, None]
    assert batch.undecoded == ()


def test_promoted_partition_values_join_under_one_type() -> None:
    files = {
        "old": avro_bytes(entry_schema([partition("p", "int")]), [entry("a", partition={"p": 1})]),
        "new": avro_bytes(entry_schema([partition("p", "long")]), [entry("b", partition={"p": 1 << 40})]),
    }
    batches = read(files, None, with_spec((1, "identity", "p")))
    parts = [batch.partition for batch in batches]
    assert all(part is not None and part.type == pa.struct([("p", pa.int64())]) for part in parts)
    assert [value["p"] for part in parts if part is not None for value in part.to_pylist()] == [1, 1 << 40]
    assert [place for batch in batches for place in batch.extra["manifest"].to_pylist()] == [0, 1]


def test_partition_value_that_is_missing_or_unreadable_is_reported() -> None:
    """The sieve keeps such files, counts them and says so; a void field has nothing to miss."""
    data = avro_bytes(entry_schema([partition("p", "string")]), [entry(partition={"p": "x"}), entry(partition={})])
    document = with_spec((1, "identity", "p"), (2, "identity", "q"), (2, "void", "v"))
    (batch,) = read({"m": data}, None, document)
    assert [(one.field, one.rows.tolist()) for one in batch.undecoded] == [(0, [True, False]), (1, [True, True])]


def test_source_that_no_schema_knows_is_read_as_written() -> None:
    data = avro_bytes(
        entry_schema([partition("p", {"type": "int", "logicalType": "date"})]),
        [entry(partition={"p": date(2024, 1, 1)})],
    )
    (batch,) = read({"m": data}, None, with_spec((9, "identity", "p")))
    assert batch.partition is not None
    assert batch.partition.to_pylist() == [{"p": date(2024, 1, 1)}]


def test_small_manifests_are_read_together_and_keep_what_each_inherits() -> None:
    files = {f"m{i}": avro_bytes(entry_schema(), [entry(f"{i}.{j}") for j in range(2)]) for i in range(50)}
    manifests = [
        Manifest(path, len(data), 0, DATA, sequence_number=10 + place, snapshot_id=place)
        for place, (path, data) in enumerate(files.items())
    ]
    batches = list(read_data_files(parsed(table_document()), manifests, files.__getitem__, {}))
    assert len(batches) <= THREADS
    places = [place for batch in batches for place in batch.extra["manifest"].to_pylist()]
    numbers = [number for batch in batches for number in batch.extra["sequence_number"].to_pylist()]
    assert places == [place for place in range(50) for _ in range(2)]
    assert numbers == [10 + place for place in places]


def test_entries_inherit_what_they_do_not_say() -> None:
    """Old writers knew no number of the file, and one that was carried over takes none from its manifest."""
    carried = entry(status=0, snapshot_id=1, sequence_number=2)
    data = avro_bytes(entry_schema(), [carried, entry(status=1), entry(status=0, sequence_number=4)])
    (batch,) = read({"m": data}, sequence_number=4, snapshot_id=8)
    assert batch.extra["sequence_number"].to_pylist() == [2, 4, 4]
    assert batch.extra["file_sequence_number"].to_pylist() == [None, 4, None]
    assert batch.extra["snapshot_id"].to_pylist() == [1, 8, 8]


def test_row_ids_continue_over_entries_without_one() -> None:
    records = [
        entry("a", rows=10),
        entry("gone", status=2, rows=1000),
        entry("b", rows=5, first_row_id=7, status=0, snapshot_id=1, sequence_number=1),
        entry("c", rows=3),
        entry("d", rows=1),
    ]
    data = avro_bytes(entry_schema(version=3), records)
    files = {"m": data, "n": data, "old": data}
    firsts: list[int | None] = [100, 200, None]
    manifests = [
        Manifest(path, len(data), 0, DATA, sequence_number=2, first_row_id=first)
        for path, first in zip(files, firsts, strict=True)
    ]
    (batch,) = read_data_files(parsed(table_document()), manifests, files.__getitem__, {})
    assert batch.extra["first_row_id"].to_pylist() == [100, 7, 110, 113, 200, 7, 210, 213, None, None, None, None]


def test_manifest_of_deleted_entries_alone_has_no_batch() -> None:
    assert read({"m": avro_bytes(entry_schema(), [entry(status=2)] * 3)}) == []
    assert read({"m": avro_bytes(entry_schema(), [])}) == []


def test_truncated_manifest_is_one_clear_error_among_many_manifests() -> None:
    good = avro_bytes(entry_schema(), [entry(str(i)) for i in range(100)])
    files = {"a.avro": good, "b.avro": good[:-20], "c.avro": good}
    with pytest.raises(UnreadableMetadataError, match=r"cannot read b\.avro at byte \d+: it ends inside the block"):
        read(files)


def test_missing_manifest_is_a_clear_error(tmp_path: Path) -> None:
    manifests = [Manifest(f"{tmp_path}/none.avro", 1, 0, DATA)]
    with pytest.raises(UnreadableMetadataError, match=r"none\.avro: No such file"):
        list(read_data_files(parsed(table_document()), manifests, fetch_local, {}))


def test_file_that_is_no_manifest_is_a_clear_error() -> None:
    schema = {"type": "record", "name": "x", "fields": [{"name": "a", "type": "int", "field-id": 7}]}
    with pytest.raises(UnreadableMetadataError, match="it is not a manifest"):
        read({"m": avro_bytes(schema, [{"a": 1}])})
    with pytest.raises(UnreadableMetadataError, match="it is not a manifest list"):
        parse_manifest_list("l", avro_bytes(schema, [{"a": 1}]))


def test_manifest_of_an_unknown_spec_is_an_error() -> None:
    with pytest.raises(UnknownSpecError):
        read({"m": avro_bytes(entry_schema(), [entry()])}, spec_id=3)


def test_delete_files_come_with_what_association_needs() -> None:
    path_id = 2147483546
    records = [
        entry("eq.parquet", content=2, equality_ids=[1, 2], lower_bounds={1: struct.pack("<q", 3)}),
        entry("pos.parquet", content=1, lower_bounds={path_id: b"a"}, upper_bounds={path_id: b"b"}),
        entry("dv.puffin", content=1, referenced_data_file="a", content_offset=4, content_size_in_bytes=40),
        entry("gone", content=1, status=2),
    ]
    data = avro_bytes(entry_schema([partition("p", "string")], version=3), [_in(one, "eu") for one in records])
    manifests = [Manifest("m", len(data), 0, DELETES, sequence_number=5, snapshot_id=6)]
    document = with_spec((2, "identity", "p"))
    (batch,) = read_delete_files(parsed(document), manifests, {"m": data}.__getitem__, {1: LONG})
    assert isinstance(batch, DeleteBatch)
    assert len(batch) == 3
    files = batch.files.to_pydict()
    assert files["content"] == [
        DataFileContent.EQUALITY_DELETES.value,
        *[DataFileContent.POSITION_DELETES.value] * 2,
    ]
    assert files["equality_ids"] == [[1, 2], None, None]
    assert files["path_lower"] == [None, "a", None]
    assert files["path_upper"] == [None, "b", None]
    assert files["referenced_data_file"] == [None, None, "a"]
    assert (files["content_offset"], files["content_size"]) == ([None, None, 4], [None, None, 40])
    assert files["sequence_number"] == [5, 5, 5]
    assert batch.partition is not None
    assert batch.partition.to_pylist() == [{"p": "eu"}] * 3
    assert batch.stats[1].lower.to_pylist() == [3, None, None]


def _in(record: dict[str, Any], region: str) -> dict[str, Any]:
    record["data_file"]["partition"] = {"p": region}
    return record


def test_partition_field_of_the_same_name_under_another_id_is_another_field() -> None:
    """A dropped field's name may be used again: its values say nothing of the new one. Without ids the name tells."""
    document = with_spec((1, "identity", "p"))
    records = [entry(partition={"p": 7}), entry("b.parquet", partition={"p": None})]
    for id_, values, unread in ((1000, [7, None], []), (None, [7, None], []), (1001, [None, None], [True, True])):
        (batch,) = read({"m": avro_bytes(entry_schema([partition("p", "long", id_)]), records)}, document=document)
        assert batch.partition is not None
        assert batch.partition.field(0).to_pylist() == values
        assert [flag for fault in batch.undecoded for flag in fault.rows.tolist()] == unread
    # Under its own id beside a stranger of its name, it is found by the id.
    twins = [partition("p", "long", 1001), partition("q", "long", 1000)]
    (batch,) = read({"m": avro_bytes(entry_schema(twins), [entry(partition={"p": 7, "q": 8})])}, document=document)
    assert batch.partition is not None
    assert batch.partition.field(0).to_pylist() == [8]
    assert batch.undecoded == ()


@pytest.mark.parametrize("content", [DATA, DELETES])
def test_carried_over_entry_without_its_sequence_number_is_an_error(content: int) -> None:
    """With its manifest's number, deletes between the two would no more reach it; with none, all would.

    Version 1 has no such numbers, and its manifests stay as they are when the table is upgraded: all are 0.
    """
    kind = {"content": min(content, 1)}
    records = [entry("a", **kind), entry("b", status=0, **kind), entry("gone", status=2, **kind)]
    for version in (1, 2) if content == DATA else (2,):
        data = avro_bytes(entry_schema(version=version), records)
        told = Manifest("m", len(data), 0, content, sequence_number=9)
        reader: Any = read_data_files if content == DATA else read_delete_files
        with pytest.raises(UnreadableMetadataError, match="m: entry 1: it was carried over without its sequence num"):
            list(reader(parsed(table_document()), [told], {"m": data}.__getitem__, {}))
        (batch,) = reader(parsed(table_document()), [replace(told, sequence_number=0)], {"m": data}.__getitem__, {})
        numbers = batch.extra["sequence_number"] if content == DATA else batch.files["sequence_number"]
        assert numbers.to_pylist() == [0, 0]


@pytest.mark.parametrize(
    ("entry_s", "manifest_s", "why"),
    [(10, 9, "greater than that of its manifest"), (1, 0, "greater than"), (-1, 9, "negative")],
)
@pytest.mark.parametrize("status", [0, 1])
def test_sequence_number_that_no_entry_can_have_is_an_error(
    status: int, entry_s: int, manifest_s: int, why: str
) -> None:
    """Deletes would pass a file by that is taken for newer than they are: deleted rows would come back."""
    data = avro_bytes(entry_schema(), [entry("a"), entry("b", status=status, sequence_number=entry_s)])
    with pytest.raises(UnreadableMetadataError, match=f"m: entry 1: its sequence number is {why}"):
        read({"m": data}, sequence_number=manifest_s)


def test_old_table_lists_its_manifests_in_the_metadata() -> None:
    data = avro_bytes(entry_schema(version=1), [entry()])
    snapshot = Snapshot(1, 1, manifests=("m",))
    assert read_manifest_list(snapshot, {"m": data}.__getitem__) == [Manifest("m", len(data), 0, DATA)]


def test_manifest_list_of_version_1_lacks_most_and_says_nothing_by_it() -> None:
    fields = [
        {"name": "manifest_path", "type": "string", "field-id": 500},
        {"name": "manifest_length", "type": "long", "field-id": 501},
        {"name": "partition_spec_id", "type": "int", "field-id": 502},
    ]
    schema = {"type": "record", "name": "manifest_file", "fields": fields}
    row = {"manifest_path": "m", "manifest_length": 7, "partition_spec_id": 0}
    (found,) = parse_manifest_list("l", avro_bytes(schema, [row]))
    assert found == Manifest("m", 7, 0, DATA)
    assert found.live_files is None
    (summary,) = summaries([found], parsed(with_spec((1, "identity", "p"))).layout(0))
    assert summary.known.to_pylist() == [False]


def test_unreadable_summary_bound_is_unknown_and_an_absent_one_is_not() -> None:
    layout = parsed(with_spec((1, "identity", "p"))).layout(0)
    told = [(False, None, b"\x01", struct.pack("<q", 3)), (True, None, None, None)]
    manifests = [Manifest("m", 1, 0, DATA, summaries=(one,)) for one in told]
    (summary,) = summaries(manifests, layout)
    assert summary.known.to_pylist() == [False, True]
    assert summary.lower.to_pylist() == [None, None]
    assert summary.contains_null.to_pylist() == [False, True]
