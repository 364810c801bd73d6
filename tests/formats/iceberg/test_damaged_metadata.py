"""Whatever a metadata file holds, it opens and plans, or an error names the place in it; nothing else, ever.

Every value of real documents is replaced in turn by each of a dozen others, and every key is removed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

import pytest
from pyiceberg.table import Table

import tamis
from tamis.errors import TamisError, UnreadableMetadataError
from tamis.formats.iceberg.table import IcebergTable
from tests.making.cli_tables import Ran, catalog, events, rows, run
from tests.making.manifests import parsed, table_document

DEEP: Final = json.loads("[" * 400 + "]" * 400)
TOO_DEEP: Final = "[" * 100_000 + "]" * 100_000
MARK: Final = "the value to replace"
REPLACEMENTS: Final = (
    *("null", '"x"', "-1", str(2**70), "1.5", "true", "[]", "{}", '"\\u0000"', '"\\ud800"', '""'),
    *("Infinity", "NaN", "1e999", "[[]]", '{"a": {}}', json.dumps(DEEP)),
)
"""As JSON spells them: some of it is not JSON, but Python's parser takes it."""

Steps = tuple[str | int, ...]


@dataclass(frozen=True)
class Damage:
    """One change of a document."""

    steps: Steps
    to: str | None
    """JSON to put there; None removes the key."""

    def __str__(self) -> str:
        return f"{self.steps} -> {'removed' if self.to is None else self.to[:20]}"

    def of(self, document: dict[str, Any]) -> str:
        changed = deepcopy(document)
        at: Any = changed
        for step in self.steps[:-1]:
            at = at[step]
        if self.to is None:
            del at[self.steps[-1]]
            return json.dumps(changed)
        at[self.steps[-1]] = MARK
        return json.dumps(changed).replace(json.dumps(MARK), self.to)


def places(value: object, steps: Steps = ()) -> Iterator[Steps]:
    """Every value inside, outer ones first."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*steps, key)
        yield from places(inner, (*steps, key))


def damages(document: dict[str, Any]) -> list[Damage]:
    found = [Damage(steps, to) for steps in places(document) for to in REPLACEMENTS]
    return found + [Damage(steps, None) for steps in places(document)]


# -- real documents ---------------------------------------------------------------------------------------------


def metadata_file(table: Table) -> Path:
    return Path(table.metadata_location.removeprefix("file://"))


def version_1(folder: Path) -> tuple[Path, dict[str, Any]]:
    """As PyIceberg writes it, with one snapshot that names its manifests as the oldest writers did."""
    properties = {"format-version": "1"}
    table = catalog(folder).create_table("db.v1", rows([], "eu", 1).schema, properties=properties)
    table.append(rows([1, 2], "eu", 1))
    table.append(rows([3], "us", 2))
    path = metadata_file(table)
    document = json.loads(path.read_bytes())
    manifests = [one.manifest_path for one in table.snapshots()[0].manifests(table.io)]
    del document["snapshots"][0]["manifest-list"]
    document["snapshots"][0]["manifests"] = manifests
    assert document["format-version"] == 1
    return path, document


def version_2(folder: Path) -> tuple[Path, dict[str, Any]]:
    path = metadata_file(events(folder))
    document = json.loads(path.read_bytes())
    assert document["format-version"] == 2
    return path, document


def version_3(folder: Path) -> tuple[Path, dict[str, Any]]:
    """A table of version 2 that was upgraded, with nested columns, defaults and fields of several sources."""
    path, document = version_2(folder)
    nested = [
        {"id": 10, "name": "n", "required": False, "type": "int", "initial-default": 7, "write-default": 8},
        {"id": 11, "name": "d", "required": False, "type": "decimal(9,2)", "initial-default": "1.20"},
        {"id": 12, "name": "t", "required": False, "type": "timestamp_ns", "initial-default": "2024-01-01T00:00:00"},
        {"id": 13, "name": "u", "required": False, "type": "uuid", "initial-default": document["table-uuid"]},
        {"id": 14, "name": "b", "required": False, "type": "binary", "initial-default": "00ff"},
        {"id": 15, "name": "v", "required": False, "type": "variant"},
        {
            "id": 16,
            "name": "s",
            "required": False,
            "type": {
                "type": "struct",
                "fields": [
                    {
                        "id": 17,
                        "name": "l",
                        "required": False,
                        "type": {"type": "list", "element-id": 18, "element": "string", "element-required": True},
                    },
                    {
                        "id": 19,
                        "name": "m",
                        "required": False,
                        "type": {
                            "type": "map",
                            "key-id": 20,
                            "key": "string",
                            "value-id": 21,
                            "value": "double",
                            "value-required": False,
                        },
                    },
                ],
            },
        },
    ]
    document["format-version"] = 3
    document["next-row-id"] = 100
    document["schemas"][-1]["fields"] += nested
    document["partition-specs"].append(
        {
            "spec-id": 9,
            "fields": [{"source-ids": [1, 2], "field-id": 1009, "name": "z", "transform": "zorder"}],
        }
    )
    document["properties"] = {"schema.name-mapping.default": "[]", "write.target-file-size-bytes": "1000"}
    document["snapshots"][-1]["first-row-id"] = 0
    return path, document


MAKERS: Final = (version_1, version_2, version_3)


@pytest.fixture(scope="module", params=MAKERS, ids=lambda one: one.__name__)
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    found: tuple[Path, dict[str, Any]] = request.param(tmp_path_factory.mktemp("real"))
    return found


def planned(path: Path) -> list[str]:
    """All files, by every way that metadata is looked at."""
    opened = tamis.open(str(path))
    plan = opened.plan()
    plan.explain()
    for column in opened.schema.columns[:1]:
        opened.plan(f"`{column.path[0]}` IS NOT NULL").explain("json")
    opened.inspect().to_dict()
    found: list[str] = plan.files["path"].to_pylist()
    return sorted(found)


EMPTIED: Final = {("current-snapshot-id", one) for one in (None, "null", "-1")}
"""What says that a table has no snapshot: of version 1, where nothing else says which one is current."""


def test_every_value_of_a_document_may_be_anything(real: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """Opened, planned and inspected as before, or refused by a message that names the place."""
    source, document = real
    source.write_text(json.dumps(document), encoding="utf-8")
    expected = planned(source)
    path = tmp_path / "v1.metadata.json"
    seen: set[object] = set()
    accepted = 0
    for damage in damages(document):
        path.write_text(damage.of(document), encoding="utf-8")
        try:
            opened = tamis.open(str(path))
            # What is read the same is planned the same, and one item of a list is as good as another.
            known = {read_as(opened), (tuple(one for one in damage.steps if isinstance(one, str)), damage.to)}
            if not known & seen:
                seen |= known
                found = planned(path)
                empty = document["format-version"] == 1 and (damage.steps[0], damage.to) in EMPTIED
                assert found == ([] if empty and len(damage.steps) == 1 else expected), damage
            accepted += 1
        except TamisError as error:
            refused(error, damage, path)
        except Exception as error:  # noqa: BLE001 - any other kind is what this test is about
            pytest.fail(f"{damage}: {type(error).__name__}: {error}")
    assert accepted > 100, "fields that nobody reads may hold anything"


def read_as(opened: tamis.Table) -> str:
    """All that planning and inspecting go by, as text."""
    table = cast("IcebergTable", opened.source)
    history = [(replace(one, summary=None), one.operation) for one in table.metadata.snapshots]
    chosen = None if table.selection.snapshot is None else table.selection.snapshot.id
    return repr((replace(table.metadata, snapshots=()), history, chosen, table.selection.schema))


def refused(error: TamisError, damage: Damage, path: Path) -> None:
    """The message names the place in the document, or another file that the place names."""
    assert len(error.message) < 2000, damage
    if not isinstance(error, UnreadableMetadataError):
        return  # a version, a spec or a snapshot that is not known: its message says which
    if error.path != str(path):
        assert damage.steps[-1] in ("manifest-list", "location") or "manifests" in damage.steps, damage
        return
    assert error.place or "no JSON" in error.reason or "nested deeper" in error.reason, damage
    assert error.place is None or error.place in error.message
    if damage.to in ("Infinity", "NaN", "2**70", "1.5", "{}", '{"a": {}}') and error.place:
        # A value of the wrong kind is named itself, or what should be in it.
        assert plain(damage.steps) in error.place, (damage, error.place)


def plain(steps: Steps) -> str:
    key = str(steps[-1])
    return key if key.replace("-", "").isalnum() else key[:5]


@pytest.mark.parametrize("command", ["explain", "inspect"])
def test_command_line_answers_damage_with_one_message(
    real: tuple[Path, dict[str, Any]],
    tmp_path: Path,
    command: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, document = real
    source.write_text(json.dumps(document), encoding="utf-8")
    path = tmp_path / "v1.metadata.json"
    codes: list[int] = []
    # Few, for each is a whole run; a step that shares no divisor with the number of replacements meets each of them.
    for damage in damages(document)[::31]:
        path.write_text(damage.of(document), encoding="utf-8")
        ran = run(capsys, monkeypatch, command, str(path))
        assert_said(ran, damage)
        codes.append(ran.code)
    assert set(codes) == {0, 2}


def assert_said(ran: Ran, damage: Damage) -> None:
    assert "Traceback" not in ran.err, damage
    if ran.code == 0:
        assert (ran.out != "", ran.err) == (True, ""), damage
    else:
        assert (ran.code, ran.out) == (2, ""), damage
        assert ran.err.startswith("tamis: "), damage


# -- what a table may not say -----------------------------------------------------------------------------------


def snapshot(id_: int, **more: object) -> dict[str, object]:
    found = {"snapshot-id": id_, "timestamp-ms": id_, "manifest-list": f"/l{id_}", "sequence-number": id_}
    found |= {key.replace("_", "-"): value for key, value in more.items()}
    return {key: value for key, value in found.items() if value is not None}


def field(id_: int, name: str, type_: object = "int") -> dict[str, object]:
    return {"id": id_, "name": name, "required": False, "type": type_}


def struct(depth: int) -> object:
    return "int" if depth == 0 else {"type": "struct", "fields": [field(depth + 10, "a", struct(depth - 1))]}


SPEC: Final = {"source-id": 1, "field-id": 1000, "name": "p", "transform": "identity"}
CORRUPT: Final[dict[str, tuple[dict[str, object], str, str]]] = {
    "a snapshot without a manifest list is an empty one": (
        {"snapshots": [snapshot(1, manifest_list=None)], "current-snapshot-id": 1},
        "snapshots[0].manifest-list",
        "it is missing",
    ),
    "a version 2 snapshot that names manifests would lose their deletes": (
        {"snapshots": [snapshot(1, manifest_list=None, manifests=["/m"])], "current-snapshot-id": 1},
        "snapshots[0].manifest-list",
        "it is missing",
    ),
    "none is current, and main is one": (
        {
            "snapshots": [snapshot(1)],
            "current-snapshot-id": -1,
            "refs": {"main": {"snapshot-id": 1, "type": "branch"}},
        },
        "refs.main.snapshot-id",
        "says that there is none",
    ),
    "one is current, and main is another": (
        {
            "snapshots": [snapshot(1), snapshot(2)],
            "current-snapshot-id": 1,
            "refs": {"main": {"snapshot-id": 2, "type": "branch"}},
        },
        "refs.main.snapshot-id",
        "says that it is 1",
    ),
    "a branch leads nowhere": (
        {"snapshots": [snapshot(1)], "refs": {"a.b": {"snapshot-id": 5, "type": "branch"}}},
        'refs["a.b"].snapshot-id',
        "none of the table's snapshots",
    ),
    "a ref is neither": (
        {"snapshots": [snapshot(1)], "refs": {"a": {"snapshot-id": 1, "type": "twig"}}},
        "refs.a.type",
        "neither branch nor tag",
    ),
    "the current snapshot is not there": (
        {"snapshots": [snapshot(1)], "current-snapshot-id": 2},
        "current-snapshot-id",
        "none of the table's snapshots",
    ),
    "two snapshots have one id": ({"snapshots": [snapshot(1), snapshot(1)]}, "snapshots[1].snapshot-id", "twice"),
    "a snapshot has the id of none": ({"snapshots": [snapshot(-1)]}, "snapshots[0].snapshot-id", "no snapshot"),
    "a path has a NUL": (
        {"snapshots": [snapshot(1), snapshot(2, manifest_list="/a\0b")]},
        "snapshots[1].manifest-list",
        "NUL",
    ),
    "two fields have one id": (
        {"schemas": [{"schema-id": 0, "fields": [field(1, "a"), field(1, "b")]}]},
        "schemas[0].fields[1].id",
        "field id 1 stands twice",
    ),
    "a field inside another has its id": (
        {"schemas": [{"schema-id": 0, "fields": [field(11, "a", struct(1))]}]},
        "schemas[0].fields[0].type.fields[0].id",
        "field id 11 stands twice",
    ),
    "two fields have one name": (
        {"schemas": [{"schema-id": 0, "fields": [field(1, "a"), field(2, "a")]}]},
        "schemas[0].fields[1].name",
        "twice",
    ),
    "two schemas have one id": (
        {"schemas": [{"schema-id": 0, "fields": []}, {"schema-id": 0, "fields": [field(1, "a")]}]},
        "schemas[1].schema-id",
        "twice",
    ),
    "the current schema is not there": ({"current-schema-id": 4}, "current-schema-id", "none of the table's schemas"),
    "two specs have one id": (
        {"partition-specs": [{"spec-id": 0, "fields": []}, {"spec-id": 0, "fields": [SPEC]}]},
        "partition-specs[1].spec-id",
        "twice",
    ),
    "two fields of a spec have one id": (
        {"partition-specs": [{"spec-id": 0, "fields": [SPEC, SPEC | {"name": "q"}]}]},
        "partition-specs[0].fields[1].field-id",
        "twice",
    ),
    "a field of a spec has no id, and none can be guessed": (
        {"partition-specs": [{"spec-id": 0, "fields": [{k: v for k, v in SPEC.items() if k != "field-id"}]}]},
        "partition-specs[0].fields[0].field-id",
        "missing",
    ),
    "the default spec is not there": (
        {"default-spec-id": 3},
        "default-spec-id",
        "none of the table's partition-specs",
    ),
    "a default is no value of its column": (
        {"schemas": [{"schema-id": 0, "fields": [field(1, "a") | {"initial-default": "x"}]}]},
        "schemas[0].fields[0].initial-default",
        "is not an int",
    ),
    "types are nested without end": (
        {"schemas": [{"schema-id": 0, "fields": [field(1, "a", struct(100))]}]},
        "schemas[0].fields[0].type",
        "nested more than",
    ),
}


@pytest.mark.parametrize(("changes", "place", "reason"), CORRUPT.values(), ids=CORRUPT.keys())
def test_corruption_that_can_be_seen_is_an_error(changes: dict[str, object], place: str, reason: str) -> None:
    with pytest.raises(UnreadableMetadataError) as caught:
        parsed(table_document(**changes))
    assert caught.value.place is not None
    assert caught.value.place.startswith(place)
    assert reason in caught.value.reason
    assert place in caught.value.message
    assert "older metadata file" in caught.value.message


@pytest.mark.parametrize("depth", [1, 20, 60])
def test_nested_types_of_any_likely_depth_are_read(depth: int) -> None:
    found = parsed(table_document(schemas=[{"schema-id": 0, "fields": [field(1, "a", struct(depth))]}]))
    assert len(found.schema.columns().columns) == depth + 1


@pytest.mark.parametrize("text", [TOO_DEEP, '{"a": ' + TOO_DEEP + "}", "1" * 5000, '{"a": ' + "1" * 5000 + "}"])
def test_json_beyond_the_parser_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "v1.metadata.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableMetadataError, match="older metadata file"):
        tamis.open(str(path))


def test_snapshot_whose_schema_is_gone_is_refused_when_it_is_asked_for() -> None:
    """Its columns would be called by names of another time."""
    found = parsed(table_document(snapshots=[snapshot(1, schema_id=7), snapshot(2)], **{"current-snapshot-id": 2}))
    assert found.select().snapshot is not None
    with pytest.raises(UnreadableMetadataError, match=r"at snapshots\[0\]\.schema-id: it is 7, which is none of"):
        found.select(snapshot_id=1)


def test_main_is_the_current_snapshot_where_refs_do_not_name_it() -> None:
    refs = {"old": {"snapshot-id": 1, "type": "TAG"}}
    found = parsed(table_document(snapshots=[snapshot(1), snapshot(2)], refs=refs, **{"current-snapshot-id": 2}))
    chosen = found.select(ref="main").snapshot
    assert chosen is not None
    assert chosen.id == 2


def test_snapshot_of_version_1_may_name_its_manifests(tmp_path: Path) -> None:
    """Also after an upgrade: the snapshot is as old as it was."""
    path, document = version_1(tmp_path)
    document |= {"format-version": 2, "last-sequence-number": 0}
    for version in (1, 2):
        path.write_text(json.dumps(document | {"format-version": version}), encoding="utf-8")
        first = document["snapshots"][0]["snapshot-id"]
        assert len(tamis.open(str(path), snapshot_id=first).plan().files) == 1
        assert len(tamis.open(str(path)).plan().files) == 2


@pytest.mark.parametrize("when", [2**62, -(2**62), 2**63 - 1])
def test_time_beyond_the_calendar_is_shown_as_a_number(
    tmp_path: Path, when: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, document = version_2(tmp_path)
    document["snapshots"][-1]["timestamp-ms"] = when
    path.write_text(json.dumps(document), encoding="utf-8")
    ran = run(capsys, monkeypatch, "inspect", str(path))
    assert ran.code == 0
    assert f"{when} ms" in ran.out
