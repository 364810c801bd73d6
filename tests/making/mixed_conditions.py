"""Conditions made by chance over the columns of the odd rows: of every type, right and wrong, to any shape.

Terms meet literals of their own kind for the most part, and now and then those of another, NULLs of every type, and
other columns: what Spark's analyzer refuses is made as well.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

__all__ = ["mixed_conditions"]

_TERMS: Final[dict[str, Sequence[str]]] = {
    "num": (
        "i",
        "l",
        "d",
        "f",
        "dec",
        "st.p",
        "i + 1",
        "-i",
        "l * 2",
        "cast(i AS bigint)",
        "cast(dec AS double)",
        "length(s)",
        "abs(i)",
        "coalesce(l, 0)",
        "year(dt)",
        "year(ts)",
        "bigint(i)",
        "cast(b AS int)",
        "i % 3",
        "d / 2",
        "arr[0]",
        "m['k']",
        "cast(d AS int)",
        "round(d, 1)",
        "i::double",
        "cast(i AS decimal(12,2))",
    ),
    "text": (
        "s",
        "lower(s)",
        "left(s, 1)",
        "substring(s, 1, 2)",
        "s || 'x'",
        "cast(i AS string)",
        "concat(s, s)",
        "cast(dt AS string)",
        "trim(s)",
    ),
    "moment": (
        "dt",
        "ts",
        "ntz",
        "date(ts)",
        "cast(ntz AS date)",
        "date_trunc('month', ts)",
        "trunc(dt, 'month')",
        "dt + 1",
        "ts + interval 1 day",
        "cast(dt AS timestamp)",
        "to_date(ts)",
        "date_add(dt, 1)",
        "date_trunc('day', ntz)",
        "ntz - interval 1 month",
        "last_day(dt)",
    ),
    "bool": (
        "b",
        "(i = 5)",
        "(l IS NULL)",
        "(s = 'a')",
        "isnan(d)",
        "startswith(s, 'a')",
        "in(i, 5)",
        "cast(i AS boolean)",
    ),
    "bin": (
        "bin",
        "cast(s AS binary)",
        "left(bin, 1)",
    ),
    "nest": (
        "st",
        "arr",
        "m",
    ),
    "days": (
        "dt - date '2024-01-10'",
        "ts - timestamp '2024-01-15 00:00:00Z'",
        "interval 1 day",
    ),
}
_LITERALS: Final[dict[str, Sequence[str]]] = {
    "num": (
        "5",
        "1",
        "0",
        "-1",
        "-128",
        "2.5",
        "1.00",
        "1.01",
        "99.99",
        "5L",
        "5Y",
        "5D",
        "2.5D",
        "1.1F",
        "1e10",
        "double('NaN')",
        "cast('Infinity' AS double)",
        "99999999999",
        "9223372036854775807",
        "99999999999999999999",
        "CAST(NULL AS int)",
        "CAST(NULL AS decimal(5,2))",
        "5 + 1",
        "10 / 4",
        "7 div 2",
        "cast('5' AS int)",
        "-0.0D",
        "1.005",
        "coalesce(NULL, 5)",
        "2024",
        "100",
        "1e-3",
        "cast(5.5 AS int)",
        "abs(-5)",
    ),
    "text": (
        "'a'",
        "'b'",
        "'abc'",
        "'a%b'",
        "''",
        "'5'",
        "'1'",
        "'2024-01-15'",
        "'it\\'s'",
        "lower('A')",
        "'a' || 'b'",
        "CAST(NULL AS string)",
        "'A'",
        "' 5 '",
        "'true'",
        "'2024-01-15 00:00:00'",
        "'NaN'",
        "upper('abc')",
    ),
    "moment": (
        "date '2024-01-15'",
        "date '2024-01-16'",
        "timestamp '2024-01-15 00:00:00'",
        "timestamp '2024-01-15 10:00:00Z'",
        "timestamp_ntz '2024-01-15 10:00:00'",
        "timestamp '1969-12-31 10:00:00'",
        "date '2024-01-14' + 1",
        "date '2024-02-15' - interval 1 month",
        "CAST(NULL AS date)",
        "CAST(NULL AS timestamp)",
        "date_trunc('month', timestamp '2024-01-15 10:00:00')",
        "make_date(2024, 1, 15)",
        "add_months(date '2023-12-15', 1)",
        "'2024-01-15'::date",
        "timestamp '2030-01-01' + interval 1 hour",
        "date '0001-01-01'",
        "date '9999-12-31'",
    ),
    "bool": (
        "true",
        "false",
        "CAST(NULL AS boolean)",
        "NULL",
        "(1 = 1)",
        "('a' < 'b')",
        "(NOT true)",
    ),
    "bin": (
        "X'1F'",
        "X'61'",
        "X''",
        "CAST(NULL AS binary)",
        "cast('a' AS binary)",
    ),
    "nest": (
        "NULL",
        "array(1, 5)",
        "named_struct('p', 1)",
    ),
    "days": (
        "interval 1 day",
        "interval 0 days",
        "interval 36 hours",
        "interval '1 2' day to hour",
    ),
}
_COLUMNS: Final[dict[str, Sequence[str]]] = {
    "num": ("i", "l", "d", "f", "dec", "st.p"),
    "text": ("s",),
    "moment": ("dt", "ts", "ntz"),
    "bool": ("b",),
    "bin": ("bin",),
    "nest": ("st", "arr", "m"),
    "days": ("dt - date '2024-01-10'",),
}
_KINDS: Final = (*["num"] * 5, *["text"] * 3, *["moment"] * 4, "bool", "bin", "nest", "days")
_SIGNS: Final = ("=", "=", "<", "<=", ">", ">=", "!=", "<>", "<=>")
_PATTERNS: Final = (
    *("'a%'", "'%'", "'a_'", "'a%b'", "'a\\\\%b'", "''", "NULL", "'%b'", "'_'", "'a/%b' ESCAPE '/'", "'abc'"),
)


def mixed_conditions(count: int, seed: int) -> list[str]:
    """So many, the same for the same seed."""
    made = _Made(random.Random(seed))  # noqa: S311 - for tests
    return [made.tree(made.chance.choice((0, 0, 0, 1, 1, 2, 3))) for _ in range(count)]


class _Made:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def pick(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def literal(self, kind: str) -> str:
        """Of the kind, most often; else NULL, a text, another term, or of any other kind."""
        match self.chance.randrange(25):
            case 0 | 1:
                return "NULL"
            case 2 | 3:
                kind = self.chance.choice(_KINDS)
            case 4:
                return self.pick(*_TERMS[kind])
            case 5:
                kind = "text"
        return self.pick(*_LITERALS[kind])

    def literals(self, kind: str) -> str:
        return ", ".join(self.literal(kind) for _ in range(self.chance.choice((1, 2, 3, 5))))

    def leaf(self) -> str:
        kind = self.chance.choice(_KINDS)
        term = self.pick(*self.chance.choice((_COLUMNS, _COLUMNS, _COLUMNS, _TERMS, _TERMS, _TERMS, _LITERALS))[kind])
        denied = self.pick("", "NOT ")
        match self.chance.randrange(16):
            case 0 | 1 | 2 | 3 | 4:
                return f"{term} {self.pick(*_SIGNS)} {self.literal(kind)}"
            case 5:
                return f"{self.literal(kind)} {self.pick(*_SIGNS)} {term}"
            case 6 | 7:
                return f"{term} {denied}IN ({self.literals(kind)})"
            case 8:
                return f"{term} {denied}BETWEEN {self.literal(kind)} AND {self.literal(kind)}"
            case 9:
                return f"{term} IS {denied}NULL"
            case 10:
                return f"{term} IS {denied}DISTINCT FROM {self.literal(kind)}"
            case 11:
                like = self.pick("LIKE", "LIKE", "ILIKE")
                return f"{self.pick(*_TERMS['text'])} {denied}{like} {self.pick(*_PATTERNS)}"
            case 12:
                patterns = f"{self.pick('ANY', 'ALL')} ('a%', {self.literal('text')})"
                return f"{self.pick(*_TERMS['text'])} {denied}LIKE {patterns}"
            case 13:
                return f"{self.pick('startswith', 'contains', 'equal_null')}({term}, {self.literal(kind)})"
            case 14:
                truths = self.pick(*_LITERALS["bool"]), self.pick(*_LITERALS["bool"])
                return f"CASE WHEN {self.leaf()} THEN {truths[0]} ELSE {truths[1]} END"
        return self.pick(*_TERMS["bool"], f"coalesce({self.leaf()}, false)", f"if({self.leaf()}, b, true)")

    def tree(self, depth: int) -> str:
        match self.chance.randrange(9) if depth else 0:
            case 0 | 1:
                return self.leaf()
            case 2:
                return f"NOT ({self.tree(depth - 1)})"
            case 3:
                asked = self.pick("TRUE", "FALSE", "UNKNOWN", "NULL", "NOT TRUE", "NOT FALSE", "NOT NULL")
                return f"({self.tree(depth - 1)}) IS {asked}"
            case 4:
                return f"({self.tree(depth - 1)}) {self.pick(*_SIGNS)} {self.pick(*_LITERALS['bool'])}"
        parts = [f"({self.tree(depth - 1)})" for _ in range(self.chance.choice((2, 2, 3)))]
        return self.pick(" AND ", " OR ").join(parts)
