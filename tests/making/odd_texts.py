"""Odd conditions: some hundreds by hand, and as many more as are asked for, made of pieces of them."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Final

__all__ = ["by_chance", "by_hand"]

_SHOWN: Final = str.maketrans(
    {
        "␤": "\n",
        "␍": "\r",
        "␇": "\u2028",
        "␋": "\v",
        "␀": "\0",
        "␡": "\ufeff",
        "␣": "\u3000",
        "␢": "\u00a0",
        "␠": "\u2003",
    }
)
"""Characters that a line of the file cannot hold, or that nobody would see there."""
_WORD: Final = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|\w+|[<>=!|&]+|\S""")


def by_hand() -> list[str]:
    """The texts of the file beside this module."""
    lines = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").split("\n")
    return [line.translate(_SHOWN) for line in lines if line and not line.startswith("# ")]


def by_chance(count: int, seed: int) -> list[str]:
    """Texts in which a word is gone, doubled, another's or in brackets, or the end is that of another text."""
    chance = random.Random(seed)  # noqa: S311 - for tests
    texts = [words for text in by_hand() if (words := _WORD.findall(text))]
    known = [word for text in texts for word in text]
    return [chance.choice([" ", " ", ""]).join(_changed(chance, texts, known)) for _ in range(count)]


def _changed(chance: random.Random, texts: list[list[str]], known: list[str]) -> list[str]:
    words = list(chance.choice(texts))
    at = chance.randrange(len(words))
    match chance.randrange(6):
        case 0:
            del words[at]
        case 1:
            words.insert(at, chance.choice(known))
        case 2:
            words[at] = chance.choice(known)
        case 3:
            other = chance.choice(texts)
            words[at:] = other[chance.randrange(len(other)) :]
        case 4:
            words += [chance.choice(["AND", "OR", "= true AND", "IS NOT TRUE OR"]), *chance.choice(texts)]
        case _:
            end = chance.randrange(at, len(words))
            words[at : end + 1] = ["(", *words[at : end + 1], ")"]
    return words
