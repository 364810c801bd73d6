"""As strict as Spark's parser: what it refuses is refused, and what it accepts means the same to both.

Three verdicts are told apart: of the parser, of the analysis of names and types, and of the rows.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from tamis.errors import TamisError
from tamis.predicate.bound import AllOf, AnyOf, Bound, Unclear
from tamis.predicate.nodes import Node
from tamis.predicate.sql.parse import parse
from tamis.predicate.sql.rendering import render
from tamis.predicate.where import bind_text
from tests.making.odd_rows import SCHEMA, fails, odd_rows, refused_by_spark
from tests.making.odd_texts import by_chance, by_hand

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.engine

CHANCE, SEED = 250, 17
BATCH = 60
NOW = 1_705_312_800_000_000
"""When the texts are planned: 2024-01-15 10:00, in microseconds."""
STRICTER = {
    r".*\b(5 (e5|L|x|AS x|`x`)|\) ?(x|b)|AND|IS|NOTNULL|NOT IN \(2\)|1 DAY)": "the last word names the result of an "
    "expression, and a WHERE has none",
    r"t\.i = 1": "t is what this test calls the rows in Spark",
    r".* (=|>|IN) .*'(foo|a|5\.[05]|0x5|)'\)?": "a text that is none of the column's type: Spark's rows fail",
    r"user = s": "user alone is a function of Spark's: write current_user()",
    r"substring\(s FROM 1, 3\) = 'abc'": "a mix of both forms of substring",
}
"""Texts that Spark accepts and tamis refuses, each with its reason."""
LAXER = {
    r"ts = timestamp 'now Europe/Paris'": "of special words only Spark knows which take a zone",
    r"i = \$\{x\}": "Spark puts a variable's value there, if the session has one",
    r"date_add\(\+,5,dt\) = dt": "signs without a number inside of a function are left to Spark",
    r"interval \(1 day\) = interval 1 day": "so is INTERVAL as a function's name",
}
"""Texts that Spark's parser refuses and tamis leaves to it."""


@dataclass(frozen=True, slots=True)
class Ours:
    """What tamis makes of a text: a refusal, or the condition, and whether part of it is left to Spark."""

    refused: str = ""
    text: str = ""
    """The text, with the clock's functions as literals."""
    node: Node | None = None
    unclear: bool = False
    pruning: bool = False
    """Whether any part is not."""


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """PySpark logs every query that Spark refuses, with its stack: here that is most of them."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    """In a relation that Spark evaluates while it optimizes: no question of these tests starts a job."""
    return odd_rows(spark)


def ours(text: str) -> Ours:
    try:
        bound = bind_text(text, SCHEMA, instant=NOW)
        return Ours(
            text=bound.sql,
            node=parse(bound.sql),
            unclear=any(isinstance(leaf, Unclear) for leaf in leaves(bound.root)),
            pruning=any(not isinstance(leaf, Unclear) for leaf in leaves(bound.root)),
        )
    except TamisError as error:
        return Ours(refused=str(error).splitlines()[0])


def leaves(root: Bound) -> Iterator[Bound]:
    if isinstance(root, (AllOf, AnyOf)):
        for operand in root.operands:
            yield from leaves(operand)
    else:
        yield root


def explained(text: str, reasons: dict[str, str]) -> bool:
    return any(re.fullmatch(reason, text) for reason in reasons)


def differing(rows: DataFrame, accepted: dict[str, Node]) -> list[str]:
    """Texts that are true of other rows than the condition that tamis made of them; if Spark can evaluate them."""
    items = [*accepted.items()]
    if not items:
        return []
    asked = [f"({text}\n) <=> ({render(node)}) AS c{index}" for index, (text, node) in enumerate(items)]
    try:
        found = rows.selectExpr(*asked).collect()
    except PySparkException as error:
        if len(items) > 1:
            half = len(items) // 2
            return differing(rows, dict(items[:half])) + differing(rows, dict(items[half:]))
        (text, node) = items[0]
        return [] if fails(rows, text) else [f"{text!r} is {render(node)}: {str(error).splitlines()[0]}"]
    return [f"{text!r} is {render(node)}" for n, (text, node) in enumerate(items) if not all(row[n] for row in found)]


@pytest.fixture(scope="module")
def judged(rows: DataFrame) -> dict[str, tuple[Ours, str]]:
    """Every odd text, by both."""
    return {text: (ours(text), refused_by_spark(rows, text)) for text in by_hand()}


def test_what_sparks_parser_refuses_is_refused(judged: dict[str, tuple[Ours, str]]) -> None:
    accepted = [text for text, (mine, theirs) in judged.items() if theirs == "parser" and not mine.refused]
    assert [text for text in accepted if not explained(text, LAXER)] == []


def test_what_spark_has_no_types_or_names_for_is_refused_or_left_to_it(judged: dict[str, tuple[Ours, str]]) -> None:
    """A condition that is left to Spark whole prunes nothing, and Spark refuses it when rows are read."""
    analysed = [text for text, (mine, theirs) in judged.items() if theirs and mine.node and mine.pruning]
    # Spark 4.1 has the type time only where a setting allows it.
    assert [text for text in analysed if not re.search(r"\btime '", text)] == []


def test_what_spark_accepts_is_accepted(judged: dict[str, tuple[Ours, str]]) -> None:
    """But for what a WHERE would not take, and for what fails at the first row."""
    refused = [f"{text!r}: {mine.refused}" for text, (mine, theirs) in judged.items()
               if mine.refused and not theirs and not explained(text, STRICTER)]  # fmt: skip
    assert refused == []


def test_reasons_are_still_needed(judged: dict[str, tuple[Ours, str]]) -> None:
    stricter = [text for text, (mine, theirs) in judged.items() if mine.refused and not theirs]
    laxer = [text for text, (mine, theirs) in judged.items() if theirs == "parser" and not mine.refused]
    assert [reason for reason in STRICTER if not any(re.fullmatch(reason, text) for text in stricter)] == []
    assert [reason for reason in LAXER if not any(re.fullmatch(reason, text) for text in laxer)] == []


def test_what_both_accept_is_true_of_the_same_rows(rows: DataFrame, judged: dict[str, tuple[Ours, str]]) -> None:
    """A condition that Spark takes for another would prune files that hold matching rows."""
    both = {mine.text: mine.node for mine, theirs in judged.values() if mine.node is not None and not theirs}
    assert len(both) > 400
    assert wrong(rows, both) == []


def test_texts_made_by_chance_mean_what_they_mean_to_spark(rows: DataFrame) -> None:
    texts = [text for text in dict.fromkeys(by_chance(CHANCE, SEED)) if not re.search("uuid|monoton|rand", text)]
    both = {}
    for text in texts:
        mine = ours(text)
        if mine.node is not None and not (theirs := refused_by_spark(rows, text)):
            both[mine.text] = mine.node
        else:
            assert mine.node is None or mine.unclear or re.search(r"\btime ?'", text), (text, theirs)
    assert len(both) > CHANCE / 10
    assert wrong(rows, both) == []


def wrong(rows: DataFrame, both: dict[str, Node]) -> list[str]:
    items = [*both.items()]
    return [fault for at in range(0, len(items), BATCH) for fault in differing(rows, dict(items[at : at + BATCH]))]
