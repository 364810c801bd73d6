"""What a reader is asked for: the columns, found among those that a scan has, and what they are asked for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from tamis.errors import BindError, UnreadableColumnError, UnsupportedFormatError
from tamis.formats.errors import shown
from tamis.formats.scan import FileGroup, MetadataColumn, ReadField, Scan, has_variant, has_void_inside
from tamis.predicate.names import nearest
from tamis.sieve.plan import ScanPlan
from tamis.spark.session import CASE_SENSITIVE, is_case_sensitive
from tamis.spark.shown_types import Ways, check_shown
from tamis.spark.stores import Reach
from tamis.spark.types import output_type, readable, unreadable_column

__all__ = [
    "Reading",
    "check_known",
    "chosen_columns",
    "chosen_metadata",
    "compared_columns",
    "filters",
    "is_foreign",
    "is_lost",
    "needed_columns",
]


@dataclass(frozen=True, slots=True)
class Reading:
    """What is asked of a scan."""

    reach: Reach
    scan: Scan
    columns: tuple[str, ...]
    metadata_columns: tuple[MetadataColumn, ...]
    needed: frozenset[str]
    """Columns to offer: all but those that nobody wants and Spark cannot read. Which are read is Spark's to find."""
    sql: str
    asked: frozenset[str]
    """Columns that are wanted, filtered by, or compared with deletes."""
    safe: frozenset[tuple[str, ...]]
    """Columns that the condition names, if none of its lists may have a NULL in it."""
    ways: Ways
    """As what columns are shown that Spark has no type for by default."""
    unknown: Mapping[str, int | None]
    """Files of which only Spark can tell whether they are those that the metadata describes: the sizes of these."""
    called: dict[str, str] | None = None
    """Paths by what Spark calls the files, to be told as frames are made; None if rows have the paths themselves."""
    options: tuple[tuple[str, str], ...] = ()
    """Further options of Spark's readers."""

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.reach.spark

    def told(self, group: FileGroup) -> dict[str, str]:
        """The options of the reader of the group's files."""
        return dict(self.options + group.options)

    def wants(self, field: ReadField, *, holds: bool = False) -> bool:
        """Whether a column is asked for, or may be filtered by. One that Spark has no type for is not offered.

        Rows of which the condition holds are not filtered.
        """
        filtered = not holds and field.name in self.needed and self._may_name(field)
        return field.name in self.columns or filtered

    def _may_name(self, field: ReadField) -> bool:
        """Whether the condition may name the column: False only if its name is nowhere in the text.

        A bound condition does not tell: what cannot be true of any row is not in it, and Spark still reads the text.
        A name that is a word is a word there, too: "true" does not name a column t.
        """
        name = re.escape(field.name.replace("`", "``").casefold())
        word = rf"(?<!\w){name}(?!\w)" if re.fullmatch(r"\w+", field.name) else name
        return re.search(word, self.sql.casefold()) is not None


def chosen_columns(scan: Scan, columns: Sequence[str] | None) -> tuple[str, ...]:
    """The names as the table has them; all if none are given. BindError for one that it has not."""
    names = tuple(field.name for field in scan.fields)
    if columns is None:
        return names
    if isinstance(columns, str):
        columns = (columns,)
    found = []
    for name in columns:
        same = [one for one in names if one == name] or [one for one in names if one.lower() == name.lower()]
        if len(same) != 1:
            raise BindError(
                f"the table has no column {name!r}. Its columns: {', '.join(names)}.",
                column=name,
                nearest=tuple(same) or nearest(name, {one: one for one in names}),
            )
        found.append(same[0])
    return tuple(found)


def chosen_metadata(
    names: Sequence[str], offered: Sequence[MetadataColumn], scan: Scan
) -> tuple[MetadataColumn, ...]:
    """Those that are asked for, of what the format offers."""
    own = {field.name.lower() for field in scan.fields}
    by_name = {column.name: column for column in offered}
    for name in names:
        if name not in by_name:
            raise BindError(
                f"there is no metadata column {name!r}; there are {', '.join(by_name) or 'none'}.",
                column=name,
                nearest=nearest(name, {one: one for one in by_name}),
            )
        if name in own:
            raise BindError(
                f"the table has a column {name!r} of its own, which hides the metadata column of that name. "
                "Name it in columns to read it.",
                column=name,
                nearest=(),
            )
    return tuple(by_name[name] for name in names)


def needed_columns(
    scan: Scan, chosen: Sequence[str], plan: ScanPlan, spark: SparkSession, ways: Ways
) -> frozenset[str]:
    """The columns to offer: all but those that nobody asked for and Spark cannot read, or cannot tell from others."""
    filtered = {column.path[0] for column in plan.sieve.predicate.columns} if filters(scan) else set()
    asked = {*chosen, *filtered, *compared_columns(scan)}
    for field in (*scan.fields, *scan.hidden):
        if field.name in asked:
            output_type(field)  # UnreadableColumnError, which names it
        if field.name in chosen or field.name in filtered:
            check_shown(field, ways)
    sensitive = is_case_sensitive(spark)
    alike = Counter(field.name if sensitive else field.name.lower() for field in scan.fields)
    twice = {field.name for field in scan.fields if alike[field.name if sensitive else field.name.lower()] > 1}
    for name, other in _pairs(asked & twice):
        raise UnreadableColumnError(
            f"columns {name!r} and {other!r} differ in case alone, which this session ignores. "
            f"Set {CASE_SENSITIVE} to true, or name columns of which none has a twin: "
            "plan.read(spark, columns=[...]).",
            column=name,
            type=str(next(field.type for field in scan.fields if field.name == name)),
        )
    fields = [field for field in (*scan.fields, *scan.hidden) if field.name in asked or field.name not in twice]
    return frozenset(field.name for field in fields if field.name in asked or readable(field))


def _pairs(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Names that differ in case alone."""
    known: dict[str, str] = {}
    for name in sorted(names):
        if name.lower() in known:
            yield known[name.lower()], name
        known[name.lower()] = name


def compared_columns(scan: Scan) -> list[str]:
    """Columns by which rows are deleted or merged."""
    found = [path[0] for part in scan.equality for path in part.columns]
    if (merging := scan.merging) is not None and any(group.merged for group in scan.groups):
        found += [*merging.keys, *(newer.column for newer in merging.order), merging.kind]
    return found


def filters(scan: Scan) -> bool:
    """Whether rows of any file are filtered."""
    return not all(group.holds for group in scan.groups)


def check_known(reading: Reading, group: FileGroup) -> None:
    """UnsupportedFormatError if a column is asked for of which nobody knows what is inside it in these files."""
    for name in sorted(group.unknown & reading.asked):
        path = shown(reading.scan.files["path"][int(group.numbers[0])].as_py())
        raise UnsupportedFormatError(
            f"{path} carries no field ids, and the table has no name mapping: columns are counted, and what is what "
            f"inside column {name!r} cannot be known. Set the table property schema.name-mapping.default, or "
            "name the columns to read, without this one: plan.read(spark, columns=[...]).",
            path=path,
            feature="nested columns of data files without field ids",
        )


def is_lost(reading: Reading, field: ReadField, why: str) -> bool:
    """Whether Arrow has no type for the column; UnreadableColumnError if it is asked for."""
    if has_variant(field) and field.name in reading.asked:
        raise unreadable_column(field.name, field.described, f" from files that are read with Arrow ({why})")
    return has_variant(field)


def is_foreign(field: ReadField, group: FileGroup) -> bool:
    """Whether Spark's reader of the file format does not have the column's type. Such a column is not asked for."""
    return group.file_format != "parquet" and (has_variant(field) or has_void_inside(field))
