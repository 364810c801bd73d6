"""Versions of rows, merged by files' masks, against merging them one by one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.spark.merging_files import Rule, chosen_versions

ADDED, REPLACED, UPDATED, REMOVED = 0, 1, 2, 3
KEYS = {
    "numbers": (pa.schema([("k", pa.int32())]), [(one,) for one in range(6)]),
    "texts": (pa.schema([("k", pa.string())]), [(one,) for one in ("", "a", "ä", "b" * 40)]),
    "pairs": (pa.schema([("k", pa.int64()), ("l", pa.string())]), [(a, b) for a in (0, 1) for b in ("", "x", "y")]),
}


def one_by_one(versions: list[dict[str, Any]], rule: Rule) -> list[int]:
    """The places of the versions that are rows, as the format's own readers find them."""
    rows: dict[Any, list[int]] = {}
    for place, version in enumerate(versions):
        rows.setdefault(tuple(version[name] for name in rule.keys.names), []).append(place)
    found = []
    for places in rows.values():
        ordered = sorted(places, key=lambda place: _order(versions[place], rule))
        if len(ordered) > 1 and rule.ignores_removals:
            ordered = [place for place in ordered if versions[place][rule.kind] not in rule.removing]
        if ordered:
            chosen = ordered[0] if rule.oldest else ordered[-1]
            if versions[chosen][rule.kind] not in rule.removing:
                found.append(chosen)
    return sorted(found)


def _order(version: dict[str, Any], rule: Rule) -> list[tuple[bool, Any]]:
    """NULL is the oldest, whatever the order of values is."""
    found: list[tuple[bool, Any]] = []
    for name, _, descending in rule.order:
        value = version[name]
        found.append((value is not None, 0 if value is None else -value if descending else value))
    return found


@st.composite
def sections(draw: st.DrawFn) -> tuple[list[list[dict[str, Any]]], Rule]:
    """Files of versions, and a rule. Some files have a key twice, some versions the sequence number of others."""
    schema, keys = KEYS[draw(st.sampled_from(sorted(KEYS)))]
    by_column = draw(st.booleans())
    descending = draw(st.booleans())
    order = (*((("o", pa.int32(), descending),) if by_column else ()), ("_SEQ", pa.int64(), False))
    rule = Rule(schema, schema, order, "_KIND", (REPLACED, REMOVED), draw(st.booleans()), draw(st.booleans()), None)
    alike = draw(st.sampled_from([1, 8]))
    numbers = [number // alike for number in draw(st.permutations(range(24)))]
    twice = draw(st.booleans())
    files: list[list[dict[str, Any]]] = []
    for _ in range(draw(st.integers(1, 4))):
        chosen = draw(st.lists(st.sampled_from(keys), max_size=6, unique=not twice))
        files.append(
            [
                dict(zip(schema.names, key, strict=True))
                | {"o": draw(st.none() | st.integers(-2, 2)), "_SEQ": numbers.pop()}
                | {"_KIND": draw(st.sampled_from([ADDED, ADDED, UPDATED, REPLACED, REMOVED]))}
                for key in sorted(chosen)
            ]
        )
    return files, rule


@given(sections())
def test_masks_choose_the_versions_that_merging_one_by_one_does(
    section: tuple[list[list[dict[str, Any]]], Rule],
) -> None:
    files, rule = section
    heads = [pa.Table.from_pylist(file, schema=rule.head) for file in files]
    masks = chosen_versions(heads, rule)
    assert [len(mask) for mask in masks] == [len(file) for file in files]
    chosen = [place for place, taken in enumerate(taken for mask in masks for taken in mask.tolist()) if taken]
    assert chosen == one_by_one([version for file in files for version in file], rule)


def test_a_removal_that_cannot_be_merged_is_an_error_only_beside_other_versions() -> None:
    """Of a row that has but that one version nothing has to be merged."""
    schema = pa.schema([("k", pa.int32())])
    rule = Rule(schema, schema, (("_SEQ", pa.int64(), False),), "_KIND", (1, 3), False, False, "it cannot be merged")
    alone = pa.Table.from_pylist([{"k": 1, "_SEQ": 1, "_KIND": 3}, {"k": 2, "_SEQ": 2, "_KIND": 0}], schema=rule.head)
    (mask,) = chosen_versions([alone], rule)
    assert mask.tolist() == [False, True]
    beside = pa.Table.from_pylist([{"k": 1, "_SEQ": 3, "_KIND": 0}], schema=rule.head)
    with pytest.raises(ValueError, match="cannot be merged"):
        chosen_versions([alone, beside], rule)
