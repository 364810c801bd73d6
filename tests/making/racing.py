"""Processes that change one table at the same time, and what became of each statement."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import pyiceberg.catalog.rest
import pyiceberg.catalog.sql
import pyiceberg.io.pyarrow  # noqa: F401 - all of these once, for all processes that are forked

import tamis
import tamis.formats.avro.forked
from tamis.errors import CommitConflict, CommitStateUnknown
from tests.making.arrow_moves import done
from tests.making.statements import Statement, drawn

__all__ = ["PROCESSES", "Outcome", "Racer", "raced", "run"]

PROCESSES = 8
MODES = ("copy-on-write", "merge-on-read")


@dataclass(frozen=True, slots=True)
class Racer:
    """One process: the table, and the chance by which it draws its statements."""

    target: str
    catalog: Mapping[str, str] | None
    number: int
    statements: int
    high: float = 0.0
    """How many of them delete rows of ids that the others leave alone."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a statement."""

    statement: Statement
    attempts: int
    """0 if it has lost, or had nothing to commit."""
    lost: str | None = None
    """Why it conflicted."""
    unknown: bool = False


def run(racer: Racer) -> list[Outcome]:
    """Each statement opens the table as it is by then, as a script of its own would."""
    chance = random.Random(racer.number)  # noqa: S311 - chance, not a secret
    found = []
    for number in range(racer.statements):
        statement = drawn(chance, f"{racer.number}-{number}", MODES, racer.high)
        found.append(_outcome(racer, statement))
    return found


def _outcome(racer: Racer, statement: Statement) -> Outcome:
    table = tamis.open(racer.target, catalog=racer.catalog, cache=False)
    try:
        return Outcome(statement, done(table, statement))
    except CommitConflict as conflict:
        return Outcome(statement, 0, lost=conflict.reason)
    except CommitStateUnknown:
        return Outcome(statement, 0, unknown=True)


def raced(racers: Sequence[Racer]) -> list[Outcome]:
    """What became of all statements. The processes have nothing of this one: no JVM, no threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(len(racers), context) as pool:
        return [outcome for each in pool.map(run, racers) for outcome in each]
