"""Write, audit, publish: a session may ask that nothing of what it writes is seen before it was looked at.

Iceberg's own connector then writes to a branch (`spark.wap.branch`), or makes a snapshot of no branch
(`spark.wap.id`), for tables that allow it. Law: what was to be audited is never published unasked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.errors import CommitRefused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tamis.formats.edit import WritableTable

__all__ = ["check_audit"]

ID: Final = "spark.wap.id"
BRANCH: Final = "spark.wap.branch"


def check_audit(table: WritableTable, spark: SparkSession | None, branch: str) -> None:
    """CommitRefused if the session has what it writes to the table audited, and it would go elsewhere."""
    if spark is None or not table.audits:
        return
    staged, chosen = (spark.conf.get(name, None) for name in (ID, BRANCH))
    if staged is None and chosen in {None, branch}:
        return
    setting, cure = (
        (ID, "Name a branch to write to in its place, as branch='audit', and unset it")
        if staged is not None
        else (BRANCH, f"Name it as the branch to write to, branch={chosen!r}, or unset it")
    )
    raise CommitRefused(
        f"cannot write to branch {branch} of {table.name}: this session has {setting}, which asks that changes are "
        f"audited before they are published. {cure}: spark.conf.unset({setting!r}).",
        table=table.name,
        feature=setting,
    )
