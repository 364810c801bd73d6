"""Which columns hold ordinary values alone, file by file: no NaN, no zero, no date of the old calendar.

Law: ordinary is said only where a file's statistics prove it. They are those that the plan has read for its
condition; of a column that it does not name nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy import typing as npt
from pyarrow import types as pt

from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.schema import Column
from tamis.sieve.domain import ColumnStats, stats_domain
from tamis.sieve.files import FileBatch
from tamis.sieve.outcome import Outcome
from tamis.sieve.sieve import Sieve

__all__ = ["Ordinary", "ordinary_columns"]

GREGORIAN: Final = -141427
"""1582-10-15, the first day of the Gregorian calendar, in days since 1970."""
MOST_KINDS: Final = 4
"""So many kinds of files are told apart at most, for each is read on its own. With more of them a column counts as
ordinary if it is so in all files."""


@dataclass(frozen=True, slots=True)
class Ordinary:
    """The kind of each kept file, and the columns that are ordinary in files of each kind."""

    kinds: Int64s
    columns: tuple[frozenset[tuple[str, ...]], ...]


def ordinary_columns(sieve: Sieve, outcomes: Sequence[Outcome]) -> Ordinary:
    """By the statistics that the plan has: of floats, and of dates in ORC files."""
    chosen = {
        column.id: column for column in sieve.columns if pt.is_floating(column.type) or pt.is_date32(column.type)
    }
    count = sum(int(outcome.kept.sum()) for outcome in outcomes)
    if not chosen or not count:
        return Ordinary(np.zeros(count, np.int64), (frozenset(),))
    columns = list(chosen.values())
    flags = np.stack([np.concatenate([_ordinary(column, outcome) for outcome in outcomes]) for column in columns])
    rows, kinds = np.unique(flags, axis=1, return_inverse=True)
    if rows.shape[1] > MOST_KINDS:
        rows, kinds = np.array([[bool(flag.all())] for flag in flags]), np.zeros(count, np.int64)
    ordinary = [frozenset(c.path for c, yes in zip(columns, kind, strict=True) if yes) for kind in rows.T.tolist()]
    return Ordinary(kinds.reshape(-1), tuple(ordinary))


def _ordinary(column: Column, outcome: Outcome) -> Mask:
    batch = outcome.batch
    stats = batch.stats.get(column.id)
    if stats is None:
        return np.zeros(int(outcome.kept.sum()), np.bool_)
    surely = _is_ordinary(column, stats, len(batch))
    if not pt.is_floating(column.type):
        surely &= _is_orc(batch)
    return np.asarray(surely[outcome.kept])


def _is_ordinary(column: Column, stats: ColumnStats, count: int) -> Mask:
    """A zero of either sign may be at a bound that is a zero: not all writers tell them apart."""
    domain = stats_domain(column, stats, count)
    lower, upper = _numbers(stats.lower, count), _numbers(stats.upper, count)
    if pt.is_floating(column.type):
        inside = (lower <= upper) & ((lower > 0) | (upper < 0))
    else:
        inside = (lower <= upper) & (lower >= GREGORIAN)
    return np.asarray(~domain.may_nan & (inside | ~domain.may_value))


def _numbers(bounds: pa.Array | None, count: int) -> npt.NDArray[np.float64]:
    """NaN where there is no bound: no comparison is true of it."""
    if bounds is None:
        return np.full(count, np.nan)
    plain = bounds.view(pa.int32()) if pt.is_date32(bounds.type) else bounds
    return np.asarray(plain.cast(pa.float64()).to_numpy(zero_copy_only=False))


def _is_orc(batch: FileBatch) -> Mask:
    formats = batch.extra["file_format"].to_numpy(zero_copy_only=False)
    return np.fromiter((str(name).lower() == "orc" for name in formats), np.bool_, len(formats))
