"""A process that is killed at a step of a statement.

A step is before a file is opened, renamed, linked or removed, and before and after each word with a database or a
server. The interpreter tells of files (`sys.addaudithook`), SQLAlchemy of its statements; calls that write through
pyarrow and ask over HTTP are wrapped. Nothing of the library is.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping
from multiprocessing.queues import SimpleQueue
from typing import Any

import requests.adapters
import sqlalchemy
import sqlalchemy.orm
from pyiceberg.io.pyarrow import PyArrowFile

import tamis
from tests.making.arrow_moves import done
from tests.making.statements import Statement

__all__ = ["KILLED", "killed_at", "steps_of"]

KILLED = -signal.SIGKILL
_CHANGES = frozenset({"os.link", "os.rename", "os.remove", "os.mkdir"})


def killed_at(step: int, home: str, target: str, catalog: Mapping[str, str] | None, statement: Statement) -> int:
    """Run the statement in a process of its own that dies at this step: its exit code, 0 if it was done before."""
    return _ended(step, home, target, catalog, statement)[0]


def steps_of(home: str, target: str, catalog: Mapping[str, str] | None, statement: Statement) -> int:
    """Run the statement, and say how many steps it has."""
    code, steps = _ended(0, home, target, catalog, statement)
    assert code == 0
    return steps


def _ended(step: int, *said: Any) -> tuple[int, int]:  # noqa: ANN401 - as above
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.making.racing", __name__])
    counted = context.SimpleQueue()
    process = context.Process(target=_run, args=(counted, step, *said))
    process.start()
    process.join(120)
    code = process.exitcode
    process.close()
    assert code is not None
    steps = counted.get() if code == 0 else step
    counted.close()
    return code, steps


def _run(
    counted: SimpleQueue[int],
    step: int,
    home: str,
    target: str,
    catalog: Mapping[str, str] | None,
    statement: Statement,
) -> None:
    table = tamis.open(target, catalog=catalog, cache=False)
    seen = [0]

    def count() -> None:
        seen[0] += 1
        if seen[0] == step:
            os.kill(os.getpid(), signal.SIGKILL)

    _watch(home, count)
    done(table, statement)
    counted.put(seen[0])


def _watch(home: str, count: Callable[[], None]) -> None:
    def audit(event: str, said: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(said[2], int) and said[2] & (os.O_WRONLY | os.O_RDWR)
        if (writes or event in _CHANGES) and isinstance(said[0], str) and said[0].startswith(home):
            count()

    sys.addaudithook(audit)
    for name in ("before_cursor_execute", "after_cursor_execute", "commit"):
        sqlalchemy.event.listen(sqlalchemy.Engine, name, lambda *_: count(), named=False)
    sqlalchemy.event.listen(sqlalchemy.orm.Session, "after_commit", lambda _: count())
    _around(requests.adapters.HTTPAdapter, "send", count)
    _around(PyArrowFile, "create", count)


def _around(of: type, name: str, count: Callable[[], None]) -> None:
    real = getattr(of, name)

    def call(*said: Any, **more: Any) -> Any:  # noqa: ANN401 - whatever it takes and gives
        count()
        answer = real(*said, **more)
        count()
        return answer

    setattr(of, name, call)
