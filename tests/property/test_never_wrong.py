"""Never wrong: verdicts against a row-by-row oracle, on random tables and random predicates.

Two of the laws: a file that holds a matching row is never dropped, and ALL is said only if every row matches. A
sieve that keeps everything passes here; test_must_prune.py is its other half.
"""

from __future__ import annotations

from hypothesis import given, note, settings
from hypothesis import strategies as st

from tamis.predicate.bind import bind
from tamis.sieve.funnel import LAYERS, Layer, sift
from tamis.sieve.join.runtime import RuntimeFilter
from tamis.sieve.sieve import Sieve
from tests.making.harness import Table, arrow, tables
from tests.making.oracle import evaluate
from tests.making.strategies import predicates
from tests.making.told_rules import told

MORE = settings(max_examples=4 * settings.default.max_examples)
"""This is the law that loses data when it breaks, and most of its ways to break are rare among thirty types."""
ZONES = st.sampled_from(["UTC", "Europe/Paris", "America/St_Johns", "Asia/Kolkata"])


@MORE
@given(st.data(), tables(), ZONES)
def test_verdicts_agree_with_every_row(data: st.DataObject, table: Table, zone: str) -> None:
    """Wrong pruning is silent data loss; a wrong ALL deletes rows that do not match."""
    node = data.draw(predicates(table.types, table.rows))
    ask = data.draw(st.sampled_from([None, told]), label="rules")
    bound = bind(node, table.schema, case_sensitive=True, time_zone=zone, ask=ask)
    note(str(bound.root))
    plan = sift(Sieve(bound, table.specs), table.batches).plan
    for file, verdict in zip(table.files, plan.verdicts.to_pylist(), strict=True):
        answers = [evaluate(node, row, table.types, zone) for row in file.rows]
        if any(answer is True for answer in answers):
            assert verdict["verdict"] != "none", (verdict, file)
        if verdict["verdict"] == "all":
            assert all(answer is True for answer in answers), (verdict, file)


@given(st.data(), tables(), st.permutations(LAYERS))
def test_the_order_of_layers_changes_nothing_but_the_layer_credited(
    data: st.DataObject, table: Table, order: list[Layer]
) -> None:
    node = data.draw(predicates(table.types, table.rows))
    path = data.draw(st.sampled_from(sorted(table.types)))
    keys = [row[path] for row in table.rows if row[path] is not None]
    runtime = RuntimeFilter.of([path], arrow(keys, table.types[path])).bind(table.schema, case_sensitive=True)
    sieve = Sieve(bind(node, table.schema, case_sensitive=True), table.specs, (runtime,))
    usual, other = sift(sieve, table.batches).plan, sift(sieve, table.batches, layers=order).plan
    assert usual.verdicts["verdict"].to_pylist() == other.verdicts["verdict"].to_pylist()


@given(st.data(), tables())
def test_knowing_less_never_drops_more(data: st.DataObject, table: Table) -> None:
    """An absent statistic widens a domain: without any, every verdict is the same or weaker."""
    node = data.draw(predicates(table.types, table.rows))
    sieve = Sieve(bind(node, table.schema, case_sensitive=True), table.specs)
    full = sift(sieve, table.batches).plan.verdicts["verdict"].to_pylist()
    by_keys = sift(sieve, table.batches, layers=LAYERS[:2]).plan.verdicts["verdict"].to_pylist()
    for file, known, unknown in zip(table.files, full, by_keys, strict=True):
        assert unknown in {"some", known} or not file.rows
