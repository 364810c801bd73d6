"""Names of columns: taken apart, quoted, and what a wrong one may have meant. As Spark's SQL has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

__all__ = ["backticked", "called", "dotted", "nearest", "quote_name", "split_name"]

MAX_SUGGESTIONS: Final = 3
LEAST_LIKENESS: Final = 0.5
_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^`.]+)")


def split_name(name: str) -> tuple[str, ...] | None:
    """The parts of a dotted name; None if it is no name. Dots in backticks are part of a name, and `` is a backtick.

    >>> split_name("a.b"), split_name("`a.b`.`c``d`"), split_name("a..b")
    (('a', 'b'), ('a.b', 'c`d'), None)
    """
    matches = list(_PART.finditer(name))
    if not matches or ".".join(match[0] for match in matches) != name:
        return None
    return tuple(match[2] or match[1].replace("``", "`") for match in matches)


def called(name: str) -> tuple[str, ...]:
    """The parts of a table's name that a condition may put in front of a column; of a path, its last folder.

    >>> called("prod.db.events"), called("s3://lake/db/events/"), called("")
    (('prod', 'db', 'events'), ('events',), ())
    """
    if "/" in name:
        return tuple(part for part in name.split("/") if part)[-1:]
    return split_name(name) or ()


def backticked(name: str) -> str:
    """The name in backticks, whatever it is: so Spark takes every one.

    >>> backticked("ts"), backticked("a.b"), backticked("a`b")
    ('`ts`', '`a.b`', '`a``b`')
    """
    return "`" + name.replace("`", "``") + "`"


def quote_name(name: str) -> str:
    """The name as Spark SQL accepts it: in backticks unless it is a plain identifier.

    >>> quote_name("ts"), quote_name("a b"), quote_name("a`b")
    ('ts', '`a b`', '`a``b`')
    """
    return name if name.isascii() and name.isidentifier() else backticked(name)


def dotted(path: Iterable[str]) -> str:
    """The path as SQL writes it, with parts quoted where they must be: what split_name takes apart again.

    >>> dotted(("a", "b c"))
    'a.`b c`'
    """
    return ".".join(map(quote_name, path))


def nearest(written: str, known: Mapping[str, str]) -> tuple[str, ...]:
    """What is known under the names most like the written one, whatever their case: the likeliest first.

    >>> nearest("custmer", {"Customer": "db.Customer", "amount": "db.amount"})
    ('db.Customer',)
    """
    folded = {name.lower(): value for name, value in known.items()}
    close = get_close_matches(written.lower(), folded, n=MAX_SUGGESTIONS, cutoff=LEAST_LIKENESS)
    return tuple(folded[name] for name in close)
