"""Histories by chance, of what a maker's format can do; and conditions about what their tables hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tamis.predicate.nodes import Node
from tests.contract.history import (
    ID,
    ROW,
    Add,
    Append,
    Delete,
    Drop,
    History,
    Rename,
    Repartition,
    Rewrite,
    State,
    Step,
    StepName,
    Update,
)
from tests.contract.maker import Maker
from tests.making.strategies import PartitionField, Row, Types, columns, predicates, rows

__all__ = ["conditions", "few", "histories", "named"]

NAMES: Final = ("a", "b", "c d", "é", "Z")
OWN: Final = {ID: pa.int64(), ROW: pa.int64()}


def few(share: int) -> settings:
    """One of so many of the usual examples. Each writes a table; so an example that fails is shown as it came."""
    return settings(
        max_examples=max(settings.default.max_examples // share, 1),
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
    )


def named(maker: Maker, name: str) -> str:
    """The name without what the format does not allow in it."""
    return "".join("_" if character in maker.forbidden else character for character in name)


@st.composite
def histories(
    draw: DrawFn, maker: Maker, *, types: Sequence[pa.DataType] | None = None, least: int = 0, most: int = 5
) -> History:
    """A table with rows, and so many steps behind it beside the first and the last append."""
    choices = [one for one in maker.types if types is None or one in types]
    drawn = draw(columns(choices, most=3))
    found: Types = {**OWN, **{(named(maker, path[0]), *path[1:]): type_ for path, type_ in drawn.items()}}
    state = State(found, draw(_partitions(maker, found)))
    first, used, steps = state.partition, {one.source[0] for one in state.partition}, []
    kinds = ["append", *draw(st.lists(st.sampled_from(sorted(maker.steps)), min_size=least, max_size=most)), "append"]
    for kind in kinds:
        step = draw(_step(maker, state, kind, used, choices))
        if step is not None:
            steps.append(step)
            state = state.after(step)
            used |= {one.source[0] for one in state.partition}
    return History(found, tuple(steps), first)


@st.composite
def _partitions(draw: DrawFn, maker: Maker, types: Types) -> tuple[PartitionField, ...]:
    """None to two fields, of different columns. The number of a row is none of them: each would have a file."""
    able = {path: found for path, type_ in types.items() if path != ROW and (found := maker.transforms(path, type_))}
    sources = draw(st.lists(st.sampled_from(sorted(able)), max_size=2, unique=True)) if able else []
    return tuple(PartitionField(path, draw(st.sampled_from(able[path]))) for path in sources)


@st.composite
def _step(
    draw: DrawFn, maker: Maker, state: State, kind: StepName, used: set[str], choices: Sequence[pa.DataType]
) -> Step | None:
    """A step of the kind; None if there is nothing to do it with. Columns that partition, or did, stay."""
    free = sorted({path[0] for path in state.types} - used - {ID[0], ROW[0]})
    taken = {path[0].casefold() for path in state.types}
    new = [name for name in (named(maker, one) for one in NAMES) if name.casefold() not in taken]
    ids = sorted({_int(state.written[number][ID]) for number in state.live})
    match kind:
        case "append":
            return Append(draw(_rows(state, least=1)))
        case "delete" if ids:
            return Delete(frozenset(draw(st.lists(st.sampled_from(ids), min_size=1))), draw(st.integers(0, 2)))
        case "update" if ids:
            chosen = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=3, unique=True))
            fresh = draw(_rows(state, least=len(chosen), most=len(chosen)))
            return Update(
                tuple({**row, ID: one} for row, one in zip(fresh, chosen, strict=True)), draw(st.integers(0, 2))
            )
        case "rewrite":
            return Rewrite()
        case "add" if new:
            return Add(draw(st.sampled_from(new)), draw(st.sampled_from(choices)))
        case "rename" if free and new:
            return Rename(draw(st.sampled_from(free)), draw(st.sampled_from(new)))
        case "drop" if free:
            return Drop(draw(st.sampled_from(free)))
        case "repartition":
            return Repartition(draw(_partitions(maker, state.types)))
    return None


@st.composite
def _rows(draw: DrawFn, state: State, *, least: int, most: int = 5) -> tuple[Row, ...]:
    """New rows, each with a number and an id that none had."""
    others = {path: type_ for path, type_ in state.types.items() if path not in OWN}
    found = draw(rows(others, least=least, most=most)) if others else ({},) * least
    first = len(state.written)
    return tuple({ID: 10 * (first + place), ROW: first + place, **row} for place, row in enumerate(found))


def conditions(state: State, *, opaque: bool = True, depth: int = 3) -> SearchStrategy[Node]:
    """Conditions near the values that the state holds, or once held."""
    every = [state.row(number) for number in state.written]
    return predicates(state.types, every, depth=depth, opaque=opaque)


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value
