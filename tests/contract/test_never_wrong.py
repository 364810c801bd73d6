"""Never lose a row, never take too much: at every state of tables with any history."""

from __future__ import annotations

from hypothesis import given, note
from hypothesis import strategies as st

from tests.contract.chance import conditions, few, histories
from tests.contract.conftest import Making
from tests.contract.maker import Maker
from tests.contract.truth import check_verdicts, files_of, opened, planned, untouched

CONDITIONS = 6


@few(20)
@given(data=st.data())
def test_verdicts_agree_with_every_row(maker: Maker, making: Making, data: st.DataObject) -> None:
    """Wrong pruning is silent data loss; a wrong ALL deletes rows that do not match."""
    with making(data.draw(histories(maker))) as made, untouched(made.folder):
        table = opened(made)
        files = files_of(made, table)
        for _ in range(CONDITIONS):
            node = data.draw(conditions(made.last))
            note(str(node))
            check_verdicts(made, made.last, files, planned(table, node), node)


@few(20)
@given(data=st.data())
def test_every_state_has_its_rows_and_no_others(maker: Maker, making: Making, data: st.DataObject) -> None:
    """Each live row lies in one file of the plan; and a condition on an old state is judged by its own columns."""
    with making(data.draw(histories(maker, least=2))) as made, untouched(made.folder):
        for steps, at in (*made.states, (len(made.history.steps), {})):
            state, table = made.history.states[steps], opened(made, **at)
            files = files_of(made, table)
            held = [number for numbers in files.values() for number in numbers]
            assert state.live <= set(held), (steps, made.history)
            assert len(held) == len(set(held)), (steps, made.history)
            assert {one.path: one.type for one in table.schema.columns if one.path in state.types} == state.types
            node = data.draw(conditions(state))
            check_verdicts(made, state, files, planned(table, node), node)
