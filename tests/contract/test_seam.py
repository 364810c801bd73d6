"""The seam of formats: a listing gives one plan, whoever reads its units, wherever, and how many at a time."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.errors import ExecutorError
from tamis.formats.listing import Held, sift_here
from tamis.predicate.build import Expression
from tamis.sieve.plan import ScanPlan
from tamis.spark import planning
from tamis.spark.judging import judge_units
from tests.contract.chance import conditions, few, histories
from tests.contract.conftest import Making
from tests.contract.history import ID, State
from tests.contract.maker import Maker
from tests.contract.tables import plain
from tests.contract.truth import opened, planned, untouched
from tests.making.harness import arrow
from tests.making.parts import kept, said, sent, shared_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def assert_same(one: ScanPlan, other: ScanPlan) -> None:
    """The same files in the same order, with the same counts and all that is known of them."""
    assert said(one) == said(other)
    assert one.files.equals(other.files)
    assert kept(one) == kept(other)


@st.composite
def keys(draw: st.DrawFn, state: State) -> list[tamis.RuntimeFilter]:
    """None, or the keys of a join on some column."""
    path = draw(st.sampled_from(sorted(state.types)))
    values = [row[path] for row in state.written.values() if row.get(path) is not None]
    chosen = draw(st.lists(st.sampled_from(values), max_size=3)) if values else []
    found = tamis.RuntimeFilter.of([path], arrow(chosen, state.types[path]))
    return draw(st.sampled_from([[], [found]]))


@few(20)
@given(data=st.data())
def test_parts_that_share_nothing_add_up_to_the_plan(maker: Maker, making: Making, data: st.DataObject) -> None:
    """Units in any order, and what is sent pickled: a reader may lean neither on its process nor on its neighbour."""
    with making(data.draw(histories(maker, least=3, most=7))) as made, untouched(made.folder), maker.small_units():
        table = opened(made)
        for _ in range(3):
            where = Expression(data.draw(conditions(made.last)))
            filters = data.draw(keys(made.last))
            here = table.plan(where, runtime_filters=filters)
            count = len(table.source.list(here.sieve).units)
            order = data.draw(st.permutations(range(count)))
            assert_same(shared_out(table, where, filters, order), here)


EXECUTOR = """
import pickle, sys
sys.modules |= dict.fromkeys(sys.argv[1:])
work, sieve, reader, batches = pickle.load(sys.stdin.buffer)
answers = [pickle.loads(value.as_py()) for answer in work(batches, sieve, reader) for value in answer["answer"]]
wrong = [answer for answer in answers if isinstance(answer, Exception)]
sys.exit(f"{len(answers)} answers, {wrong}" if wrong or not answers else 0)
"""
ABSENT = (
    "deltalake",
    "fastavro",
    "obstore",
    "pyiceberg",
    "pypaimon",
    "rich",
    "sqlglot",
    "typer",
)


def test_what_executors_are_sent_they_can_read_with_arrow_numpy_and_the_decoder(maker: Maker, making: Making) -> None:
    """A cluster has no sqlglot, and no library of a format: an import of one, however far off, ends the plan."""
    with making(plain(maker)) as made, maker.small_units():
        table = opened(made)
        sieve = table.plan("region = 'eu' and row > 2").sieve
        listing = table.source.list(sieve)
        if listing.apart:
            work = pickle.dumps((judge_units, sieve, listing.reader, sent(listing)))
            done = subprocess.run(
                [sys.executable, "-c", EXECUTOR, *ABSENT], input=work, capture_output=True, check=False
            )
            assert done.returncode == 0, done.stderr.decode()


def test_units_are_several_where_metadata_is(maker: Maker, making: Making) -> None:
    """Of one unit alone, the test above would say nothing."""
    with making(plain(maker)) as made, maker.small_units():
        listing = opened(made).source.list(opened(made).plan().sieve)
        assert len(listing.units) > 1 or not listing.apart
        assert listing.files >= opened(made).plan().stats.files


@few(20)
@given(data=st.data())
def test_plan_is_the_same_again_and_with_any_number_of_threads(
    maker: Maker, making: Making, data: st.DataObject
) -> None:
    """A plan that changes between two runs cannot be reviewed, resumed or compared."""
    with making(data.draw(histories(maker, least=2))) as made, maker.small_units():
        table, node = opened(made), data.draw(conditions(made.last))
        first = planned(table, node)
        assert first.verdicts.equals(planned(opened(made), node).verdicts)
        assert_same(planned(pickle.loads(pickle.dumps(table)), node), first)  # noqa: S301 - our own
        for threads in (1, 2, 7):
            again = sift_here(replace(table.source.list(first.sieve), threads=threads), first.sieve)
            assert again.verdicts.equals(first.verdicts)
            assert_same(again, first)


@few(20)
@given(data=st.data())
def test_what_one_listing_has_read_no_other_of_its_job_reads(
    maker: Maker, making: Making, data: st.DataObject
) -> None:
    """A join lists a table for several sets of keys: with all files gone, the second listing must not care."""
    with making(data.draw(histories(maker, least=2))) as made, maker.small_units():
        table, held = opened(made), Held()
        where = Expression(data.draw(conditions(made.last)))
        ids = [row[ID] for row in made.last.written.values()]
        chosen = (ids, sorted(data.draw(st.sets(st.sampled_from(ids)))))
        every, some = (tamis.RuntimeFilter.of("id", pa.array(values, pa.int64())) for values in chosen)
        plans = [table.plan(where, runtime_filters=[one]) for one in (every, some)]
        first = sift_here(table.source.list(plans[0].sieve, held), plans[0].sieve)
        assert first.verdicts.equals(plans[0].verdicts)
        hidden = made.folder.with_name(f"{made.folder.name}-hidden")
        made.folder.rename(hidden)
        try:
            second = sift_here(table.source.list(plans[1].sieve, held), plans[1].sieve)
            assert said(second) == said(plans[1])
            assert second.verdicts.equals(plans[1].verdicts)
        finally:
            hidden.rename(made.folder)


@pytest.mark.engine
def test_executors_of_a_real_spark_make_the_same_plan(maker: Maker, making: Making, spark: SparkSession) -> None:
    """Or the format says that it is planned by one process, and asking for executors is an error."""
    with making(plain(maker)) as made, untouched(made.folder), maker.small_units():
        table = opened(made)
        for where in ("region = 'eu'", "region is null or row > 6", "not (row < 4)"):
            here = table.plan(where, spark=spark, executors="never")
            if not table.source.list(here.sieve).apart:
                with pytest.raises(ExecutorError, match="executors='auto'"):
                    table.plan(where, spark=spark, executors="always")
                continue
            there = table.plan(where, spark=spark, executors="always")
            assert there.stats.notes[-1] == planning.NOTE
            assert_same(there, here)
