"""How rows were placed in buckets, told from the schemas that a table has had."""

from __future__ import annotations

import pytest

from tamis.formats.paimon.bucket_keys import KeyType, Root
from tamis.formats.paimon.buckets import Placement, placement
from tamis.formats.paimon.hashing import DefaultHash, HiveHash, ModHash
from tamis.formats.paimon.schema import PaimonField, PaimonSchema
from tamis.formats.paimon.types import atomic
from tamis.sieve.hashing import EitherHash

INT, BIGINT, TEXT = KeyType(Root.INT), KeyType(Root.BIGINT), KeyType(Root.TEXT)


def made(id_: int, types: dict[str, str], **more: object) -> PaimonSchema:
    fields = []
    for number, (name, type_) in enumerate(types.items()):
        found = atomic(type_)
        fields.append(PaimonField(number, name, found.arrow, found.name, length=found.length))
    options = {"bucket": "4", "bucket-key": next(iter(types))} | dict(more.pop("options", {}))  # type: ignore[call-overload]
    return PaimonSchema(id_, tuple(fields), options=options, **more)  # type: ignore[arg-type]


def placed(*history: PaimonSchema) -> Placement:
    return placement(history[-1], {schema.id: schema for schema in history})


def test_key_is_hashed_in_the_order_of_the_option() -> None:
    found = placed(made(0, {"a": "INT", "b": "STRING"}, options={"bucket-key": "b, a"}))
    assert [column.name for column in found.columns] == ["b", "a"]
    assert found.hash == DefaultHash((TEXT, INT))
    assert found.fault is None


def test_primary_key_without_partition_columns_is_the_key_in_its_own_order() -> None:
    """Not in the order of the columns: hashed so, rows would be looked for elsewhere."""
    types = {"day": "STRING", "a": "INT NOT NULL", "b": "BIGINT NOT NULL"}
    schema = made(0, types, primary_keys=("b", "day", "a"), partition_keys=("day",), options={"bucket-key": ""})
    assert placed(schema).hash == DefaultHash((BIGINT, INT))


@pytest.mark.parametrize("bucket", ["-1"])
def test_buckets_that_no_hash_chose_prune_nothing(bucket: str) -> None:
    assert placed(made(0, {"a": "INT"}, options={"bucket": bucket})) == Placement()


def test_postponed_tables_are_hashed_as_well() -> None:
    schema = made(0, {"a": "INT NOT NULL"}, primary_keys=("a",), options={"bucket": "-2", "bucket-key": ""})
    assert placed(schema).hash == DefaultHash((INT,))


def test_rename_of_the_key_and_changes_of_other_columns_change_nothing() -> None:
    old = made(0, {"a": "INT", "x": "INT"})
    new = made(1, {"k": "INT NOT NULL", "x": "STRING", "y": "DOUBLE"})
    assert placed(old, new).hash == DefaultHash((INT,))
    assert placed(made(0, {"a": "VARCHAR(3)"}), made(1, {"a": "STRING"})).hash == DefaultHash((TEXT,))


def test_widened_key_is_looked_for_by_either_type() -> None:
    """Negative numbers hash differently as INT and as BIGINT, and a compaction leaves them where they were."""
    found = placed(made(0, {"a": "SMALLINT"}), made(1, {"a": "INT"}), made(2, {"a": "BIGINT"}))
    expected = (BIGINT, KeyType(Root.SMALLINT), INT)
    assert found.hash == EitherHash(tuple(DefaultHash((type_,)) for type_ in expected))


@pytest.mark.parametrize(
    ("types", "part"),
    [
        (["BIGINT", "INT"], "became INT in schema 1, and was hashed as BIGINT"),
        (["BIGINT", "INT", "BIGINT"], "became INT in schema 1"),
        (["INT", "STRING"], "became STRING"),
        (["VARCHAR(9)", "VARCHAR(3)"], "became VARCHAR(3)"),
        (["DECIMAL(10, 2)", "DECIMAL(12, 4)"], "became DECIMAL(12, 4)"),
        (["TIMESTAMP(6)", "TIMESTAMP(3)"], "became TIMESTAMP(3)"),
        (["BINARY(3)", "BINARY(5)"], "became BINARY(5)"),
        (["DOUBLE"], "a is DOUBLE"),
        (["INT", "DOUBLE"], "a is DOUBLE"),
        (["CHAR(4)"], "a is CHAR(4)"),
    ],
)
def test_key_whose_hash_cannot_be_told_prunes_nothing_and_says_so(types: list[str], part: str) -> None:
    found = placed(*(made(id_, {"a": type_, "x": "INT"}) for id_, type_ in enumerate(types)))
    assert found.hash is None
    assert part in str(found.fault)
    assert found.notes([0, 1]) == (f"buckets of a ignored: {found.fault}",)
    assert found.notes([1]) == ()


def test_missing_schema_another_key_function_or_mode_prune_nothing() -> None:
    first, last = made(0, {"a": "INT", "b": "INT"}), made(2, {"a": "INT", "b": "INT"})
    assert "schema 1 is missing" in str(placed(first, last).fault)
    for options, part in [
        ({"bucket-key": "b"}, "bucket key was another"),
        ({"bucket-function.type": "mod"}, "bucket-function.type was mod"),
        ({"bucket": "-1"}, "no buckets that a hash chooses"),
    ]:
        old = made(1, {"a": "INT", "b": "INT"}, options=options)
        assert part in str(placed(first, old, last).fault)
    assert "not there" in str(placed(made(0, {"a": "INT"}, options={"bucket-key": "z"})).fault)


def test_key_with_a_default_for_null_prunes_nothing() -> None:
    """The row was hashed as NULL, and is read with the default: it is not where the default would be."""
    found = placed(made(0, {"a": "INT"}, options={"fields.a.default-value": "7"}))
    assert found.hash is None
    assert "a has a default" in str(found.fault)


def test_functions_of_the_table_and_the_default_may_both_have_placed_rows() -> None:
    for name, by in [("mod", ModHash), ("hive", HiveHash)]:
        found = placed(made(0, {"a": "INT"}, options={"bucket-function.type": name.upper()}))
        assert found.hash == EitherHash((by((INT,)), DefaultHash((INT,))))


def test_older_state_is_read_with_the_key_that_today_s_options_call_by_another_name() -> None:
    """Column a became b, and b became c: the option says b, and means what the old schema calls a."""
    old, new = made(0, {"a": "INT", "b": "BIGINT"}), made(1, {"b": "INT", "c": "BIGINT"})
    found = placement(old.with_options(new.options), {0: old, 1: new})
    assert [column.name for column in found.columns] == ["a"]
    assert found.hash == DefaultHash((INT,))
