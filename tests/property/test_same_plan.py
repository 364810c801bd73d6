"""The same input gives the same plan: file order, verdicts, reasons and output."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tamis.predicate.bind import bind
from tamis.sieve.funnel import sift
from tamis.sieve.outcome import Sieve
from tamis.sieve.plan import ScanPlan
from tests.harness import Table, tables
from tests.strategies import predicates


@given(st.data(), tables())
def test_planning_again_gives_the_same_plan(data: st.DataObject, table: Table) -> None:
    """A plan that changes between two runs cannot be reviewed, resumed or compared."""
    node = data.draw(predicates(table.types, table.rows))
    first, second = (
        sift(Sieve(bind(node, table.schema, case_sensitive=True), table.specs), table.batches) for _ in range(2)
    )
    assert first.files.equals(second.files)
    assert first.verdicts.equals(second.verdicts)
    assert untimed(first) == untimed(second)


@given(st.data(), tables())
def test_files_keep_the_order_of_the_table(data: st.DataObject, table: Table) -> None:
    """Kept files stand as the metadata lists them, whichever layer looked at them when."""
    node = data.draw(predicates(table.types, table.rows))
    plan = sift(Sieve(bind(node, table.schema, case_sensitive=True), table.specs), table.batches)
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
