"""What Spark calls absent may be there: advice goes by why it is not seen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException

from tamis.errors import MissingFileError, UnreadableFileError
from tamis.spark.relation import _explained


def absent(path: str) -> Exception:
    """As Spark says it."""
    return AnalysisException(f"[PATH_NOT_FOUND] Path does not exist: {path}. SQLSTATE: 42K03")


@pytest.mark.parametrize("path", ["file:/no/such/file.parquet", "/no/such/file.parquet", "s3a://bucket/a.parquet"])
def test_file_that_is_gone_is_to_be_restored(path: str) -> None:
    found = _explained(absent(path), "parquet", [path])
    assert isinstance(found, MissingFileError)
    assert "restore it" in str(found)


def test_name_that_no_file_can_have_is_not_called_removed() -> None:
    found = _explained(absent("file:/" + "x" * 5000), "parquet", ["x"])
    assert isinstance(found, UnreadableFileError)
    assert "too long" in str(found)
    assert "removed" not in str(found)


def test_file_in_a_folder_that_may_not_be_searched_is_not_called_removed(tmp_path: Path) -> None:
    file = tmp_path / "closed" / "a.parquet"
    file.parent.mkdir()
    file.touch()
    file.parent.chmod(0)
    root = os.geteuid() == 0
    try:
        if root:
            os.seteuid(65534)
        found = _explained(absent(file.as_uri()), "parquet", [file.as_uri()])
    finally:
        if root:
            os.seteuid(0)
        file.parent.chmod(0o700)
    assert isinstance(found, UnreadableFileError)
    assert "Permission denied" in str(found)
    assert "permission to read it" in str(found)
