"""What files are judged by: a predicate, and the keys of joins."""

from __future__ import annotations

from dataclasses import dataclass, field

from tamis.predicate.bound import BoundPredicate
from tamis.predicate.compare.zones import Zone
from tamis.predicate.schema import Column
from tamis.sieve.join.runtime import BoundRuntimeFilter
from tamis.sieve.partitions import PartitionSpec

__all__ = ["Sieve"]


@dataclass(frozen=True, slots=True)
class Sieve:
    """What files are judged by, whatever batch they come in."""

    predicate: BoundPredicate
    specs: tuple[PartitionSpec, ...] = ()
    runtime_filters: tuple[BoundRuntimeFilter, ...] = ()
    strict: bool = False
    """Raise where a file would be kept because it cannot be judged."""
    zone: Zone | None = field(default=None, compare=False)
    """The time zone of the session that reads the rows, if anyone has named it: metadata may have times without."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns whose facts are wanted, each once: the predicate's, then those of the filters."""
        every = (*self.predicate.columns, *(column for keys in self.runtime_filters for column in keys.columns))
        return tuple({column.id: column for column in every}.values())
