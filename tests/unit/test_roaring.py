"""Roaring bitmaps against the library that everybody has them from, and against damage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from tamis.formats.roaring import positions

RUN = st.tuples(st.integers(0, 200_000), st.integers(1, 70_000)).map(lambda run: range(run[0], run[0] + run[1]))
HIGH = st.sampled_from([0, 1, 7, (1 << 31) - 1]).map(lambda high: high << 32)


@given(
    st.lists(st.integers(0, (1 << 63) - 1) | st.integers(0, 300_000), max_size=200),
    st.lists(st.tuples(HIGH, RUN), max_size=3),
    st.booleans(),
)
def test_every_kind_of_container_gives_its_positions(
    single: list[int], runs: list[tuple[int, range]], optimized: bool
) -> None:
    """Arrays, bitmaps and runs, with and without a table of offsets, in several 32-bit bitmaps."""
    bitmap = BitMap64(single)
    for high, run in runs:
        bitmap |= BitMap64(range(high + run.start, high + run.stop))
    if optimized:
        bitmap.run_optimize()
    assert positions(bitmap.serialize()).tolist() == list(bitmap)


def test_full_containers_and_their_edges_are_right() -> None:
    """4,096 values are the last array, 4,097 the first bitmap; a container has up to 65,536."""
    for count in (1, 4095, 4096, 4097, 65_535, 65_536, 65_537):
        spread = BitMap64(range(0, 3 * count, 3))
        assert positions(spread.serialize()).tolist() == list(range(0, 3 * count, 3))
        whole = BitMap64(range(count))
        assert positions(whole.serialize()).tolist() == list(range(count))


def test_an_empty_bitmap_has_no_positions() -> None:
    assert positions(BitMap64().serialize()).dtype == np.int64
    assert len(positions(BitMap64().serialize())) == 0


@given(st.integers(0, 400))
def test_a_bitmap_that_ends_too_early_is_an_error(length: int) -> None:
    """Rows must not come back because half of a bitmap was read as all of it."""
    bitmap = BitMap64([*range(0, 90, 3), *range(100_000, 100_050), 1 << 33])
    raw = bitmap.serialize()
    if length < len(raw):
        with pytest.raises(ValueError, match=r"ends too early|no roaring"):
            positions(raw[:length])


def test_bytes_that_are_no_bitmap_are_an_error() -> None:
    raw = bytearray(BitMap64([1, 2, 3]).serialize())
    raw[12] ^= 0xFF  # the cookie of the first 32-bit bitmap
    with pytest.raises(ValueError, match="not a roaring bitmap"):
        positions(bytes(raw))
