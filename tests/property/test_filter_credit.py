"""What filters are credited with adds up, and asking partitions first drops no file more and no file less."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tamis.predicate.bind import bind
from tamis.predicate.bound import BoundPredicate, Known
from tamis.sieve.funnel import LAYERS, sift
from tamis.sieve.sieve import Sieve
from tests.making.harness import Table, tables
from tests.making.strategies import predicates
from tests.property.test_runtime_never_wrong import filter_of, joins

EVERYTHING = BoundPredicate(Known(value=True), "true")


@given(st.data(), tables(), st.booleans())
def test_credit_adds_up_and_the_order_of_facts_decides_nothing(
    data: st.DataObject, table: Table, null_safe: bool
) -> None:
    """The layers in reverse ask every filter with all facts at once, the usual order with the cheapest first."""
    filters = tuple(
        filter_of(*data.draw(joins(table)), null_safe=null_safe).bind(table.schema, case_sensitive=True)
        for _ in range(data.draw(st.integers(1, 2)))
    )
    sieve = Sieve(EVERYTHING, table.specs, filters)
    plan = sift(sieve, table.batches).plan
    (layer,) = [layer for layer in plan.stats.layers if layer.layer == "runtime"]
    credited = plan.stats.runtime_filters
    assert sum(one.files for one in credited) == layer.files_before - layer.files_after
    assert sum(one.bytes for one in credited) == layer.bytes_before - layer.bytes_after
    for one in credited:
        assert sum(one.dropped.values()) == one.files
        assert sum(one.dropped_bytes.values()) == one.bytes
        assert one.idle is None or not one.files
    reverse = sift(sieve, table.batches, layers=LAYERS[::-1]).plan
    assert plan.files["path"].to_pylist() == reverse.files["path"].to_pylist()


@given(st.data(), tables())
def test_what_holds_beside_a_filter_is_what_is_certain_without_it(data: st.DataObject, table: Table) -> None:
    """A file of which every row satisfies the WHERE is read without it, also where a join still selects rows."""
    keys, key_types = data.draw(joins(table))
    bound = filter_of(keys, key_types, null_safe=False).bind(table.schema, case_sensitive=True)
    predicate = bind(data.draw(predicates(table.types, table.rows)), table.schema, case_sensitive=True)
    alone = sift(Sieve(predicate, table.specs), table.batches).plan
    together = sift(Sieve(predicate, table.specs, (bound,)), table.batches).plan
    for one, other in zip(alone.outcomes, together.outcomes, strict=True):
        assert (other.holds == (one.certain & other.kept)).all()
        assert not other.certain.any()
