"""Many small tasks on a few threads, their results in the order of the tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

__all__ = ["in_order"]

Task = TypeVar("Task")
Result = TypeVar("Result")


def in_order(work: Callable[[Task], Result], tasks: Iterable[Task], threads: int) -> Iterator[Result]:
    """The results in the order of the tasks, a few tasks ahead of whoever takes them.

    Memory stays bounded: no result waits for long, and no task runs far ahead.
    """
    queue = iter(tasks)
    first = list(islice(queue, 2 * threads))
    if threads <= 1 or len(first) <= 1:
        yield from map(work, chain(first, queue))
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="tamis") as pool:
        running: deque[Future[Result]] = deque(pool.submit(work, task) for task in first)
        try:
            while running:
                result = running.popleft().result()
                running.extend(pool.submit(work, task) for task in islice(queue, 1))
                yield result
        finally:
            for future in running:
                future.cancel()
