"""Words of long conditions: what is done for each does not grow with how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import SupportsIndex, overload

import pytest
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import Token

from tamis.predicate.sql import tokens as words

LONG = 2_000


class Counted(list[Token]):
    """Counts how many of its members were looked at."""

    looks = 0

    def __iter__(self) -> Iterator[Token]:
        for token in super().__iter__():
            self.looks += 1
            yield token

    @overload
    def __getitem__(self, index: SupportsIndex) -> Token: ...
    @overload
    def __getitem__(self, index: slice) -> list[Token]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Token | list[Token]:
        self.looks += 1
        return super().__getitem__(index)


@pytest.mark.parametrize("members", ["'a', 1", "'a' 'b', X '1F'", "5L, -2", "a >>> 1, !> 3"])
def test_each_word_is_looked_at_a_few_times_however_many_there_are(members: str) -> None:
    text = f"x IN ({', '.join([members] * LONG)})"
    counted = Counted(Spark().tokenize(text))
    list(words._merged(text, counted, set()))
    assert counted.looks <= 12 * len(counted)
