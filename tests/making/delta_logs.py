"""Delta logs made by hand: commits, compactions and checkpoints of every kind, and an oracle that replays naively."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.formats.delta.vectors import MAGIC

Action = dict[str, Any]

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "part", "type": "string", "nullable": True, "metadata": {}},
    ],
}
VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
MAP = pa.map_(pa.string(), pa.string())
CHECKPOINT = pa.schema(
    [
        ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64())])),
        (
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", MAP),
                    ("size", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("stats", pa.string()),
                    ("deletionVector", VECTOR),
                ]
            ),
        ),
        ("remove", pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("deletionVector", VECTOR)])),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", MAP)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("configuration", MAP),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", pa.list_(pa.string())),
                    ("writerFeatures", pa.list_(pa.string())),
                ]
            ),
        ),
        (
            "sidecar",
            pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]),
        ),
        ("checkpointMetadata", pa.struct([("version", pa.int64())])),
    ]
)


def protocol(reader: int = 1, writer: int = 2, features: Sequence[str] = ()) -> Action:
    found: Action = {"minReaderVersion": reader, "minWriterVersion": writer}
    if features:
        found |= {"readerFeatures": list(features), "writerFeatures": list(features)}
    return {"protocol": found}


def metadata(
    schema: Mapping[str, Any] = SCHEMA, partitions: Sequence[str] = ("part",), **configuration: str
) -> Action:
    return {
        "metaData": {
            "id": "6a1e1f3e-0000-4000-8000-000000000000",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(schema),
            "partitionColumns": list(partitions),
            "configuration": configuration,
            "createdTime": 1,
        }
    }


def vector(text: str, offset: int | None = 1, kind: str = "u", cardinality: int = 1) -> Action:
    return {
        "storageType": kind,
        "pathOrInlineDv": text,
        "offset": offset,
        "sizeInBytes": 34,
        "cardinality": cardinality,
    }


def inline_vector(rows: list[int]) -> dict[str, object]:
    """A vector that stands in the log itself."""
    data = MAGIC + struct.pack("<QI", 1, 0) + struct.pack("<IIHHI", 12346, 1, 0, len(rows) - 1, 16)
    data += struct.pack(f"<{len(rows)}H", *rows)
    padded, text = data + b"\0" * (-len(data) % 4), ""
    for start in range(0, len(padded), 4):
        number, word = int.from_bytes(padded[start : start + 4], "big"), ""
        for _ in range(5):
            number, rest = divmod(number, 85)
            word = _LETTERS[rest] + word
        text += word
    return {
        "storageType": "i",
        "pathOrInlineDv": text,
        "offset": None,
        "sizeInBytes": len(data),
        "cardinality": len(rows),
    }


def add(
    path: str,
    part: str | None = "a",
    dv: Action | None = None,
    size: int = 10,
    stats: str | None = '{"numRecords":1}',
    values: Mapping[str, str | None] | None = None,
) -> Action:
    found = {
        "path": path,
        "partitionValues": {"part": part} if values is None else dict(values),
        "size": size,
        "modificationTime": 1,
        "dataChange": True,
        "stats": stats,
    }
    return {"add": found if dv is None else {**found, "deletionVector": dv}}


def remove(path: str, dv: Action | None = None) -> Action:
    found: Action = {"path": path, "deletionTimestamp": 1, "dataChange": True}
    return {"remove": found if dv is None else {**found, "deletionVector": dv}}


def key_of(action: Action) -> tuple[str, str]:
    """What the protocol tells logical files apart by."""
    body = action.get("add") or action["remove"]
    dv = body.get("deletionVector")
    if dv is None:
        return unquote(body["path"]), ""
    at = "" if dv["offset"] is None else f"@{dv['offset']}"
    return unquote(body["path"]), f"{dv['storageType']}{dv['pathOrInlineDv']}{at}"


def reconciled(actions: Iterable[Action]) -> list[Action]:
    """What a checkpoint or a compaction of these actions holds: the newest of each kind and of each file."""
    files: dict[tuple[str, str], Action] = {}
    others: dict[str, Action] = {}
    for action in actions:
        if "add" in action or "remove" in action:
            files.pop(key_of(action), None)
            files[key_of(action)] = action
        elif "commitInfo" not in action:
            others[next(iter(action))] = action
    return [*others.values(), *files.values()]


def live(actions: Iterable[Action]) -> dict[tuple[str, str], Action]:
    """The files that are left: one action after another, as slowly as can be."""
    found: dict[tuple[str, str], Action] = {}
    for action in actions:
        if "add" in action:
            found[key_of(action)] = action["add"]
        elif "remove" in action:
            found.pop(key_of(action), None)
    return found


@dataclass(slots=True)
class DeltaLog:
    """A table's folder, and the history that is written into its log."""

    root: Path
    history: list[list[Action]] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.root / "_delta_log"

    def commit(self, *actions: Action) -> int:
        self.folder.mkdir(parents=True, exist_ok=True)
        version = len(self.history)
        self.history.append(list(actions))
        (self.folder / f"{version:020d}.json").write_text("".join(json.dumps(one) + "\n" for one in actions))
        return version

    def begin(self, *more: Action, reader: int = 1, features: Sequence[str] = (), **kwargs: Any) -> int:  # noqa: ANN401 - as metadata takes them
        return self.commit(protocol(reader, 7 if features else 2, features), metadata(**kwargs), *more)

    def actions(self, first: int, last: int) -> list[Action]:
        return [one for commit in self.history[first : last + 1] for one in commit]

    def live(self, version: int | None = None) -> set[tuple[str, str]]:
        return set(live(self.actions(0, len(self.history) - 1 if version is None else version)))

    def compact(self, first: int, last: int) -> Path:
        path = self.folder / f"{first:020d}.{last:020d}.compacted.json"
        path.write_text("".join(json.dumps(one) + "\n" for one in reconciled(self.actions(first, last))))
        return path

    def checkpoint(self, version: int, kind: str = "classic", parts: int = 3) -> list[Path]:
        """Write a checkpoint: classic, multi-part, v2-parquet, v2-json, v2-classic, or v2 without sidecars."""
        actions = reconciled(self.actions(0, version))
        base = f"{version:020d}.checkpoint"
        if kind == "classic":
            return [self._parquet(self.folder / f"{base}.parquet", actions)]
        if kind == "multi-part":
            return [
                self._parquet(self.folder / f"{base}.{number + 1:010d}.{parts:010d}.parquet", actions[number::parts])
                for number in range(parts)
            ]
        files = [one for one in actions if "add" in one or "remove" in one]
        others: list[Action] = [{"checkpointMetadata": {"version": version}}]
        others += [one for one in actions if one not in files]
        if kind == "v2-no-sidecars":
            return [self._parquet(self.folder / f"{base}.{UUID(int=version)}.parquet", [*others, *files])]
        sidecars = self.folder / "_sidecars"
        sidecars.mkdir(exist_ok=True)
        for number in range(2):
            path = sidecars / f"{UUID(int=version * 10 + number)}.parquet"
            self._parquet(path, files[number::2])
            others.append({"sidecar": {"path": path.name, "sizeInBytes": path.stat().st_size, "modificationTime": 1}})
        if kind == "v2-json":
            path = self.folder / f"{base}.{UUID(int=version)}.json"
            path.write_text("".join(json.dumps(one) + "\n" for one in others))
            return [path]
        name = f"{base}.parquet" if kind == "v2-classic" else f"{base}.{UUID(int=version)}.parquet"
        return [self._parquet(self.folder / name, others)]

    def hint(self, text: str | bytes | Mapping[str, Any]) -> None:
        path = self.folder / "_last_checkpoint"
        if isinstance(text, Mapping):
            text = json.dumps(text)
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    def _parquet(self, path: Path, actions: Sequence[Action]) -> Path:
        rows = [{name: _mapped(one.get(name)) for name in CHECKPOINT.names} for one in actions]
        pq.write_table(pa.Table.from_pylist(rows, CHECKPOINT), path)
        return path


def _mapped(action: Action | None) -> Action | None:
    """Maps as Arrow takes them."""
    if action is None:
        return None
    found = dict(action)
    for name in ("partitionValues", "configuration"):
        if name in found:
            found[name] = list(found[name].items())
    if "format" in found:
        found["format"] = {"provider": found["format"]["provider"], "options": []}
    return found
