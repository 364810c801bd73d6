"""Conditions as programs build them: very deep, very long, and with one part in many places."""

import pickle
import sys
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.errors import BindError, ParseError
from tamis.predicate.bind import bind
from tamis.predicate.bound import AllOf, BoundPredicate, Known, Leaf
from tamis.predicate.build import MAX_CALLS, Expression, col
from tamis.predicate.nodes import MAX_NESTING, MAX_SIZE, And, Compare, Literal, Node, Not, Or, Ref, Truth
from tamis.predicate.schema import Schema
from tamis.predicate.simplify import MAX_LEVELS
from tamis.predicate.sql.parse import parse
from tamis.predicate.sql.rendering import MAX_TEXT, render
from tamis.predicate.values import ValueSet
from tamis.sieve.domain import ColumnStats, Facts, stats_domain
from tamis.sieve.judge import judge

SCHEMA = Schema.of(x=pa.int32(), y=pa.int32(), s=pa.string())
CHAIN = 10_000
DEEP = 2_000


def bound(condition: Expression | Node) -> BoundPredicate:
    return bind(condition.node if isinstance(condition, Expression) else condition, SCHEMA)


def facts(**values: list[int | None]) -> Facts:
    """A file for each place of the lists, which holds that one row."""
    count = len(next(iter(values.values())))
    found = Facts(count, {})
    for name, listed in values.items():
        column = SCHEMA.find((name,))
        array = pa.array(listed, pa.int32())
        nulls = pa.array([int(value is None) for value in listed], pa.int64())
        stats = ColumnStats(array, array, nulls, None, pa.array([1] * count, pa.int64()))
        found.domains[column.id] = stats_domain(column, stats, count)
    return found


def alternating(levels: int) -> Expression:
    condition = col("x") == 0
    for level in range(levels // 2):
        condition = (condition | (col("x") == level)) & (col("y") != level)
    return condition


def pickled(value: Any) -> Any:  # noqa: ANN401 - whatever it is given
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own bytes


def doubling(levels: int) -> Expression:
    """Each level holds the one below twice."""
    condition = col("x") == 0
    for number in range(1, levels + 1):
        condition = (condition & (col("x") != number)) | (condition & (col("y") != number))
    return condition


@pytest.mark.parametrize("join", [Expression.__and__, Expression.__or__])
def test_long_chain_is_one_flat_condition(join: Callable[..., Expression]) -> None:
    """A loop that joins one comparison after the other is how programs build conditions."""
    condition: Expression = col("x") != -1
    for number in range(CHAIN):
        condition = join(condition, col("x") != number)
    node = condition.node
    assert isinstance(node, And | Or)
    assert len(node.operands) == CHAIN + 1
    root = bound(condition).root
    assert isinstance(root, Leaf)
    listed = ValueSet.of_keys(range(-1, CHAIN)).complement() if isinstance(node, And) else ValueSet.everything()
    assert root.outer == listed.without_null()
    assert len(root.text) < MAX_TEXT + 100


def test_chain_that_grows_at_its_left_is_flat_in_the_order_written() -> None:
    condition: Expression = col("x") == 0
    for number in range(1, 5):
        condition = (col("x") == number) | condition
    assert str(condition) == "x = 4 OR x = 3 OR x = 2 OR x = 1 OR x = 0"
    assert str(condition & (col("y") == 1)) == "(x = 4 OR x = 3 OR x = 2 OR x = 1 OR x = 0) AND y = 1"
    assert str((col("y") == 1) | condition) == "y = 1 OR x = 4 OR x = 3 OR x = 2 OR x = 1 OR x = 0"


def test_condition_may_be_extended_in_two_ways() -> None:
    base = (col("x") == 0) | (col("x") == 1)
    one, two = base | (col("x") == 2), base | (col("x") == 3)
    assert str(base) == "x = 0 OR x = 1"
    assert (str(one), str(two)) == ("x = 0 OR x = 1 OR x = 2", "x = 0 OR x = 1 OR x = 3")


def test_thousands_of_levels_are_built_bound_rendered_and_pickled() -> None:
    condition = alternating(DEEP)
    found = bound(condition)
    assert found.sql == str(condition)
    assert parse(found.sql) == condition.node
    again = pickled(condition)
    assert again.node == condition.node
    assert hash(again.node) == hash(condition.node)
    assert repr(again.node) == repr(condition.node)
    assert len(repr(condition)) < MAX_TEXT + 100
    assert pickled(found) == found


def test_what_lies_too_deep_is_left_to_spark_and_noted_and_the_rest_still_prunes() -> None:
    found = bound(alternating(DEEP))
    assert isinstance(found.root, AllOf)
    assert found.root.height <= MAX_LEVELS
    assert any(f"deeper than {MAX_LEVELS} levels" in note for note in found.notes)
    # y != 999 stands at the top; x = 3 OR … AND y != 3 lies far below.
    verdicts = judge(found.root, facts(x=[3, 3, 3], y=[999, -5, 3]))
    assert verdicts.possible.tolist() == [False, True, True]
    assert not verdicts.certain[1:].any()


@pytest.mark.parametrize("levels", [2, 20, MAX_LEVELS - 2])
def test_what_is_not_too_deep_is_judged_to_the_last_level(levels: int) -> None:
    condition = alternating(levels)
    found = bound(condition)
    assert not found.notes
    rows = [(x, y) for x in range(-1, levels // 2 + 1) for y in range(-1, levels // 2 + 1)]
    verdicts = judge(found.root, facts(x=[x for x, _ in rows], y=[y for _, y in rows]))

    def matches(x: int, y: int) -> bool:
        answer = x == 0
        for level in range(levels // 2):
            answer = (answer or x == level) and y != level
        return answer

    assert verdicts.possible.tolist() == verdicts.certain.tolist() == [matches(x, y) for x, y in rows]


def test_judge_leaves_most_of_the_stack_to_its_caller() -> None:
    """Notebooks and servers stand deep in the stack already."""
    root, known = bound(alternating(DEEP)).root, facts(x=[1], y=[2])
    depth, frame = 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    before = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(depth + 400)
        judge(root, known)
        pickle.dumps(root)
    finally:
        sys.setrecursionlimit(before)


def test_nesting_beyond_the_limit_is_refused_alike_in_python_and_in_text() -> None:
    with pytest.raises(BindError, match=f"more than {MAX_NESTING:,} deep"):
        alternating(MAX_NESTING + 2)
    with pytest.raises(BindError, match=f"more than {MAX_NESTING:,} deep"):
        reduce(lambda condition, _: ~condition, range(MAX_NESTING + 1), col("x") == 0)
    assert parse("not " * (MAX_NESTING - 1) + "x = 0") == parse("not " * (MAX_NESTING - 1) + "(x = 0)")
    with pytest.raises(ParseError, match=f"more than {MAX_NESTING:,} deep"):
        parse("not " * MAX_NESTING + "x = 0")


def test_condition_that_doubles_in_a_loop_is_refused_before_it_is_put_together() -> None:
    with pytest.raises(BindError, match=f"the most is {MAX_SIZE:,}"):
        doubling(64)


def test_condition_in_many_places_is_bound_once() -> None:
    """A thousand places, ten levels: the result may be opaque, but never wrong, and comes at once."""
    verdicts = judge(bound(doubling(10)).root, facts(x=[0, 1], y=[5, 5]))
    assert verdicts.possible[0]
    assert not verdicts.certain[1]


def test_functions_nested_beyond_reason_are_refused() -> None:
    with pytest.raises(BindError, match=f"more than {MAX_CALLS} deep"):
        reduce(lambda term, _: term.left(3), range(MAX_CALLS + 1), col("s"))


# -- IS UNKNOWN and its like ----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, True, False])
@pytest.mark.parametrize("negated", [False, True])
def test_truth_of_truth_binds_in_linear_time(value: bool | None, negated: bool) -> None:
    """Two questions at each level, each of two at the next, were 2**16 at sixteen levels."""
    node: Node = Compare("=", Ref(("x",)), Literal(1, pa.int32()))
    for _ in range(DEEP):
        node = Not(Truth(node, value)) if negated else Truth(node, value)
    found = bound(node)
    assert isinstance(found.root, Known | Leaf)
    x = [0, 1, None]
    answers: list[bool | None] = [False, True, None]
    for _ in range(DEEP):
        answers = [(answer is value) is not negated for answer in answers]
    verdicts = judge(found.root, facts(x=x))
    assert verdicts.possible.tolist() == verdicts.certain.tolist() == answers


def test_unknown_of_what_is_never_unknown_is_known() -> None:
    for sql in (
        "(x IS NULL) IS UNKNOWN",
        "((x = 1) IS TRUE AND y <=> 2) IS UNKNOWN",
        "(NOT (x IS NOT NULL)) IS UNKNOWN",
    ):
        root = bind(parse(sql), SCHEMA).root
        assert isinstance(root, Known)
        assert not root.value
    root = bind(parse("(x IS NULL OR true) IS NOT UNKNOWN"), SCHEMA).root
    assert isinstance(root, Known)
    assert root.value


def test_columns_under_what_is_never_unknown_must_exist_all_the_same() -> None:
    with pytest.raises(BindError, match="no column nope"):
        bind(parse("(nope IS NULL) IS UNKNOWN"), SCHEMA)


@pytest.mark.parametrize("levels", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("word", ["AND", "OR"])
def test_unknown_mixed_with_other_columns_is_judged_as_rows_are(levels: int, word: str) -> None:
    sql = "x = 1"
    for level in range(levels):
        sql = f"(({sql}) IS UNKNOWN {word} y {'=' if level % 2 else '!='} {level})"
    root = bind(parse(sql), SCHEMA).root
    rows = [(x, y) for x in (0, 1, None) for y in (*range(-1, levels + 1), None)]
    verdicts = judge(root, facts(x=[x for x, _ in rows], y=[y for _, y in rows]))
    expected = [_unknown(levels, word, x, y) is True for x, y in rows]
    assert verdicts.possible.tolist() == verdicts.certain.tolist() == expected


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_unknown_at_forty_levels_is_never_wrong(word: str) -> None:
    sql, levels = "x = 1", 40
    for level in range(levels):
        sql = f"(({sql}) IS UNKNOWN {word} y {'=' if level % 2 else '!='} {level})"
    found = bind(parse(f"x < 7 AND {sql}"), SCHEMA)
    rows = [(x, y) for x in (0, 1, None, 7) for y in (-1, 0, 1, 38, 39, None)]
    verdicts = judge(found.root, facts(x=[x for x, _ in rows], y=[y for _, y in rows]))
    matches = np.array([x is not None and x < 7 and _unknown(levels, word, x, y) is True for x, y in rows])
    assert not (matches & ~verdicts.possible).any()
    assert not (verdicts.certain & ~matches).any()
    assert not verdicts.possible[[x in {None, 7} for x, _ in rows]].any()


def test_unknown_that_multiplies_is_left_to_spark_and_noted() -> None:
    """What cannot be merged into sets of one column doubles at every level."""
    sql = "x = 1"
    for level in range(40):
        sql = f"(({sql}) IS UNKNOWN AND hash(y) % {level + 2} = 0)"
    found = bind(parse(f"x < 7 AND {sql}"), SCHEMA)
    assert any("left to Spark" in note for note in found.notes)
    assert isinstance(found.root, AllOf)
    assert found.root.size < 5000
    assert judge(found.root, facts(x=[1, 7])).possible.tolist() == [True, False]


def _unknown(levels: int, word: str, x: int | None, y: int | None) -> bool | None:
    answer = None if x is None else x == 1
    for level in range(levels):
        side = None if y is None else (y == level) is bool(level % 2)
        unknown = answer is None
        answer = (side if unknown else False) if word == "AND" else True if unknown else side
    return answer


def test_long_text_of_an_opaque_part_is_cut_for_people_and_whole_for_spark() -> None:
    listed = ", ".join(map(str, range(5000)))
    found = bind(parse(f"x + 1 IN ({listed}) AND y IN ({listed})"), SCHEMA)
    assert isinstance(found.root, AllOf)
    assert all(len(part.text) < MAX_TEXT + 100 for part in (found.root, *found.root.operands))
    assert listed in found.sql


def test_nodes_tell_apart_what_differs() -> None:
    a, b = parse("x = 1"), parse("y = 1")
    different = [
        And((a, b)),
        And((b, a)),
        Or((a, b)),
        And((a, And((b, a)))),
        Not(a),
        Truth(a, None),
        Truth(a, False),
        a,
    ]
    for place, one in enumerate(different):
        assert [one == other for other in different] == [place == other for other in range(len(different))]
    assert repr(And((a,))) == f"And(operands=({a!r},))"
    assert repr(Truth(Not(a), None)) == f"Truth(operand=Not(operand={a!r}), value=None)"
    assert render(pickled(And((a, Or((b, Not(a))), b)))) == "x = 1 AND (y = 1 OR NOT (x = 1)) AND y = 1"
