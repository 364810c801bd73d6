"""A reader that has seen enough: `tamis explain ... | head`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

__all__ = ["CLOSED_PIPE", "quiet_when_piped"]

CLOSED_PIPE: Final = 128 + 13
"""The exit code of a program whose reader has gone, as shells tell it of SIGPIPE."""


def quiet_when_piped(command: Callable[..., None]) -> Callable[..., None]:
    """The command, ending without a word if nobody reads its output any more."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:  # noqa: ANN401 - whatever the command takes
        try:
            command(*arguments, **options)
            sys.stdout.flush()
        except BrokenPipeError:
            # Python flushes standard output once more when it ends: into nothing.
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, sys.stdout.fileno())
            sys.exit(CLOSED_PIPE)

    return run
