"""Keys sort as Spark compares: over all types, one by one and in whole arrays, there and back."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tamis.predicate.keys import Key, key_span
from tamis.sieve.key_values import is_value, to_values
from tamis.sieve.order import KeyArray, encode, ranks
from tests.making.harness import arrow
from tests.making.oracle import order, read
from tests.making.strategies import TYPES, values

TYPE = st.sampled_from(TYPES)


def _listed(found: KeyArray) -> list[Key]:
    return found.keys.tolist() if isinstance(found.keys, np.ndarray) else found.keys.to_pylist()


@given(st.data(), TYPE)
def test_keys_compare_as_values_do(data: st.DataObject, type_: pa.DataType) -> None:
    one, two = data.draw(values(type_)), data.draw(values(type_))
    left, right = _listed(encode(arrow([one, two], type_), type_))
    assert (left > right) - (left < right) == order(read(one, type_), read(two, type_))


@given(st.data(), TYPE)
def test_keys_lie_within_the_span_of_their_type(data: st.DataObject, type_: pa.DataType) -> None:
    (key,) = _listed(encode(arrow([data.draw(values(type_))], type_), type_))
    span = key_span(type_)
    assert span.least <= key  # type: ignore[operator] # one kind of key a type
    assert span.greatest is None or key <= span.greatest  # type: ignore[operator] # as above


@given(st.data(), TYPE)
def test_keys_go_back_to_values(data: st.DataObject, type_: pa.DataType) -> None:
    found = data.draw(st.lists(st.none() | values(type_), max_size=5))
    keys = encode(arrow(found, type_), type_)
    known = [key if valid else None for key, valid in zip(_listed(keys), keys.valid, strict=True)]
    assert all(key is None or is_value(key, type_) for key in known)
    back = encode(to_values(known, type_), type_)
    assert back.valid.tolist() == keys.valid.tolist()
    assert [key for key, valid in zip(_listed(back), back.valid, strict=True) if valid] == [
        k for k in known if k is not None
    ]


@given(st.data(), TYPE, st.integers(0, 40), st.sampled_from(["left", "right"]))
def test_ranks_are_bisections(data: st.DataObject, type_: pa.DataType, most: int, side: str) -> None:
    """Whatever way ranks are counted: with few cuts, with many, or eight bytes at a time."""
    drawn = data.draw(st.lists(values(type_), min_size=most // 2, max_size=most))
    cuts = sorted(set(_listed(encode(arrow(drawn, type_), type_))))
    array = np.empty(len(cuts), object) if cuts and isinstance(cuts[0], bytes) else np.empty(len(cuts), np.int64)
    array[:] = cuts
    keys = encode(arrow([*drawn[:3], *data.draw(st.lists(values(type_), max_size=4))], type_), type_)
    search = bisect_right if side == "right" else bisect_left
    assert ranks(keys, array, side).tolist() == [search(cuts, key) for key in _listed(keys)]  # type: ignore[arg-type,type-var]


@given(
    st.binary(max_size=12),
    st.lists(st.binary(max_size=11), min_size=9, max_size=30, unique=True),
    st.lists(st.binary(max_size=3), max_size=6),
    st.sampled_from(["left", "right"]),
)
def test_ranks_of_bytes_that_share_a_beginning(
    prefix: bytes, tails: list[bytes], others: list[bytes], side: str
) -> None:
    """What all cuts share is stripped; what does not share it stands before or behind them all."""
    cuts = sorted(prefix + tail for tail in tails)
    found = [*cuts, *others, *(prefix + other for other in others), prefix[:-1], prefix, prefix + b"\xff" * 12]
    found += [cut + b"\x00" for cut in cuts] + [cut[:-1] for cut in cuts]
    array = np.empty(len(cuts), object)
    array[:] = cuts
    search = bisect_right if side == "right" else bisect_left
    keys = encode(pa.array(found, pa.large_binary()), pa.binary())
    assert ranks(keys, array, side).tolist() == [search(cuts, value) for value in found]  # type: ignore[arg-type]
