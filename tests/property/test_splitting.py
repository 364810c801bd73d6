"""Law of the split: both parts together match the rows of the whole, and one asks partition columns alone."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.predicate.bind import bind
from tamis.predicate.nodes import And, Compare, Node, Not, Or, Ref, Truth
from tamis.predicate.schema import Schema
from tamis.predicate.splitting import split_condition
from tamis.predicate.sql.parse import parse
from tamis.predicate.sql.rendering import render
from tests.making.harness import Table, tables
from tests.making.oracle import evaluate
from tests.making.strategies import predicates

SCHEMA = Schema.of(day=pa.date32(), region=pa.string(), id=pa.int64())
PARTITION = {1, 2}


@settings(max_examples=2 * settings.default.max_examples)
@given(st.data(), tables())
def test_both_parts_match_the_rows_of_the_whole(data: st.DataObject, table: Table) -> None:
    """A row that one part loses is lost to whoever asks the parts; one that it adds is rewritten for nothing."""
    node = data.draw(predicates(table.types, table.rows))
    columns = table.schema.columns
    partition = data.draw(st.sets(st.sampled_from([column.id for column in columns])), label="partition columns")
    parts = split_condition(node, table.schema, partition, case_sensitive=True)
    for row in table.rows:
        whole = evaluate(node, row, table.types) is True
        both = [evaluate(part, row, table.types) is True for part in (parts.partition, parts.rest)]
        assert all(both) is whole
    asked = bind(parts.partition, table.schema, case_sensitive=True).columns
    assert {column.id for column in asked} <= partition
    assert parts.is_partition_only is (parts.rest == parse("true"))


@pytest.mark.parametrize(
    ("where", "partition", "rest"),
    [
        ("day = date'2024-01-01'", "day = DATE'2024-01-01'", "true"),
        ("id = 1", "true", "id = 1"),
        ("region = 'eu' and id = 1 and day is null", "region = 'eu' AND day IS NULL", "id = 1"),
        ("(region = 'eu' and id = 1) and (day is null and id = 2)", "region = 'eu' AND day IS NULL", None),
        ("region = 'eu' or day is null", "region = 'eu' OR day IS NULL", "true"),
        ("region = 'eu' or id = 1", "true", "region = 'eu' OR id = 1"),
        ("not (region = 'eu' or id = 1)", "NOT (region = 'eu')", "NOT (id = 1)"),
        ("not (region = 'eu' and id = 1)", "true", None),
        ("(region = 'eu' and id = 1) is true", "region = 'eu'", "id = 1"),
        ("(region = 'eu' or id = 1) is false", "NOT (region = 'eu')", "NOT (id = 1)"),
        ("(region = 'eu' and id = 1) is not false", "true", None),
        ("(region = 'eu' is true) is not true", "(region = 'eu' IS TRUE) IS NOT TRUE", "true"),
        ("not (region = 'eu' is true)", "NOT (region = 'eu' IS TRUE)", "true"),
        ("not ((region = 'eu' and id = 1) is true)", "true", None),
        ("REGION = 'eu' and Id = 1", "REGION = 'eu'", "Id = 1"),
        ("upper(region) = 'EU' and id = 1", "upper(region) = 'EU'", "id = 1"),
        ("false", "false", "true"),
    ],
)
def test_what_partition_columns_decide_is_split_off(where: str, partition: str, rest: str | None) -> None:
    """Without this the law holds of a split that leaves all to the rest."""
    parts = split_condition(parse(where), SCHEMA, PARTITION)
    assert render(parts.partition) == render(parse(partition))
    if rest is not None:
        assert render(parts.rest) == render(parse(rest))


@pytest.mark.parametrize("where", ["rand() < 0.5", "region = uuid()", "rand() < 0.5 and region = 'eu'"])
def test_what_may_differ_within_a_partition_is_the_rests(where: str) -> None:
    """`rand() < 0.5` names no column, and yet is true of some rows of a partition alone."""
    assert not split_condition(parse(where), SCHEMA, PARTITION).is_partition_only


def test_a_column_that_is_not_there_is_an_error() -> None:
    with pytest.raises(tamis.errors.BindError, match="no column nowhere"):
        split_condition(parse("nowhere = 1"), SCHEMA, PARTITION)
    with pytest.raises(tamis.errors.BindError, match="no column REGION"):
        split_condition(parse("REGION = 'eu'"), SCHEMA, PARTITION, case_sensitive=True)


def test_what_a_program_doubles_is_split_once() -> None:
    """One condition that stands in 2**200 places has as many conjuncts, and is one."""
    node: Node = And((parse("region = 'eu'"), parse("id = 1")))
    for _ in range(200):
        node = Truth(Not(Or((Not(node), Not(node)))), value=True)
    parts = split_condition(node, SCHEMA, PARTITION)
    assert isinstance(parts.partition, Compare)
    assert parts.partition.term == Ref(("region",))
    assert render(parts.rest) == "id = 1"
