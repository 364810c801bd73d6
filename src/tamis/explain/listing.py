"""A plan file by file: the kept files, or every file with its reason, as lines for people or as CSV.

A file has a line of facts, then its reason and its path on lines of their own: neither can be cut, and neither fits a
table. Paths are shown relative to the table. What is not known is a dash.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import pyarrow as pa

from tamis.explain.words import WIDTH, aligned, readable_bytes, readable_files, wrapped
from tamis.printable import printable
from tamis.sieve.plan import ScanPlan

__all__ = ["csv_lines", "file_lines", "relative", "verdict_lines"]

NOTHING = "-"
INDENT = "    "


def relative(path: str, location: str) -> str:
    """The path as seen from the table's folder; the whole path if it lies elsewhere.

    >>> relative("s3://b/db/t/data/x.parquet", "s3://b/db/t/"), relative("s3://b/other/x.parquet", "s3://b/db/t")
    ('data/x.parquet', 's3://b/other/x.parquet')
    """
    folder = location.rstrip("/") + "/"
    return path[len(folder) :] if len(folder) > 1 and path.startswith(folder) else path


def file_lines(files: pa.Table, location: str = "", *, first: str = "verdict") -> list[str]:
    """The kept files: verdict, or what else stands first, rows, size, deletes, spec and partition, then the path."""
    facts: list[Sequence[str]] = [(first, "rows", "size", "deletes", "spec", "partition")]
    facts += [
        (
            file[first],
            _number(file["rows"]),
            NOTHING if file["size"] is None else readable_bytes(file["size"]),
            _number(file["deletes"]),
            _number(file["spec_id"]),
            file["partition"] or NOTHING,
        )
        for file in files.to_pylist()
    ]
    if len(facts) == 1:
        return ["no file is kept"]
    facts, left = _without_specs(files, facts, 4, (0, 5))
    header, *rows = _fitted(facts, left)
    lines = [*header]
    for row, path in zip(rows, files["path"].to_pylist(), strict=True):
        lines += [*row, f"{INDENT}{printable(relative(path, location))}"]
    return lines


def verdict_lines(plan: ScanPlan, verdicts: pa.Table, location: str = "", *, left_out: int = 0) -> list[str]:
    """Each file considered: its verdict, what pruned it, its reason and path; then how many were not looked at.

    left_out says how many files were considered, but are not asked for here.
    """
    facts: list[Sequence[str]] = [("verdict", "pruned by", "spec", "partition")]
    facts += [
        (file["verdict"], file["layer"] or NOTHING, _number(file["spec_id"]), file["partition"] or NOTHING)
        for file in verdicts.to_pylist()
    ]
    lines = ["no file is listed"]
    if len(facts) > 1:
        facts, left = _without_specs(verdicts, facts, 2, (0, 1, 3))
        header, *rows = _fitted(facts, left)
        lines = [*header]
        for row, reason, path in zip(rows, *(verdicts[name].to_pylist() for name in ("reason", "path")), strict=True):
            lines += [*row, *wrapped(reason, INDENT), f"{INDENT}{printable(relative(path, location))}"]
    unread = plan.stats.files - verdicts.num_rows - left_out
    if left_out:
        lines.append(f"and {left_out:,} more")
    if unread:
        lines.append(f"and {readable_files(unread)} in manifests that were pruned unread")
    return lines


def _without_specs(
    files: pa.Table, rows: list[Sequence[str]], index: int, left: Sequence[int]
) -> tuple[list[Sequence[str]], Sequence[int]]:
    """The rows and their left-aligned columns, without the specs at that index if no file has a spec's id."""
    if files["spec_id"].null_count < files.num_rows:
        return rows, left
    return [(*row[:index], *row[index + 1 :]) for row in rows], [column - (column > index) for column in left]


def csv_lines(listed: pa.Table) -> list[str]:
    """A header and a line for each file. Control characters are escaped: JSON has every value as it is."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(listed.column_names)
    for row in zip(*(column.to_pylist() for column in listed.columns), strict=True):
        writer.writerow(["" if cell is None else printable(str(cell)) for cell in row])
    return text.getvalue().splitlines()


def _fitted(rows: Sequence[Sequence[str]], left: Sequence[int]) -> list[list[str]]:
    """The rows as aligned lines; a last cell that does not fit the width has a line of its own."""
    last = [printable(row[-1]) for row in rows]
    narrow = aligned([row[:-1] for row in rows], left)
    width = max(map(len, narrow))
    return [
        [f"{line:<{width}}  {cell}".rstrip()] if width + 2 + len(cell) <= WIDTH else [line, f"{INDENT}{cell}"]
        for line, cell in zip(narrow, last, strict=True)
    ]


def _number(value: int | None) -> str:
    return NOTHING if value is None else f"{value:,}"
