"""The columns of a DataFrame, fitted to those of a table: by name, in its order, widened where that loses nothing.

Law: a value is written as it is, or not at all. Where a cast could lose something (a long into an int, a text into a
date, a time with a zone into one without) the caller has to write it: that is stricter than Spark's own INSERT, which
casts and may round. Values that a statement assigns (`SET price = price * 1.1`) are cast as Spark's own UPDATE and
MERGE cast them, by the ANSI rules of store assignment, whatever the session says: a number that does not fit is an
error, and is never cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pyarrow import types as pt
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tamis.errors import UnwritableRowsError
from tamis.formats.edit import Stage, WriteField
from tamis.predicate.names import backticked, nearest
from tamis.predicate.type_names import is_list
from tamis.spark.session import is_case_sensitive
from tamis.spark.types import literal, write_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["UNFIT", "Fit", "fitted_columns"]

UNFIT: Final = "tamis: a value does not fit "
"""How a task's error begins that met one; the column's name and its type follow."""

_DIGITS: Final[Mapping[type[t.DataType], int]] = {t.ByteType: 3, t.ShortType: 5, t.IntegerType: 10, t.LongType: 19}
"""Decimal digits of the greatest value of each."""
_WIDTH: Final[Mapping[type[t.DataType], int]] = {t.ByteType: 8, t.ShortType: 16, t.IntegerType: 32, t.LongType: 64}
_EXACT: Final[Mapping[type[t.DataType], int]] = {t.FloatType: 24, t.DoubleType: 53}
"""Bits of a whole number that the type holds exactly."""


def fitted_columns(rows: DataFrame, stage: Stage) -> list[Column]:
    """A column for each of the table's that files can hold, in its order; UnwritableRowsError if they do not fit."""
    given = rows.schema.fields
    fit = Fit.of(stage, is_case_sensitive(rows.sparkSession))
    fit.check_names(given, stage.fields, "")
    found = []
    for one in stage.fields:
        mine = fit.find(given, one)
        if mine is None:
            column = fit.missing(one, one.name)
        else:
            column = fit.fitted(f.col(backticked(mine.name)), mine.dataType, one, one.name)
        found.append(column.alias(one.name, metadata={}))
    return found


def _same_name(sensitive: bool) -> Callable[[str, str], bool]:  # noqa: FBT001 - a setting of the session
    return (lambda a, b: a == b) if sensitive else (lambda a, b: a.lower() == b.lower())


class Fit:
    """The fitting of values to the columns of one table."""

    def __init__(self, table: str, same: Callable[[str, str], bool], *, assigning: bool = False) -> None:
        self.table, self.same, self.assigning = table, same, assigning

    @classmethod
    def of(cls, stage: Stage, sensitive: bool, *, assigning: bool = False) -> Fit:  # noqa: FBT001 - a setting
        """To the stage's table. assigning casts as Spark's store assignment does; no part of a struct may lack."""
        return cls(stage.table, _same_name(sensitive), assigning=assigning)

    def find(self, given: Iterable[t.StructField], one: WriteField) -> t.StructField | None:
        """The given field of that name."""
        return next((mine for mine in given if self.same(mine.name, one.name)), None)

    def check_names(self, given: Sequence[t.StructField], fields: Sequence[WriteField], path: str) -> None:
        """An error for a column that the table does not have, or that stands there twice."""
        for place, mine in enumerate(given):
            if any(self.same(mine.name, other.name) for other in given[:place]):
                raise self._error(f"{path}{mine.name}", "the rows have it twice", "Select each column once.")
            if sum(self.same(mine.name, one.name) for one in fields) > 1:
                cure = "Set spark.sql.caseSensitive to true, and name each as the table does."
                raise self._error(f"{path}{mine.name}", "the table has several columns of that name", cure)
            if not any(self.same(mine.name, one.name) for one in fields):
                names = {one.name.lower(): f"{path}{one.name}" for one in fields}
                near = nearest(mine.name, names)
                cure = f"Did you mean {', '.join(near)}?" if near else "Leave it out, or add it to the table first."
                raise self._error(f"{path}{mine.name}", "the table has no such column", cure, near)

    def missing(self, one: WriteField, path: str) -> Column:
        """What rows get that lack a column: its write default, or NULL."""
        if one.required and one.default is None:
            raise self._error(path, "the rows lack it, and the table requires it", "Add it to the rows.")
        kind = write_type(one)
        if kind is None:
            raise self._unwritable(one, path)
        return self._default(one.default, one, path).cast(kind)

    def _default(self, value: pa.Scalar | None, one: WriteField, path: str) -> Column:
        """A default as Spark's columns have it; that of a struct is made of those of its fields."""
        if value is None or not value.is_valid:
            return f.lit(None)
        if pt.is_struct(one.type):
            return f.struct(
                *(self.missing(child, f"{path}.{child.name}").alias(child.name) for child in one.children)
            )
        if pt.is_map(one.type):
            entries = ([entry[part] for entry in value.values] for part in ("key", "value"))
            parts = (self._listed(inner, child, path) for inner, child in zip(entries, one.children, strict=True))
            return f.map_from_arrays(*parts)
        if is_list(one.type):
            return self._listed(value.values, one.children[0], path)
        return f.expr(literal(value))

    def _listed(self, values: Iterable[pa.Scalar], one: WriteField, path: str) -> Column:
        kind = write_type(one)
        if kind is None:
            raise self._unwritable(one, path)
        return f.array(*(self._default(value, one, path).cast(kind) for value in values))

    def fitted(self, column: Column, mine: t.DataType, one: WriteField, path: str) -> Column:
        """The column as the table's type, where no value can change by that."""
        if isinstance(mine, t.NullType) and one.required:
            raise self._error(path, "it is NULL in all rows, and the table requires it", "Give it a value.")
        kind = write_type(one)
        if kind is None:
            raise self._unwritable(one, path)
        if isinstance(mine, t.NullType):
            return f.lit(None).cast(kind)  # given as NULL, and not missing: no default
        if pt.is_struct(one.type) and isinstance(mine, t.StructType):
            return self._struct(column, mine, one, path)
        if pt.is_list(one.type) and isinstance(mine, t.ArrayType):
            element = one.children[0]
            inside = self.fitted(f.lit(None), mine.elementType, element, f"{path}.element")
            del inside  # it is checked, and made again for each element
            if _alike(mine.elementType, kind.elementType):  # type: ignore[attr-defined] # of an array
                return column
            return f.transform(column, lambda v: self.fitted(v, mine.elementType, element, f"{path}.element"))
        if pt.is_map(one.type) and isinstance(mine, t.MapType):
            return self._map(column, mine, one, path)
        if _alike(mine, kind):
            return column
        if not _widens(mine, kind):
            if self.assigning and _assignable(mine, kind):
                return _assigned(column, mine, kind, path)
            cure = f"Cast it to {kind.simpleString()} yourself, if no value is lost by that."
            raise self._error(
                path, f"it is {mine.simpleString()} in the rows, and {kind.simpleString()} in the table", cure
            )
        return column.cast(kind)

    def _struct(self, column: Column, mine: t.StructType, one: WriteField, path: str) -> Column:
        self.check_names(mine.fields, one.children, f"{path}.")
        parts = []
        for child in one.children:
            given = self.find(mine.fields, child)
            inner = f"{path}.{child.name}"
            if given is None and self.assigning:
                raise self._error(inner, "the value lacks it", "Give the whole struct, or assign its fields alone.")
            if given is None:
                part = self.missing(child, inner)
            else:
                part = self.fitted(column.getField(given.name), given.dataType, child, inner)
            parts.append(part.alias(child.name, metadata={}))
        return f.when(column.isNotNull(), f.struct(*parts))

    def _map(self, column: Column, mine: t.MapType, one: WriteField, path: str) -> Column:
        key, value = one.children
        for inside, child, part in ((mine.keyType, key, "key"), (mine.valueType, value, "value")):
            self.fitted(f.lit(None), inside, child, f"{path}.{part}")
        kind = write_type(one)
        if _alike(mine, kind):
            return column
        keyed = f.transform_keys(column, lambda k, _: self.fitted(k, mine.keyType, key, f"{path}.key"))
        return f.transform_values(keyed, lambda _, v: self.fitted(v, mine.valueType, value, f"{path}.value"))

    def _unwritable(self, one: WriteField, path: str) -> UnwritableRowsError:
        kind = one.described or str(one.type)
        return self._error(path, f"Spark has no type for {kind}", "Write it with an engine that has.")

    def _error(self, column: str, reason: str, cure: str, nearest: tuple[str, ...] = ()) -> UnwritableRowsError:
        return UnwritableRowsError(
            f"cannot write to {self.table}: column {column!r}: {reason}. {cure}",
            table=self.table,
            column=column,
            reason=reason,
            nearest=nearest,
        )


def _alike(a: t.DataType, b: t.DataType | None) -> bool:
    """Whether two types hold the same values under the same names; whether they may be NULL is checked by value."""
    match a, b:
        case t.StructType(), t.StructType():
            return [one.name for one in a.fields] == [one.name for one in b.fields] and all(
                _alike(x.dataType, y.dataType) for x, y in zip(a.fields, b.fields, strict=True)
            )
        case t.ArrayType(), t.ArrayType():
            return _alike(a.elementType, b.elementType)
        case t.MapType(), t.MapType():
            return _alike(a.keyType, b.keyType) and _alike(a.valueType, b.valueType)
        case (t.StringType(), t.StringType()):
            return True  # whatever its collation: the bytes are the same
        case ((t.CharType() | t.VarcharType()), t.StringType()):
            return True
    return a == b


def _widens(a: t.DataType, b: t.DataType) -> bool:
    """Whether every value of the one type is a value of the other."""
    bits = _WIDTH.get(type(a))
    match a, b:
        case ((t.ByteType() | t.ShortType() | t.IntegerType() | t.LongType()), _) if type(b) in _WIDTH:
            return bits is not None and bits <= _WIDTH[type(b)]
        case ((t.ByteType() | t.ShortType() | t.IntegerType() | t.LongType()), _) if type(b) in _EXACT:
            return bits is not None and bits - 1 <= _EXACT[type(b)]
        case ((t.ByteType() | t.ShortType() | t.IntegerType() | t.LongType()), t.DecimalType()):
            return _DIGITS[type(a)] <= b.precision - b.scale
        case t.FloatType(), t.DoubleType():
            return True
        case t.DecimalType(), t.DecimalType():
            return a.scale <= b.scale and a.precision - a.scale <= b.precision - b.scale
    return False


def _assignable(a: t.DataType, b: t.DataType) -> bool:
    """Whether Spark's ANSI rules of store assignment cast the one type to the other."""
    moments = (t.DateType, t.TimestampType, t.TimestampNTZType)
    match a, b:
        case t.NumericType(), t.NumericType():
            return True
        case t.AtomicType(), t.StringType():
            return True
    return isinstance(a, moments) and isinstance(b, moments)


def _assigned(column: Column, mine: t.DataType, kind: t.DataType, path: str) -> Column:
    """The value as the type; the task fails of one that does not fit, whatever the session says of overflows."""
    if not isinstance(mine, t.NumericType) or not isinstance(kind, t.NumericType):
        return column.cast(kind)
    tried = column.try_cast(kind)
    unfit = f.raise_error(f.lit(f"{UNFIT}{path} as {kind.simpleString()}\n"))
    return f.when(column.isNotNull() & tried.isNull(), unfit).otherwise(tried)
