# ruff: noqa: S311 - chance for tests
"""Rows that the statistics of files mislead about, and conditions that cut through them.

NaN, zeros of both signs, infinities, NULL structs, dates of the old calendar; few values, so that files have
dictionaries of them. The same seed makes the same rows and conditions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

__all__ = ["SCHEMA", "SQL", "condition", "rows"]

NAN: Final = float("nan")
INF: Final = float("inf")
FLOATS: Final = (NAN, NAN, -0.0, 0.0, 1.0, 1.5, -2.5, INF, -INF, None, 3.0)
WORDS: Final = ("", "a", "ab", "é", "\U0001f600", "\uffff", "Z", None)
DAYS: Final = (date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(1500, 2, 28), date(1970, 1, 1), None)
TIMES: Final = (
    datetime(1, 1, 1),
    datetime(1582, 10, 4, 1, 2, 3, 4),
    datetime(1899, 12, 31, 23, 59, 59, 999999),
    datetime(2024, 2, 29, 12),
    None,
)

INNER: Final = pa.struct([("x", pa.float32()), ("w", pa.string()), ("t", pa.date32())])
STRUCT: Final = pa.struct([("p", pa.float64()), ("q", pa.int32()), ("r", INNER)])
SCHEMA: Final = pa.schema(
    [
        ("id", pa.int32()),
        ("n", pa.int64()),
        ("d", pa.float64()),
        ("f", pa.float32()),
        ("s", pa.string()),
        ("b", pa.binary()),
        ("c", pa.decimal128(9, 2)),
        ("wide", pa.decimal128(25, 3)),
        ("t", pa.date32()),
        ("ok", pa.bool_()),
        ("st", STRUCT),
        ("li", pa.list_(pa.float64())),
        ("at", pa.timestamp("us", tz="UTC")),
        ("naive", pa.timestamp("us")),
    ]
)
SQL: Final = (
    "id int, n bigint, d double, f float, s string, b binary, c decimal(9, 2), wide decimal(25, 3), "
    "t date, ok boolean, st struct<p: double, q: int, r: struct<x: float, w: string, t: date>>, li array<double>, "
    "at timestamp, naive timestamp_ntz"
)
TIMED: Final = ("at", "naive")
"""The last columns: Spark does not read times from ORC files."""


def rows(seed: int, count: int, *, times: bool = True) -> pa.Table:
    """So many rows; of each column a few of the values, so that files differ in what they hold."""
    chance = random.Random(seed)

    def few(pool: Sequence[Any]) -> Sequence[Any]:
        return chance.sample(pool, chance.randint(2, 4))

    d, f, p, x, s, w, t, u, at = map(few, (FLOATS, FLOATS, FLOATS, FLOATS, WORDS, WORDS, DAYS, DAYS, TIMES))
    numbers = few((-(2**31), -1, 0, 1, 7, 2**31 - 1, None))
    pick = chance.choice

    def inner() -> dict[str, Any] | None:
        return pick((None, {"x": pick(x), "w": pick(w), "t": pick(u)}))

    def row(place: int) -> dict[str, Any]:
        word, time = pick(s), pick(at)
        return {
            "id": place,
            "n": pick((None, -(2**63), 2**63 - 1, place % 3)),
            "d": pick(d),
            "f": pick(f),
            "s": word,
            "b": None if word is None else word.encode(),
            "c": pick((None, Decimal("-0.01"), Decimal("1234567.89"))),
            "wide": pick((None, Decimal("0.001"), Decimal("9999999999999999999999.999"))),
            "t": pick(t),
            "ok": pick((None, True, False)),
            "st": pick((None, {"p": pick(p), "q": pick(numbers), "r": inner()})),
            "li": [pick(d)],
            "at": None if time is None else time.replace(tzinfo=UTC),
            "naive": time,
        }

    schema = SCHEMA if times else pa.schema(list(SCHEMA)[: -len(TIMED)])
    return pa.Table.from_pylist([row(place) for place in range(count)], schema)


def condition(chance: random.Random, *, times: bool = True) -> str:
    """A condition; none of them can fail in Spark."""
    columns = list(_LITERALS if times else {one: _LITERALS[one] for one in _LITERALS if one not in TIMED})
    return _tree(chance, columns, chance.choice((0, 1, 1, 2)))


def _tree(chance: random.Random, columns: Sequence[str], depth: int) -> str:
    if depth:
        match chance.choice(("and", "or", "not", "opaque")):
            case "not":
                return f"not ({_tree(chance, columns, depth - 1)})"
            case "opaque":
                return f"({_tree(chance, columns, depth - 1)}) and upper(coalesce(s, 'a')) <> 'Q'"
            case word:
                return f"({_tree(chance, columns, depth - 1)}) {word} ({_tree(chance, columns, depth - 1)})"
    column = chance.choice(columns)
    literal = _LITERALS[column]
    match chance.choice(("compare", "compare", "compare", "in", "in", "null", "between")):
        case "compare":
            operator = chance.choice(("=", "<>", "<", "<=", ">", ">=", "<=>"))
            return f"{column} {operator} {literal(chance)}"
        case "in":
            items = [literal(chance) for _ in range(chance.choice((1, 2, 3, 12)))]
            if chance.random() < 0.4:
                items.insert(chance.randrange(len(items) + 1), "null")
            return f"{column} {chance.choice(('', 'not '))}in ({', '.join(items)})"
        case "null":
            return chance.choice((f"{column} is null", f"{column} is not null", f"{column} <=> null"))
        case _:
            return f"{column} between {literal(chance)} and {literal(chance)}"


Make = Callable[[random.Random], str]


def _one_of(*literals: str) -> Make:
    return lambda chance: chance.choice(literals)


_FLOAT: Final = _one_of("double('NaN')", "0", "-0D", "0D", "1", "1.5", "2.0D", "-2.5D", "double('-Infinity')")
_NUMBER: Final = _one_of("0", "1", "-1", "7", "2147483647", "2147483648", "-3000000000", "9223372036854775807")
_WORD: Final = _one_of("''", "'a'", "'b'", "'é'", "'\U0001f600'", "'\uffff'", "'Z'")
_DAY: Final = _one_of(
    "date'0001-01-01'",
    "date'0001-01-03'",
    "date'1582-10-04'",
    "date'1582-09-24'",
    "date'1582-10-15'",
    "date'1969-12-31'",
)
_TIMES: Final = ("0001-01-01 00:00:00", "1582-10-04 01:02:03.000004", "1582-10-14 00:00:00", "1900-01-01 00:00:00")
_LITERALS: Final[dict[str, Make]] = {
    "id": _one_of("3", "17", "40", "2147483648"),
    "n": _NUMBER,
    "d": _FLOAT,
    "f": _FLOAT,
    "s": _WORD,
    "b": _one_of("X''", "X'61'", "X'C3A9'", "X'EFBFBF'"),
    "c": _one_of("0", "-0.01", "1234567.89", "99999999.999", "30000000000"),
    "wide": _one_of("0.001", "9999999999999999999999.999", "1"),
    "t": _DAY,
    "ok": _one_of("true", "false"),
    "st.p": _FLOAT,
    "st.q": _NUMBER,
    "st.r.x": _FLOAT,
    "st.r.w": _WORD,
    "st.r.t": _DAY,
    "li[0]": _FLOAT,
    "at": _one_of(*(f"timestamp'{one}'" for one in _TIMES)),
    "naive": _one_of(*(f"timestamp_ntz'{one}'" for one in _TIMES)),
}
