"""Columns of a table as Spark reads them: its types, with the field ids and defaults that its Parquet reader knows.

A column that Spark has no type for is an error that names it, not a column of NULLs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as pt
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.types import DataType, StructField, StructType

from tamis.errors import UnreadableColumnError
from tamis.formats.edit import WriteField
from tamis.formats.scan import SHOWN_AS, ReadField
from tamis.predicate.type_names import is_bytes, is_list
from tamis.spark.calendar import corrected
from tamis.spark.session import TIME_TYPE

__all__ = [
    "can_default",
    "has_literal",
    "has_naive_time",
    "literal",
    "moment",
    "output_type",
    "plain_schema",
    "read_name",
    "read_schema",
    "readable",
    "rebuilt",
    "unreadable_column",
    "write_type",
]

FIELD_ID: Final = "parquet.field.id"
DEFAULT: Final = "EXISTS_DEFAULT"
"""Where Spark's readers look for the value of a column that a file does not have, as SQL."""
LONG_DIGITS: Final = 18
"""Decimals up to so many digits are kept as one integer."""
_EPOCH: Final = "1970-01-01 00:00:00"
FORMATTED: Final = r"^(.{8})(.{4})(.{4})(.{4})(.{12})$"


def read_schema(fields: Sequence[ReadField], names: Sequence[str]) -> StructType:
    """What to ask a reader for: the fields as files have them, under these names if they are found by id."""
    return StructType([_read_field(field, name) for field, name in zip(fields, names, strict=True)])


def _read_field(field: ReadField, name: str, inside: str = "") -> StructField:
    metadata: dict[str, Any] = {}
    if field.id is not None:
        metadata[FIELD_ID] = field.id
    elif field.written_as is not None:
        name = field.written_as
    if field.default is not None and not inside and can_default(field, field.default):
        metadata[DEFAULT] = literal(field.default)
    return StructField(name, _type(field, f"{inside}{field.name}", read=True), nullable=True, metadata=metadata)


def readable(field: ReadField) -> bool:
    """Whether Spark has a type for the column."""
    try:
        output_type(field)
    except UnreadableColumnError:
        return False
    return True


def output_type(field: ReadField) -> DataType:
    """The type that users see: the connectors' own."""
    return _type(field, field.name, read=False)


def can_default(field: ReadField, value: pa.Scalar) -> bool:
    """Whether readers can give that value where a file lacks the column."""
    if not value.is_valid:
        return True
    if pt.is_nested(field.type) or field.type == pa.uuid():
        return False
    return (field.id is None or _can_default(field.type)) and has_literal(value)


def _can_default(kind: pa.DataType) -> bool:
    """Whether Spark's vectorised Parquet reader can give a default of the type: for the others it fails, or worse."""
    if pt.is_decimal(kind):
        return int(kind.precision) <= LONG_DIGITS
    return kind != pa.uuid() and not is_bytes(kind)


def _type(field: ReadField, path: str, *, read: bool) -> DataType:
    if field.variant:
        return t.VariantType()
    type_ = field.stored if read and field.stored is not None else field.type
    if pt.is_struct(type_):
        if read:
            fields = [_read_field(child, child.name, f"{path}.") for child in field.children]
        else:
            fields = [t.StructField(c.name, _type(c, f"{path}.{c.name}", read=False)) for c in field.children]
        return t.StructType(fields)
    if is_list(type_):
        return t.ArrayType(_type(field.children[0], f"{path}.element", read=read))
    if pt.is_map(type_):
        key, value = field.children
        return t.MapType(_type(key, f"{path}.key", read=read), _type(value, f"{path}.value", read=read))
    spark_type = _leaf(type_, read=read) or _of_spark_alone(field.spark_type)
    if spark_type is None:
        raise unreadable_column(path, field.described or str(type_))
    return spark_type


def unreadable_column(path: str, kind: str, where: str = "") -> UnreadableColumnError:
    """The error for a column that Spark has no way to read."""
    other = next((name for name in SHOWN_AS.get(kind, ()) if name != kind), None)
    cure = "Name"
    if other is not None:
        setting = f"set {TIME_TYPE}=true, " if kind == "time" else ""
        cure = f"Ask for it as another type, plan.read(spark, types={{{kind!r}: {other!r}}}), {setting}or name"
    return UnreadableColumnError(
        f"Spark cannot read column {path!r} of type {kind}{where}. "
        f"{cure} the columns to read, without this one: plan.read(spark, columns=[...]).",
        column=path,
        type=kind,
    )


def has_naive_time(field: ReadField) -> bool:
    """Whether a time without a zone is in the field: Spark does not read them from ORC files."""
    naive = pt.is_timestamp(field.type) and field.type.tz is None
    return naive or any(has_naive_time(child) for child in field.children)


def _leaf(kind: pa.DataType, *, read: bool) -> DataType | None:
    if kind == pa.uuid():
        return t.BinaryType() if read else t.StringType()
    if pt.is_decimal(kind):
        return t.DecimalType(kind.precision, kind.scale)
    if pt.is_timestamp(kind):
        if kind.unit == "ns":
            return None
        return t.TimestampNTZType() if kind.tz is None else t.TimestampType()
    if pt.is_duration(kind):
        return t.LongType() if read else None
    if is_bytes(kind):
        return t.BinaryType()
    plain: Mapping[pa.DataType, DataType] = {
        pa.bool_(): t.BooleanType(),
        pa.int8(): t.ByteType(),
        pa.int16(): t.ShortType(),
        pa.int32(): t.IntegerType(),
        pa.int64(): t.LongType(),
        pa.float32(): t.FloatType(),
        pa.float64(): t.DoubleType(),
        pa.string(): t.StringType(),
        pa.large_string(): t.StringType(),
        pa.date32(): t.DateType(),
    }
    return plain.get(kind)


def _of_spark_alone(name: str) -> DataType | None:
    """The type of that name in SQL; None if it is none, or if this Spark does not have it."""
    if name == "void":
        return t.NullType()
    kind, _, collation = name.partition(" collate ")
    if kind != "string" or not collation:
        return None
    try:
        return t.StringType(collation)
    except TypeError:  # Spark 3 has no collations
        return None


def write_type(field: WriteField) -> DataType | None:
    """The type that Spark's rows have for what files hold; None if it has none, for the field or a part of it."""
    kind = field.type
    parts = [write_type(child) for child in field.children]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if pt.is_struct(kind):
        return StructType([StructField(c.name, part) for c, part in zip(field.children, known, strict=True)])
    if pt.is_list(kind):
        return t.ArrayType(known[0])
    if pt.is_map(kind):
        return t.MapType(known[0], known[1])
    if kind == pa.uuid() or pt.is_fixed_size_binary(kind) or pt.is_time(kind) or pt.is_null(kind):
        return None
    return _leaf(kind, read=False)


def plain_schema(schema: pa.Schema) -> StructType:
    """The schema of values that are known here, each type as it is: a time without zone gets none."""
    return StructType([StructField(field.name, _plain(field.type, field.name)) for field in schema])


def _plain(kind: pa.DataType, path: str) -> DataType:
    if pt.is_struct(kind):
        return StructType([StructField(field.name, _plain(field.type, f"{path}.{field.name}")) for field in kind])
    if pt.is_list(kind):
        return t.ArrayType(_plain(kind.value_type, f"{path}.element"))
    if pt.is_map(kind):
        return t.MapType(_plain(kind.key_type, f"{path}.key"), _plain(kind.item_type, f"{path}.value"))
    return _type(ReadField(path, kind), path, read=True)


def rebuilt(column: Column, field: ReadField) -> Column:
    """What users see of what the reader gives: UUIDs as text, names and old dates as the table has them."""
    if not _differs(field):
        return column
    return _rebuilt(column, field)


def _differs(field: ReadField) -> bool:
    """Whether anything in the field is read as another type, or under another name, than it is shown."""
    if field.type == pa.uuid() or field.calendar != "known" or field.stored is not None:
        return True
    renamed = pt.is_struct(field.type) and any(c.id is None and c.written_as != c.name for c in field.children)
    return renamed or any(_differs(child) for child in field.children)


def _rebuilt(column: Column, field: ReadField) -> Column:
    if field.type == pa.uuid():
        return f.regexp_replace(f.lower(f.hex(column)), FORMATTED, "$1-$2-$3-$4-$5")
    if field.calendar != "known":
        return corrected(column, field)
    if field.stored is not None:
        return _cast(column, field)
    if not _differs(field):
        return column
    if pt.is_struct(field.type):
        parts = [_rebuilt(column.getField(read_name(c)), c).alias(c.name, metadata={}) for c in field.children]
        return f.when(column.isNotNull(), f.struct(*parts))
    if pt.is_map(field.type):
        key, value = field.children
        keyed = f.transform_keys(column, lambda k, _: _rebuilt(k, key)) if _differs(key) else column
        return f.transform_values(keyed, lambda _, v: _rebuilt(v, value)) if _differs(value) else keyed
    return f.transform(column, lambda element: _rebuilt(element, field.children[0]))


def _cast(column: Column, field: ReadField) -> Column:
    """What files have as another type; a time as a number without asking for the session's zone."""
    if field.stored is None or not pt.is_duration(field.stored):
        return column.cast(output_type(field))
    return moment(column * 1000 if field.stored.unit == "ms" else column, field.type)


def moment(micros: Column, kind: pa.DataType) -> Column:
    """The timestamp so many microseconds after 1970 began, with a zone or without, as the type has it."""
    if kind.tz is not None:
        return f.timestamp_micros(micros)
    return f.timestamp_add("MICROSECOND", micros, f.lit(_EPOCH).cast("timestamp_ntz"))


def read_name(field: ReadField) -> str:
    """The name under which a field inside a struct is read."""
    return field.name if field.id is not None or field.written_as is None else field.written_as


def has_literal(value: pa.Scalar) -> bool:
    """Whether `literal` can write the value: a date beyond the year 9999 is none to Python."""
    try:
        literal(value)
    except (ValueError, OverflowError):
        return False
    return True


def literal(value: pa.Scalar) -> str:
    """A default as Spark SQL writes it."""
    kind, plain = value.type, value.as_py()
    if plain is None:
        return "NULL"
    if pt.is_string(kind):
        # Not as a quoted text: what a backslash means there is a setting of the session.
        return f"CAST(X'{str(plain).encode().hex()}' AS STRING)"
    if is_bytes(kind):
        return f"X'{plain.hex()}'"
    if pt.is_date(kind):
        return f"DATE '{plain.isoformat()}'"
    if pt.is_timestamp(kind):
        return f"{'TIMESTAMP_NTZ' if kind.tz is None else 'TIMESTAMP'} '{plain.isoformat(' ')}'"
    if pt.is_decimal(kind):
        return f"CAST('{plain}' AS DECIMAL({kind.precision}, {kind.scale}))"
    if pt.is_boolean(kind):
        return "true" if plain else "false"
    if pt.is_floating(kind):
        return f"CAST('{plain!r}' AS {'FLOAT' if pt.is_float32(kind) else 'DOUBLE'})"
    if pt.is_int64(kind):
        return f"CAST({plain} AS BIGINT)" if plain >= 0 else f"CAST('{plain}' AS BIGINT)"
    return str(plain)
