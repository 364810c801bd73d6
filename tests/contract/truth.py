"""A plan held against the rows that its files hold."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tamis
from tamis.predicate.build import Expression
from tamis.predicate.nodes import Node
from tamis.sieve.plan import ScanPlan
from tests.contract.history import State
from tests.contract.maker import Made
from tests.making.oracle import evaluate

__all__ = ["check_verdicts", "files_of", "opened", "planned", "untouched"]


def opened(made: Made, **at: object) -> tamis.Table:
    """The table, at its newest state or at another."""
    return tamis.open(made.target, **at)  # type: ignore[arg-type] # what the maker says


def planned(table: tamis.Table, node: Node | None) -> tamis.TablePlan:
    """The plan of a condition."""
    return table.plan(None if node is None else Expression(node))


def files_of(made: Made, table: tamis.Table) -> dict[str, tuple[int, ...]]:
    """The numbers of the rows in each file that the table has, deleted ones too."""
    return {path: tuple(made.rows_in(path)) for path in table.plan().files["path"].to_pylist()}


def check_verdicts(made: Made, state: State, files: dict[str, tuple[int, ...]], plan: ScanPlan, node: Node) -> None:
    """No file with a live row that matches is dropped; of a file that matches whole, every live row does."""
    answers = {number: evaluate(node, row, state.types) is True for number, row in state.rows.items()}
    verdicts = dict(zip(plan.files["path"].to_pylist(), plan.files["verdict"].to_pylist(), strict=True))
    assert verdicts.keys() <= files.keys()
    for path, numbers in files.items():
        live = [number for number in numbers if number in answers]
        told = (path, verdicts.get(path), [state.row(number) for number in numbers], made.history)
        if path not in verdicts:
            assert not any(answers[number] for number in live), told
        if verdicts.get(path) == "all":
            assert all(answers[number] for number in live), told


@contextmanager
def untouched(folder: Path) -> Iterator[None]:
    """Fails if a file of the folder comes, goes or changes meanwhile."""
    before = _content(folder)
    yield
    assert _content(folder) == before


def _content(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
