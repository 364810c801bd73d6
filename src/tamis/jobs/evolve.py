"""Evolve: new files are partitioned otherwise from now on; those that there are stay as they are."""

from __future__ import annotations

import time

from tamis.errors import CommitConflict
from tamis.formats import FormatTable
from tamis.formats.edit import Evolution, WritableTable
from tamis.jobs.retrying import waits

__all__ = ["evolve"]


def evolve(table: WritableTable, wanted: Evolution) -> tuple[FormatTable, int, bool]:
    """The table as it is now, its spec, and whether that has changed. A lost race is run again on what came first."""
    waiting = waits(table.retries)
    while True:
        try:
            return table.evolve(wanted)
        except CommitConflict as conflict:
            wait = next(waiting, None)
            if wait is None or not conflict.retryable:
                raise
        time.sleep(wait)
