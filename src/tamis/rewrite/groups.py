"""Candidates into groups: packed within a key, screened, put in order, and cut to what a run may rewrite.

Law: a candidate is in exactly one packed group, and a group has files of one key. A group that is not worth it, or is
left to a later run, goes whole, but for the last one of a run, which is cut short.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from tamis.predicate.arrays import Int64s, Mask
from tamis.rewrite.candidates import DELETED, WORTH_ALONE, Bits, Considered
from tamis.rewrite.options import RewriteOptions
from tamis.rewrite.packing import MOST_BYTES, pack

__all__ = ["GROUPED", "LATER", "NO_CANDIDATE", "TOO_LITTLE", "Groups", "expected_outputs", "group", "split_sizes"]

NO_CANDIDATE: Final = 0
GROUPED: Final = 1
TOO_LITTLE: Final = 2
"""Its group is not worth rewriting."""
LATER: Final = 3
"""max-files-to-rewrite leaves it to a later run."""
SPLIT_OVERHEAD: Final = 5 << 10
"""Bytes that a split may be larger than its share, so that a file does not end in a tiny split."""
SLACK: Final = 1.1
"""A remainder is spread over the other files if these grow by less than this."""


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The groups of a plan, in the order in which they are to be rewritten."""

    members: Int64s
    """Places of files, those of one group side by side and in order."""
    starts: Int64s
    """Where each group begins in members, and the end of the last."""
    keys: Int64s
    bytes: Int64s
    rows: Int64s
    fate: Int64s
    """Of each file considered: whether it is no candidate, in a group, or why it is in none."""

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def files(self) -> Int64s:
        """How many files each group has."""
        return np.diff(self.starts)

    @property
    def numbers(self) -> Int64s:
        """The group of each file considered; -1 if it is in none."""
        numbers = np.full(len(self.fate), -1, np.int64)
        numbers[self.members] = np.repeat(np.arange(len(self)), self.files)
        return numbers


def group(
    files: Considered, bits: Bits, keys: Int64s, places: Int64s, items: Int64s, options: RewriteOptions
) -> Groups:
    """The groups of candidates. places is each file's rank in the table's order; files of one item stay together."""
    chosen = np.flatnonzero(bits)
    order = chosen[_order(keys[chosen], places[chosen], items[chosen])]
    sizes = np.clip(files.size[order], 0, MOST_BYTES // max(len(order), 1))
    begin = pack(
        keys[order], sizes, items[order], options.max_file_group_size_bytes, options.max_file_group_input_files
    )
    end = np.append(begin[1:], len(order))
    fate = np.full(len(bits), NO_CANDIDATE, np.int64)
    fate[order] = TOO_LITTLE
    if not len(begin):
        nothing = np.empty(0, np.int64)
        return Groups(nothing, np.zeros(1, np.int64), nothing, nothing, nothing, fate)
    worth = _worth(end - begin, np.add.reduceat(sizes, begin), np.bitwise_or.reduceat(bits[order], begin), options)
    begin, end = begin[worth], end[worth]
    ranks = _ranks(end - begin, _sums(sizes, begin, end), options.rewrite_job_order)
    begin, end = begin[ranks], end[ranks]
    fate[order[_spans(begin, end)]] = LATER
    begin, end = _cut(begin, end, items[order], bits[order], options.max_files_to_rewrite)
    members = order[_spans(begin, end)]
    fate[members] = GROUPED
    starts = np.concatenate([[0], np.cumsum(end - begin)]).astype(np.int64)
    rows = np.maximum(files.rows[order], 0)
    return Groups(members, starts, keys[order[begin]], _sums(sizes, begin, end), _sums(rows, begin, end), fate)


def _order(keys: Int64s, places: Int64s, items: Int64s) -> Int64s:
    """Files by key, then by place; files of one item side by side, where its first one lies."""
    count = int(places.max(initial=-1)) + 1
    if len(items) == int(items.max(initial=-1)) + 1 and (np.diff(items) > 0).all():
        return np.argsort(keys * count + places)  # each file is an item, and no place occurs twice
    first = np.full(int(items.max(initial=-1)) + 1, count, np.int64)
    np.minimum.at(first, items, places)
    return np.lexsort((places, first[items], keys))


def _worth(counts: Int64s, sizes: Int64s, bits: Bits, options: RewriteOptions) -> Mask:
    """Groups of enough files, of enough bytes, of too many bytes, or with too many deletes."""
    if options.takes_all:
        return np.ones(len(counts), np.bool_)
    several = counts > 1
    enough = several & ((counts >= options.min_input_files) | (sizes > options.target_file_size_bytes))
    return np.asarray(enough | (sizes > options.max_file_size_bytes) | ((bits & np.uint8(DELETED)) > 0))


def _ranks(counts: Int64s, sizes: Int64s, job_order: str) -> Int64s:
    """The groups in the order that is asked for; those that are equal stay in the order of their keys."""
    if job_order == "none":
        return np.arange(len(counts))
    by, direction = job_order.split("-")
    values = sizes if by == "bytes" else counts
    return np.argsort(-values if direction == "desc" else values, kind="stable")


def _cut(begin: Int64s, end: Int64s, items: Int64s, bits: Bits, most: int | None) -> tuple[Int64s, Int64s]:
    """The first groups, up to so many files; the last is cut short, unless the rest of it would only be copied."""
    if most is None or not len(begin):
        return begin, end
    before = np.cumsum(end - begin) - (end - begin)
    kept = before < most
    begin, end, room = begin[kept], end[kept].copy(), most - int(before[kept][-1])
    last = int(min(end[-1], begin[-1] + room))
    while last > begin[-1] and last < len(items) and last < end[-1] and items[last] == items[last - 1]:
        last -= 1  # an item is never divided
    left = last - int(begin[-1])
    if last < end[-1] and left < 2 and not (left and bits[begin[-1]] & np.uint8(WORTH_ALONE)):  # noqa: PLR2004 - one
        return begin[:-1], end[:-1]
    end[-1] = last
    return begin, end


def _sums(values: Int64s, begin: Int64s, end: Int64s) -> Int64s:
    sums = np.concatenate([[0], np.cumsum(values)])
    return np.asarray(sums[end] - sums[begin], np.int64)


def _spans(begin: Int64s, end: Int64s) -> Int64s:
    """All places from each begin up to its end."""
    counts = end - begin
    return np.asarray(
        np.arange(int(counts.sum())) + np.repeat(begin - (np.cumsum(counts) - counts), counts), np.int64
    )


def expected_outputs(sizes: Int64s, options: RewriteOptions) -> Int64s:
    """How many files groups of these sizes become.

    One for each target size. A remainder has a file of its own if that is not too small, or if the others would grow
    by too much without it.
    """
    target = options.target_file_size_bytes
    compressed = sizes if options.strategy == "binpack" else _compressed(sizes, options.compression_factor)
    whole = np.maximum(compressed // target, 1)
    more = -(-compressed // target)
    most = min(SLACK * target, float(options.write_max_file_size))
    spread = compressed // whole < most
    outputs = np.where(compressed % target > options.min_file_size_bytes, more, np.where(spread, whole, more))
    return np.asarray(np.where(compressed < target, 1, outputs), np.int64)


def _compressed(sizes: Int64s, factor: float) -> Int64s:
    """What sizes become; all of them together stay a number of 64 bits, whatever the factor."""
    with np.errstate(over="ignore"):
        exact = sizes * factor
    return np.asarray(np.minimum(exact, MOST_BYTES // max(len(sizes), 1)), np.int64)


def split_sizes(sizes: Int64s, options: RewriteOptions) -> Int64s:
    """Bytes that a task reads of groups of these sizes: each share, and a little more."""
    share = sizes // expected_outputs(sizes, options) + SPLIT_OVERHEAD
    return np.asarray(np.clip(share, options.target_file_size_bytes, options.write_max_file_size), np.int64)
