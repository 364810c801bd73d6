"""Must prune: what a partition or a statistic rules out is dropped. A format that states no facts fails here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Final
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import types as pt

import tamis
from tamis.predicate.nodes import Compare, IsNull, Literal, Not, Operator, Ref
from tests.contract.chance import few, histories
from tests.contract.conftest import Making
from tests.contract.history import State
from tests.contract.maker import Maker
from tests.contract.tables import REGION, table_of
from tests.contract.truth import files_of, opened, planned
from tests.making.oracle import Path, order, read
from tests.making.strategies import PartitionField, Types

SHORT: Final = 8
"""Characters, or bytes, that no writer cuts off in a bound."""
OPERATORS: Final[tuple[Operator, ...]] = ("=", "<", "<=", ">", ">=")
CONDITIONS: Final = 8
ABSENT: Final = object()


def dropping(plan: tamis.TablePlan) -> set[str]:
    """The layers that dropped a file."""
    return {layer.layer for layer in plan.stats.layers if layer.files_after < layer.files_before}


def test_partition_that_cannot_match_is_dropped(maker: Maker, making: Making) -> None:
    """By the partition alone, and before a statistic is looked at."""
    if "identity" not in maker.transforms(REGION, pa.string()):
        pytest.skip("the format has no partitions")
    rows = [{REGION: region} for region in ("eu", "us", None)]
    history = table_of({REGION: pa.string()}, rows, rows, partition=(PartitionField(REGION, "identity"),))
    with making(history) as made:
        table = opened(made)
        files = files_of(made, table)
        assert len(files) == 6
        for where, wanted in (("region = 'eu'", "eu"), ("region is null", None), ("region > 'eu'", "us")):
            plan = table.plan(where)
            kept = [number for path in plan.files["path"].to_pylist() for number in files[path]]
            assert [made.last.written[number][REGION] for number in kept] == [wanted] * 2, where
            assert set(plan.files["verdict"].to_pylist()) == {"all"}
            assert dropping(plan) <= {"manifest", "partition"}


def test_every_type_is_pruned_by_its_bounds(maker: Maker, making: Making) -> None:
    """Two files, one of lower and one of higher values: each is dropped where only the other can match."""
    named = {(f"c{place}",): type_ for place, type_ in enumerate(maker.types)}
    types: Types = {path: type_ for path, type_ in named.items() if maker.bounded(path, type_)}
    if not types:
        pytest.skip("no file is dropped alone by its values")
    both = [{path: low_and_high(type_)[place] for path, type_ in types.items()} for place in (0, 1)]
    with making(table_of(types, both[:1], both[1:])) as made:
        table = opened(made)
        files = {made.rows_in(path)[0]: path for path in files_of(made, table)}
        for path, type_ in types.items():
            for number, row in enumerate(both):
                plan = planned(table, Compare("=", Ref(path), Literal(row[path], type_)))
                assert plan.files["path"].to_pylist() == [files[number]], (type_, number)
                assert dropping(plan) == {"stats"}


def low_and_high(type_: pa.DataType) -> tuple[object, object]:
    """Two values of a type, the first below the other."""
    if pt.is_timestamp(type_):
        return tuple(datetime(year, 2, 3, tzinfo=UTC if type_.tz else None) for year in (1969, 2024))  # type: ignore[return-value]
    if pt.is_fixed_size_binary(type_):
        return b"a" * type_.byte_width, b"\xff" * type_.byte_width
    known: dict[object, tuple[object, object]] = {
        pt.is_boolean: (False, True),
        pt.is_integer: (-7, 7),
        pt.is_floating: (-1.5, 2.5),
        pt.is_decimal: (Decimal(-1), Decimal(2)),
        pt.is_date: (date(1969, 2, 3), date(2024, 2, 3)),
        pt.is_time: (time(1), time(23)),
        pt.is_string: ("a", "\U0001f600"),
        pt.is_binary: (b"a", b"\xff"),
        lambda one: one == pa.uuid(): (UUID(int=1), UUID(int=2)),
    }
    return next(values for holds, values in known.items() if callable(holds) and holds(type_))


def test_counts_of_nulls_decide(maker: Maker, making: Making) -> None:
    """IS NULL drops a file without nulls, and takes one of nulls alone whole; NOT of it the other way round."""
    n = ("n",)
    if not maker.bounded(n, pa.int64()):
        pytest.skip("no file is dropped alone by its values")
    with making(table_of({n: pa.int64()}, [{n: 1}, {n: 2}], [{n: None}, {n: None}], [{n: 1}, {n: None}])) as made:
        table = opened(made)
        files = {tuple(made.rows_in(path)): path for path in files_of(made, table)}
        full, empty, mixed = files[0, 1], files[2, 3], files[4, 5]
        for node, whole in ((IsNull(Ref(n)), empty), (Not(IsNull(Ref(n))), full)):
            found = planned(table, node).files
            verdicts = dict(zip(found["path"].to_pylist(), found["verdict"].to_pylist(), strict=True))
            assert verdicts == {whole: "all", mixed: "some"}


@few(20)
@given(data=st.data())
def test_what_true_bounds_rule_out_is_dropped(maker: Maker, making: Making, data: st.DataObject) -> None:
    """Whatever the history: a comparison that no value in a file can satisfy drops it."""
    with making(data.draw(histories(maker))) as made:
        state, table = made.last, opened(made)
        files = files_of(made, table)
        for _ in range(CONDITIONS):
            path, known = data.draw(st.sampled_from(bounded(maker, state)))
            operator: Operator = data.draw(st.sampled_from(OPERATORS))
            literal = data.draw(st.sampled_from(known))
            plan = planned(table, Compare(operator, Ref(path), Literal(literal, state.types[path])))
            kept = set(plan.files["path"].to_pylist())
            for name, numbers in files.items():
                rows = [state.written[number] for number in numbers]
                values = [row.get(path, ABSENT) for row in rows]
                if ABSENT in values or (len(path) > 1 and not any(value is not None for value in values)):
                    continue  # no column, no bounds; and writers disagree on counts of nulls inside structs
                if ruled_out(operator, values, literal, state.types[path]):
                    assert name not in kept, (path, operator, literal, rows, made.history)


def bounded(maker: Maker, state: State) -> list[tuple[Path, list[object]]]:
    """Columns that have exact bounds, and the values that were ever in them. Of floats, NaN may lie outside."""
    exact = {path: type_ for path, type_ in state.types.items() if maker.exact(type_) and not pt.is_floating(type_)}
    able = {path for path, type_ in exact.items() if maker.bounded(path, type_)}
    found = {path: [row[path] for row in state.written.values() if row.get(path) is not None] for path in able}
    return [(path, found[path]) for path in sorted(able) if found[path]]


def ruled_out(operator: Operator, values: Sequence[object], literal: object, type_: pa.DataType) -> bool:
    """Whether the least and the greatest of the values, or that there are none, tell that nothing matches."""
    there = [value for value in values if value is not None]
    if any(len(value) > SHORT for value in there if isinstance(value, str | bytes)):
        return False
    if not there:
        return True
    sides = [order(read(value, type_), read(literal, type_)) for value in there]
    least, greatest = min(sides), max(sides)
    return {
        "=": least > 0 or greatest < 0,
        "<": least >= 0,
        "<=": least > 0,
        ">": greatest <= 0,
        ">=": greatest < 0,
    }[operator]
