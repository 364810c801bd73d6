"""Which files are worth rewriting, and why: by their size, their deletes, or their spec.

As Iceberg chooses them. Each rule is a bit of a file's number, so that a file has all reasons that it has; 0 is no
candidate. What is not known about a file does not make it one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from typing import Final

import numpy as np
import pyarrow as pa
from numpy import typing as npt

from tamis.predicate.arrays import Int64s, Mask
from tamis.rewrite.options import INT_MAX, RewriteOptions
from tamis.rewrite.values import size_text

__all__ = ["DELETED", "WORTH_ALONE", "Bits", "Candidate", "Considered", "choose", "needs_deletes", "why"]

Bits = npt.NDArray[np.uint8]


class Candidate(IntFlag):
    """The rules that make a file a candidate."""

    SMALL = 1
    LARGE = 2
    MANY_DELETES = 4
    DELETE_RATIO = 8
    ALL = 16
    OLD_SPEC = 32
    TOGETHER = 64


DELETED: Final = Candidate.MANY_DELETES | Candidate.DELETE_RATIO
WORTH_ALONE: Final = DELETED | Candidate.LARGE | Candidate.ALL | Candidate.OLD_SPEC
"""Rules by which a file is worth rewriting without any other: a small one alone would only be copied."""


@dataclass(frozen=True, slots=True, eq=False)
class Considered:
    """The files that a condition leaves: what the rules look at."""

    size: Int64s
    """-1 if unknown, as rows."""
    rows: Int64s
    old: Mask
    """Whether its spec is another than new files have."""
    deletes: Int64s | None = None
    """How many deletes apply; None if no rule asks."""
    deleted: Int64s | None = None
    """Rows that they are known to remove."""


def needs_deletes(options: RewriteOptions) -> bool:
    """Whether a rule asks for the deletes of files."""
    return not options.takes_all


def choose(files: Considered, options: RewriteOptions) -> Bits:
    """For each file the rules that make it a candidate."""
    bits = np.zeros(len(files.size), np.uint8)
    if options.rewrite_all:
        return bits | np.uint8(Candidate.ALL)
    if options.only_old_specs:
        bits[files.old] = Candidate.OLD_SPEC
        return bits
    bits[(files.size >= 0) & (files.size < options.min_file_size_bytes)] |= np.uint8(Candidate.SMALL)
    bits[files.size > options.max_file_size_bytes] |= np.uint8(Candidate.LARGE)
    return bits | _delete_rules(files, options)


def _delete_rules(files: Considered, options: RewriteOptions) -> Bits:
    """The same for rules about deletes alone."""
    bits = np.zeros(len(files.size), np.uint8)
    if files.deletes is None or files.deleted is None:
        return bits
    if options.delete_file_threshold < INT_MAX:
        bits[files.deletes >= options.delete_file_threshold] |= np.uint8(Candidate.MANY_DELETES)
    known = (files.deletes > 0) & (files.rows > 0)
    share = np.minimum(files.deleted, files.rows) / np.where(known, files.rows, 1)
    bits[known & (share >= options.delete_ratio_threshold)] |= np.uint8(Candidate.DELETE_RATIO)
    return bits


def why(bits: Bits, options: RewriteOptions) -> pa.Array:
    """The reason of each file, in words."""
    numbers, codes = np.unique(bits, return_inverse=True)
    return pa.array([_text(number, options) for number in numbers.tolist()], pa.string()).take(pa.array(codes))


def _text(bits: int, options: RewriteOptions) -> str:
    told = {
        Candidate.SMALL: f"smaller than min-file-size-bytes ({size_text(options.min_file_size_bytes)})",
        Candidate.LARGE: f"larger than max-file-size-bytes ({size_text(options.max_file_size_bytes)})",
        Candidate.MANY_DELETES: f"at least {options.delete_file_threshold} delete files (delete-file-threshold)",
        Candidate.DELETE_RATIO: f"at least {options.delete_ratio_threshold:.0%} of its rows are deleted "
        "(delete-ratio-threshold)",
        Candidate.ALL: "every file is rewritten (rewrite-all)",
        Candidate.TOGETHER: "another file of its bucket is a candidate, and holds versions of the same rows",
        Candidate.OLD_SPEC: f"its spec is not {options.output_spec_id}, the output spec (only-old-specs)",
    }
    if bits:
        return "; ".join(text for bit, text in told.items() if bits & bit)
    if options.only_old_specs:
        return f"it has spec {options.output_spec_id}, the output spec, already"
    low, high = size_text(options.min_file_size_bytes), size_text(options.max_file_size_bytes)
    return f"its size is between {low} and {high}, and too little of it is deleted"
