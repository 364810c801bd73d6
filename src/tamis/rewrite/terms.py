"""What a format says to the planner of rewrites: its defaults, its words, and how its deletes are counted.

A format states facts here as it does for pruning: it decides nothing about candidates or groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tamis.rewrite.deletes import BatchDeletes, FileDeletes
from tamis.sieve.plan import ScanPlan

__all__ = ["RewriteTerms"]


@dataclass(frozen=True, slots=True)
class RewriteTerms:
    """A table's side of a rewrite."""

    format: str
    """As people say it."""
    target_file_size: int
    """Bytes that the table's writers aim at: the default of target-file-size-bytes."""
    spec_ids: tuple[int | None, ...] = (None,)
    """Every partition spec that a rewrite may write into."""
    current_spec: int | None = None
    """The spec that new files have; None in a format without ids."""
    words: Mapping[str, str] = field(default_factory=dict)
    """The format's own names of options that mean the same, and what they are called here."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Options, by any name, that the format has no equal for, and why."""
    whole_keys: bool = False
    """Whether the files of one partition and bucket hold versions of the same rows: they are merged all, or none."""
    order: tuple[str, ...] = ()
    """The columns of a batch's `extra` that say where a file stands in the metadata. Files of a group keep this
    order, so that what was written together stays together. None: the order of paths."""
    deletes: Callable[[ScanPlan], FileDeletes] = BatchDeletes
    """The deletes of a plan's files; by default what its batches say of them."""
