"""Rows read on a real Spark are those that the history left: at every state, under every condition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import TamisError
from tests.contract.chance import conditions, few, histories
from tests.contract.conftest import Making
from tests.contract.history import ROW, State, arrow_rows
from tests.contract.maker import Maker
from tests.contract.tables import plain
from tests.contract.truth import opened, planned, untouched
from tests.making.oracle import evaluate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.engine

TYPES: Final = (
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(5, 2),
    pa.decimal128(20, 10),
    pa.decimal128(38, 0),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", tz="UTC"),
    pa.string(),
    pa.binary(),
)
"""Types that Spark has, too."""
CONDITIONS: Final = 2


def bag(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Rows in no order, each as often as it is there; NaN equals NaN, and -0.0 is not 0.0."""
    return Counter(map(repr, rows))


def read(frame: DataFrame) -> Counter[str]:
    return bag(frame.toArrow().to_pylist())


def expected(state: State, numbers: Iterable[int]) -> Counter[str]:
    """These rows, as Arrow gives them back."""
    return bag(arrow_rows([state.row(number) for number in numbers], state.types).to_pylist())


@few(66)
@given(data=st.data())
def test_every_state_reads_as_its_rows(
    maker: Maker, making: Making, spark: SparkSession, data: st.DataObject
) -> None:
    """Deletes applied, columns found under their new names, old states with their old ones, rows filtered exactly."""
    with making(data.draw(histories(maker, types=TYPES, least=4, most=6))) as made, untouched(made.folder):
        for steps, at in made.states:
            state = made.history.states[steps]
            frame = opened(made, **at).plan().read(spark)
            assert set(frame.columns) == {path[0] for path in state.types}
            assert read(frame) == expected(state, state.live), (steps, made.history)
        state, table = made.last, opened(made)
        for _ in range(CONDITIONS):
            node = data.draw(conditions(state, opaque=False))
            matching = [number for number, row in state.rows.items() if evaluate(node, row, state.types) is True]
            assert read(planned(table, node).read(spark)) == expected(state, matching), (node, made.history)


def test_chosen_columns_and_what_the_format_offers_beside(maker: Maker, making: Making, spark: SparkSession) -> None:
    """Rows are where the file says that they are, also where others before them are deleted."""
    with making(plain(maker)) as made, untouched(made.folder):
        plan = opened(made).plan()
        wanted = maker.metadata_columns
        frame = plan.read(spark, columns=["row"], metadata_columns=wanted)
        assert frame.columns == ["row", *wanted]
        rows = frame.toArrow().to_pylist()
        assert sorted(row["row"] for row in rows) == sorted(made.last.live)
        for row in rows:
            if "_file" in wanted:
                assert row["row"] in made.rows_in(row["_file"])
                if "_pos" in wanted:
                    assert made.rows_in(row["_file"])[row["_pos"]] == row["row"]
        for columns, beside in ((["rwo"], ()), (["row"], ("_nothing",))):
            with pytest.raises((TamisError, ValueError), match=r"rwo|_nothing"):
                plan.read(spark, columns=columns, metadata_columns=beside)


def test_join_reads_the_rows_that_match(maker: Maker, making: Making, spark: SparkSession) -> None:
    """The keys of the other side prune, and lose nothing."""
    with making(plain(maker)) as made, untouched(made.folder):
        keys = [0, 5, 7, 900]
        other = spark.createDataFrame(pa.table({"row": pa.array(keys, pa.int64()), "tag": ["x"] * len(keys)}))
        found = opened(made).plan_join(other, on="row").read().toArrow()
        assert sorted(found["row"].to_pylist()) == sorted(made.last.live & set(keys))
        assert {ROW[0], "tag", "region", "id"} == set(found.column_names)
