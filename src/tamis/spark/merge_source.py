"""The source of a MERGE: pinned, its rows numbered, its keys collected, and whether each of them stands there once.

Law: from here on its rows do not change. The runtime filter holds every key that a row of the target can equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tamis.errors import BindError, FilterInputError
from tamis.formats import FormatTable
from tamis.predicate.matching import KeyPair, Matching
from tamis.predicate.names import backticked
from tamis.predicate.schema import Column
from tamis.sieve.join.keys import convert
from tamis.sieve.join.runtime import MAX_KEYS, RuntimeFilter
from tamis.spark.assigned import bracketed
from tamis.spark.join import may_look_up
from tamis.spark.keys import MAX_CELL_BYTES, Side, collect, key_types, keys_at, looked_at
from tamis.spark.session import checked, is_case_sensitive

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ROW", "MergeSource", "merge_source"]

ROW: Final = "__tamis_row"
"""The number of a row of the source. No table has a column of that name."""
_KEY: Final = "__tamis_k{}"
_WHOLE: Final = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)


@dataclass(frozen=True, slots=True)
class MergeSource:
    """A source, ready to be merged."""

    frame: DataFrame
    """Pinned; under its alias, with ROW."""
    columns: tuple[str, ...]
    rows: int
    keys: RuntimeFilter | None
    """None if keys cannot prune."""
    note: str | None
    """Why not."""
    unique: bool
    """Surely no two rows of it match one row of the target."""
    short: bool = False
    """Its rows are known to take few bytes."""


def merge_source(
    source: DataFrame, alias: str, matched: Matching, table: FormatTable, *, prunes: bool, must_be_unique: bool
) -> MergeSource:
    """The source, pinned. prunes says whether its keys may prune the target at all."""
    checked(source.sparkSession)
    frame = source.alias(alias).withColumn(ROW, f.monotonically_increasing_id())
    names = [_KEY.format(place) for place in range(len(matched.pairs))]
    if names:
        # Key by key the text is the user's; as columns of their own they are computed once, and pinned.
        made = [f.expr(bracketed(pair.source)).alias(name) for pair, name in zip(matched.pairs, names, strict=True)]
        try:
            frame = frame.select("*", *made)
            types = dict(zip(names, [one.dataType for one in frame.schema.fields[-len(names) :]], strict=True))
        except AnalysisException as error:
            raise BindError(
                f"Spark cannot read the source's side of the condition: {str(error).partition(chr(10))[0]}",
                column=None,
                nearest=(),
            ) from error
    else:
        types = {}
    side = looked_at(frame)
    pinned = side.pinned()
    if names and not side.whole:
        side = keys_at(pinned, names, MAX_KEYS) or side
    keyed = _Keyed(pinned, side, matched.pairs, types, table)
    keys, note = None, "no equality of a column with one of the source"
    if prunes and matched.pairs:
        keys, note = keyed.filter()
    rows, with_keys, short = keyed.counts()
    unique = not must_be_unique or rows <= 1 or keyed.is_unique(keys, with_keys)
    kept = pinned.drop(*names).alias(alias)
    return MergeSource(kept, tuple(source.columns), rows, keys, None if keys is not None else note, unique, short)


@dataclass(frozen=True, slots=True)
class _Keyed:
    """A pinned source with a column for each of its keys."""

    frame: DataFrame
    side: Side
    """What of it is here: all of it, all of its keys, or nothing."""
    pairs: tuple[KeyPair, ...]
    types: dict[str, t.DataType]
    """By the names of the columns, in the order of the pairs."""
    table: FormatTable

    @property
    def _sensitive(self) -> bool:
        return is_case_sensitive(self.frame.sparkSession)

    def filter(self) -> tuple[RuntimeFilter | None, str]:
        """The filter of all pairs that are compared alike: by `=` if there are such, else by `<=>`. Or why none."""
        null_safe = all(pair.null_safe for pair in self.pairs)
        wanted: list[str] = []
        columns: list[Column] = []
        arrow: list[pa.DataType] = []
        reasons = []
        for name, pair in zip(self.types, self.pairs, strict=True):
            if pair.null_safe is not null_safe:
                continue
            column = self.table.schema.find(pair.column, case_sensitive=self._sensitive)
            try:
                (type_,) = key_types([name], [t.StructField(name, self.types[name])])
            except FilterInputError as error:
                reasons.append(str(error))
                continue
            why = convert(pa.array([], type_), column.type)
            if isinstance(why, str):
                reasons.append(f"{column.name}: {why}")
                continue
            wanted.append(name)
            columns.append(column)
            arrow.append(type_)
        if not wanted:
            return None, "; ".join(reasons)
        keys = collect(
            self.frame,
            wanted,
            names=[column.path for column in columns],
            null_safe=null_safe,
            with_bloom=len(columns) == 1 and may_look_up(self.table.specs, columns[0]),
            pin=False,
            side=self.side if self.side.whole else None,
            types=arrow,
        )
        return keys, ""

    def counts(self) -> tuple[int, int, bool]:
        """All rows, those that may match at all, for `=` takes no NULL, and whether no value is a long one."""
        if self.side.whole and self.side.rows is not None:
            return self.side.rows.num_rows, 0, True  # the rows themselves are here
        keys = [f.col(name) for name, pair in zip(self.types, self.pairs, strict=True) if not pair.null_safe]
        found = reduce(lambda one, other: one & other, [key.isNotNull() for key in keys], f.lit(True))  # noqa: FBT003
        fields = self.frame.schema.fields
        texts = [field.name for field in fields if isinstance(field.dataType, (t.StringType, t.BinaryType))]
        # Of a value in parts, or of columns of one name, nobody asks how long they are.
        plain = all(isinstance(one.dataType, t.AtomicType) and one.dataType != t.VariantType() for one in fields)
        short = plain and len({field.name.lower() for field in fields}) == len(fields)
        longest = f.lit(0)
        for name in texts if short else ():
            longest = f.greatest(longest, f.max(f.octet_length(backticked(name))))
        row = self.frame.agg(f.count("*"), f.count(f.when(found, 1)), longest).collect()[0]
        return int(row[0]), int(row[1]), short and int(row[2]) <= MAX_CELL_BYTES

    def is_unique(self, keys: RuntimeFilter | None, with_keys: int) -> bool:
        """Whether no two rows have the same keys, of those that are told apart as the target tells its own values.

        Two unequal keys of one type cannot both equal a value of it. Of other types they may: two longs are one
        double.
        """
        told: list[str] = []
        frame, local = self.frame, self.side.rows if self.side.whole else None
        for name, pair in zip(self.types, self.pairs, strict=True):
            column = self.table.schema.find(pair.column, case_sensitive=self._sensitive)
            if not _same_values(self.types[name], column.type):
                continue
            told.append(name)
            if not pair.null_safe:
                frame = frame.where(f.col(name).isNotNull())
                local = None if local is None else local.filter(local[name].is_valid())
        if not told:
            return False
        plain = not any(isinstance(self.types[name], t.FractionalType) for name in told)  # -0.0 is 0.0
        if local is not None and plain:
            return bool(local.group_by(told).aggregate([]).num_rows == local.num_rows)
        every = plain and len(told) == len(self.pairs) == len(keys.columns if keys is not None else ())
        if every and keys is not None and keys.collected is not None and keys.collected.exact:
            return keys.keys == with_keys
        return frame.groupBy(*told).count().where("count > 1").limit(1).isEmpty()


def _same_values(kind: t.DataType, column: pa.DataType) -> bool:
    """Whether keys are of the column's own type, or both are whole numbers."""
    if isinstance(kind, t.StringType) and kind != t.StringType():
        return False  # by its collation unequal texts may match
    if isinstance(kind, _WHOLE):
        return bool(pa.types.is_integer(column))
    pairs = (
        (t.StringType, pa.types.is_string),
        (t.DateType, pa.types.is_date32),
        (t.BinaryType, pa.types.is_binary),
        (t.BooleanType, pa.types.is_boolean),
        (t.FloatType, pa.types.is_float32),
        (t.DoubleType, pa.types.is_float64),
    )
    if isinstance(kind, t.DecimalType):
        return bool(column == pa.decimal128(kind.precision, kind.scale))
    if isinstance(kind, (t.TimestampType, t.TimestampNTZType)):
        zoned = isinstance(kind, t.TimestampType)
        return bool(pa.types.is_timestamp(column) and (column.tz is not None) is zoned)
    return any(isinstance(kind, of) and is_(column) for of, is_ in pairs)
