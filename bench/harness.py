"""What every benchmark shares: a claim, honest timing, and the table of how the claims fared.

Law: our figure and the peer's come from one run, taken in turns, after both were shown to compute the same. All
figures are costs (seconds, bytes): less is better, and a ratio says how many times less we need than the peer.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Generic, TypeVar

__all__ = [
    "CACHE",
    "RESULTS",
    "Claim",
    "DifferentResultsError",
    "Timing",
    "best_of",
    "in_turns",
    "main",
    "peak_memory",
    "require",
    "table",
]

HERE = Path(__file__).parent
CACHE = HERE / ".cache"
"""For generated tables: made on first use, ignored by git, removed by `make clean`."""
RESULTS = HERE / "results" / "latest.json"

Result = TypeVar("Result")
Theirs = TypeVar("Theirs")


class DifferentResultsError(Exception):
    """Both sides were asked the same and answered differently: their times cannot be compared."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One line of the table: what is claimed, what was measured, and whether it holds."""

    name: str
    says: str
    ours: float
    unit: str = "s"
    peer_name: str | None = None
    peer: float | None = None
    at_most: float | None = None
    """The goal for our own figure, in its unit."""
    at_least: float | None = None
    """The goal for the ratio."""
    notes: tuple[str, ...] = ()
    """How it was measured where that is not plain, and figures beside the claim."""

    @property
    def ratio(self) -> float | None:
        """How many times less we need than the peer; None without a peer."""
        return None if self.peer is None else self.peer / self.ours

    @property
    def met(self) -> bool:
        """Whether every goal is reached. A claim without a goal is a figure for information, and holds."""
        if self.at_most is not None and not self.ours <= self.at_most:
            return False
        return self.at_least is None or (self.ratio is not None and self.ratio >= self.at_least)

    @property
    def goal(self) -> str:
        """The goal in words."""
        most = f"at most {_figure(self.at_most, self.unit)}" if self.at_most is not None else ""
        least = f"at least {self.at_least:g}x" if self.at_least is not None else ""
        return ", ".join(part for part in (most, least) if part) or "none"

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return {
            "name": self.name,
            "claim": self.says,
            "unit": self.unit,
            "ours": self.ours,
            "peer_name": self.peer_name,
            "peer": self.peer,
            "ratio": self.ratio,
            "at_most": self.at_most,
            "at_least": self.at_least,
            "met": self.met,
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Claim:
        """The claim that to_dict wrote."""
        plain = {name: found[name] for name in ("name", "ours", "unit", "peer_name", "peer", "at_most", "at_least")}
        return cls(says=found["claim"], notes=tuple(found["notes"]), **plain)


@dataclass(frozen=True, slots=True)
class Timing(Generic[Result]):
    """Seconds of each run, and what the last one returned."""

    runs: tuple[float, ...]
    result: Result

    @property
    def best(self) -> float:
        """The run that other work on the machine disturbed least."""
        return min(self.runs)

    @property
    def median(self) -> float:
        """A typical run."""
        return statistics.median(self.runs)


def best_of(function: Callable[[], Result], rounds: int = 5, *, warm_up: bool = True) -> Timing[Result]:
    """Time function so many times, after one run that is not counted."""
    if warm_up:
        function()
    runs = [_timed(function) for _ in range(rounds)]
    return Timing(tuple(seconds for seconds, _ in runs), runs[-1][1])


def in_turns(
    ours: Callable[[], Result], peer: Callable[[], Theirs], rounds: int = 5, *, warm_up: bool = True
) -> tuple[Timing[Result], Timing[Theirs]]:
    """Time both, one after the other in every round: what disturbs the machine hits both."""
    if warm_up:
        ours()
        peer()
    left, right = [], []
    for _ in range(rounds):
        left.append(_timed(ours))
        right.append(_timed(peer))
    return (
        Timing(tuple(seconds for seconds, _ in left), left[-1][1]),
        Timing(tuple(seconds for seconds, _ in right), right[-1][1]),
    )


def _timed(function: Callable[[], Result]) -> tuple[float, Result]:
    """One run, without the garbage collector: what it costs depends on objects that others left behind."""
    gc.collect()
    gc.disable()
    try:
        start = perf_counter()
        result = function()
        return perf_counter() - start, result
    finally:
        gc.enable()


def peak_memory() -> int:
    """The most memory, in bytes, that this process has had resident so far, its start and the peer included."""
    try:
        # Linux counts ru_maxrss across exec, so that it may be the parent's; this one starts with the program.
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def require(condition: object, otherwise: str) -> None:
    """Stop the script if the two sides do not agree; unlike assert it is never optimised away."""
    if not condition:
        raise DifferentResultsError(otherwise)


def main(run: Callable[[], Sequence[Claim]]) -> None:
    """Run one script: print its table, and write its claims where `python -m bench` asks for them."""
    parser = argparse.ArgumentParser(description=sys.modules[run.__module__].__doc__)
    parser.add_argument("--json", type=Path, help="also write the claims to this file")
    target = parser.parse_args().json
    claims = list(run())
    if target is None:
        print(table(claims))
        print(f"\npeak memory, both sides: {_figure(peak_memory(), 'B')}")
        return
    found = {"claims": [claim.to_dict() for claim in claims], "peak_memory_bytes": peak_memory()}
    target.write_text(json.dumps(found), encoding="utf-8")


def table(claims: Sequence[Claim]) -> str:
    """A line for each claim, then the notes."""
    head = ("claim", "ours", "peer", "ratio", "goal", "")
    rows = [
        (
            claim.says,
            _figure(claim.ours, claim.unit),
            "none" if claim.peer is None else f"{_figure(claim.peer, claim.unit)} ({claim.peer_name})",
            "" if claim.ratio is None else f"{claim.ratio:,.{1 if claim.ratio < 10 else 0}f}x",
            claim.goal,
            "met" if claim.met else "MISSED",
        )
        for claim in claims
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, tuple("-" * width for width in widths), *rows]
    shown = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    ]
    shown += [f"\n{claim.name}:\n  " + "\n  ".join(claim.notes) for claim in claims if claim.notes]
    return "\n".join(shown)


def _figure(value: float | None, unit: str) -> str:
    """Three digits, in a unit that suits the size.

    >>> _figure(0.0123, "s"), _figure(12.3, "s"), _figure(1_500_000_000, "B")
    ('12.3 ms', '12.3 s', '1.5 GB')
    """
    if value is None:
        return ""
    steps = {"s": ((1, "s"), (1e-3, "ms"), (1e-6, "µs")), "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))}.get(unit)
    if steps is None:
        return f"{value:.3g} {unit}"
    size, word = next((step for step in steps if abs(value) >= step[0]), steps[-1])
    number = value / size
    return f"{number:,.0f} {word}" if number >= 1000 else f"{number:.3g} {word}"
