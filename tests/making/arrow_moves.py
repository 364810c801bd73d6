"""Statements of many processes at once: the library's own jobs, with pyarrow moving the rows in the place of Spark.

Eight JVMs do not fit on a small machine. Plans, files, deletes, commits, retries and the cleaning up are what users
get; `installed` replaces six functions of `tamis.spark` alone: those that read rows and hand them to the writers,
and the one that asks Spark whether it takes the condition. For tables of the columns of `tests.making.statements`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import tamis
import tamis.jobs.append
import tamis.spark.changes
import tamis.spark.write
from tamis.formats import FormatTable, writable_table
from tamis.formats.edit import DeleteStage, Marked, NewFile, Stage
from tamis.formats.scan import Scan
from tamis.jobs.append import append
from tamis.jobs.delete import Deletion, delete
from tamis.sieve.plan import ScanPlan
from tamis.sieve.transforms import apply
from tests.making.statements import MARK, Condition, Row, Statement

__all__ = ["done", "installed", "live_rows"]

NAMES = ("id", "region", "n", "made_by")
_SCHEMA = pa.schema([("id", pa.int64()), ("region", pa.string()), ("n", pa.int64()), ("made_by", pa.string())])


class _Session:
    """What a job asks of a session that it does not use itself."""

    version = "0 (pyarrow)"


@dataclass(frozen=True, slots=True)
class _Rows:
    """What stands in for a DataFrame."""

    table: pa.Table
    sparkSession = _Session()  # noqa: N815 - as Spark calls it

    def union(self, other: _Rows) -> _Rows:
        return _Rows(pa.concat_tables([self.table, other.table]))


def installed(where: Condition | None = None) -> None:
    """Let jobs of this process move rows by pyarrow; where is the condition of the job that comes next."""
    tamis.spark.write.write_rows = tamis.jobs.append.write_rows = _write_rows  # type: ignore[assignment,attr-defined]
    tamis.spark.write.mark_rows = _mark_rows  # type: ignore[assignment]
    tamis.spark.changes.check_condition = lambda *_: None
    tamis.spark.changes.rows_left = partial(_left, where)  # type: ignore[assignment]
    tamis.spark.changes.rows_taken = partial(_taken, where)  # type: ignore[assignment]
    tamis.spark.changes.touched = partial(_touched, where)  # type: ignore[assignment]


def done(table: tamis.Table, statement: Statement) -> int:
    """Run the statement; how often its commit was tried, 0 if there was nothing to commit."""
    installed(statement.where)
    marks = {MARK: statement.name}
    rows = _Rows(pa.Table.from_pylist([row._asdict() for row in statement.rows], _SCHEMA))
    to = writable_table(table.source)
    if statement.kind == "append":
        return append(to, rows, branch="main", properties=marks).attempts  # type: ignore[arg-type]
    session: Any = _Session()
    plan = partial(_plan, statement.where.sql)
    given: Any = rows if statement.kind == "overwrite" else None
    return delete(to, Deletion(plan, session, "main", statement.mode, "serializable", marks, given)).attempts


def _plan(where: str, source: FormatTable) -> ScanPlan:
    return tamis.Table(source).plan(where)


def live_rows(table: tamis.Table) -> list[Row]:
    """The table's rows, as its metadata and files have them, deletes applied."""
    source = table.source
    return [
        Row(**{name: row[name] for name in NAMES})
        for _, rows, live in _files(source, table.plan())
        for row in rows.filter(pa.array(live)).select(NAMES).to_pylist()
    ]


def _files(source: FormatTable, plan: ScanPlan) -> Iterator[tuple[dict[str, Any], pa.Table, Any]]:
    """Each kept file: what the scan says of it, all its rows, and which of them are live."""
    scan = source.scan(plan)
    gone = _gone(scan)
    for number, file in enumerate(scan.files.to_pylist()):
        rows = _read(file["path"])
        live = np.ones(len(rows), np.bool_)
        live[list(gone.get(number, ()))] = False
        yield file, rows, live


def _gone(scan: Scan) -> dict[int, set[int]]:
    """The places of deleted rows, by the number of their file."""
    found: dict[int, set[int]] = {}
    paths = scan.files["path"].to_pylist()
    if scan.vectors is not None:
        each = scan.vectors
        for number, place, start, size in zip(each.data, each.location, each.offset, each.length, strict=True):
            blob = each.fetch(place)[start : start + size]
            found.setdefault(int(number), set()).update(each.decode(blob).tolist())
    if scan.positions is not None:
        files = scan.positions.files["path"].to_pylist()
        read = {path: _read(path).to_pylist() for path in files}
        for data, at in zip(scan.positions.data, scan.positions.delete, strict=True):
            mine = [row["pos"] for row in read[files[at]] if row["file_path"] == paths[data]]
            found.setdefault(int(data), set()).update(mine)
    assert not scan.equality
    return found


def _read(path: str) -> pa.Table:
    """What the file has; nothing of what its path may say."""
    with pq.ParquetFile(path.removeprefix("file://").removeprefix("file:")) as file:
        return file.read()


def _narrowed(plan: ScanPlan, wanted: Callable[[str], bool]) -> ScanPlan:
    """The plan of files alone of which some rows may match."""

    def narrowed(outcome: Any) -> Any:  # noqa: ANN401 - an Outcome
        named = np.array([wanted(path) for path in outcome.batch.path.to_pylist()], np.bool_)
        return replace(outcome, kept=outcome.kept & ~outcome.certain & named)

    return replace(plan, outcomes=tuple(map(narrowed, plan.outcomes)))


def _matches(where: Condition | None, rows: pa.Table) -> Any:  # noqa: ANN401 - a mask
    assert where is not None
    return np.array(
        [where.is_true_of(Row(**{name: row[name] for name in NAMES})) for row in rows.to_pylist()], np.bool_
    )


def _taken(where: Condition | None, _: object, source: FormatTable, plan: ScanPlan, but: frozenset[str]) -> _Rows:
    found = [
        _places(file["path"], live & _matches(where, rows))
        for file, rows, live in _files(source, _narrowed(plan, lambda path: path not in but))
    ]
    return _Rows(pa.concat_tables([_places("", np.zeros(0, np.bool_)), *found]))


def _touched(where: Condition | None, _: object, source: FormatTable, plan: ScanPlan) -> frozenset[str]:
    files = _files(source, _narrowed(plan, lambda _: True))
    return frozenset(file["path"] for file, rows, live in files if (live & _matches(where, rows)).any())


def _left(
    where: Condition | None,
    _: object,
    source: FormatTable,
    plan: ScanPlan,
    *,
    only: frozenset[str] | None = None,
    places: bool = False,
    lineage: Sequence[str] = (),
) -> _Rows:
    files = _files(source, _narrowed(plan, lambda path: only is None or path in only))
    if places:
        found = [_places(file["path"], live & ~_matches(where, rows)) for file, rows, live in files]
        return _Rows(pa.concat_tables([_places("", np.zeros(0, np.bool_)), *found]))
    schema = pa.schema([*_SCHEMA, *((name, pa.int64()) for name in lineage)])
    tables = [schema.empty_table()]
    for file, rows, live in files:
        kept = rows.select(NAMES)
        if lineage:
            numbers = pa.array(np.arange(len(rows)) + file["first_row_id"])
            changed = pa.repeat(pa.scalar(file["sequence_number"], pa.int64()), len(rows))
            for name, usual in zip(lineage, (numbers, changed), strict=True):
                own = rows[name].combine_chunks() if name in rows.column_names else pa.nulls(len(rows), pa.int64())
                kept = kept.append_column(name, pc.coalesce(own, usual))
        tables.append(kept.filter(pa.array(live & ~_matches(where, rows))))
    return _Rows(pa.concat_tables(tables))


def _places(path: str, mask: Any) -> pa.Table:  # noqa: ANN401 - a mask
    places = np.flatnonzero(mask)
    return pa.table({"_file": pa.repeat(pa.scalar(path), len(places)), "_pos": pa.array(places, pa.int64())})


def _write_rows(rows: _Rows, stage: Stage, token: str, *, short: bool = False) -> list[NewFile]:  # noqa: ARG001
    """As Spark's tasks do: partition values behind the columns, rows of one partition together."""
    table = rows.table
    for place, one in enumerate(stage.partition):
        (column,) = one.path
        values = apply(one.transform, table[column].combine_chunks().cast(one.source))
        table = table.append_column(f"key {place}", values)
    if stage.partition:
        table = table.sort_by([(f"key {place}", "ascending") for place in range(len(stage.partition))])
    try:
        return list(stage.write(table.to_batches(), f"00000-0-{token}-{uuid4().hex[:8]}"))  # type: ignore[arg-type]
    except BaseException:
        stage.discard(token)
        raise


def _mark_rows(places: _Rows, stage: DeleteStage, token: str) -> list[Marked]:
    ordered = places.table.sort_by([("_file", "ascending"), ("_pos", "ascending")])
    try:
        return list(stage.write(ordered.to_batches(), f"00000-0-{token}-{uuid4().hex[:8]}"))
    except BaseException:
        stage.discard(token)
        raise
