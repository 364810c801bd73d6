"""Examples of a strategy, outside of a property: the same on every run."""

from __future__ import annotations

from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

__all__ = ["drawn"]

T = TypeVar("T")


def drawn(strategy: SearchStrategy[T], count: int, start: int) -> list[T]:
    """So many examples, the same on every run."""
    found: list[T] = []

    @seed(start)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example: T) -> None:
        found.append(example)

    collect()
    return found
