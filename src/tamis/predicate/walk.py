"""Walking conditions without recursion: neither depth nor sharing costs more than its nodes.

A condition built by a program may be thousands of levels deep, and may hold one part in many places. Python's stack
bounds neither: every node is met once, after its children.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

__all__ = ["bottom_up"]

Item = TypeVar("Item")
Result = TypeVar("Result")


def bottom_up(
    root: Item,
    children: Callable[[Item], Sequence[Item]],
    combine: Callable[[Item, list[Result]], Result],
    key: Callable[[Item], Hashable] = id,
) -> Result:
    """combine(item, the results of its children) of the root; each item is combined once, its children before it.

    key tells items apart; by default they are what they are as objects.

    >>> bottom_up(((), ((),)), children=list, combine=lambda item, below: 1 + sum(below))
    4
    """
    done: dict[Hashable, Result] = {}
    todo = [root]
    while todo:
        item = todo[-1]
        if key(item) in done:
            todo.pop()
            continue
        below = children(item)
        missing = [child for child in below if key(child) not in done]
        if missing:
            todo.extend(reversed(missing))
            continue
        todo.pop()
        done[key(item)] = combine(item, [done[key(child)] for child in below])
    return done[key(root)]
