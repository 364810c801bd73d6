"""How far a long read of metadata has come, on standard error.

Nothing is shown where standard error is no terminal, or for what is over in half a second. Standard output is never
touched.
"""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["PATIENCE", "Watch"]

PATIENCE: Final = 0.5
"""Seconds before anything is shown: what is faster needs no bar."""


class Watch:
    """A bar that appears if the work takes long: `with Watch() as watch: table.plan(..., progress=watch)`."""

    def __init__(self) -> None:
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

        columns = (TextColumn("reading metadata"), BarColumn(), MofNCompleteColumn(), TextColumn("files"))
        with self._lock:
            if self._over:
                return
            self._bar = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
            done, total = self._seen or (0, None)
            self._bar.add_task("", completed=done, total=total)
            self._bar.start()
