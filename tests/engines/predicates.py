"""Random conditions as SQL text, over the columns of the evolved tables: every operator that users write.

Literals are near the values that the tables hold, so that conditions cut through the data instead of missing it.
None of them can fail in Spark, where a cast that does not fit would end the query.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final

__all__ = ["conditions"]

Make = Callable[[random.Random], str]

_EPOCH: Final = datetime(1970, 1, 1)
_WORDS: Final = (
    "apple",
    "apricot",
    "banana",
    "čaj",
    "😀ab",
    "zz",
    "",
    "Apfel",
    "b",
    "a",
    "zzzz",
    "😀",
    "eu",
    "us",
    "uk",
)


def conditions(seed: int, count: int, *, only: Sequence[str] | None = None) -> list[str]:
    """So many distinct conditions, the same for the same seed; over some columns only, if they are named."""
    rng = random.Random(seed)  # noqa: S311 - the same conditions on every run
    leaves = [make for name, makes in _LEAVES.items() if only is None or name in only for make in makes]
    found: dict[str, None] = {}
    while len(found) < count:
        # Each kind of leaf comes up on its own, then in mixtures.
        place = len(found)
        found[leaves[place](rng) if place < len(leaves) else _tree(rng, leaves, rng.choice((1, 1, 2, 2, 3)))] = None
    return list(found)


def _tree(rng: random.Random, leaves: Sequence[Make], depth: int) -> str:
    if depth == 0:
        return rng.choice(leaves)(rng)
    match rng.choice(("and", "and", "or", "or", "not", "leaf")):
        case "leaf":
            return rng.choice(leaves)(rng)
        case "not":
            return f"not ({_tree(rng, leaves, depth - 1)})"
        case operator:
            parts = [_tree(rng, leaves, depth - 1) for _ in range(rng.choice((2, 2, 3)))]
            return f" {operator} ".join(f"({part})" for part in parts)


# -- literals ------------------------------------------------------------------------------------------------


def _number(rng: random.Random) -> int:
    """A row's number, most often; sometimes its neighbourhood, sometimes far off."""
    return rng.choice((rng.randrange(640), rng.randrange(640), rng.randrange(-50, 700), 0, 2**31, -(2**40)))


def _integer(rng: random.Random) -> str:
    return rng.choice((str(_number(rng)), str(_number(rng)), f"{_number(rng)}L", f"{rng.randrange(640)}.5"))


def _negative(rng: random.Random) -> str:
    return str(-rng.randrange(640))


def _float(rng: random.Random) -> str:
    return rng.choice((f"{rng.randrange(5120) / 64}D", str(rng.randrange(80)), "double('NaN')", f"-{rng.random()}D"))


def _decimal(rng: random.Random) -> str:
    exact = (Decimal(rng.randrange(640)) / 3).quantize(Decimal("0.01"))
    return rng.choice((str(exact), str(rng.randrange(220)), f"{exact}5"))


def _word(rng: random.Random) -> str:
    return rng.choice(_WORDS) + rng.choice(("", "", str(rng.randrange(4))))


def _text(rng: random.Random) -> str:
    return f"'{_word(rng)}'"


def _region(rng: random.Random) -> str:
    return rng.choice(("'eu'", "'us'", "'uk'", "'fr'", "''"))


def _city(rng: random.Random) -> str:
    return rng.choice(("'c0'", "'c1'", "'c2'", "'c'"))


def _day(rng: random.Random) -> date:
    return date(1970, 1, 1) + timedelta(days=rng.randrange(-900, 1150))


def _date(rng: random.Random) -> str:
    day = _day(rng)
    return rng.choice((f"date'{day}'", f"date'{day}'", f"'{day}'", f"date'{day.replace(day=1)}'"))


def _moment(rng: random.Random, step: int, start: int) -> datetime:
    at = _EPOCH + timedelta(microseconds=(rng.randrange(640) - start) * step)
    return rng.choice((at, at, at.replace(minute=0, second=0, microsecond=0), at.replace(hour=0, minute=0, second=0)))


def _timestamp(rng: random.Random) -> str:
    at = _moment(rng, 40_000_000_001, 280)
    return rng.choice((f"timestamp'{at}'", f"timestamp'{at}'", f"'{at}'", f"date'{at.date()}'"))


def _timestamp_ntz(rng: random.Random) -> str:
    at = _moment(rng, 1_500_000_000, 420)
    return rng.choice((f"timestamp_ntz'{at}'", f"timestamp_ntz'{at}'", f"'{at}'"))


def _bytes(rng: random.Random) -> str:
    return f"X'{rng.randrange(256):02X}'"


# -- leaves --------------------------------------------------------------------------------------------------


def _compare(term: str, literal: Make) -> Make:
    def make(rng: random.Random) -> str:
        operator = rng.choice(("=", "=", "!=", "<", "<=", ">", ">=", "<>", "<=>"))
        value = literal(rng)
        return f"{term} {operator} {value}" if rng.random() < 0.9 else f"{value} {operator} {term}"

    return make


def _members(term: str, literal: Make) -> Make:
    def make(rng: random.Random) -> str:
        few = [literal(rng) for _ in range(rng.choice((1, 2, 3, 5, 12)))]
        null = ["null"] if rng.random() < 0.1 else []
        return f"{term} {rng.choice(('in', 'in', 'not in'))} ({', '.join([*few, *null])})"

    return make


def _between(term: str, literal: Make) -> Make:
    def make(rng: random.Random) -> str:
        return f"{term} {rng.choice(('', '', 'not '))}between {literal(rng)} and {literal(rng)}"

    return make


def _null(term: str) -> Make:
    return lambda rng: f"{term} is {rng.choice(('', 'not '))}null"


def _like(term: str, word: Make) -> Make:
    def make(rng: random.Random) -> str:
        text = word(rng).strip("'")
        pattern = rng.choice(
            (f"{text}%", f"{text}%", f"{text[:2]}%", f"{text[:3]}%", f"%{text}", f"{text[:1]}_%", text)
        )
        return f"{term} {rng.choice(('', '', 'not '))}like '{pattern}'"

    return make


def _one_of(*texts: str) -> Make:
    return lambda rng: rng.choice(texts)


def _all(term: str, literal: Make) -> list[Make]:
    return [
        _compare(term, literal),
        _compare(term, literal),
        _members(term, literal),
        _between(term, literal),
        _null(term),
    ]


def _month_start(rng: random.Random) -> str:
    return f"date'{_day(rng).replace(day=1)}'"


def _year(rng: random.Random) -> str:
    return str(rng.randrange(1967, 1975))


_LEAVES: Final[dict[str, list[Make]]] = {
    "id": [
        *_all("id", _integer),
        *_all("ID", _integer),
        _one_of("id % 7 = 3", "id + 1 > 300", "abs(id - 300) < 20", "id = null"),
    ],
    "f": _all("f", _float),
    "amt": _all("amt", _decimal),
    "s": [
        *_all("s", _text),
        _like("s", _text),
        _like("s", _text),
        _compare("substring(s, 1, 2)", _text),
        _compare("left(s, 3)", _text),
        _one_of("upper(s) = 'APPLE1'", "length(s) > 5", "startswith(s, 'ap')", "s > region"),
    ],
    "region": [*_all("region", _region), _like("region", _region)],
    "d": [
        *_all("d", _date),
        _compare("year(d)", _year),
        _compare("trunc(d, 'MM')", _month_start),
        _one_of("month(d) = 3", "d + interval 1 day > date'1971-01-01'", "dayofweek(d) = 1"),
    ],
    "ts": [
        *_all("ts", _timestamp),
        _compare("date(ts)", _date),
        _compare("cast(ts as date)", _date),
        _compare("date_trunc('month', ts)", _timestamp),
        _compare("year(ts)", _year),
        _one_of("hour(ts) = 3", "ts > cast(d as timestamp)"),
    ],
    "ntz": [*_all("ntz", _timestamp_ntz), _compare("date_trunc('hour', ntz)", _timestamp_ntz)],
    "flag": [
        _null("flag"),
        _one_of("flag", "not flag", "flag = true", "flag is true", "flag is not false", "flag <=> null"),
    ],
    "bin": _all("bin", _bytes),
    "info": [
        *_all("info.a", _negative),
        *_all("info.city", _city),
        *_all("info.deep.x", _float),
        _null("info"),
        _like("info.city", _city),
    ],
}
"""What can be asked of each column."""
