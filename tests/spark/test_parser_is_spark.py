"""As strict as Spark's parser: what it refuses is refused, and what it accepts means the same to both.

Three verdicts are told apart: of the parser, of the analysis of names and types, and of the rows.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException

from tamis.errors import TamisError
from tamis.predicate.bound import AllOf, AnyOf, Bound, Unclear
from tamis.predicate.nodes import Node
from tamis.predicate.schema import Column, Schema
from tamis.predicate.sql.parse import parse
from tamis.predicate.sql.rendering import render
from tamis.predicate.where import bind_text
from tests.making.odd_texts import by_chance, by_hand

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.engine

CHANCE, SEED = 250, 17
BATCH = 60
NOW = 1_705_312_800_000_000
"""When the texts are planned: 2024-01-15 10:00, in microseconds."""
INT = pa.int32()
TYPES = (
    *(("i", INT), ("l", pa.int64()), ("d", pa.float64()), ("f", pa.float32()), ("s", pa.string()), ("b", pa.bool_())),
    *(("dt", pa.date32()), ("ts", pa.timestamp("us", "UTC")), ("ntz", pa.timestamp("us"))),
    *(("dec", pa.decimal128(9, 2)), ("bin", pa.binary()), ("st", pa.struct([("p", INT)])), ("st.p", INT)),
    *(("arr", pa.list_(INT)), ("m", pa.map_(pa.string(), INT))),
)
SCHEMA = Schema(tuple(Column(id_, tuple(name.split(".")), type_) for id_, (name, type_) in enumerate(TYPES, 1)))
ROWS = """
    (5, 5L, 5D, 5F, 'a', true, date '2024-01-15', timestamp '2024-01-15 00:00:00Z', 1.00, X'1F', 1, 2, 1),
    (5, 1L, 5D, 1F, 'b', false, date '2024-01-16', timestamp '2024-02-15 00:00:00Z', 1.00, X'1E', 1, 0, 2),
    (5, NULL, 5D, 1F, 'b', NULL, date '2024-01-16', timestamp '2024-02-15 00:00:00Z', 1.00, X'1E', 1, 1, 5),
    (1, 1L, double('NaN'), float('NaN'), 'it\\'s', false, date '2024-01-20', timestamp '2024-01-15 10:00:00Z', 5.00,
     X'61', NULL, 1, 1),
    (-128, -5L, -0.0D, 1.1F, 'a%b', NULL, date '1969-12-31', timestamp '1969-12-31 10:00:00Z', -1.00, X'', 2, 5, 1),
    (2, 2L, 2.5D, 2.5F, 'abc', true, date '2024-01-14', timestamp '2030-01-01 00:00:00Z', 1.01, X'0100', 2, 5, 5),
    (-1, 0L, 1e10D, 1e10F, '', false, date '2024-01-10', timestamp '2024-01-14 23:00:00Z', 99.99, X'31', 5, 1, 0),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
"""
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
    values = spark.sql(f"VALUES {ROWS} AS t(i, l, d, f, s, b, dt, ts, dec, bin, p, a, k)")
    return values.selectExpr(
        *("i", "l", "d", "f", "s", "b", "dt", "ts", "ts::timestamp_ntz AS ntz", "dec::decimal(9, 2) AS dec", "bin"),
        "if(p = 5, NULL, named_struct('p', p)) AS st",
        "array(a, 5) AS arr",
        "map('k', k) AS m",
    ).alias("t")


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


def refused_by_spark(rows: DataFrame, text: str) -> str:
    """`parser`, `analysis` or nothing."""
    try:
        rows.where(text)
    except ParseException:
        return "parser"
    except (AnalysisException, Py4JJavaError):
        return "analysis"  # the latter where Spark lacks the words for its error
    except PySparkException as error:
        return "parser" if "INTERVAL" in str(error) or "DECIMAL" in str(error) else "analysis"
    return ""


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


def fails(rows: DataFrame, text: str) -> bool:
    """Whether a row makes Spark fail, by its ANSI rules."""
    try:
        rows.selectExpr(f"({text}\n) AS c").collect()
    except PySparkException:
        return True
    return False


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
