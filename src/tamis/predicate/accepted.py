"""What a condition on one column accepts, as sets of its values."""

from __future__ import annotations

from dataclasses import dataclass

from tamis.predicate.compare.split import Split
from tamis.predicate.keys import Key, KeySpan, successor
from tamis.predicate.values import ValueSet

__all__ = ["Accepted", "NullableList", "accepted", "points", "run", "spans"]


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a condition on one column accepts: a superset and a subset, and its value where the column is NULL."""

    outer: ValueSet
    inner: ValueSet
    at_null: bool | None = None
    exact: bool = True
    """False if Spark may answer otherwise, or fail, for some values: then nothing is certain, either way."""
    perhaps_at_null: bool | None = None
    """What it may be where the column is NULL, though SQL says NULL: Spark folds some comparisons to constants."""

    def when(self, *, true: bool) -> tuple[ValueSet, ValueSet]:
        """The outer and inner sets of values of which the condition is TRUE, or of which it is FALSE."""
        outer, inner = self.outer, self.inner
        if not true:
            outer, inner = inner.complement(), outer.complement()
        if not self.exact:
            inner = ValueSet.nothing()
        nulls, perhaps = self.at_null is true, self.perhaps_at_null is true
        whole = ValueSet(outer.cuts, outer.inside_first, nulls or perhaps)
        if self.inner is self.outer and self.exact and not perhaps:
            return whole, whole
        return whole, ValueSet(inner.cuts, inner.inside_first, nulls)


@dataclass(frozen=True, slots=True)
class NullableList(Accepted):
    """A list with a NULL in it: TRUE of its members, and FALSE of nothing."""

    def when(self, *, true: bool) -> tuple[ValueSet, ValueSet]:
        """The members of which it is TRUE; none of which it is FALSE."""
        if not true:
            return ValueSet.nothing(), ValueSet.nothing()
        return self.outer, self.inner if self.exact else ValueSet.nothing()


def points(splits: list[Split], span: KeySpan) -> Accepted | None:
    """The set of a list whose members are single keys, in one go; None if a member is not."""
    keys: list[Key] = []
    for split in splits:
        (at, last), after = split.at, split.after
        if not split.exact or at != last or after[0] != after[1] or after[0] not in {at, successor(at)}:
            return None
        inside = at >= span.least and (span.greatest is None or at <= span.greatest)  # type: ignore[operator]
        if inside and after[0] != at:
            keys.append(at)
    listed = ValueSet.of_keys(keys).clip(span)
    return Accepted(listed, listed)


def spans(splits: list[Split], span: KeySpan) -> Accepted:
    """The set of a list whose members may each be several keys, in one go: what equals one is in [at, after)."""
    outer = _joined([(split.at[0], split.after[1]) for split in splits], span)
    inner = _joined([(split.at[1], split.after[0]) for split in splits], span)
    return accepted(outer, inner, exact=all(split.exact for split in splits))


def _joined(runs: list[tuple[Key, Key]], span: KeySpan) -> ValueSet:
    """What is in any of the runs [start, end), within the type's span: as a union of run() of each."""
    least, greatest = span.least, span.greatest
    cuts: list[Key] = []
    for start, end in sorted(run for run in runs if run[0] < run[1]):  # type: ignore[operator] # one kind of key a type
        if end <= least or (greatest is not None and start > greatest):  # type: ignore[operator] # as above
            continue
        if cuts and start <= cuts[-1]:  # type: ignore[operator] # as above
            cuts[-1] = max(cuts[-1], end)
        else:
            cuts += (start, end)
    open_first = bool(cuts) and cuts[0] <= least  # type: ignore[operator] # as above
    open_last = bool(cuts) and greatest is not None and cuts[-1] > greatest  # type: ignore[operator] # as above
    return ValueSet.of_cuts(cuts[open_first : len(cuts) - open_last], inside_first=open_first)


def accepted(outer: ValueSet, inner: ValueSet, *, exact: bool = True, at_null: bool | None = None) -> Accepted:
    """Sets of a condition; equal ones are made one, so that the judge ranks them once."""
    return Accepted(outer, outer if outer == inner else inner, at_null, exact)


def run(start: Key | None, end: Key | None, span: KeySpan) -> ValueSet:
    """The keys of [start, end) within the type's span: `tinyint < 1000` is every tinyint."""
    least, greatest = span.least, span.greatest
    if start is not None and start <= least:  # type: ignore[operator] # one kind of key a type
        start = None
    if end is not None and greatest is not None and end > greatest:  # type: ignore[operator] # as above
        end = None
    if start is not None and greatest is not None and start > greatest:  # type: ignore[operator] # as above
        return ValueSet.nothing()
    if end is not None and end <= least:  # type: ignore[operator] # as above
        return ValueSet.nothing()
    return ValueSet.not_null() if start is None and end is None else ValueSet.between(start, end)
