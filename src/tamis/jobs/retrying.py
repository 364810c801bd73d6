"""A commit, tried again when a race was lost: waits that grow, with chance in them, up to the table's own limits."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Final

from tamis.errors import CommitConflict
from tamis.formats.edit import Committed, Edit, Retries, WritableTable

__all__ = ["committed", "waits"]

FACTOR: Final = 2
SPREAD: Final = 0.1
"""Up to this part more, by chance: writers that lost together do not come back together."""


def committed(
    table: WritableTable, edit: Edit, *, sleep: Callable[[float], None] = time.sleep
) -> tuple[Committed, int]:
    """The commit, and how often it was tried. The last CommitConflict if the table's retries are used up."""
    waiting = waits(table.retries)
    start = time.monotonic()
    attempts = 0
    while True:
        attempts += 1
        try:
            return table.commit(edit), attempts
        except CommitConflict as conflict:
            wait = next(waiting, None)
            spent = time.monotonic() - start
            if not conflict.retryable or wait is None or (spent + wait) * 1000 > table.retries.total_ms:
                raise
        sleep(wait)


def waits(retries: Retries) -> Iterator[float]:
    """Seconds to wait before each further try."""
    for attempt in range(retries.most):
        milliseconds = min(retries.min_wait_ms * FACTOR**attempt, retries.max_wait_ms)
        yield milliseconds * (1 + SPREAD * random.random()) / 1000  # noqa: S311 - chance, not a secret
