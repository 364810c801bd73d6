"""Manifests judged by their partition summaries, before any of them is read.

A summary gives the range of each partition field over a manifest's files: a fact like a file's own partition value,
but wider. Law: a manifest with a file that may match is never dropped; whatever a summary does not say is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from tamis.formats.iceberg.manifest_list import FieldSummary, Manifest, summaries
from tamis.formats.iceberg.metadata import SpecLayout, TableMetadata
from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.schema import Column, ColumnId
from tamis.sieve.domain import Domain, Facts
from tamis.sieve.order import mask_of
from tamis.sieve.sieve import Sieve
from tamis.sieve.transforms import preimage
from tamis.sieve.trial import try_all

__all__ = ["KEPT", "PREDICATE", "may_match", "who_prunes"]

KEPT: Final = -2
PREDICATE: Final = -1
"""What the predicate prunes; a runtime filter is named by its position."""
Deciders = Int64s


def may_match(sieve: Sieve, metadata: TableMetadata, manifests: Sequence[Manifest]) -> list[bool]:
    """For each manifest whether it may hold a file that may match; UnknownSpecError for a spec that is not there."""
    return [decider == KEPT for decider in who_prunes(sieve, metadata, manifests)]


def who_prunes(sieve: Sieve, metadata: TableMetadata, manifests: Sequence[Manifest]) -> list[int]:
    """For each manifest what prunes it: the predicate, else the first runtime filter that does, else nothing."""
    kept = [KEPT] * len(manifests)
    by_spec: dict[int, list[int]] = {}
    for index, manifest in enumerate(manifests):
        by_spec.setdefault(manifest.spec_id, []).append(index)
    for spec_id, indices in by_spec.items():
        layout = metadata.layout(spec_id)
        deciders = _judge(sieve, layout, [manifests[index] for index in indices])
        for index, decider in zip(indices, deciders.tolist(), strict=True):
            kept[index] = decider
    return kept


def _judge(sieve: Sieve, layout: SpecLayout, manifests: Sequence[Manifest]) -> Deciders:
    facts = _facts(layout, manifests, {column.id: column for column in sieve.columns})
    deciders = np.where(try_all(sieve.predicate.conjuncts, facts).possible, KEPT, PREDICATE)
    for position, runtime in enumerate(sieve.runtime_filters):
        deciders = np.where((deciders == KEPT) & ~runtime.possible(facts), position, deciders)
    return deciders


def _facts(layout: SpecLayout, manifests: Sequence[Manifest], columns: dict[ColumnId, Column]) -> Facts:
    facts = Facts(len(manifests), {})
    fields = layout.spec.fields
    positions = [
        position
        for position, field in enumerate(fields)
        if field.source in columns and field.transform.name != "void"
    ]
    for position, summary in zip(positions, summaries(manifests, layout, positions), strict=True):
        field = fields[position]
        column = columns[field.source]  # type: ignore[index] # as positions says
        source_values = preimage(field.transform, column.type, summary.lower, summary.upper)
        if not source_values.null_is_null:
            continue
        distrusted = ~mask_of(summary.known) | _contradicts(column, summary)
        for problem in source_values.problems:
            distrusted |= problem.mask
        domain = _domain(column, summary, distrusted)
        ranges = (source_values.range.keep(~distrusted),) if source_values.range is not None else ()
        buckets = (source_values.buckets.keep(~distrusted),) if source_values.buckets is not None else ()
        trusted = Domain(domain.may_null, domain.may_nan, domain.may_value, ranges, buckets)
        facts = facts.and_also(Facts(len(manifests), {column.id: trusted}))
    return facts


def _contradicts(column: Column, summary: FieldSummary) -> Mask:
    """Where a summary cannot be right, so that no part of it is worth anything.

    By the specification a bound is absent only if all values are NULL or NaN: then both are, and one of the two
    flags is set. A bound that is NaN is a NaN that contains_nan denies.
    """
    lower, upper = (mask_of(side.is_valid()) for side in (summary.lower, summary.upper))
    floating = pt.is_floating(column.type)
    special = mask_of(summary.contains_null.fill_null(False))  # noqa: FBT003 - the value of an unknown flag
    if floating:
        special |= mask_of(summary.contains_nan.fill_null(False))  # noqa: FBT003 - as above
    wrong = (lower != upper) | (~lower & ~upper & ~special)
    if floating:
        denied = mask_of(pc.equal(summary.contains_nan, False).fill_null(False))  # noqa: FBT003 - as above
        for side in (summary.lower, summary.upper):
            if pt.is_floating(side.type):
                wrong |= denied & mask_of(pc.is_nan(side).fill_null(False))  # noqa: FBT003 - a bound that is not there
    return np.asarray(wrong)


def _domain(column: Column, summary: FieldSummary, distrusted: Mask) -> Domain:
    """What may occur at all. A bound that is absent in a trusted summary says: no value but NULL or NaN."""
    no_value = mask_of(summary.lower.is_null()) & mask_of(summary.upper.is_null())
    nan = _may(summary.contains_nan) if pt.is_floating(column.type) else np.zeros(len(no_value), np.bool_)
    return Domain(_may(summary.contains_null) | distrusted, nan | distrusted, ~no_value | distrusted)


def _may(flag: pa.BooleanArray) -> Mask:
    """True also where the summary does not say."""
    return mask_of(flag.fill_null(True))  # noqa: FBT003 - the value of an unknown flag
