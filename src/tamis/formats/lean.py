"""A process that plans and never touches pandas need not load it.

pyarrow imports pandas when it first turns anything into or out of an array, to recognise its types: more than a
second, three times what planning over ten thousand files takes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa

__all__ = ["spare_pandas"]


class _NotNow:
    """Says that there is no pandas."""

    @staticmethod
    def find_spec(
        name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """No module of that name, if it is pandas; else somebody else's question."""
        if name == "pandas":
            raise ImportError("pandas is left out of this process")
        return None


def spare_pandas() -> None:
    """Let pyarrow look for pandas once, in vain. For commands that only plan; nothing if pandas is loaded already.

    to_pandas() still works: pyarrow then looks again. Until it has, a pandas Series handed to pyarrow is taken for a
    plain sequence, so a program that hands on pandas data, as Spark does, must not call this.
    """
    if "pandas" in sys.modules:
        return
    finder = _NotNow()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
