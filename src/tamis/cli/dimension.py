"""The other side of `tamis join`, the source of `tamis merge`: a table that tamis opens, or files for Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import typer

from tamis.errors import NoSuchTableError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tamis.table import Table

__all__ = ["Dimension"]

ENDINGS: Final = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
PACKED: Final = frozenset({".gz", ".bz2", ".zst", ".snappy"})
OPTIONS: Final = {"csv": {"header": "true", "inferSchema": "true", "escape": '"', "multiLine": "true"}}
"""A first line of names, types as the values look, quotes doubled, line breaks inside of quotes."""
TABLE: Final = "table"
_PATTERN: Final = re.compile(r"://|[*?\[{]")


@dataclass(slots=True)
class Dimension:
    """What DIM names."""

    target: str
    kind: str
    where: str | None
    table: Table | None
    label: str = field(default="")
    """What it is and, once it is read, how much of it is read."""

    @classmethod
    def of(cls, target: str, kind: str | None, where: str | None, catalog: str | None) -> Dimension:
        """Opened if it is a table; BadParameter or NoSuchTableError if it is nothing."""
        import tamis.table
        from tamis.cli.scan import check_condition
        from tamis.formats import format_names

        kind = _kind(target) if kind is None else kind.lower()
        kinds = (TABLE, *format_names(), *dict.fromkeys(ENDINGS.values()))
        if kind not in kinds:
            raise typer.BadParameter(f"{kind!r} is none of {', '.join(kinds)}", param_hint="--dim-format")
        chosen = next((name for name in format_names() if name == kind), None)
        if kind != TABLE and chosen is None:
            return cls(target, kind, where, None, f"{target}  ({kind})")
        table = tamis.table.open(target, catalog=catalog, format=chosen)
        check_condition(table, where)
        return cls(target, TABLE, where, table, f"{target}  ({table.format})")

    def require(self) -> None:
        """NoSuchTableError for a file of this machine that is not there. Patterns and URIs are left to Spark."""
        if self.kind != TABLE and not _PATTERN.search(self.target) and not Path(self.target).exists():
            raise NoSuchTableError(f"there is no file or folder {self.target}.", table=self.target)

    def read(self, spark: SparkSession, storage: Literal["session", "catalog"], *, shares_files: bool) -> DataFrame:
        """Its rows that match."""
        from tamis.explain.words import readable_bytes, readable_files

        if self.table is not None:
            plan = self.table.plan(self.where, spark=spark, storage=storage)
            stats = plan.stats
            read = f"reads {stats.kept:,} of {readable_files(stats.files)}, {readable_bytes(stats.kept_bytes)}"
            self.label = f"{self.label}: {read}"
            return plan.read(spark)
        frame = spark.read.options(**OPTIONS.get(self.kind, {})).format(self.kind).load(self._path(shares_files))
        return frame if self.where is None else frame.where(self.where)

    def _path(self, shares_files: bool) -> str:  # noqa: FBT001 - one place
        from tamis.spark.paths import pattern

        local = Path(self.target)
        return f"file://{pattern(str(local.absolute()))}" if shares_files and local.exists() else self.target


def _kind(target: str) -> str:
    """By the name's ending, else by those of the folder's files; else it has to be a table."""
    local = Path(target)
    if local.is_dir():
        if (local / "metadata").is_dir():
            return TABLE
        kinds = {_by_ending(file) for file in local.rglob("*") if file.is_file() and file.name[0] not in "._"}
        return kinds.pop() or TABLE if len(kinds) == 1 else _by_ending(local) or TABLE
    return _by_ending(local) or TABLE


def _by_ending(path: Path) -> str | None:
    endings = [ending.lower() for ending in path.suffixes]
    while endings and endings[-1] in PACKED:
        endings.pop()
    return ENDINGS.get(endings[-1]) if endings else None
