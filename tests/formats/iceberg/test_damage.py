"""Manifests and manifest lists that contradict themselves: an error with the place, never fewer files or deletes."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import fastavro
import pytest

import tamis
from tamis.errors import TamisError, UnreadableMetadataError
from tamis.formats.avro.container import parse_avro
from tamis.formats.iceberg.manifest_list import DATA, DELETES, Manifest, parse_manifest_list, read_manifest_list
from tamis.formats.iceberg.manifests import live_manifests, read_data_files, read_delete_files
from tamis.formats.iceberg.metadata import Snapshot
from tests.making.manifests import avro_bytes, entry, entry_schema, parsed, table_document

Rows = list[dict[str, Any]]
OPTIONAL_LONG = ["null", "long"]
LIST_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        {"name": "manifest_path", "type": ["null", "string"], "field-id": 500},
        {"name": "manifest_length", "type": "long", "field-id": 501},
        {"name": "partition_spec_id", "type": ["null", "int"], "field-id": 502},
        {"name": "content", "type": ["null", "int"], "field-id": 517},
        {"name": "sequence_number", "type": OPTIONAL_LONG, "field-id": 515},
        {"name": "added_files_count", "type": ["null", "int"], "field-id": 504},
        {"name": "existing_files_count", "type": ["null", "int"], "field-id": 505},
        {"name": "deleted_files_count", "type": ["null", "int"], "field-id": 506},
        {"name": "added_rows_count", "type": OPTIONAL_LONG, "field-id": 512},
        {"name": "existing_rows_count", "type": OPTIONAL_LONG, "field-id": 513},
    ],
}


def listed(path: str | None, length: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of the list
    row = {"manifest_path": path, "manifest_length": length, "partition_spec_id": 0, "content": 0}
    counts = {"added_files_count": 1, "existing_files_count": 0, "deleted_files_count": 0}
    return row | counts | {"sequence_number": 1, "added_rows_count": 10, "existing_rows_count": 0} | more


def manifest_list(*rows: dict[str, Any]) -> list[Manifest]:
    return parse_manifest_list("list.avro", avro_bytes(LIST_SCHEMA, rows))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"manifest_path": None}, "entry 1: its manifest_path is None"),
        ({"manifest_path": ""}, "entry 1: its manifest_path is ''"),
        ({"manifest_path": "/a\0b"}, "entry 1: its manifest_path is"),
        ({"partition_spec_id": None}, "entry 1: it names no partition spec"),
        ({"content": 2}, "entry 1: its content is 2"),
        ({"content": -1}, "entry 1: its content is -1"),
        ({"added_files_count": 5, "existing_files_count": -5}, "entry 1: its existing_files_count is -5"),
        ({"added_files_count": -1}, "its added_files_count is -1"),
        ({"deleted_files_count": -1}, "its deleted_files_count is -1"),
        ({"added_rows_count": -1}, "its added_rows_count is -1"),
        ({"manifest_length": -7}, "its manifest_length is -7"),
        ({"sequence_number": -1}, "its sequence_number is -1"),
    ],
)
def test_list_entry_that_no_manifest_can_have_is_an_error(change: dict[str, Any], why: str) -> None:
    """Such a manifest was taken for one of data, for an empty one, or passed over: files and deletes went missing."""
    with pytest.raises(UnreadableMetadataError, match=why) as caught:
        manifest_list(listed("a", 5), listed("m", 5) | change)
    assert caught.value.path == "list.avro"


def test_manifest_that_is_listed_twice_is_an_error() -> None:
    """All its rows would be there twice."""
    with pytest.raises(UnreadableMetadataError, match="entry 2: it names the same manifest as entry 0"):
        manifest_list(listed("a", 5), listed("b", 5), listed("a", 5))


def test_list_entry_of_an_old_version_says_little_and_is_sound() -> None:
    nothing = dict.fromkeys(["content", "sequence_number", "added_files_count", "existing_files_count"])
    (found,) = manifest_list(listed("m", 0) | nothing)
    assert (found.content, found.sequence_number, found.live_files) == (DATA, 0, None)


def test_manifest_that_is_newer_than_its_snapshot_is_an_error() -> None:
    """Its files would be taken for newer than the deletes that concern them: deleted rows would come back."""
    data = {"list.avro": avro_bytes(LIST_SCHEMA, [listed("m", 5, sequence_number=8)])}
    read = data.__getitem__
    for sequence in (0, 8, 9):
        assert len(read_manifest_list(Snapshot(1, 1, sequence_number=sequence, manifest_list="list.avro"), read)) == 1
    with pytest.raises(UnreadableMetadataError, match="its sequence_number is 8, but that of the snapshot is 7"):
        read_manifest_list(Snapshot(1, 1, sequence_number=7, manifest_list="list.avro"), read)


def test_manifest_that_does_not_say_how_old_it_is_is_an_error_beside_deletes() -> None:
    """Its own deletes would reach nothing, and others all of its files, those that are newer as well.

    Without deletes its age does not matter, and version 1 has none.
    """
    for content, more, fits in ((0, [], True), (1, [], False), (0, [listed("d", 5, content=1)], False)):
        rows = [*more, listed("m", 5, content=content, sequence_number=None)]
        read = {"list.avro": avro_bytes(LIST_SCHEMA, rows)}.__getitem__
        assert len(read_manifest_list(Snapshot(1, 1, manifest_list="list.avro"), read)) == len(rows)
        if fits:
            assert len(read_manifest_list(Snapshot(1, 1, sequence_number=7, manifest_list="list.avro"), read)) == 1
            continue
        with pytest.raises(UnreadableMetadataError, match=f"entry {len(more)}: it has no sequence_number, which"):
            read_manifest_list(Snapshot(1, 1, sequence_number=7, manifest_list="list.avro"), read)


def test_manifest_without_files_but_with_rows_is_read_all_the_same() -> None:
    told = Manifest("m", 1, 0, DATA, added_files=0, existing_files=0)
    assert live_manifests([told, replace(told, added_rows=0, existing_rows=0)]) == []
    assert len(live_manifests([replace(told, added_rows=3), replace(told, existing_rows=1)])) == 2


def nullable_schema() -> dict[str, Any]:
    """A manifest's schema in which everything may be null, as a careless writer has it."""
    schema = entry_schema(version=3)
    fields = schema["fields"][-1]["type"]["fields"]
    for one in (*fields, schema["fields"][0]):
        if isinstance(one["type"], str):
            one["type"] = ["null", one["type"]]
    return schema


def files(*records: dict[str, Any], content: int = DATA, **facts: Any) -> list[str]:  # noqa: ANN401 - of Manifest
    """The paths that a manifest's live entries have."""
    data = avro_bytes(nullable_schema(), records)
    good = avro_bytes(nullable_schema(), [entry("good", content=0 if content == DATA else 1)])
    known = {"good.avro": good, "m.avro": data}
    manifests = [
        Manifest("good.avro", len(good), 0, content),
        replace(Manifest("m.avro", len(data), 0, content), **facts),
    ]
    reader = read_data_files if content == DATA else read_delete_files
    batches = list(cast("Any", reader)(parsed(table_document()), manifests, known.__getitem__, {}))
    tables = [batch.path if content == DATA else batch.files["path"] for batch in batches]
    return [path for paths in tables for path in paths.to_pylist()][1:]


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (entry("b", status=3), "entry 1: its status is 3"),
        (entry("b", status=-1), "entry 1: its status is -1"),
        (entry("b") | {"status": None}, "entry 1: its status is None"),
        (entry(cast("str", None)), "entry 1: it has no path"),
        (entry(""), "entry 1: it has no path"),
        (entry("a\0b"), "entry 1: its path has a NUL character"),
        (entry("b", rows=-1), "entry 1: its record count is missing or negative"),
        (entry("b", rows=cast("int", None)), "entry 1: its record count is missing or negative"),
        (entry("b", file_size_in_bytes=-1), "entry 1: its file size is missing or negative"),
        (entry("b", file_size_in_bytes=None), "entry 1: its file size is missing or negative"),
        (entry("b", content=1), "entry 1: it is not a data file, but its manifest is a data manifest"),
        (entry("b", content=2, equality_ids=[1]), "entry 1: it is not a data file"),
        (entry("b", content=7), "entry 1: it is not a data file"),
    ],
)
def test_data_entry_that_cannot_be_acted_on_is_an_error(record: dict[str, Any], why: str) -> None:
    """An unknown status was live, a delete file was read as data, a null path was passed on."""
    with pytest.raises(UnreadableMetadataError, match=f"m.avro: {why}"):
        files(entry("a"), record, entry("c"))


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (entry("b", content=0), "it is not a delete file, but its manifest is a delete manifest"),
        (entry("b", content=3), "it is not a delete file"),
        (entry("b", content=None), "it is not a delete file"),
        (entry("b", content=2), "it deletes by value, and names no column"),
        (entry("b", content=2, equality_ids=[]), "it deletes by value, and names no column"),
        (entry("b", content=1, equality_ids=[1]), "it deletes by position, and names columns"),
    ],
)
def test_delete_entry_that_cannot_be_applied_is_an_error(record: dict[str, Any], why: str) -> None:
    """It was passed over in silence, and the rows that it deletes came back."""
    with pytest.raises(UnreadableMetadataError, match=f"m.avro: entry 1: {why}"):
        files(entry("a", content=1), record, content=DELETES)


def test_entry_that_is_deleted_may_be_anything_but_undecided() -> None:
    gone = entry(cast("str", None), status=2, content=9, rows=-1)
    assert files(entry("a"), gone, entry("c", content=None)) == ["a", "c"]
    assert files(entry("a", content=1), gone, content=DELETES) == ["a"]


def counted(added: int | None, existing: int | None, deleted: int | None, *statuses: int, **facts: Any) -> list[str]:  # noqa: ANN401 - of Manifest
    records = [entry(f"f{place}", status=status) for place, status in enumerate(statuses)]
    return files(*records, added_files=added, existing_files=existing, deleted_files=deleted, **facts)


@pytest.mark.parametrize(
    ("counts", "statuses"),
    [
        ((2, 0, 0), [1]),
        ((0, 1, 0), []),
        ((1, 1, 0), [1, 2]),
        ((0, 2, None), [0]),
        ((1, 0, 1), [1, 0]),
        ((0, 0, 2), [2, 0]),
    ],
)
def test_manifest_that_lacks_entries_of_its_list_or_brings_some_back_is_an_error(
    counts: tuple[int, int, int | None], statuses: list[int]
) -> None:
    """A flipped bit makes an existing entry a deleted one, and the reverse."""
    with pytest.raises(
        UnreadableMetadataError, match=r"m\.avro: it has \d live and \d deleted entries, but the manif"
    ):
        counted(*counts, *statuses)


@pytest.mark.parametrize(
    ("counts", "statuses"),
    [
        ((1, 0, 0), [1, 1, 1]),
        ((0, 2, 0), [1, 1]),
        ((None, None, None), [1, 2]),
        ((1, 0, 5), [1]),
        ((1, 0, 0), [1, 2, 2]),
    ],
)
def test_counts_that_are_too_low_or_of_deleted_entries_alone_are_not_believed(
    counts: tuple[int | None, int | None, int | None], statuses: list[int]
) -> None:
    """Some writers always count one added file, or leave deleted entries out: the live ones are all there."""
    assert len(counted(*counts, *statuses)) == sum(status != 2 for status in statuses)


def test_entry_that_lost_its_rows_is_an_error() -> None:
    """A file of no rows is pruned unread: with a damaged count, its rows were lost. Wrong counts alone do nothing."""
    records = [entry("a", rows=10), entry("gone", rows=0, status=2), entry("b", rows=0)]
    with pytest.raises(UnreadableMetadataError, match="entry 2: it has no rows, but the manifest list counts more"):
        files(*records, added_rows=10, existing_rows=5)
    assert files(*records, added_rows=10, existing_rows=0) == ["a", "b"]
    assert files(*records) == ["a", "b"]
    assert files(*records[:2], added_rows=70, existing_rows=0) == ["a"]


def test_whole_manifest_that_is_shorter_than_its_list_says_is_read() -> None:
    """Writers state wrong lengths, and tools rewrite manifests; a cut between two blocks leaves fewer entries."""
    assert len(counted(3, 0, 0, 1, 1, 1, length=1 << 20)) == 3
    records = [entry(f"f{place}") for place in range(5)]
    data = avro_bytes(entry_schema(), records, block=1)
    blocks = parse_avro("m", data).blocks
    told = Manifest("m", len(data), 0, DATA, added_files=5, existing_files=0, deleted_files=0)
    metadata = parsed(table_document())
    for cut in (blocks[3][0], blocks[4][0]):
        for manifest in (told, replace(told, added_files=None), replace(told, deleted_files=None)):
            with pytest.raises(UnreadableMetadataError, match="truncated"):
                list(read_data_files(metadata, [manifest], {"m": data[:cut]}.__getitem__, {}))
    with pytest.raises(UnreadableMetadataError, match="it ends inside the block that begins here"):
        list(read_data_files(metadata, [told], {"m": data[:-1]}.__getitem__, {}))


def test_manifest_of_another_spec_than_its_list_says_is_an_error() -> None:
    """Its partition values would be read by the wrong transforms, and prune the wrong files."""
    buffer = io.BytesIO()
    fastavro.writer(buffer, entry_schema(), [entry()], metadata={"partition-spec-id": "1"})
    with pytest.raises(UnreadableMetadataError, match="its partition-spec-id is '1', but the manifest list says 0"):
        list(read_data_files(parsed(table_document()), [Manifest("m", 1, 0, DATA)], lambda _: buffer.getvalue(), {}))
    snapshot = Snapshot(1, 1, manifests=("m",))
    buffer = io.BytesIO()
    fastavro.writer(buffer, entry_schema(), [entry()], metadata={"partition-spec-id": "x"})
    with pytest.raises(UnreadableMetadataError, match="its partition-spec-id is 'x', no number"):
        read_manifest_list(snapshot, lambda _: buffer.getvalue())


@dataclass(frozen=True)
class Small:
    """A table of two data manifests and one of deletes, uncompressed, so that every bit is one of the metadata."""

    folder: Path
    parts: Mapping[str, bytes]

    @classmethod
    def made(cls, folder: Path) -> Small:
        first = [entry(f"a{i}.parquet", status=i % 2, sequence_number=1, snapshot_id=1) for i in range(3)]
        gone = entry("gone.parquet", status=2, sequence_number=1, snapshot_id=1)
        deletes = [
            entry("d0", content=1, sequence_number=2, snapshot_id=2),
            entry("d1", content=2, equality_ids=[1], sequence_number=2, snapshot_id=2),
        ]
        parts = {
            name: avro_bytes(entry_schema(), records, codec="null", block=1)
            for name, records in (("m0", [*first, gone]), ("m1", [entry("b")]), ("m2", deletes))
        }
        counts = {
            "added_files_count": 1,
            "existing_files_count": 2,
            "deleted_files_count": 1,
            "existing_rows_count": 20,
        }
        rows = [
            listed(f"{folder}/m0", len(parts["m0"]), **counts),
            listed(f"{folder}/m1", len(parts["m1"])),
            listed(
                f"{folder}/m2",
                len(parts["m2"]),
                content=1,
                added_files_count=2,
                added_rows_count=20,
                sequence_number=2,
            ),
        ]
        parts["list"] = avro_bytes(LIST_SCHEMA, rows, codec="null", block=1)
        found = cls(folder, parts)
        snapshot = {"snapshot-id": 2, "timestamp-ms": 1, "sequence-number": 2, "manifest-list": f"{folder}/list"}
        document = table_document(
            **{"snapshots": [snapshot], "current-snapshot-id": 2, "last-sequence-number": 2, "location": str(folder)}
        )
        (folder / "v1.metadata.json").write_text(json.dumps(document), encoding="utf-8")
        found.write()
        return found

    def write(self, changed: Mapping[str, bytes] | None = None) -> None:
        for name, data in {**self.parts, **(changed or {})}.items():
            (self.folder / name).write_bytes(data)

    def plan(self) -> list[tuple[Any, ...]]:
        """Each kept file, with how many deletes apply to it."""
        files = tamis.open(str(self.folder / "v1.metadata.json"), cache=False).plan("id > 5").files
        return sorted((one["path"], one["rows"], one["deletes"]) for one in files.to_pylist())


def flips(data: bytes) -> Iterator[int]:
    """Bits of a file to flip, one at a time: of its blocks' frames all, of the rest some."""
    file = parse_avro("x", data)
    chance = random.Random(7)  # noqa: S311 - always the same bits
    frames = {
        bit
        for begin, at, stop, _ in file.blocks
        for bit in (*range(8 * begin, 8 * at), *range(8 * stop, 8 * stop + 8))
    }
    yield from sorted(frames | set(chance.sample(range(8 * len(data)), 150)))


@pytest.mark.parametrize("name", ["list", "m0", "m1", "m2"])
def test_flipped_bit_never_loses_a_file_or_a_delete_in_silence(tmp_path: Path, name: str) -> None:
    """Avro has no checksum: a path or a number may change. But no file goes missing, and none loses its deletes."""
    small = Small.made(tmp_path)
    whole = small.plan()
    assert [deletes for _, _, deletes in whole] == [2, 2, 2, 2]
    errors = 0
    for bit in flips(small.parts[name]):
        data = bytearray(small.parts[name])
        data[bit // 8] ^= 1 << bit % 8
        small.write({name: bytes(data)})
        try:
            found = small.plan()
        except TamisError:
            errors += 1
            continue
        assert len(found) == len(whole), f"bit {bit}"
        if name == "list":
            assert found == whole, f"bit {bit}"
    assert errors > 50
    small.write()
    assert small.plan() == whole
