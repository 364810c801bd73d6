"""How far a long read of metadata, or a job of Spark, has come: on standard error.

Nothing is shown where standard error is no terminal, or for what is over in half a second. Standard output is never
touched.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.progress import Progress

__all__ = ["PATIENCE", "SparkWatch", "Watch", "starting"]

PATIENCE: Final = 0.5
"""Seconds before anything is shown: what is faster needs no bar."""
POLL: Final = 0.25
"""Seconds between two looks at Spark."""


class Watch:
    """A bar that appears if the work takes long: `with Watch() as watch: table.plan(..., progress=watch)`."""

    def __init__(self, what: str = "reading metadata", unit: str = "files") -> None:
        self._what, self._unit = what, unit
        self._lock = threading.Lock()
        self._bar: Progress | None = None
        self._seen: tuple[int, int] | None = None
        self._over = False
        self._timer = threading.Timer(PATIENCE, self._appear)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._over = True
            if self._bar is not None:
                self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        """Done files of total have come in."""
        with self._lock:
            self._seen = (done, total)
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], completed=done, total=total)

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn(self._what), BarColumn(), MofNCompleteColumn(), TextColumn(self._unit))
        with self._lock:
            if self._over:
                return
            self._bar = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
            done, total = self._seen or (0, None)
            self._bar.add_task("", completed=done, total=total)
            self._bar.start()


class SparkWatch(Watch):
    """The same for Spark's jobs: the tasks of the stages that run now, asked for every quarter of a second."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__("Spark", "tasks")
        self._spark = spark
        self._stop = threading.Event()

    def __enter__(self) -> Self:
        super().__enter__()
        if sys.stderr.isatty():
            if hasattr(self._spark, "registerProgressHandler") and _is_remote(self._spark):
                self._spark.registerProgressHandler(self._report)
            else:
                threading.Thread(target=self._look, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        super().__exit__(kind, error, trace)
        if sys.stderr.isatty() and _is_remote(self._spark):
            self._spark.removeProgressHandler(self._report)

    def _look(self) -> None:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped] # py4j has no annotations

        tracker = self._spark.sparkContext.statusTracker()
        while not self._stop.wait(POLL):
            try:
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            except (Py4JError, OSError):
                return  # the session has ended meanwhile: there is nothing to show any more
            self._count((stage.numCompletedTasks, stage.numTasks) for stage in stages if stage is not None)

    def _report(self, stages: Iterable[Any] | None, **_: object) -> None:
        """Called by a remote session. It has the stages that are over as well."""
        self._count((stage.num_completed_tasks, stage.num_tasks) for stage in stages or ())

    def _count(self, stages: Iterable[tuple[int, int]]) -> None:
        counted = list(stages)
        if counted:
            self(sum(done for done, _ in counted), sum(total for _, total in counted))


def _is_remote(spark: SparkSession) -> bool:
    from tamis.spark.session import is_remote

    return is_remote(spark)


@contextmanager
def starting(what: str) -> Iterator[None]:
    """Say what one waits for, and take it away when it is there."""
    if not sys.stderr.isatty():
        yield
        return
    # A descriptor of its own: that of standard error may be sent elsewhere meanwhile.
    with os.fdopen(os.dup(2), "w") as terminal:
        terminal.write(f"{what} …")
        terminal.flush()
        try:
            yield
        finally:
            terminal.write("\r\x1b[2K")
