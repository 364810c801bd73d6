"""The same input gives the same plan: file order, verdicts, reasons and output."""

from __future__ import annotations

import json
import pickle
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tamis.predicate.bind import bind
from tamis.predicate.keys import has_order
from tamis.sieve.funnel import sift
from tamis.sieve.join.runtime import RuntimeFilter
from tamis.sieve.merging import Part, merge
from tamis.sieve.plan import ScanPlan, Unread
from tamis.sieve.sieve import Sieve
from tests.making.harness import Table, tables
from tests.making.strategies import predicates


@given(st.data(), tables())
def test_planning_again_gives_the_same_plan(data: st.DataObject, table: Table) -> None:
    """A plan that changes between two runs cannot be reviewed, resumed or compared."""
    node = data.draw(predicates(table.types, table.rows))
    first, second = (
        sift(Sieve(bind(node, table.schema, case_sensitive=True), table.specs), table.batches).plan for _ in range(2)
    )
    assert first.files.equals(second.files)
    assert first.verdicts.equals(second.verdicts)
    assert untimed(first) == untimed(second)


@given(st.data(), tables())
def test_files_keep_the_order_of_the_table(data: st.DataObject, table: Table) -> None:
    """Kept files stand as the metadata lists them, whichever layer looked at them when."""
    node = data.draw(predicates(table.types, table.rows))
    plan = sift(Sieve(bind(node, table.schema, case_sensitive=True), table.specs), table.batches).plan
    listed = [path for batch in table.batches for path in batch.path.to_pylist()]
    assert plan.verdicts["path"].to_pylist() == listed
    kept = set(plan.files["path"].to_pylist())
    assert plan.files["path"].to_pylist() == [path for path in listed if path in kept]


def untimed(plan: ScanPlan) -> dict[str, object]:
    """What explain's JSON says, but for how long it took."""
    document = json.loads(plan.explain("json"))
    document["stats"].pop("read_seconds")
    for layer in document["stats"]["layers"]:
        layer.pop("seconds")
    return dict(document)


@given(st.data(), tables())
def test_plans_of_parts_merge_to_the_plan_of_all(data: st.DataObject, table: Table) -> None:
    """Executors see a part of the table each: their kept files and tallies are all that comes back."""
    node = data.draw(predicates(table.types, table.rows))
    keys = data.draw(st.booleans(), "with keys")
    path, type_ = next(iter(table.types.items()))
    filters = () if not keys or not has_order(type_) else (RuntimeFilter.of_range(path, None, None),)
    sieve = Sieve(
        bind(node, table.schema, case_sensitive=True),
        table.specs,
        tuple(one.bind(table.schema, case_sensitive=True) for one in filters),
    )
    unread = [Unread(7, 3, 300), Unread(None, 2)]
    cuts = data.draw(st.lists(st.integers(0, len(table.batches)), max_size=3).map(sorted), "cuts")
    shares = [table.batches[begin:end] for begin, end in pairwise([0, *cuts, len(table.batches)])]
    parts = [pickle.loads(pickle.dumps(Part.of(sift(sieve, share)))) for share in shares]  # noqa: S301 - our own
    merged, whole = merge(sieve, parts, unread), sift(sieve, table.batches, unread=unread).plan
    assert merged.files.equals(whole.files)
    assert untimed(merged) == untimed(whole)
