"""What a commit leaves alone: files of one that has happened, whatever was heard of it, and files listed before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

import tamis
from tamis.errors import CommitStateUnknown
from tamis.formats import writable_table
from tamis.formats.edit import Edit, NewFile, new_snapshot_id
from tamis.formats.iceberg import commit
from tamis.formats.iceberg.held import HeldFiles, ReadFiles
from tamis.jobs.retrying import committed
from tamis.sieve.files import FileBatch


def catalog_of(folder: Path, kind: type[SqlCatalog] = SqlCatalog) -> Catalog:
    made = kind("kept", uri=f"sqlite:///{folder / 'kept.db'}", warehouse=folder.as_uri())
    made.create_namespace_if_not_exists("db")
    return made


def staged(catalog: Catalog) -> tuple[Any, Edit]:
    schema = Schema(NestedField(1, "id", LongType(), required=False))
    table = catalog.create_table("db.t", schema)
    source = tamis.open("db.t", catalog=catalog, cache=False).source
    writable = writable_table(source)
    file = NewFile(f"{table.location()}/data/one.parquet", 10, 1, 0)
    return writable, Edit("append", None, writable.schema_id, new_snapshot_id(), (file,))


def is_whole(catalog: Catalog, edit: Edit) -> bool:
    table = catalog.load_table("db.t")
    assert table.current_snapshot() is not None
    files = [task.file.file_path for task in table.scan().plan_files()]
    return files == [file.path for file in edit.added]


class _Deaf(SqlCatalog):
    """A catalog whose client asks again when an answer was lost, and then hears of its own commit as another's."""

    def commit_table(self, *args: Any) -> Any:  # noqa: ANN401 - as PyIceberg has it
        super().commit_table(*args)
        raise CommitFailedException("detected concurrent update")


@pytest.mark.parametrize("again", [True, False])
def test_a_commit_that_its_client_takes_for_another_is_kept(tmp_path: Path, *, again: bool) -> None:
    """Glue's client does so: its own second request fails on what the first has done."""
    catalog = catalog_of(tmp_path, _Deaf)
    table, edit = staged(catalog)
    done = committed(table, edit, sleep=lambda _: None)[0] if again else table.commit(edit)
    assert done.snapshot_id == edit.snapshot_id
    assert is_whole(catalog, edit)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_behind_a_commit_does_not_look_like_one_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """The new document is parsed after the swap: whoever is interrupted there must not remove its files."""
    catalog = catalog_of(tmp_path)
    table, edit = staged(catalog)
    publish: Callable[..., str] = type(table.home).publish

    def then_fail(*args: Any) -> str:  # noqa: ANN401 - as publish has them
        found = publish(*args)

        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr(commit.State, "of", fail)
        return found

    monkeypatch.setattr(type(table.home), "publish", then_fail)
    with pytest.raises(CommitStateUnknown) as caught:
        table.commit(edit)
    monkeypatch.undo()
    assert caught.value.snapshot_id == edit.snapshot_id
    assert is_whole(catalog, edit)


def batch_of(*places: tuple[int, int]) -> FileBatch:
    """Files by their manifest's index and their entry."""
    return FileBatch(
        pa.array([f"{manifest}-{entry}" for manifest, entry in places]),
        pa.array([1] * len(places), pa.int64()),
        pa.array([1] * len(places), pa.int64()),
        extra={
            "manifest": pa.array([one[0] for one in places], pa.int32()),
            "entry": pa.array([one[1] for one in places], pa.int32()),
        },
    )


def test_a_manifest_that_two_units_have_read_is_held_once() -> None:
    """The second unit has one manifest that is held and one that is not: both are read."""
    read = ReadFiles()
    HeldFiles(read, np.array([0, 1, 2], np.int32)).add([0, 2], [batch_of((0, 0), (0, 1), (2, 0))])
    second = HeldFiles(read, np.array([0, 1], np.int32))
    assert second.find([0, 1]) is None
    second.add([0, 1], [batch_of((0, 0), (0, 1), (1, 0))])
    found = second.find([0, 1])
    assert found is not None
    assert [path for one in found for path in one.path.to_pylist()] == ["0-0", "0-1", "1-0"]
