"""A bloom filter never forgets a key, and means the same on every machine."""

import zlib

import numpy as np
import pyarrow as pa
import pytest

from tamis.errors import FilterInputError
from tamis.sieve.join.bloom import Bloom

INTS = np.array([0, 1, -1, 2**63 - 1, -(2**63), 42, 7_000_000_000], np.int64)
TEXTS = pa.array(
    [b"", b"a", b"\x00", b"a\x00", b"customer-1", b"12345678", b"123456789", b"x" * 64, b"x" * 65, b"y" * 5000],
    pa.large_binary(),
)


@pytest.mark.parametrize("keys", [INTS, TEXTS], ids=["ints", "bytes"])
def test_every_added_key_is_found(keys: np.ndarray | pa.Array) -> None:
    assert Bloom.of(keys).contains(keys).all()


def test_foreign_keys_are_found_as_rarely_as_asked_for() -> None:
    keys = np.arange(50_000, dtype=np.int64) * 3
    for rate in (0.2, 0.01, 0.001):
        bloom = Bloom.of(keys, false_positives=rate)
        assert bloom.contains(keys).all()
        assert bloom.contains(keys + 1).mean() == pytest.approx(rate, rel=0.3, abs=2e-4)
        assert bloom.false_positives == pytest.approx(rate, rel=0.2)


def test_foreign_strings_are_found_as_rarely_as_asked_for() -> None:
    """Keys that differ in one byte, or in trailing NULs, are different keys."""
    keys = pa.array([f"customer-{i:06}".encode() for i in range(20_000)], pa.large_binary())
    foreign = pa.array([f"customer-{i:06}\0".encode() for i in range(20_000)], pa.large_binary())
    assert Bloom.of(keys).contains(foreign).mean() == pytest.approx(0.01, rel=0.3)


def test_empty_filter_finds_nothing() -> None:
    assert not Bloom.sized(0).contains(INTS).any()
    assert not Bloom.sized(10, of_bytes=True).contains(TEXTS).any()


def test_null_is_no_key() -> None:
    keys = pa.array([b"a", None, b"b"], pa.large_binary())
    bloom = Bloom.of(keys)
    assert bloom.items == 2
    assert bloom.contains(keys).tolist() == [True, False, True]
    assert not bloom.contains(pa.array([None, None], pa.large_binary())).any()


def test_slice_of_an_array_is_hashed_as_itself() -> None:
    """Arrow slices share buffers; an offset that is forgotten hashes the wrong bytes."""
    assert Bloom.of(TEXTS.slice(3, 4)).contains(pa.array(TEXTS.slice(3, 4).to_pylist(), pa.large_binary())).all()


def test_merged_filter_finds_the_keys_of_both() -> None:
    parts = [Bloom.sized(100) for _ in range(2)]
    parts[0].add(INTS[:3])
    parts[1].add(INTS[3:])
    merged = parts[0].merge(parts[1])
    assert merged.contains(INTS).all()
    assert merged.items == len(INTS)
    assert not parts[0].contains(INTS).all()


def test_filters_of_unequal_size_or_kind_do_not_merge() -> None:
    with pytest.raises(FilterInputError, match="same arguments"):
        Bloom.sized(10).merge(Bloom.sized(100_000))
    with pytest.raises(FilterInputError, match="same arguments"):
        Bloom.sized(10).merge(Bloom.sized(10, of_bytes=True))


def test_keys_of_the_other_kind_are_refused() -> None:
    """An int and its bytes have different hashes: an answer would be a false negative."""
    with pytest.raises(FilterInputError, match="64-bit keys"):
        Bloom.sized(10).contains(TEXTS)
    with pytest.raises(FilterInputError, match="byte keys"):
        Bloom.sized(10, of_bytes=True).add(INTS)


@pytest.mark.parametrize(("items", "rate"), [(-1, 0.01), (1, 0.0), (1, 1.0)])
def test_impossible_size_is_refused(items: int, rate: float) -> None:
    with pytest.raises(FilterInputError, match="cannot size"):
        Bloom.sized(items, false_positives=rate)


@pytest.mark.parametrize("keys", [INTS, TEXTS], ids=["ints", "bytes"])
def test_shipped_filter_is_the_same(keys: np.ndarray | pa.Array) -> None:
    bloom = Bloom.of(keys)
    shipped = Bloom.from_bytes(bloom.to_bytes())
    assert shipped.contains(keys).all()
    assert (shipped.items, shipped.of_bytes) == (bloom.items, bloom.of_bytes)
    assert shipped.to_bytes() == bloom.to_bytes()


def test_damaged_filter_is_an_error() -> None:
    """A bit lost on the way would be a row lost from the join."""
    data = Bloom.of(INTS).to_bytes()
    broken = bytearray(data)
    broken[-1] ^= 1
    for bad in (b"", data[:10], data[:-1], data + b"\0", bytes(broken)):
        with pytest.raises(FilterInputError):
            Bloom.from_bytes(bad)


def test_filter_of_another_version_is_an_error() -> None:
    data = bytearray(Bloom.of(INTS).to_bytes())
    data[7] = 2
    with pytest.raises(FilterInputError, match="format version 2"):
        Bloom.from_bytes(bytes(data))


def test_format_is_stable() -> None:
    """Executors and the driver must agree; these checksums may change only together with the version byte."""
    ints = Bloom.of(np.arange(1000, dtype=np.int64)).to_bytes()
    texts = Bloom.of(pa.array([str(i).encode() * (i % 30) for i in range(1000)], pa.large_binary())).to_bytes()
    assert (zlib.crc32(ints), zlib.crc32(texts)) == (593964356, 98625959)
