"""How a primary-key table's versions of a row become the row, by its merge engine.

    deduplicate      the newest version, unless it removes the row
    first-row        the oldest
    partial-update   of each column the newest value that is not NULL
    aggregation      of each column what its function makes of all values, from the oldest to the newest

Law: what a table asks of its merge engine is done as Paimon's own readers do it, or refused by its option's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import pyarrow as pa
from pyarrow import types as pt

from tamis.errors import UnsupportedFormatError
from tamis.formats.paimon.options import Options
from tamis.formats.paimon.schema import PaimonField, PaimonSchema
from tamis.formats.scan import Merging, Newer
from tamis.predicate.arrays import Int64s

__all__ = ["KIND", "SEQUENCE", "merging_rule"]

SEQUENCE: Final = "_SEQUENCE_NUMBER"
KIND: Final = "_VALUE_KIND"
_ENGINES: Final[Mapping[str, Literal["newest", "oldest", "by column"]]] = {
    "deduplicate": "newest",
    "first-row": "oldest",
    "partial-update": "by column",
    "aggregation": "by column",
}
_IGNORED: Final = ("ignore-delete", "first-row.ignore-delete", "deduplicate.ignore-delete")
_PLAIN: Final = frozenset(
    {
        "last_value",
        "last_non_null_value",
        "first_value",
        "first_non_null_value",
        "first_not_null_value",
        "sum",
        "product",
        "max",
        "min",
        "bool_and",
        "bool_or",
        "listagg",
    }
)
_OF_NUMBERS: Final = frozenset({"sum", "product"})
_LONG_DIGITS: Final = 18
_GROUP: Final = ".sequence-group"
_FUNCTION: Final = ".aggregate-function"
_DEFAULT_FUNCTION: Final = "fields.default-aggregate-function"
_REMOVING: Final = (
    "partial-update.remove-record-on-delete",
    "partial-update.remove-record-on-sequence-group",
    "aggregation.remove-record-on-delete",
)


def merging_rule(table: str, schema: PaimonSchema, sections: Int64s, rows: Int64s) -> Merging:
    """The rule of a table; UnsupportedFormatError names the option that this version does not follow."""
    options = Options.of(schema)
    engine = options.merge_engine or "deduplicate"
    order = _order(table, schema, options)
    ignores = any(options.flag(name) for name in (*_IGNORED, f"{engine}.ignore-delete"))
    removal = None
    if engine == "aggregation" or (engine != "deduplicate" and not ignores):
        removal = (
            f"cannot merge {table}: a row that its merge engine {engine} puts together was deleted or retracted, "
            "and tamis does not take a value back out of others. Read the table with Paimon's own engine, or "
            "compact it first."
        )
    return Merging(
        sections,
        rows,
        tuple(one.name for one in schema.key_fields),
        order,
        KIND,
        engine=_ENGINES[engine],
        functions=_functions(table, schema, options) if engine in ("partial-update", "aggregation") else {},
        ignores_removals=ignores and engine != "aggregation",
        removal=removal,
    )


def _order(table: str, schema: PaimonSchema, options: Options) -> tuple[Newer, ...]:
    said = options.values.get("sequence.field", "")
    names = [name.strip() for name in said.split(",") if name.strip()]
    known = {one.name: one for one in schema.fields}
    descending = options.values.get("sequence.field.sort-order", "ascending").strip().lower() == "descending"
    for name in names:
        if name not in known or not known[name].paimon_type or pt.is_null(known[name].type):
            raise _unsupported(table, "sequence.field", f"orders versions by {name}, which has no order here")
    return (*(Newer(name, descending) for name in names), Newer(SEQUENCE))


def _functions(table: str, schema: PaimonSchema, options: Options) -> dict[str, str]:
    engine, values = options.merge_engine, options.values
    for name in values:
        if name.startswith("fields.") and name.endswith(_GROUP):
            raise _unsupported(table, name, f"has the sequence group {name}={values[name]}")
        if name in _REMOVING and options.flag(name):
            raise _unsupported(table, name, f"has {name}")
        chosen = name == _DEFAULT_FUNCTION or (name.startswith("fields.") and name.endswith(_FUNCTION))
        if engine == "partial-update" and chosen:
            raise _unsupported(table, name, f"has {name}={values[name]} beside merge-engine=partial-update")
    ordering = {name.strip() for name in values.get("sequence.field", "").split(",")}
    found = {}
    for field in schema.fields:
        if field.name in schema.primary_keys:
            continue
        if engine == "partial-update":
            found[field.name] = "last_non_null_value"
        elif field.name in ordering:
            found[field.name] = "last_value"
        else:
            found[field.name] = _function(table, field, options)
    return found


def _function(table: str, field: PaimonField, options: Options) -> str:
    key, values = f"fields.{field.name}{_FUNCTION}", options.values
    said = values.get(key) or values.get(_DEFAULT_FUNCTION) or "last_non_null_value"
    name = said.strip().lower()
    if name not in _PLAIN:
        raise _unsupported(table, key, f"aggregates {field.name} by {said}")
    if name in _OF_NUMBERS and not _is_exact(field.type, name):
        raise _unsupported(table, key, f"aggregates {field.name} of type {field.paimon_type} by {name}")
    if name in ("max", "min") and (not field.paimon_type or pt.is_null(field.type)):
        raise _unsupported(table, key, f"aggregates {field.name}, which has no order here, by {name}")
    if name == "listagg":
        if options.flag(f"fields.{field.name}.distinct"):
            raise _unsupported(table, f"fields.{field.name}.distinct", f"lists distinct texts in {field.name}")
        return f"listagg {values.get(f'fields.{field.name}.list-agg-delimiter', ',')}"
    return name


def _is_exact(kind: pa.DataType, function: str) -> bool:
    if pt.is_decimal(kind):
        return function == "sum" or int(kind.precision) <= _LONG_DIGITS
    return bool(pt.is_integer(kind) or pt.is_floating(kind))


def _unsupported(table: str, option: str, what: str) -> UnsupportedFormatError:
    return UnsupportedFormatError(
        f"cannot read {table} on Spark: it {what}, and this version of tamis does not merge rows so. Read it with "
        "Paimon's own engine.",
        path=table,
        feature=option,
    )
