"""What Paimon tables hold, row by row and file by file: read from the data files themselves, without any planner."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

import tamis
from tamis.predicate.build import Expression
from tamis.predicate.nodes import And, Compare, In, IsNull, Literal, Node, Not, Or, Ref
from tests.engines.paimon_engine import PaimonEngine
from tests.making.oracle import evaluate

__all__ = ["Held", "Truth", "conditions", "kept_names", "python_write", "truth_of"]

_REMOVES: Final = (1, 3)
"""Kinds of rows that take a row away: the old half of an update, and a delete."""
Types = dict[tuple[str, ...], pa.DataType]


@dataclass(frozen=True, slots=True)
class Held:
    """A version of a row, and the file that it lies in."""

    row: Mapping[tuple[str, ...], Any]
    file: str
    bucket: tuple[str, int]
    """Its partition's folder, and its bucket."""
    key: tuple[Any, ...] | None = None
    sequence: int = 0
    kind: int = 0


@dataclass(frozen=True, slots=True)
class Truth:
    """All that the live files of a table hold."""

    types: Types
    held: list[Held]
    files: frozenset[str]
    vectors: bool = False
    """Whether old versions are marked as deleted: then each file is read alone."""

    def merged(self, kept: frozenset[str] | None = None) -> list[Held]:
        """The rows that a reader of these files sees: the newest version of a key, unless it takes the row away."""
        held = [each for each in self.held if kept is None or self.vectors or each.file in kept]
        newest: dict[object, Held] = {}
        for place, each in enumerate(held):
            key = (each.bucket, each.key) if each.key is not None else place
            if key not in newest or newest[key].sequence <= each.sequence:
                newest[key] = each
        left = [each for each in newest.values() if each.kind not in _REMOVES]
        return [each for each in left if kept is None or each.file in kept]

    def matching(self, node: Node, kept: frozenset[str] | None = None) -> list[str]:
        """The rows of which the condition is true, as texts that can be compared."""
        found = (each for each in self.merged(kept) if evaluate(node, each.row, self.types) is True)
        return sorted(f"{each.file} {sorted(each.row.items())}" for each in found)


def truth_of(engine: PaimonEngine, table: str, deleted: Mapping[str, Sequence[int]] | None = None) -> Truth:
    """The table as it stands: Java says which files are live, and their schemas how their columns are found."""
    root = engine.path(table)
    columns = {column.path: column.type for column in tamis.open(str(root)).schema.columns}
    now = _fields(root, max(int(path.name.removeprefix("schema-")) for path in (root / "schema").iterdir()))
    keys = list(engine("describe", table)["schema"]["primaryKeys"])
    held: list[Held] = []
    entries = [entry for entry in engine("files", table)["files"] if entry["bucket"] >= 0]
    for entry in entries:
        name = entry["file"]["name"]
        (path,) = root.rglob(name)
        data = pq.ParquetFile(path).read()
        then = {id_: column for column, id_ in _fields(root, entry["file"]["schema_id"]).items()}
        rows: dict[tuple[str, ...], list[Any]] = {}
        for column, id_ in now.items():
            there = id_ in then and then[id_] in data.column_names
            values = data[then[id_]].cast(columns[(column,)], safe=False) if there else [None] * len(data)
            rows[(column,)] = values.to_pylist() if there else list(values)
        for row in range(len(data)):
            if row in (deleted or {}).get(name, ()):
                continue
            values = {path_: column[row] for path_, column in rows.items()}
            bucket = (str(path.parent.parent), entry["bucket"])
            if not keys:
                held.append(Held(values, name, bucket))
                continue
            key = tuple(values[(each,)] for each in keys)
            sequence, kind = (data[each][row].as_py() for each in ("_SEQUENCE_NUMBER", "_VALUE_KIND"))
            held.append(Held(values, name, bucket, key, sequence, kind))
    return Truth(columns, held, frozenset(entry["file"]["name"] for entry in entries))


def _fields(root: Path, id_: int) -> dict[str, int]:
    schema = json.loads((root / "schema" / f"schema-{id_}").read_text("utf-8"))
    return {field["name"]: field["id"] for field in schema["fields"]}


def kept_names(table: tamis.Table, where: Node | str | None = None, **more: Any) -> frozenset[str]:  # noqa: ANN401 - of plan
    """The files that a plan keeps, by their names."""
    asked = where if where is None or isinstance(where, str) else Expression(where)
    return frozenset(path.rpartition("/")[2] for path in table.plan(asked, **more).files["path"].to_pylist())


def conditions(truth: Truth, columns: Sequence[str], count: int, seed: int) -> Iterator[Node]:
    """Conditions over these columns, near the values that the table holds; equalities of several are frequent."""
    by = random.Random(seed)  # noqa: S311 - test data
    values = {name: [each.row[(name,)] for each in truth.held] for name in columns}
    for _ in range(count):
        yield _tree(by, truth.types, values, by.choice((0, 1, 1, 2)))


def _tree(by: random.Random, types: Types, values: Mapping[str, list[Any]], depth: int) -> Node:
    if depth == 0:
        return _leaf(by, types, values, by.choice(list(values)))
    kind: Callable[[tuple[Node, ...]], Node] = by.choice((And, And, Or))
    if by.random() < 0.1:
        return Not(_tree(by, types, values, depth - 1))
    if kind is And and by.random() < 0.5:  # a whole key, perhaps
        return And(tuple(_leaf(by, types, values, name) for name in values))
    return kind(tuple(_tree(by, types, values, depth - 1) for _ in range(by.choice((2, 2, 3)))))


def _leaf(by: random.Random, types: Types, values: Mapping[str, list[Any]], name: str) -> Node:
    ref, type_ = Ref((name,)), types[(name,)]
    known = [value for value in values[name] if value is not None]
    if not known or by.random() < 0.1:
        return IsNull(ref) if by.random() < 0.6 else Not(IsNull(ref))
    some = [Literal(by.choice(known), type_) for _ in range(by.choice((1, 2, 3, 8)))]
    if by.random() < 0.35:
        return In(ref, tuple(some))
    operators = ("=", "=", "=", "=", "<", "<=", ">", ">=", "!=")
    return Compare(by.choice(operators), ref, some[0])  # type: ignore[arg-type] # one of the operators


def python_write(engine: PaimonEngine, table: str, rows: pa.Table) -> None:
    """Rows appended by pypaimon, whose writer differs from Java's."""
    from pypaimon import CatalogFactory
    from pypaimon.schema.data_types import PyarrowFieldParser

    found = CatalogFactory.create({"warehouse": str(engine.warehouse)}).get_table(f"db.{table}")
    schema = PyarrowFieldParser.from_paimon_schema(found.table_schema.fields)
    builder = found.new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(rows.select(schema.names).cast(schema))
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()
