"""The rows of a MERGE: the target joined with the source, and what its clauses make of each row.

Law: a row of the target is there once in what is written, or is told to be gone; a row of the source is inserted if
it matches none of the target, and its clause says so. All values are of the rows as they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tamis.errors import BindError, MergeMatchError
from tamis.formats import FormatTable
from tamis.formats.edit import Mode, Stage
from tamis.predicate import clauses as c
from tamis.predicate.assigning import Assignment
from tamis.predicate.clauses import Clause
from tamis.predicate.matching import qualified
from tamis.predicate.names import nearest
from tamis.predicate.type_names import a_type
from tamis.sieve.plan import ScanPlan
from tamis.spark.assigned import analysed, bracketed, check_conditions, new_value, value_types
from tamis.spark.changes import FILE, POSITION, narrowed, paths_of
from tamis.spark.fitting import Fit
from tamis.spark.merge_source import ROW, MergeSource
from tamis.spark.read import read_plan
from tamis.spark.relation import small_frame
from tamis.spark.session import is_case_sensitive
from tamis.spark.telling import DELETED, INSERTED, KEPT, KIND, MATCHED, SEEN, UPDATED, WAS_AT, WAS_IN
from tamis.spark.types import write_type
from tamis.spark.within import UNASKED, within

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["MergeRows", "Met"]

LARGE: Final = 5_000_000
"""Rows of a source beyond which those that match are not told here, a number each."""
MOST_SET: Final = 1_000_000
"""Rows of a source beyond which those that match are not gathered in one set, on one executor."""
_SOURCE: Final = "__tamis_s"
_CLAUSE: Final = "__tamis_clause"
_AT_FILE: Final = "__tamis_at_file"
_AT: Final = "__tamis_at"
_KINDS: Final = {"update": UPDATED, "delete": DELETED, "insert": INSERTED}


@dataclass(frozen=True, slots=True)
class Met:
    """What the keys of both sides have told."""

    files: frozenset[str]
    """Those that have a row to which a clause applies."""
    matched: pa.Array | None
    """The numbers of the rows of the source that match any row, whether a clause applies or not; None: not known."""


@dataclass(frozen=True, slots=True)
class MergeRows:
    """A MERGE that meets its table."""

    table: FormatTable
    plan: ScanPlan
    source: MergeSource
    on: str
    clauses: tuple[Clause, ...]
    aliases: tuple[str, str]
    """Of the target, and of the source."""
    mode: Mode
    lineage: tuple[str, ...]
    only: frozenset[str] | None = None
    """The files to read; None for all of the plan."""

    @property
    def spark(self) -> SparkSession:
        """The session of the source."""
        return self.source.frame.sparkSession

    @property
    def inserts(self) -> bool:
        """Whether rows of the source may be inserted."""
        return bool(c.of(self.clauses, c.NOT_MATCHED))

    @property
    def changes(self) -> bool:
        """Whether rows of the target may be changed."""
        return any(clause.rows != c.NOT_MATCHED for clause in self.clauses)

    @property
    def needs_one_match(self) -> bool:
        """Whether a row may match one of the source alone."""
        return c.needs_one_match(self.clauses)

    @property
    def tells(self) -> bool:
        """Whether the join tells which rows of the source have matched, so that the others are known.

        Inserts are a job of their own then, over the source alone, and the join is an inner or a left one, for which
        Spark can broadcast a small source, as it cannot for an outer one. Where several rows match one, or they are
        very many, another join with the table's keys finds those that match none.
        """
        return self.inserts and self.source.rows <= LARGE and (self.source.unique or self.needs_one_match)

    def check(self) -> None:
        """BindError for a condition or a value that Spark does not take, or that is not deterministic."""
        for clause in self.clauses:
            for one in clause.values:
                self.table.schema.find(one.path, case_sensitive=True)
        target, source, both = self._empty_sides()
        analysed(lambda: both.schema, self.on, "the condition of the MERGE")
        frames = {c.MATCHED: both, c.NOT_MATCHED: source, c.BY_SOURCE: target}
        for rows, frame in frames.items():
            mine = [clause for _, clause in c.of(self.clauses, rows)]  # type: ignore[arg-type] # a key of Rows
            texts = [clause.condition for clause in mine if clause.condition is not None]
            check_conditions(self.spark, frame, texts, f"WHEN {rows.upper()}")
            if rows == c.BY_SOURCE:  # joined with the source, whose columns may have the same names
                check_conditions(self.spark, both, texts, f"WHEN {rows.upper()}")
            for clause in mine:
                value_types(frame, self._values(clause), f"WHEN {rows.upper()}")
                if rows == c.BY_SOURCE:
                    value_types(both, self._values(clause), f"WHEN {rows.upper()}")

    def met(self) -> Met:
        """Which rows meet: one job, which reads what is compared alone.

        A file is told if a clause applies to a row of it; where it stays unknown which rows of the source have
        matched, if any row matches, since those to insert are found by the files that are told.
        """
        called: dict[str, str] = {}
        pairs = self._near([FILE], called).join(self._marked_source(), self._on, "inner")
        knows = self.tells and self.source.rows <= MOST_SET
        file = f.col(_AT_FILE)
        if knows or not self.inserts:
            file = f.when(self._first(c.of(self.clauses, c.MATCHED)) >= 0, file)
        told = [f.collect_set(file), *([f.collect_set(ROW)] if knows else [])]
        files, *matched = pairs.agg(*told).toArrow().columns
        return Met(paths_of(files[0].as_py(), called), matched[0].chunk(0).flatten() if knows else None)

    def check_matches(self) -> None:
        """MergeMatchError if a row of the target matches several of the source."""
        target = self._near([FILE, POSITION])
        pairs = target.join(self._marked_source(), self._on, "inner").select(_AT_FILE, _AT)
        several = pairs.groupBy(_AT_FILE, _AT).count().where("count > 1").limit(1).collect()
        if several:
            path, position, matches = several[0]
            raise MergeMatchError(
                f"cannot merge into {self.table.name}: the row at position {position} of {path} matches {matches} "
                "rows of the source, and nobody can say which of them is to change it. Nothing was committed. Leave "
                "one row of the source for each key (dropDuplicates), or match by more columns.",
                table=self.table.name,
                path=path,
                position=position,
                matches=matches,
            )

    def rows(self, stage: Stage, *, tells: bool) -> tuple[DataFrame, tuple[str, ...]]:
        """The rows to write, as write_changes takes them, and the columns to tell: with tells, what has matched."""
        marks = self.mode == "merge-on-read"
        whole = not marks or bool(c.of(self.clauses, c.BY_SOURCE))
        once = self.source.unique or self.needs_one_match
        places = [FILE, POSITION] if marks or not once else []
        rows = (self._target if whole else self._near)([*places, *self.lineage])
        joined = rows.join(self._marked_source(), self._on, "left" if whole else "inner")
        if not once:  # a row that matches several is deleted, or left alone, once
            joined = joined.dropDuplicates([_AT_FILE, _AT])
        joined = joined.withColumn(_CLAUSE, self._clause())
        if marks:
            applies = f.col(_CLAUSE) >= 0
            joined = joined.where(applies | f.col(_SOURCE).isNotNull() if tells else applies)
        kind = f.lit(SEEN if marks else KEPT)
        for number, clause in enumerate(self.clauses):
            kind = f.when(f.col(_CLAUSE) == number, _KINDS[clause.action]).otherwise(kind)
        joined = joined.withColumn(KIND, kind.cast(t.ByteType()))
        told = [f.col(KIND)]
        if marks:
            gone = f.col(KIND).isin(UPDATED, DELETED)
            told += [f.when(gone, f.col(_AT_FILE)).alias(WAS_IN), f.when(gone, f.col(_AT)).alias(WAS_AT)]
        if tells:
            told.append(f.when(f.col(_SOURCE).isNotNull(), f.col(ROW)).alias(MATCHED))
        mine = [(number, one) for number, one in enumerate(self.clauses) if one.rows != c.NOT_MATCHED]
        types = {one.name: one.dataType for one in rows.schema.fields}
        columns = self._columns(joined, stage, mine, types)
        names = (KIND, *((WAS_IN, WAS_AT) if marks else ()), *((MATCHED,) if tells else ()))
        return joined.select(*columns, *told), names

    def rows_and_inserted(self, stage: Stage, matched: pa.Array) -> tuple[DataFrame, tuple[str, ...]]:
        """Both in one: the rows of the files that are written anew, and those to insert, to be told alike."""
        changed, _ = self.rows(stage, tells=False)
        inserted, told = self.inserted(stage, matched)
        return changed.union(inserted), told

    def inserted(self, stage: Stage, matched: pa.Array | None) -> tuple[DataFrame, tuple[str, ...]]:
        """The rows to insert alone, of all of the source but those that are known to match; None: not known yet."""
        source = self._marked_source()
        if matched is None:
            source = source.join(self._target([]), self._on, "left_anti")
        elif len(matched):
            gone = small_frame(self.spark, pa.table({"__tamis_gone": matched}))
            source = source.join(gone, f.col(ROW) == f.col("__tamis_gone"), "left_anti")
        mine = c.of(self.clauses, c.NOT_MATCHED)
        source = source.withColumn(_CLAUSE, self._first(mine)).where(f.col(_CLAUSE) >= 0)
        columns = self._columns(source, stage, mine, None)
        return source.select(*columns, f.lit(INSERTED).cast(t.ByteType()).alias(KIND)), (KIND,)

    @property
    def _on(self) -> Column:
        return f.expr(bracketed(self.on))

    def _target(
        self,
        metadata: Sequence[str],
        called: dict[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> DataFrame:
        chosen = narrowed(self.plan, only=self.only, certain=None, unfiltered=True)
        rows = read_plan(chosen, self.table, self.spark, metadata_columns=metadata, called=called, options=options)
        # A source may well have columns of these names: it was read from a table with them.
        rows = rows.withColumnsRenamed({FILE: _AT_FILE, POSITION: _AT} if FILE in metadata else {})
        return rows.alias(self.aliases[0])

    def _near(self, metadata: Sequence[str], called: dict[str, str] | None = None) -> DataFrame:
        """The rows of the target that may match at all: files have statistics of their parts, too."""
        named, sensitive = partial(qualified, self.aliases[0]), is_case_sensitive(self.spark)
        told = within(self.source.keys, self.table, named, sensitive=sensitive)
        return self._target(metadata, called) if told is None else self._target(metadata, called, UNASKED).where(told)

    def _marked_source(self) -> DataFrame:
        return self.source.frame.withColumn(_SOURCE, f.lit(True)).alias(self.aliases[1])  # noqa: FBT003 - a literal

    def _empty_sides(self) -> tuple[DataFrame, DataFrame, DataFrame]:
        """Both sides, and their join, of no files: to be analysed."""
        nothing = narrowed(self.plan, only=frozenset(), certain=None)
        target = read_plan(nothing, self.table, self.spark).alias(self.aliases[0])
        source = self._marked_source()
        return target, source, target.join(source, self._on, "inner")

    def _first(self, clauses: Sequence[tuple[int, Clause]]) -> Column:
        """The number of the first clause that applies; -1 for none."""
        found = f.lit(-1)
        for number, clause in reversed(clauses):
            condition = f.lit(True) if clause.condition is None else f.expr(bracketed(clause.condition))  # noqa: FBT003
            found = f.when(condition, number).otherwise(found)
        return found

    def _clause(self) -> Column:
        """Of a row of the target, with its match or without one."""
        matched, by_source = (self._first(c.of(self.clauses, rows)) for rows in (c.MATCHED, c.BY_SOURCE))
        return f.when(f.col(_SOURCE).isNotNull(), matched).otherwise(by_source)

    def _values(self, clause: Clause) -> tuple[Assignment, ...]:
        """What a clause assigns; of all columns, those of the source by their names."""
        if not clause.every:
            return clause.values
        sensitive = is_case_sensitive(self.spark)
        found = []
        for column in self.table.schema.columns:
            if column.nested:
                continue
            (name,) = column.path
            same = [one for one in self.source.columns if one == name]
            same = same or [one for one in self.source.columns if not sensitive and one.lower() == name.lower()]
            if len(same) != 1:
                near = nearest(name, {one: one for one in self.source.columns})
                what = "has several columns" if same else "has no column"
                raise BindError(
                    f"cannot {clause.action} all columns of {self.table.name}: the source {what} {name}, "
                    f"{a_type(column.type)}. Select it in the source, or name the columns to {clause.action}.",
                    column=name,
                    nearest=near,
                )
            found.append(Assignment(column.path, qualified(self.aliases[1], same[0])))
        return tuple(found)

    def _columns(
        self,
        rows: DataFrame,
        stage: Stage,
        clauses: Sequence[tuple[int, Clause]],
        types: Mapping[str, t.DataType] | None,
    ) -> list[Column]:
        """The columns of the stage: by clause the new value, else the old one, which is of these types, if any."""
        fit = Fit.of(stage, is_case_sensitive(self.spark), assigning=True)
        values = []
        for number, clause in clauses:
            if clause.action != "delete":
                where = f"WHEN {clause.rows.upper()}"
                values.append((number, clause, value_types(rows, self._values(clause), where)))
        found = []
        for one in stage.fields:
            was = None if types is None else f.col(qualified(self.aliases[0], one.name))
            if one.name in self.lineage and was is not None:
                kept = [KEPT] if one.name == self.lineage[-1] else [KEPT, UPDATED]
                found.append(f.when(f.col(KIND).isin(*kept), was).alias(one.name, metadata={}))
                continue
            before = None if was is None or types is None else (was, types[one.name])
            # Of merge-on-read no row is written but those of a clause: others need no value.
            if self.mode == "merge-on-read" or before is None:
                cases = f.lit(None).cast(write_type(one) or t.NullType())
            else:
                cases = fit.fitted(before[0], before[1], one, one.name)
            for number, clause, given in values:
                mine = [value for value in given if value[0].path[0] == one.name]
                value = new_value(fit, one, before if clause.action == "update" else None, mine)
                cases = f.when(f.col(_CLAUSE) == number, value).otherwise(cases)
            found.append(cases.alias(one.name, metadata={}))
        return found
