"""Columns by name: found in any case, by path, or refused with the nearest names."""

import pyarrow as pa
import pytest

from tamis.errors import BindError
from tamis.predicate.names import quote_name
from tamis.predicate.schema import Column, Schema

INT = pa.int32()


def test_name_is_found_in_any_case() -> None:
    schema = Schema.of(Amount=INT)
    assert schema.find(("aMOUNT",)).id == 1


def test_case_counts_when_asked_for() -> None:
    with pytest.raises(BindError) as caught:
        Schema.of(Amount=INT).find(("amount",), case_sensitive=True)
    assert caught.value.column == "amount"
    assert caught.value.nearest == ("Amount",)


def test_two_names_that_differ_in_case_are_ambiguous() -> None:
    """Spark refuses even the exact spelling unless it is told to mind the case."""
    schema = Schema.of(id=INT, ID=INT)
    with pytest.raises(BindError, match="ambiguous") as caught:
        schema.find(("id",))
    assert caught.value.column == "id"
    assert caught.value.nearest == ("id", "ID")
    assert schema.find(("ID",), case_sensitive=True).id == 2


def test_unknown_name_gets_the_nearest_ones() -> None:
    with pytest.raises(BindError, match="Did you mean") as caught:
        Schema.of(customer_id=INT, region=INT, ts=INT).find(("custmer_id",))
    assert caught.value.column == "custmer_id"
    assert caught.value.nearest[0] == "customer_id"
    assert caught.value.facts == {"column": "custmer_id", "nearest": caught.value.nearest}


def test_at_most_three_names_are_suggested() -> None:
    schema = Schema.of(**{f"col_{i}": INT for i in range(9)})
    with pytest.raises(BindError) as caught:
        schema.find(("col_x",))
    assert len(caught.value.nearest) == 3


def test_name_like_no_other_gets_the_table_s_names() -> None:
    with pytest.raises(BindError, match="The table has a, b") as caught:
        Schema.of(a=INT, b=INT).find(("zzzzzzz",))
    assert caught.value.nearest == ()


def test_wide_table_lists_ten_names_and_a_count() -> None:
    with pytest.raises(BindError, match="and 15 more"):
        Schema.of(**{f"c{i}": INT for i in range(25)}).find(("wwwwwwww",))


def test_table_without_columns_says_so() -> None:
    with pytest.raises(BindError, match="no columns"):
        Schema(()).find(("a",))


def test_nested_field_is_found_by_its_path() -> None:
    schema = Schema((Column(1, ("s",), pa.struct([("x", INT)])), Column(2, ("s", "x"), INT)))
    assert schema.find(("S", "X")).id == 2
    assert schema.find(("s",)).id == 1
    assert schema.find(("s", "x")).nested
    assert not schema.find(("s",)).nested
    with pytest.raises(BindError) as caught:
        schema.find(("s", "y"))
    assert caught.value.nearest[0] == "s.x"


def test_column_with_a_dot_in_its_name_is_no_struct() -> None:
    schema = Schema((Column(1, ("a.b",), INT), Column(2, ("a", "b"), INT)))
    assert schema.find(("a.b",)).id == 1
    assert schema.find(("a", "b")).id == 2
    assert schema.find(("a.b",)).name == "`a.b`"


def test_names_are_quoted_where_sql_needs_it() -> None:
    assert Column(1, ("a b", "c"), INT).name == "`a b`.c"
    assert quote_name("a`b") == "`a``b`"
    assert quote_name("1a") == "`1a`"
    assert quote_name("é") == "`é`"


def test_ids_may_be_names_that_survive_a_rename() -> None:
    assert Schema((Column("col-7f", ("now",), INT),)).find(("NOW",)).id == "col-7f"


def test_letters_that_only_casefolding_joins_are_two_names() -> None:
    """Spark lowers letters one by one: `strasse` is not `straße`."""
    both = Schema((Column(1, ("straße",), INT), Column(2, ("strasse",), INT)))
    assert both.find(("strasse",)).id == 2
    assert both.find(("STRASSE",)).id == 2
    with pytest.raises(BindError):
        Schema((Column(1, ("straße",), INT),)).find(("strasse",))
