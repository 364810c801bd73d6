"""Append: the rows of a DataFrame become files of the table, and one commit adds them all.

Law: the table has all of the rows afterwards or none. A lost race is run again, on what the table is by then: the
files need not be written anew, for an append read nothing that could have changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from tamis import __version__
from tamis.errors import CommitStateUnknown
from tamis.formats import FormatTable
from tamis.formats.edit import Edit, WritableTable, new_snapshot_id
from tamis.jobs.auditing import check_audit
from tamis.jobs.retrying import committed
from tamis.spark.write import write_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Appended", "append"]


@dataclass(frozen=True, slots=True)
class Appended:
    """What an append has done."""

    source: FormatTable
    """The table as it is now."""
    snapshot_id: int | None
    """The snapshot that it made; the head that there was if there was nothing to append."""
    files: int
    rows: int
    size: int
    """Bytes of the new files."""
    attempts: int
    """How often the commit was tried; 0 if there was nothing to append."""


def append(table: WritableTable, rows: DataFrame, *, branch: str, properties: Mapping[str, str]) -> Appended:
    """Write the rows, commit them, and say what was done. No rows and no properties: no commit.

    If anything fails before the commit, or the commit is known not to have happened, the files are removed again.
    """
    check_audit(table, rows.sparkSession, branch)
    base = table.head(branch)
    token = str(uuid4())
    files = tuple(write_rows(rows, table.stage(), token))
    if not files and not properties:
        return Appended(table.table(branch), base, 0, 0, 0, 0)
    edit = Edit(
        "append",
        base,
        table.schema_id,
        new_snapshot_id(),
        files,
        branch=branch,
        properties={**_made_by(rows), **properties},
    )
    try:
        done, attempts = committed(table, edit)
    except CommitStateUnknown:
        raise  # the files may be the table's by now
    except BaseException:
        table.remove([file.path for file in files])
        raise
    count, size = sum(file.rows for file in files), sum(file.size for file in files)
    return Appended(done.table, done.snapshot_id, len(files), count, size, attempts)


def _made_by(rows: DataFrame) -> dict[str, str]:
    """What a snapshot's summary says of who made it."""
    return {"engine-name": "spark", "engine-version": str(rows.sparkSession.version), "tamis-version": __version__}
