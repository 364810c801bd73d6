"""What values a column may hold in each file of a batch.

A domain is a superset. An absent statistic widens it; a column that nobody mentions is ANY. It has four parts, each
for every file: whether NULL, NaN and ordinary values may occur, and within which ranges and hash buckets the
ordinary values lie. Several facts about one column are a conjunction: their domains intersect.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy import typing as npt
from pyarrow import types as pt

from tamis.predicate.arrays import SIGN_BIT, Int64s, Mask, UInt64s
from tamis.predicate.keys import NAN_KEY, has_order
from tamis.predicate.schema import Column, ColumnId
from tamis.sieve.hashing import BucketHash, variants
from tamis.sieve.order import KeyArray, encode, from_words, mask_of, windows

__all__ = [
    "BucketRange",
    "ColumnStats",
    "Domain",
    "Facts",
    "KeyBuckets",
    "Range",
    "not_empty",
    "stats_domain",
    "trusted_domain",
    "uuid_bounds",
]

_EXACT: Final = 1 << 53
"""Counts below this are exact as floats. No file has as many values."""


@dataclass(frozen=True, slots=True)
class Range:
    """Ordinary values lie in [lower, upper], or in [lower, upper) if upper_open; unbounded where not valid."""

    lower: KeyArray | None
    upper: KeyArray | None
    upper_open: bool = False

    def keep(self, mask: Mask) -> Range:
        """The same ranges where mask is true; unbounded elsewhere."""
        return Range(
            None if self.lower is None else self.lower.keep(mask),
            None if self.upper is None else self.upper.keep(mask),
            self.upper_open,
        )

    def take(self, rows: npt.NDArray[Any]) -> Range:
        """The ranges of these files, in this order."""
        return Range(
            None if self.lower is None else self.lower.take(rows),
            None if self.upper is None else self.upper.take(rows),
            self.upper_open,
        )


@dataclass(frozen=True, slots=True)
class BucketRange:
    """Keys hash to a bucket in [lower, upper], of count buckets in all; to any where not valid.

    Of one column's domain these are the ordinary values; whether NULL and NaN may occur, the domain says apart.
    """

    hash: BucketHash
    """The hash that the writer used."""
    count: int
    lower: Int64s
    upper: Int64s
    valid: Mask

    def keep(self, mask: Mask) -> BucketRange:
        """The same buckets where mask is true; any elsewhere."""
        return replace(self, valid=self.valid & mask)

    def take(self, rows: npt.NDArray[Any]) -> BucketRange:
        """The bucket ranges of these files, in this order."""
        return BucketRange(self.hash, self.count, self.lower[rows], self.upper[rows], self.valid[rows])

    def variants(self) -> tuple[BucketRange, ...]:
        """The same buckets by each hash that may have placed a key in them: a key is there by one of these."""
        hashes = variants(self.hash)
        return (self,) if len(hashes) == 1 else tuple(replace(self, hash=each) for each in hashes)


@dataclass(frozen=True, slots=True)
class KeyBuckets:
    """Whole keys of several columns, NULLs in them included, hash into these buckets."""

    columns: tuple[Column, ...]
    """The bucket key, in the order and with the types with which the writer hashed it."""
    range: BucketRange

    @property
    def ids(self) -> tuple[ColumnId, ...]:
        """The columns by their ids."""
        return tuple(column.id for column in self.columns)

    def take(self, rows: npt.NDArray[Any]) -> KeyBuckets:
        """The buckets of these files, in this order."""
        return KeyBuckets(self.columns, self.range.take(rows))


@dataclass(frozen=True, slots=True)
class Domain:
    """A superset of what one column holds, for each file of a batch."""

    may_null: Mask
    may_nan: Mask
    may_value: Mask
    ranges: tuple[Range, ...] = ()
    buckets: tuple[BucketRange, ...] = ()

    def __len__(self) -> int:
        return len(self.may_null)

    @classmethod
    def any(cls, count: int) -> Domain:
        """Nothing is known of any file."""
        yes = np.ones(count, np.bool_)
        return cls(yes, yes, yes)

    def intersect(self, other: Domain) -> Domain:
        """Both facts hold."""
        return Domain(
            self.may_null & other.may_null,
            self.may_nan & other.may_nan,
            self.may_value & other.may_value,
            self.ranges + other.ranges,
            self.buckets + other.buckets,
        )

    def take(self, rows: npt.NDArray[Any]) -> Domain:
        """The domains of these files, in this order: rows may repeat, as files of one partition do."""
        return Domain(
            self.may_null[rows],
            self.may_nan[rows],
            self.may_value[rows],
            tuple(part.take(rows) for part in self.ranges),
            tuple(part.take(rows) for part in self.buckets),
        )

    def without_buckets(self) -> Domain:
        """The same domain, hash buckets forgotten."""
        return replace(self, buckets=())

    def unknown(self) -> Mask:
        """Where no range and no bucket says anything of the ordinary values, and they may occur."""
        known = np.zeros(len(self), np.bool_)
        for part in self.ranges:
            for bound in (part.lower, part.upper):
                if bound is not None:
                    known |= bound.valid
        for bucket in self.buckets:
            known |= bucket.valid
        return np.asarray(self.may_value & ~known)


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """A column's statistics, an entry for each file; whatever is None, or null in a file, is unknown.

    Bounds are of the column's type or one that widens to it. They leave out NULL and NaN. A lower bound may be
    too low and an upper bound too high (truncated strings), never the other way round.
    """

    lower: pa.Array | None = None
    upper: pa.Array | None = None
    null_count: pa.Array | None = None
    nan_count: pa.Array | None = None
    value_count: pa.Array | None = None
    """Values, NULL and NaN included; the file's row count unless the column is repeated."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a batch of files: a domain for each column that anything is known of, and of whole keys."""

    count: int
    domains: dict[ColumnId, Domain]
    buckets: tuple[KeyBuckets, ...] = ()
    """Of keys of several columns: what says nothing of any one of them."""

    def of(self, column: Column) -> Domain:
        """The column's domain; ANY if nobody mentions it."""
        return self.domains.get(column.id) or Domain.any(self.count)

    def and_also(self, other: Facts) -> Facts:
        """Both sets of facts hold."""
        merged = dict(self.domains)
        for id_, domain in other.domains.items():
            merged[id_] = merged[id_].intersect(domain) if id_ in merged else domain
        return Facts(self.count, merged, self.buckets + other.buckets)

    def take(self, rows: npt.NDArray[Any]) -> Facts:
        """The facts of these files, in this order."""
        domains = {id_: domain.take(rows) for id_, domain in self.domains.items()}
        return Facts(len(rows), domains, tuple(part.take(rows) for part in self.buckets))

    def variants(self) -> tuple[Facts, ...]:
        """The facts by each hash that may have placed a row: a row that is there is there by one of these.

        Just these, unless writers disagree. One key's rows are of one total in a file, so that all totals of a key
        are taken by the same hash.
        """
        keyed: list[tuple[tuple[ColumnId, ...], BucketHash]] = [
            *(((id_,), part.hash) for id_, domain in self.domains.items() for part in domain.buckets),
            *((fact.ids, fact.range.hash) for fact in self.buckets),
        ]
        found = [self]
        for key in dict.fromkeys(keyed):
            hashes = variants(key[1])
            if len(hashes) > 1:
                found = [_placed_by(facts, *key, each) for facts in found for each in hashes]
        return tuple(found)

    def without_buckets(self) -> Facts:
        """The same facts, hash buckets forgotten."""
        return Facts(self.count, {id_: domain.without_buckets() for id_, domain in self.domains.items()})


def _placed_by(facts: Facts, columns: tuple[ColumnId, ...], by: BucketHash, alone: BucketHash) -> Facts:
    """The facts, as if of several hashes of this key one alone had placed all rows."""
    domains = dict(facts.domains)
    if len(columns) == 1 and (domain := domains.get(columns[0])) is not None:
        parts = (replace(part, hash=alone) if part.hash == by else part for part in domain.buckets)
        domains[columns[0]] = replace(domain, buckets=tuple(parts))
    buckets = tuple(
        replace(fact, range=replace(fact.range, hash=alone)) if (fact.ids, fact.range.hash) == (columns, by) else fact
        for fact in facts.buckets
    )
    return Facts(facts.count, domains, buckets)


def stats_domain(column: Column, stats: ColumnStats, count: int) -> Domain:
    """The domain that statistics prove, as trusted_domain has it."""
    domain, _ = trusted_domain(column, stats, count)
    return domain


def trusted_domain(column: Column, stats: ColumnStats, count: int) -> tuple[Domain, Mask]:
    """The domain that statistics prove, and where they contradict themselves; there they prove nothing.

    ANY for a type without an order, but for its null count. A bound that is NaN, and bounds that are inverted, say
    nothing. A missing count never means zero, but of NULLs in a column that is required. Statistics contradict
    themselves if they count more NULLs and NaN than values, or no ordinary value where they have a bound of some.
    """
    floating = bool(pt.is_floating(column.type))
    values, nulls, nans = (_counts(part, count) for part in (stats.value_count, stats.null_count, stats.nan_count))
    if column.required:
        nulls = np.where(np.isnan(nulls), 0, nulls)  # a count that there is, is believed all the same
    ranges, is_nan = _bounds(column, stats, count)
    # A bound that is NaN is a NaN that was not counted.
    nans = np.where(is_nan & (nans == 0), np.nan, nans) if floating else np.zeros(count)
    bounded = np.zeros(count, np.bool_)
    for part in ranges:
        for bound in (part.lower, part.upper):
            if bound is not None:
                bounded |= bound.valid
    rest = values - nulls
    no_value = (values <= 0) | (rest <= 0) | (rest - nans <= 0)
    wrong = (rest < 0) | (values - nans < 0) | (rest - nans < 0) | (bounded & no_value)
    # Writers disagree on whether a null struct's fields are counted: under one that may be null, a field may be too.
    may_null = (nulls != 0) | column.null_with_struct | wrong
    may_nan = floating & (((nans != 0) & ~(rest <= 0)) | wrong)
    if wrong.any():
        ranges = tuple(part.keep(~wrong) for part in ranges)
    return Domain(may_null, may_nan, ~no_value | wrong, ranges), wrong


def not_empty(stats: ColumnStats, count: int) -> Mask:
    """Where statistics count a NULL or a NaN, or have a bound: there are rows, however many the file says it has."""
    found = np.zeros(count, np.bool_)
    for counts in (stats.null_count, stats.nan_count):
        found |= _counts(counts, count) > 0
    for bound in (stats.lower, stats.upper):
        if bound is not None:
            found |= mask_of(bound.is_valid())
    return found


def _counts(array: pa.Array | None, count: int) -> npt.NDArray[np.float64]:
    """Counts as floats; NaN where unknown, of which no comparison is true but `!=`. Negative ones are unknown."""
    if array is None:
        return np.full(count, np.nan)
    floats = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.where((floats >= 0) & (floats < _EXACT), floats, np.nan)


def _bounds(column: Column, stats: ColumnStats, count: int) -> tuple[tuple[Range, ...], Mask]:
    """The ranges, and where a bound is NaN."""
    is_nan = np.zeros(count, np.bool_)
    if not has_order(column.type):
        return (), is_nan
    lower = None if stats.lower is None else encode(stats.lower, column.type)
    upper = None if stats.upper is None else encode(stats.upper, column.type)
    if pt.is_floating(column.type):
        for bound in (lower, upper):
            if bound is not None:
                is_nan |= bound.valid & np.asarray(bound.keys == NAN_KEY)
        lower, upper = _not_nan(lower), _not_nan(upper)
    if lower is not None and upper is not None:
        inverted = lower.above(upper)
        if inverted.any():
            lower, upper = lower.keep(~inverted), upper.keep(~inverted)
    if column.type == pa.uuid():
        return uuid_bounds(lower, upper), is_nan
    return ((Range(lower, upper),) if lower is not None or upper is not None else ()), is_nan


def _not_nan(bound: KeyArray | None) -> KeyArray | None:
    return None if bound is None else bound.keep(np.asarray(bound.keys != NAN_KEY))


def uuid_bounds(lower: KeyArray | None, upper: KeyArray | None) -> tuple[Range, ...]:
    """Bounds of a uuid, lower not above upper, of which nobody knows in which order the writer compared.

    Java orders uuids as two signed longs, the specification as unsigned bytes. Both orders agree on halves of equal
    sign. So a pair of bounds counts only if the high halves have the same sign. Of the low halves, under the same
    high one: at or above a low half without the sign bit, by either order, is nothing that is below it as bytes; at
    or below one with it, nothing that is above. So the one is a floor, and the other a ceiling; both are if the high
    halves are equal and the low ones have the same sign too.
    """
    if lower is None or upper is None:
        return ()
    (low_high, low_low), (up_high, up_low) = (
        (windows(bound.keys, 0), windows(bound.keys, 8)) for bound in (lower, upper)
    )
    valid = lower.valid & upper.valid & _same_sign(low_high, up_high)
    exact = (low_high == up_high) & _same_sign(low_low, up_low)
    floor = from_words(low_high, np.where(exact | (low_low < SIGN_BIT), low_low, np.uint64(0)))
    ceiling = from_words(up_high, np.where(exact | (up_low >= SIGN_BIT), up_low, ~np.uint64(0)))
    return (Range(KeyArray(floor, valid), KeyArray(ceiling, valid)),)


def _same_sign(left: UInt64s, right: UInt64s) -> Mask:
    return np.asarray((left ^ right) >> np.uint64(63) == 0)
