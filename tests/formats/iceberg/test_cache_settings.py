"""The settings of the cache are understood, or are an error that says what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.errors import SettingError
from tamis.formats.storage.cache import FOLDER, LIMIT, MetadataCache


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the cache of these tests would be."""
    chosen = tmp_path / "cache of my own"
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(chosen))
    monkeypatch.delenv("TAMIS_CACHE")
    return chosen


@pytest.mark.parametrize(
    ("text", "size"),
    [("", LIMIT), (" 1000 ", 1000), ("2GiB", 2 << 30), ("1.5 kb", 1500), ("3m", 3 << 20), ("7B", 7), ("1e3", None)]
    + [(text, None) for text in ("two gigabytes", "-1", "2 GiBs", "nan", "1,000", "٣")],
)
def test_a_limit_is_a_size_or_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, size: int | None
) -> None:
    """A limit that is not understood would fill a disk that the user thought protected."""
    monkeypatch.setenv("TAMIS_CACHE_BYTES", text)
    if size is None:
        with pytest.raises(SettingError, match="TAMIS_CACHE_BYTES") as caught:
            MetadataCache.chosen()
        assert (caught.value.variable, caught.value.value) == ("TAMIS_CACHE_BYTES", text)
        assert MetadataCache.chosen(wanted=False) is None
        return
    chosen = MetadataCache.chosen()
    assert chosen is not None
    assert (chosen.limit, chosen.folder) == (size, folder / FOLDER)


def test_a_switch_that_is_neither_on_nor_off_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever writes TAMIS_CACHE=disabled wants no values of rows on the disk."""
    monkeypatch.setenv("TAMIS_CACHE", "disabled")
    with pytest.raises(SettingError, match=r"TAMIS_CACHE is 'disabled'.* on or off"):
        MetadataCache.chosen()
    assert not folder.exists()


def test_a_home_is_found_and_a_strange_one_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder named ~ in the current one is what nobody meant."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TAMIS_CACHE_DIR", "~/mine")
    chosen = MetadataCache.chosen(wanted=True)
    assert chosen is not None
    assert chosen.folder == tmp_path / "mine" / FOLDER
    monkeypatch.setenv("TAMIS_CACHE_DIR", "~no-such-user/mine")
    with pytest.raises(SettingError, match="TAMIS_CACHE_DIR"):
        MetadataCache.chosen(wanted=True)
