"""Rows to standard output, to a file, or to a folder.

Memory is bounded whatever the result's size. Standard output and a single file get the rows as lines that Spark
makes, a partition at a time. A folder is written by the executors themselves, all at once. Law: at --out there is the
whole result or nothing; it is written beside under another name, and put in its place at the end.
"""

from __future__ import annotations

import csv
import io
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Final, TextIO

import typer

from tamis.cli.progress import SparkWatch
from tamis.errors import TamisError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Format", "Output", "OutputError"]

SCREEN: Final = 20
"""Rows for a terminal, if nobody says how many."""
OURS: Final = ("part-", "_SUCCESS", "_temporary", ".part-", "._SUCCESS")
"""What Spark puts into a folder. A folder with anything else in it is not replaced."""


class OutputError(TamisError):
    """The rows cannot be put where they were asked for."""

    path: str


class Format(StrEnum):
    """What rows are written as."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


ENDINGS: Final = {
    ".csv": Format.CSV,
    ".json": Format.JSON,
    ".jsonl": Format.JSON,
    ".ndjson": Format.JSON,
    ".parquet": Format.PARQUET,
}


@dataclass(frozen=True, slots=True)
class Output:
    """Where rows go, checked before anything is read."""

    format: Format
    limit: int | None
    out: str | None
    overwrite: bool

    @classmethod
    def of(cls, name: str | None, limit: int | None, out: str | None, *, overwrite: bool) -> Output:
        """As the options say it; BadParameter for what makes no sense, OutputError if something is at out already."""
        output = cls(_format(name, out), limit, out, overwrite)
        if out is None:
            if output.format is Format.PARQUET:
                raise typer.BadParameter(
                    "parquet is written to a folder: say which with --out", param_hint="--format"
                )
            if overwrite:
                raise typer.BadParameter("there is nothing to replace without --out", param_hint="--overwrite")
        elif output.format is Format.TABLE:
            raise typer.BadParameter(
                "a table is for the terminal: write csv, json or parquet to --out", param_hint="--format"
            )
        else:
            output.check(out)
        return output

    def check(self, out: str) -> None:
        """OutputError if out cannot be written, or may not be replaced."""
        local = _local(out)
        if local is None:
            return
        if not local.parent.is_dir():
            raise OutputError(f"cannot write {out}: there is no folder {local.parent}. Make it first.", path=out)
        if not local.exists():
            return
        if not self.overwrite:
            raise OutputError(f"{out} exists. Choose another name, or say --overwrite to replace it.", path=out)
        if local.is_dir():
            foreign = sorted(entry.name for entry in local.iterdir() if not entry.name.startswith(OURS))
            if foreign:
                raise OutputError(
                    f"will not replace the folder {out}: it holds more than rows that Spark has written, such as "
                    f"{foreign[0]!r}. Choose another name.",
                    path=out,
                )
        elif self._in_folder(out):
            raise OutputError(f"{out} is a file, and a folder is to be written. Choose another name.", path=out)

    def write(self, frame: DataFrame, *, shares_files: bool) -> str:
        """Write the rows; what was written, in words."""
        if self.out is None:
            return self._show(frame)
        limited = frame if self.limit is None else frame.limit(self.limit)
        if not self._in_folder(self.out):
            with _put(_local(self.out) or Path(self.out)) as file, SparkWatch(frame.sparkSession):
                count = self._lines(limited, file)
            return f"wrote {_rows(count)} to {self.out}"
        self._fill(limited, self.out, shares_files=shares_files)
        return f"wrote {self.out}"

    def _in_folder(self, out: str) -> bool:
        local = _local(out)
        return self.format is Format.PARQUET or out.endswith("/") or local is None or local.is_dir()

    def _show(self, frame: DataFrame) -> str:
        from tamis.cli.rows import table_lines

        if self.format is not Format.TABLE:
            # A bar between the rows would spoil both.
            if sys.stdout.isatty():
                count = self._lines(self._limited(frame), sys.stdout)
            else:
                with SparkWatch(frame.sparkSession):
                    count = self._lines(self._limited(frame), sys.stdout)
            return _rows(count)
        most = SCREEN if self.limit is None else self.limit
        more = self.limit is None
        shown = table_lines(frame.limit(most + more), most)
        for line in shown.lines:
            typer.echo(line)
        if shown.more:
            return f"the first {most} rows: more with --limit N, all with --format csv or json"
        return _rows(shown.count)

    def _limited(self, frame: DataFrame) -> DataFrame:
        return frame if self.limit is None else frame.limit(self.limit)

    def _lines(self, frame: DataFrame, file: TextIO) -> int:
        """Write a line for each row; how many there were."""
        from tamis.cli.rows import csv_rows, json_rows

        if self.format is Format.CSV:
            header = io.StringIO()
            csv.writer(header, lineterminator="\n").writerow(frame.columns)
            file.write(header.getvalue())
            lines = csv_rows(frame)
        else:
            lines = json_rows(frame)
        count = 0
        for row in lines.toLocalIterator(prefetchPartitions=True):
            file.write(row[0])
            file.write("\n")
            count += 1
        return count

    def _fill(self, frame: DataFrame, out: str, *, shares_files: bool) -> None:
        """Let Spark write a folder. Its own commit makes it whole where this process does not see it."""
        from tamis.cli.rows import CSV, JSON, flat

        rows = flat(frame) if self.format is Format.CSV else frame
        options: dict[str, str] = {**CSV, "header": "true"} if self.format is Format.CSV else JSON
        if self.format is Format.PARQUET:
            options = {}
        writer = rows.write.format(self.format.value).options(**options)
        local = _local(out)
        with SparkWatch(frame.sparkSession):
            if local is None or not shares_files:
                writer.mode("overwrite" if self.overwrite else "errorifexists").save(out)
                return
            with _beside(local) as part:
                writer.save(f"file://{part}")
                if local.exists():
                    shutil.rmtree(local)
                part.rename(local)


def _format(name: str | None, out: str | None) -> Format:
    if name is not None:
        try:
            return Format(name.lower())
        except ValueError:
            names = ", ".join(Format)
            raise typer.BadParameter(f"{name!r} is not one of {names}", param_hint="--format") from None
    if out is None:
        return Format.TABLE
    format_ = ENDINGS.get(Path(out).suffix.lower())
    if format_ is None:
        raise typer.BadParameter(f"say what to write to {out}: csv, json or parquet", param_hint="--format")
    return format_


def _local(out: str) -> Path | None:
    """The path, absolute; None if it is in another file system."""
    if out.startswith("file:"):
        out = "/" + out.removeprefix("file:").lstrip("/")
    return None if "://" in out else Path(out).absolute()


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Another name in the same folder. What is there at the end is removed."""
    part = path.with_name(f".{path.name}.{token_hex(4)}.part")
    try:
        yield part
    finally:
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        part.unlink(missing_ok=True)
        part.with_name(f".{part.name}.crc").unlink(missing_ok=True)


@contextmanager
def _put(path: Path) -> Iterator[TextIO]:
    """A file to write, which gets its name when it is complete."""
    with _beside(path) as part:
        with part.open("x", encoding="utf-8", newline="") as file:
            yield file
        part.replace(path)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
