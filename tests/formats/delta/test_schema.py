"""Schema strings as Delta's writers have them, and what is wrong with those that are none."""

import json
from typing import Any

import pyarrow as pa
import pytest

from tamis.errors import UnreadableMetadataError, UnsupportedFormatError
from tamis.formats.delta.schema import DeltaSchema, TypeChange, parse_schema


def field(name: str, type_: object, **metadata: object) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": True, "metadata": metadata}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def schema(*fields: dict[str, Any], mode: str = "none", partition: tuple[str, ...] = ()) -> DeltaSchema:
    return parse_schema(json.dumps(struct(*fields)), {"delta.columnMapping.mode": mode}, partition)


def mapped(physical: str, id_: int) -> dict[str, object]:
    return {"delta.columnMapping.physicalName": physical, "delta.columnMapping.id": id_}


@pytest.mark.parametrize(
    ("written", "type_"),
    [
        ("string", pa.string()),
        ("long", pa.int64()),
        ("integer", pa.int32()),
        ("short", pa.int16()),
        ("byte", pa.int8()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("decimal(38,10)", pa.decimal128(38, 10)),
        ("decimal( 9 , 2 )", pa.decimal128(9, 2)),
        ("boolean", pa.bool_()),
        ("binary", pa.binary()),
        ("date", pa.date32()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestamp_ntz", pa.timestamp("us")),
        ("variant", pa.null()),
        ("void", pa.null()),
        ({"type": "array", "elementType": "integer", "containsNull": True}, pa.list_(pa.int32())),
        (
            {"type": "map", "keyType": "string", "valueType": struct(field("x", "long")), "valueContainsNull": True},
            pa.map_(pa.string(), pa.struct([("x", pa.int64())])),
        ),
        (struct(field("x", "integer"), field("y", struct(field("z", "string")))), None),
    ],
)
def test_every_type_has_its_arrow_type(written: object, type_: pa.DataType | None) -> None:
    expected = type_ or pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string())]))])
    assert schema(field("c", written)).fields[0].type == expected


@pytest.mark.parametrize("name", ["interval year to month", "interval", "geometry(OGC:CRS84)", "decimal(39,0)"])
def test_unknown_type_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(UnsupportedFormatError, match="does not know") as caught:
        schema(field("a", "long"), field("b", struct(field("c", name))))
    assert caught.value.feature == f"type {name}"
    assert f"schemaString.fields[1].type.fields[0].type is of the type {name}" in str(caught.value)


def test_mapped_columns_are_known_by_their_physical_path() -> None:
    """Renamed columns keep their statistics and partition values, which are keyed by physical names."""
    found = schema(
        field("Renamed", struct(field("x", "integer", **mapped("col-x", 2))), **mapped("col-1", 1)),
        field("p", "date", **mapped("col-p", 3)),
        mode="name",
        partition=("p",),
    )
    columns = found.columns()
    assert columns.find(("renamed", "X")).id == "`col-1`.`col-x`"
    assert found.field("`col-1`.`col-x`").field_id == 2
    assert [one.physical_name for one in found.partition_fields] == ["col-p"]


def test_without_a_mode_physical_names_are_ignored() -> None:
    """A table whose mapping was never switched on is read by its names, whatever stands in the metadata."""
    assert schema(field("a", "long", **mapped("col-1", 1))).fields[0].id == "a"


def test_mapped_column_without_a_physical_name_says_where() -> None:
    with pytest.raises(UnreadableMetadataError) as caught:
        schema(field("a", "long"), mode="id")
    assert caught.value.place is not None
    assert caught.value.place.startswith("schemaString.fields[0].metadata")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{", None),
        ("[" * 100_000, None),
        ("[]", "schemaString"),
        ('{"type":"struct"}', "schemaString.fields"),
        ('{"type":"struct","fields":[{"name":"a"}]}', "schemaString.fields[0].type"),
        ('{"type":"struct","fields":[{"name":1,"type":"long"}]}', "schemaString.fields[0].name"),
        (json.dumps(struct(field("a", "long"), field("a", "long"))), "schemaString.fields[1].name"),
    ],
)
def test_damaged_schema_says_where(text: str, place: str | None) -> None:
    with pytest.raises(UnreadableMetadataError) as caught:
        parse_schema(text, {}, (), path="_delta_log/00000000000000000000.json")
    assert caught.value.place == place
    assert caught.value.path == "_delta_log/00000000000000000000.json"


def test_unknown_mapping_mode_is_refused() -> None:
    with pytest.raises(UnsupportedFormatError, match="'uuid'"):
        schema(mode="uuid")


def test_partition_column_is_found_in_another_case_only_if_it_must_be() -> None:
    found = schema(field("P", "long"), field("q", "long"), partition=("p", "q"))
    assert [one.name for one in found.partition_fields] == ["P", "q"]


@pytest.mark.parametrize("names", [("z",), ("a", "a"), ("s",)])
def test_partition_columns_that_are_none_are_unreadable(names: tuple[str, ...]) -> None:
    with pytest.raises(UnreadableMetadataError) as caught:
        schema(field("a", "long"), field("s", struct()), partition=names)
    assert "partitionColumns" in (caught.value.place or "")


def test_collated_and_padded_strings_are_opaque() -> None:
    """'a' may equal 'A', and 'ab' the padded 'ab ': by bytes, their files would be pruned."""
    found = schema(
        field("c", "string", __COLLATIONS={"c": "spark.UTF8_LCASE"}),
        field("p", "string", __CHAR_VARCHAR_TYPE_STRING="char(3)"),
        field("v", "string", __CHAR_VARCHAR_TYPE_STRING="varchar(3)"),
        field("b", "string", __COLLATIONS={"b": "spark.UTF8_BINARY"}),
        field("l", {"type": "array", "elementType": "string"}, __COLLATIONS={"l.element": "icu.UNICODE"}),
    )
    assert [pa.types.is_null(one.type) for one in found.fields] == [True, True, False, False, False]
    assert found.fields[0].spark_type == "string collate UTF8_LCASE"
    assert found.fields[1].spark_type == "char(3)"
    assert pa.types.is_null(found.fields[4].items[0].type)


def test_generation_default_and_type_changes_are_kept() -> None:
    changes = [{"toType": "double", "fromType": "float"}, {"toType": "long", "fromType": "integer", "fieldPath": "x"}]
    found = schema(
        field("a", "double", **{"delta.typeChanges": changes, "CURRENT_DEFAULT": "5"}),
        field("g", "integer", **{"delta.generationExpression": "year(ts)"}),
    )
    assert found.fields[0].type_changes == (TypeChange("float", "double"), TypeChange("integer", "long", "x"))
    assert found.fields[0].widened_from("float")
    assert not found.fields[0].widened_from("integer")
    assert found.fields[0].default == "5"
    assert found.fields[1].generation_expression == "year(ts)"
