"""Edits that remove files and add deletes: by spec, refused by name, in conflict with what came between."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

import tamis
from tamis.errors import CommitConflict, CommitRefused
from tamis.formats.edit import Edit, NewFile, Operation
from tamis.formats.iceberg.by_spec import find_compatible_schema, group_entries_by_spec, group_files_by_spec
from tests.making.edits import (
    FIELDS,
    SPECS,
    data_file,
    edit,
    entries,
    latest,
    listed,
    make_table,
    planned,
    position_deletes,
    vector,
    writable,
)


def append(path: str, *files: NewFile) -> None:
    table = writable(path)
    table.commit(edit(table, "append", added=files))


def names(path: str) -> list[str]:
    return sorted(Path(one.path).name for one in entries(path) if one.content == 0)


# -- specs ------------------------------------------------------------------------------------------------------


def test_no_files_are_no_groups() -> None:
    assert group_files_by_spec([]) == {}
    assert group_entries_by_spec([]) == {}


def test_files_of_one_spec_are_one_group_in_their_order() -> None:
    files = [data_file("/t", number, 1) for number in (3, 1, 2)]
    assert group_files_by_spec(files) == {1: files}


def test_files_of_several_specs_are_grouped_by_ascending_id() -> None:
    files = [data_file("/t", number, spec) for number, spec in enumerate([2, 0, 3, 0, 2])]
    groups = group_files_by_spec(files)
    assert list(groups) == [0, 2, 3]
    assert groups[0] == [files[1], files[3]]
    assert groups[2] == [files[0], files[4]]


def test_files_without_a_spec_are_of_the_first() -> None:
    """Version 1 knew tables of one spec, whose files do not name it."""
    files = [data_file("/t", 1, None), data_file("/t", 2, 0)]
    assert group_files_by_spec(files) == {0: files}


def test_planned_entries_of_one_spec_are_one_group(tmp_path: Path) -> None:
    path = make_table(tmp_path, 2)
    append(path, *(data_file(path, number, 2) for number in range(3)))
    _, found = planned(writable(path), lambda _: True)
    groups = group_entries_by_spec(found)
    assert {id_: sum(map(len, members)) for id_, members in groups.items()} == {2: 3}


def test_planned_entries_are_grouped_by_ascending_spec(tmp_path: Path) -> None:
    path = make_table(tmp_path, 2)
    append(path, *(data_file(path, number, number % 4) for number in range(12)))
    _, found = planned(writable(path), lambda one: not one.endswith("f2.parquet"))
    groups = group_entries_by_spec(found[::-1])
    assert list(groups) == [0, 1, 2, 3]
    assert {id_: sum(map(len, members)) for id_, members in groups.items()} == {0: 3, 1: 3, 2: 2, 3: 3}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_files_of_any_spec_of_the_table_are_taken_and_each_manifest_has_one(tmp_path: Path, version: int) -> None:
    path = make_table(tmp_path, version)
    append(path, *(data_file(path, number, number % 4) for number in range(8)))
    assert [one["partition_spec_id"] for one in listed(path)] == [0, 1, 2, 3]
    assert [one["added_files_count"] for one in listed(path)] == [2, 2, 2, 2]
    plan = tamis.open(path, cache=False).plan("region = 'eu'")
    assert sorted(Path(one).name for one in plan.files["path"].to_pylist()) == [
        # f1 of spec 1 and f5 (us), f2 of spec 2 (us) and f6: by region; the others have no region to go by.
        *("f0.parquet", "f1.parquet", "f3.parquet", "f4.parquet", "f7.parquet")
    ]


def test_a_spec_that_the_table_does_not_have_is_named(tmp_path: Path) -> None:
    path = make_table(tmp_path, 2)
    with pytest.raises(CommitRefused, match="partition spec 99") as caught:
        append(path, NewFile(f"{path}/data/a.parquet", 1, 1, 99))
    assert caught.value.feature == "partition spec 99"
    with pytest.raises(CommitRefused, match="1 partition values, and spec 2 has 2 fields"):
        append(path, NewFile(f"{path}/data/a.parquet", 1, 1, 2, ("eu",)))
    assert latest(path)["snapshots"] == []


def test_a_spec_of_which_no_schema_has_the_column_any_more_is_refused_by_name(tmp_path: Path) -> None:
    """The field was dropped, then the column, then the schemas that had it."""
    gone = {"name": "gone", "transform": "void", "source-id": 99, "field-id": 1000}
    specs = [{"spec-id": 0, "fields": [gone]}, {"spec-id": 1, "fields": []}]
    path = make_table(tmp_path, 2, **{"partition-specs": specs, "default-spec-id": 1})
    with pytest.raises(CommitRefused, match=r"its field 'gone' \(void\)") as caught:
        append(path, NewFile(f"{path}/data/a.parquet", 1, 1, 0, (None,)))
    assert caught.value.feature == "partition spec 0"
    append(path, NewFile(f"{path}/data/a.parquet", 1, 1, 1))
    assert names(path) == ["a.parquet"]


def test_the_schema_of_an_old_spec_is_the_newest_that_has_its_columns() -> None:
    """A column that only an old spec names may be dropped, and its manifests are still written."""
    without = [one for one in FIELDS if one["name"] != "amount"]
    document: dict[str, Any] = {
        "schemas": [{"schema-id": 0, "fields": FIELDS}, {"schema-id": 1, "fields": without}],
        "current-schema-id": 1,
        "partition-specs": SPECS,
    }
    assert find_compatible_schema("t", document, 1)["schema-id"] == 1
    assert find_compatible_schema("t", document, 3)["schema-id"] == 0
    document["schemas"] = document["schemas"][1:]
    with pytest.raises(CommitRefused, match="partition spec 3"):
        find_compatible_schema("t", document, 3)
    # A nested column counts.
    nested = {"id": 9, "name": "s", "required": False, "type": {"type": "struct", "fields": FIELDS}}
    document["schemas"] = [{"schema-id": 1, "fields": [nested]}]
    assert find_compatible_schema("t", document, 3)["schema-id"] == 1


def test_an_id_that_another_spec_or_schema_has_by_now_is_a_conflict(tmp_path: Path) -> None:
    """A removed spec's id may be given away again: the values would be read by the wrong transform."""
    path = make_table(tmp_path, 2)
    table = writable(path)
    made = edit(table, "append", added=(data_file(path, 1, 1),))
    document = latest(path)
    specs = [one if one["spec-id"] != 1 else {**one, "fields": SPECS[2]["fields"][1:]} for one in SPECS]
    changed = Path(path, "metadata", "v2.metadata.json")
    changed.write_text(json.dumps({**document, "partition-specs": specs}))
    with pytest.raises(CommitConflict, match="partition spec 1 is another one now"):
        table.commit(made)
    fields = [{**one, "id": 7} if one["id"] == 4 else one for one in FIELDS]
    changed.write_text(json.dumps({**document, "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}]}))
    with pytest.raises(CommitConflict, match="'amount' was dropped"):
        table.commit(made)


# -- what is carried on -----------------------------------------------------------------------------------------


def test_fields_that_this_version_does_not_know_are_carried_on(tmp_path: Path) -> None:
    """A later version's writers say more of a file, and readers of theirs count on it."""
    path = make_table(tmp_path, 2)
    append(path, *(data_file(path, number, 1) for number in range(3)))
    manifest = listed(path)[0]["manifest_path"]
    data = Path(manifest).read_bytes()
    reader = fastavro.reader(io.BytesIO(data))
    schema, head = reader.writer_schema, {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    records: list[Any] = list(reader)
    assert isinstance(schema, dict)
    schema["fields"].append({"name": "mark", "type": ["null", "string"], "default": None, "field-id": 900})
    file = next(one for one in schema["fields"] if one["name"] == "data_file")["type"]
    numbers = {"type": "array", "items": "long", "element-id": 902}
    file["fields"].append({"name": "numbers", "type": ["null", numbers], "default": None, "field-id": 901})
    for place, record in enumerate(records):
        record["mark"], record["data_file"]["numbers"] = f"m{place}", [place, 7] if place else None
    out = io.BytesIO()
    fastavro.writer(out, schema, records, metadata=head, codec="deflate")
    Path(manifest).write_bytes(out.getvalue())
    table = writable(path)
    _, removed = planned(table, lambda one: one.endswith("f1.parquet"))
    table.commit(edit(table, "delete", removed=removed))
    anew = listed(path)[0]
    assert (anew["existing_files_count"], anew["deleted_files_count"]) == (2, 1)
    found: list[Any] = list(fastavro.reader(io.BytesIO(Path(anew["manifest_path"]).read_bytes())))
    assert [(one["mark"], one["data_file"]["numbers"], one["status"]) for one in found] == [
        ("m0", None, 0),
        ("m1", [1, 7], 2),
        ("m2", [2, 7], 0),
    ]


def test_a_manifest_that_cannot_be_carried_on_is_refused_by_name(tmp_path: Path) -> None:
    path = make_table(tmp_path, 2)
    append(path, *(data_file(path, number, 1) for number in range(3)))
    manifest = listed(path)[0]["manifest_path"]
    reader = fastavro.reader(io.BytesIO(Path(manifest).read_bytes()))
    schema, head = reader.writer_schema, {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    records: list[Any] = list(reader)
    assert isinstance(schema, dict)
    schema["fields"].append({"name": "odd", "type": {"type": "map", "values": "long"}, "field-id": 900})
    for record in records:
        record["odd"] = {"a": 1}
    out = io.BytesIO()
    fastavro.writer(out, schema, records, metadata=head, codec="null")
    Path(manifest).write_bytes(out.getvalue())
    table = writable(path)
    _, removed = planned(table, lambda one: one.endswith("f1.parquet"))
    before = sorted(Path(path, "metadata").iterdir())
    with pytest.raises(CommitRefused, match="odd"):
        table.commit(edit(table, "delete", removed=removed))
    assert sorted(Path(path, "metadata").iterdir()) == before


def test_what_is_not_touched_is_listed_as_it_was(tmp_path: Path) -> None:
    path = make_table(tmp_path, 2)
    append(path, *(data_file(path, number, 1) for number in range(3)))
    append(path, *(data_file(path, number, 2) for number in range(3, 6)))
    first, second = listed(path)
    table = writable(path)
    _, removed = planned(table, lambda one: one.endswith("f1.parquet"))
    table.commit(edit(table, "delete", removed=removed))
    assert first in listed(path)
    assert second not in listed(path)
    summary = latest(path)["snapshots"][-1]["summary"]
    told = {key: summary[key] for key in ("operation", "deleted-data-files", "deleted-records", "removed-files-size")}
    assert told == {
        "operation": "delete",
        "deleted-data-files": "1",
        "deleted-records": "10",
        "removed-files-size": "1001",
    }
    assert (summary["manifests-created"], summary["manifests-kept"], summary["manifests-replaced"]) == ("1", "1", "1")


@pytest.mark.parametrize("version", [1, 2])
def test_manifests_of_an_older_format_version_are_written_anew_in_the_new(tmp_path: Path, version: int) -> None:
    """An upgrade rewrites no manifest; the first change of one does. Row ids begin with it."""
    path = make_table(tmp_path, version)
    append(path, *(data_file(path, number, number % 2) for number in range(6)))
    document = {**latest(path), "format-version": version + 1, "last-sequence-number": version - 1}
    if version == 2:
        document["next-row-id"] = 0
    Path(path, "metadata", "v3.metadata.json").write_text(json.dumps(document))
    before = {one.path: one for one in entries(path)}
    table = writable(path)
    table.commit(edit(table, "delete", removed=planned(table, lambda one: one.endswith("f1.parquet"))[1]))
    assert names(path) == [f"f{number}.parquet" for number in (0, 2, 3, 4, 5)]
    for one in entries(path):
        assert (one.sequence, one.snapshot_id) == (before[one.path].sequence, before[one.path].snapshot_id)
        assert one.partition == before[one.path].partition
    ids = sorted(one.first_row_id for one in entries(path) if one.first_row_id is not None)
    assert ids == ([] if version == 1 else [0, 10, 20, 30, 40])
    plan = tamis.open(path, cache=False).plan("region = 'eu'")
    assert plan.stats.kept == 3


# -- conflicts --------------------------------------------------------------------------------------------------


def between(path: str, what: str) -> None:
    """Another writer's commit. f1 has the ids 10 to 19, f2 20 to 29."""
    table = writable(path)
    one = data_file(path, 1, 1)
    is_first = lambda name: name.endswith("/f1.parquet")  # noqa: E731 - a name for it
    match what:
        case "append outside":
            made = edit(table, "append", added=(data_file(path, 70, 1),))
        case "append of the same ids":
            made = edit(table, "append", added=(_again(path),))
        case "delete rows":
            made = edit(
                table, "delete", deletes=(_deletes(path, 80, one, table),), referenced=planned(table, is_first)[1]
            )
        case "delete of other rows":
            two = data_file(path, 2, 1)
            made = edit(table, "delete", deletes=(_deletes(path, 81, two, table),))
        case "delete the file":
            made = edit(table, "delete", removed=planned(table, is_first)[1])
        case "rewrite the file":
            made = edit(table, "overwrite", removed=planned(table, is_first)[1], added=(_again(path),))
        case "compact":
            made = edit(table, "replace", removed=planned(table, is_first)[1], added=(_again(path),))
        case "compact others":
            others = planned(table, lambda name: name.endswith("/f2.parquet"))[1]
            made = edit(table, "replace", removed=others, added=(_again(path),))
        case "append of the same ids, compacted":
            between(path, "append of the same ids")
            table = writable(path)
            moved = dataclasses.replace(_again(path), path=f"{path}/data/moved.parquet")
            came = planned(table, lambda name: name.endswith("/again.parquet"))[1]
            made = edit(table, "replace", removed=came, added=(moved,))
        case "delete rows, compacted":
            between(path, "delete rows")
            table = writable(path)
            came, moved = _deletes(path, 80, one, table), _deletes(path, 82, one, table)
            made = edit(table, "replace", deletes=(moved,), replaced=frozenset({(came.path, came.content_offset)}))
    table.commit(made)


def _again(path: str) -> NewFile:
    return dataclasses.replace(data_file(path, 1, 1), path=f"{path}/data/again.parquet")


def _deletes(path: str, number: int, of: NewFile, table: Any) -> NewFile:  # noqa: ANN401 - a WritableTable
    version = table.state.metadata.format_version
    return vector(path, number, of) if version > 2 else position_deletes(path, number, of)


REMOVE = {
    "append outside": (True, True),
    "append of the same ids": (False, True),
    "delete rows": (False, False),
    "delete of other rows": (True, True),
    "delete the file": (False, False),
    "rewrite the file": (False, False),
    "compact": (False, False),
    "compact others": (True, True),
    "append of the same ids, compacted": (False, True),
    "delete rows, compacted": (False, False),
}
"""Whether an edit that read ids 10 to 19 and replaces their file fits: serializable, snapshot."""
POINT = REMOVE | {
    "delete rows": (True, True),
    "delete the file": (True, True),
    "delete rows, compacted": (True, True),
}
"""The same of an edit that only deletes rows of the file, by position."""


@pytest.mark.parametrize("what", REMOVE)
@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", ["replace", "point", "move"])
def test_conflicts_are_those_of_iceberg(tmp_path: Path, what: str, isolation: str, version: int, kind: str) -> None:
    """By operation and isolation level, as Iceberg's own library validates them.

    To replace a file is copy-on-write; to point at rows is a DELETE that merges on read; to move them, with their new
    values in another file, is an UPDATE or a MERGE that does.
    """
    path = make_table(tmp_path, version)
    append(path, *(data_file(path, number, 1) for number in range(3)))
    table = writable(path)
    plan, mine = planned(table, lambda name: name.endswith("/f1.parquet"), "id between 10 and 19")
    new = data_file(path, 500, 3)
    coming: dict[str, Any] = {"removed": mine, "added": (new,)}
    if kind == "point":
        coming = {"deletes": (_deletes(path, 90, data_file(path, 1, 1), table),), "referenced": mine}
    if kind == "move":
        one = _deletes(path, 90, data_file(path, 1, 1), table)
        coming = {"deletes": (one,), "referenced": mine, "added": (new,), "moved": True}
    operation: Operation = "delete" if kind == "point" else "overwrite"
    made: Edit = edit(table, operation, read=plan.sieve, isolation=isolation, **coming)
    between(path, what)
    fits = (POINT if kind == "point" else REMOVE)[what][isolation == "snapshot"]
    if kind == "point" and version == 3 and what.startswith("delete rows"):
        fits = False  # a file has one deletion vector: two that were made apart would lose rows of one
    before, listed_before = names(path), sorted(Path(path, "metadata").iterdir())
    if fits:
        assert table.commit(made).snapshot_id == made.snapshot_id
        return
    with pytest.raises(CommitConflict) as caught:
        table.commit(made)
    assert not caught.value.retryable
    assert (names(path), sorted(Path(path, "metadata").iterdir())) == (before, listed_before)


def test_a_file_whose_manifest_was_written_anew_is_found_again(tmp_path: Path) -> None:
    """Another delete has taken a neighbour: the file is where it was, in another manifest."""
    path = make_table(tmp_path, 2)
    append(path, *(data_file(path, number, 1) for number in range(3)))
    table = writable(path)
    plan, mine = planned(table, lambda name: name.endswith("/f1.parquet"), "id between 10 and 19")
    made = edit(table, "delete", removed=mine, read=plan.sieve)
    other = writable(path)
    other.commit(edit(other, "delete", removed=planned(other, lambda name: name.endswith("/f2.parquet"))[1]))
    table.commit(made)
    assert names(path) == ["f0.parquet"]


def test_a_history_that_does_not_lead_back_is_a_conflict(tmp_path: Path) -> None:
    path = make_table(tmp_path, 2)
    append(path, data_file(path, 1, 1))
    first = latest(path)["current-snapshot-id"]
    append(path, data_file(path, 2, 1))
    table = writable(path)
    plan, mine = planned(table, lambda name: name.endswith("/f1.parquet"), "id between 10 and 19")
    document = latest(path)
    document["current-snapshot-id"] = document["refs"]["main"]["snapshot-id"] = first
    Path(path, "metadata", "v4.metadata.json").write_text(json.dumps(document))
    with pytest.raises(CommitConflict, match="rolled back"):
        table.commit(edit(table, "delete", removed=mine, read=plan.sieve))


def test_a_new_version_of_the_format_is_a_conflict_for_deletes(tmp_path: Path) -> None:
    """Version 3 takes no new files of position deletes."""
    path = make_table(tmp_path, 2)
    append(path, data_file(path, 1, 1))
    table = writable(path)
    _, mine = planned(table, lambda _: True)
    document = {**latest(path), "format-version": 3, "next-row-id": 0}
    Path(path, "metadata", "v3.metadata.json").write_text(json.dumps(document))
    new = position_deletes(path, 5, data_file(path, 1, 1))
    with pytest.raises(CommitConflict, match="format version"):
        table.commit(edit(table, "delete", deletes=(new,), referenced=mine))
