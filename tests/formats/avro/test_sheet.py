"""Files in memory that are written again and again: each is read as it was written, and by nobody else."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.formats.avro import sheet as sheets
from tamis.formats.avro.sheet import Sheet, new_sheet


def written(*pieces: bytes) -> bytes:
    """What a reader of the path finds."""
    with new_sheet() as sheet:
        for piece in pieces:
            sheet.write(piece)
        sheet.finish()
        found = Path(sheet.path).read_bytes()
        assert sheet.content() == found
        assert sheet.size == len(found)
    return found


@given(st.lists(st.lists(st.binary(max_size=40), max_size=6), min_size=1, max_size=5), st.integers(1, 50))
def test_each_file_is_what_was_written_whatever_was_there_before(files: list[list[bytes]], held: int) -> None:
    """A rest of an earlier file would be decoded as entries of this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sheets, "_FLUSH_BYTES", held)
        patch.setattr(sheets, "_PIECES", 3)
        for pieces in files:
            assert written(*pieces) == b"".join(pieces)


def test_memory_is_written_again_by_the_same_thread_alone() -> None:
    seen: list[Sheet] = []

    def take() -> None:
        with new_sheet() as sheet:
            seen.append(sheet)

    take()
    take()
    other = Thread(target=take)
    other.start()
    other.join()
    assert seen[0] is seen[1]
    assert seen[2] is not seen[0]


def test_sheets_in_use_at_once_are_different() -> None:
    with new_sheet() as outer:
        outer.write(b"outer")
        assert written(b"inner, and longer") == b"inner, and longer"
        outer.finish()
        assert Path(outer.path).read_bytes() == b"outer"


def test_sheet_that_failed_or_grew_large_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever failed may still read it; and what is large would be held for nothing."""
    written(b"")
    with pytest.raises(KeyError), new_sheet() as failed:
        raise KeyError
    with new_sheet() as sheet:
        assert sheet is not failed
    monkeypatch.setattr(sheets, "_KEPT_BYTES", 10)
    with new_sheet() as large:
        large.write(bytes(11))
        large.finish()
    assert not Path(large.path).exists() or "memfd:tamis" not in str(Path(large.path).readlink())
    with new_sheet() as sheet:
        assert sheet is not large


def test_length_is_written_over_what_stood_there() -> None:
    with new_sheet() as sheet:
        for piece in (b"ab", b"00", b"cd"):
            sheet.write(piece)
        sheet.overwrite(2, b"12")
        sheet.write(b"e")
        sheet.finish()
        assert Path(sheet.path).read_bytes() == b"ab12cde"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_does_not_write_into_its_parents_file() -> None:
    with new_sheet() as sheet:
        kept = sheet
    sheets._KEPT.sheet = kept
    kept.write(b"the parent's")
    kept.finish()
    child = os.fork()
    if not child:
        try:
            ok = written(b"the child's own") == b"the child's own"
        finally:
            os._exit(0 if ok else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert kept.content() == b"the parent's"
    kept.clear()


def test_systems_without_files_in_memory_have_one_in_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.delattr(os, "writev", raising=False)
    monkeypatch.setattr(sheets._KEPT, "sheet", None, raising=False)
    assert written(b"abc", b"", b"def") == b"abcdef"
    assert written(b"x") == b"x"
    folder = Path(sheets._KEPT.sheet.path).parent
    assert folder.exists()
    sheets._KEPT.sheet = None
    assert not folder.exists()
