"""Over NFS a hard link may be made and its answer lost: then the file is asked, and if it cannot be, nobody knows."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tamis.errors import UnwritableFileError
from tamis.formats.storage import disk
from tamis.formats.storage.disk import LocalStorage


def test_a_link_that_nobody_can_tell_of_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stale handle says neither that the name was taken nor that it was not: it may be there."""

    def stale(*_: object, **__: object) -> None:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(disk.os, "link", stale)
    real = os.stat

    def stat(path: str, **said: bool) -> os.stat_result:
        if ".tamis-" in str(path):
            stale()
        return real(path, **said)

    monkeypatch.setattr(disk.os, "stat", stat)
    with pytest.raises(UnwritableFileError) as caught:
        LocalStorage().put_if_absent(str(tmp_path / "v1.metadata.json"), b"{}")
    assert caught.value.unknown
