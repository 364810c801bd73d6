"""What callers hand in, checked at the front door.

Law: an argument of a wrong type is a TypeError that says what to write, before any file is read; it is never taken
for "no condition". Objects of PySpark are known by their class's name, so that nothing here loads PySpark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import time_ns
from typing import Any, Final

from tamis.checks import check_choice, check_type, kind, shown
from tamis.formats import converted_condition
from tamis.formats.scan import check_shown
from tamis.predicate.bind import bind
from tamis.predicate.bound import BoundPredicate
from tamis.predicate.build import Expression
from tamis.predicate.compare.zones import Ask
from tamis.predicate.nodes import Constant, Node
from tamis.predicate.schema import Schema
from tamis.predicate.units import NANOS_IN_MICRO
from tamis.sieve.join.runtime import RuntimeFilter

__all__ = [
    "Context",
    "bound",
    "check_dataframe",
    "check_executors",
    "check_filters",
    "check_session",
    "check_storage",
    "check_target",
    "check_types",
    "moment_ms",
]

EXECUTORS: Final = ("auto", "always", "never")
LOADED: Final = (("Table", "pyiceberg."), ("DeltaTable", "deltalake."), ("FileStoreTable", "pypaimon."))
"""Classes of tables that libraries have loaded, and their packages."""
STORAGES: Final = ("session", "catalog")
_HOW_TO: Final = 'Write it as SQL text, "id = 1", or build it with tamis.col: tamis.col("id") == 1.'


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a condition's meaning depends on: how names are found, the zone and its rules, the table's names."""

    case_sensitive: bool = False
    time_zone: str = "UTC"
    ask: Ask | None = None
    names: tuple[str, ...] = ()
    alias: str | None = None


def bound(where: object, schema: Schema, context: Context) -> BoundPredicate:
    """The condition, bound, at the moment at which this is called; TypeError for what is not a condition."""
    if isinstance(where, str):
        from tamis.predicate.where import bind_text

        return bind_text(
            where,
            schema,
            instant=time_ns() // NANOS_IN_MICRO,
            case_sensitive=context.case_sensitive,
            time_zone=context.time_zone,
            ask=context.ask,
            names=context.names,
            alias=context.alias,
        )
    return bind(
        _condition(where, schema),
        schema,
        case_sensitive=context.case_sensitive,
        time_zone=context.time_zone,
        ask=context.ask,
    )


def _condition(where: object, schema: Schema) -> Node:
    """A condition that is no SQL, as nodes."""
    if where is None:
        return Constant(value=True)
    if isinstance(where, Expression):
        return where.node
    if (node := converted_condition(where, schema)) is not None:
        return node
    if _is_a(where, "Column", "pyspark."):
        raise TypeError(f"where is a PySpark Column, which only Spark can read. {_HOW_TO}")
    if isinstance(where, bool):
        raise TypeError(f"where is {where!r}, not a condition. Leave it out for all rows, or write 'false' for none.")
    raise TypeError(f"where is {kind(where)}, not a condition. {_HOW_TO}")


def check_session(spark: object) -> None:
    """TypeError unless spark is a SparkSession, classic or Connect."""
    if not _is_a(spark, "SparkSession", "pyspark.", "databricks."):
        raise TypeError(
            f"spark is {kind(spark)}: give a SparkSession, such as SparkSession.builder.getOrCreate() returns."
        )


def check_dataframe(name: str, frame: object) -> None:
    """TypeError unless frame is a DataFrame of Spark."""
    if _is_a(frame, "DataFrame", "pyspark.", "databricks."):
        return
    cure = "give a DataFrame of Spark"
    if _is_a(frame, "DataFrame", "pandas."):
        cure += ": spark.createDataFrame(frame)"
    elif _is_a(frame, "Table", "pyarrow.") or _is_a(frame, "DataFrame", "polars."):
        cure += ": spark.createDataFrame(frame.to_pandas())"
    raise TypeError(f"{name} is {kind(frame)}: {cure}.")


def check_target(target: object, catalog: object) -> None:
    """TypeError unless target names a table, or is one that a library has loaded, and catalog is a catalog."""
    if not isinstance(target, str) and not any(_is_a(target, *loaded) for loaded in LOADED):
        raise TypeError(
            f"the table is {kind(target)}: give its folder, its metadata file, its name catalog.namespace.table, or "
            "a Table of PyIceberg, a DeltaTable of deltalake or a table of pypaimon."
        )
    of_a_library = _is_a(catalog, "Catalog", "pyiceberg.", "pypaimon.")
    if catalog is None or isinstance(catalog, (str, Mapping)) or of_a_library:
        if catalog is not None and not isinstance(target, str):
            raise TypeError("a table that a library has loaded knows its catalog: leave catalog= out.")
        return
    raise TypeError(
        f"catalog is {kind(catalog)}: give its configured name, its properties, or a Catalog of PyIceberg or of "
        "pypaimon."
    )


def moment_ms(as_of: object, as_of_ms: object) -> int | None:
    """The time in milliseconds since 1970; None if none is given."""
    check_type("as_of_ms", as_of_ms, int, type(None), expected="milliseconds since 1970")
    if as_of is None:
        return as_of_ms  # type: ignore[return-value] # an int or None by now
    if as_of_ms is not None:
        raise TypeError("as_of and as_of_ms are the same in two forms: give one of them.")
    if isinstance(as_of, str):
        try:
            as_of = datetime.fromisoformat(as_of.strip())
        except ValueError:
            raise ValueError(
                f"as_of is {shown(as_of)}, not a time: write 2024-01-15 or 2024-01-15T12:00:00+01:00."
            ) from None
    check_type("as_of", as_of, datetime, expected="a datetime, or ISO 8601 text")
    assert isinstance(as_of, datetime)  # noqa: S101 - for the type checker
    moment = as_of if as_of.tzinfo is not None else as_of.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def check_executors(value: object) -> None:
    """ValueError, or TypeError, unless value says where to plan."""
    check_choice("executors", value, EXECUTORS)


def check_storage(value: object) -> None:
    """ValueError, or TypeError, unless value says whose settings of a store to read with, or is None."""
    check_choice("storage", value, STORAGES, or_none=True)


def check_types(types: object) -> None:
    """ValueError, or TypeError, unless types says as what columns of some types are shown, or is None."""
    check_type("types", types, Mapping, type(None), expected="a dict such as {'timestamp_ns': 'timestamp_ntz'}")
    check_shown(types or {})  # type: ignore[arg-type] # a mapping or None by now


def check_filters(filters: object) -> None:
    """TypeError unless filters are runtime filters, in a list or tuple."""
    if isinstance(filters, RuntimeFilter):
        raise TypeError("runtime_filters is one RuntimeFilter: give a list, runtime_filters=[keys].")
    check_type("runtime_filters", filters, list, tuple, expected="a list of RuntimeFilter")
    for keys in filters:  # type: ignore[attr-defined] # a list or tuple by now
        check_type("a member of runtime_filters", keys, RuntimeFilter, expected="a RuntimeFilter")


def _is_a(value: Any, name: str, *packages: str) -> bool:  # noqa: ANN401 - anything at all
    """Whether value's class, or one that it is derived from, has this name in one of the packages."""
    return any(of.__name__ == name and of.__module__.startswith(packages) for of in type(value).__mro__)
