"""Which columns can hold no NULL, by the schemas that a table has had."""

from __future__ import annotations

from typing import Any

import pytest

from tamis.formats.iceberg.types import TableSchema, parse_schema


def field(id_: int, name: str, type_: object, *, required: bool, **more: object) -> dict[str, Any]:
    return {"id": id_, "name": name, "type": type_, "required": required, **more}


def schema(*fields: dict[str, Any], schema_id: int = 0) -> TableSchema:
    return parse_schema({"type": "struct", "schema-id": schema_id, "fields": list(fields)})


def required(now: TableSchema, *then: TableSchema) -> dict[str, tuple[bool, bool]]:
    """By name: whether a column is required, and whether the structs around it are."""
    columns = now.columns((now, *then)).columns
    return {column.name: (column.required, column.inside_required) for column in columns}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


A_REQUIRED, A_OPTIONAL = field(1, "a", "long", required=True), field(1, "a", "long", required=False)


def test_column_is_required_that_always_was() -> None:
    assert required(schema(A_REQUIRED)) == {"a": (True, True)}
    assert required(schema(A_OPTIONAL)) == {"a": (False, True)}
    assert required(schema(A_REQUIRED), schema(A_REQUIRED, schema_id=1)) == {"a": (True, True)}


@pytest.mark.parametrize("then", [schema(A_OPTIONAL, schema_id=1), schema(field(9, "z", "int", required=True))])
def test_column_that_was_optional_or_not_there_may_hold_nulls(then: TableSchema) -> None:
    """An incompatible change of the schema rewrites no file."""
    assert required(schema(A_REQUIRED), then) == {"a": (False, True)}


def test_column_that_was_added_with_a_default_is_required() -> None:
    """Files of before have the default, not NULL."""
    added = field(1, "a", "long", required=True, **{"initial-default": 5})
    assert required(schema(added), schema(field(9, "z", "int", required=True))) == {"a": (True, True)}


def test_nothing_is_required_where_the_history_is_not_given() -> None:
    assert [column.required for column in schema(A_REQUIRED).columns().columns] == [False]


def test_field_is_required_if_every_struct_around_it_is() -> None:
    inner = struct(field(3, "p", "int", required=True), field(4, "q", "int", required=False))
    assert required(schema(field(2, "st", inner, required=True))) == {
        "st": (True, True),
        "st.p": (True, True),
        "st.q": (False, True),
    }
    assert required(schema(field(2, "st", inner, required=False))) == {
        "st": (False, True),
        "st.p": (False, False),
        "st.q": (False, False),
    }
