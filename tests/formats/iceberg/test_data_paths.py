"""Where new files lie, by what the table says: as PyIceberg has it, whose own tests follow Java's."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.partitioning import PartitionKey, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.locations import load_location_provider
from pyiceberg.typedef import Record

import tamis
from tamis.formats.iceberg.stage import check_supported, place_of
from tamis.formats.iceberg.table import IcebergTable
from tests.making.edits import latest, make_table

HASHED = "write.object-storage.enabled"


class Key(PartitionKey):
    """A partition whose path is given."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__([], PartitionSpec(), Schema())

    @property
    def partition(self) -> Record:
        return Record()

    def to_path(self) -> str:
        return self.path


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"write.data.path": "{}/elsewhere"},
        {"write.data.path": "s3://lake/shared/", "write.object-storage.path": "s3://not/used"},
        {"write.object-storage.partitioned-paths": "false"},
    ],
)
@pytest.mark.parametrize("hashed", ["true", "false"])
def test_files_lie_where_pyiceberg_would_put_them(tmp_path: Path, properties: dict[str, str], hashed: str) -> None:
    """Object stores are fast where names begin with a hash. The context of a folder elsewhere is Java's alone."""
    path = str(tmp_path / "db" / "t")
    said = {HASHED: hashed, **{key: value.format(path) for key, value in properties.items()}}
    make_table(Path(path), 2, properties=said)
    source = tamis.open(path, cache=False).source
    assert isinstance(source, IcebergTable)
    check_supported("t", latest(path), source.metadata)
    theirs = load_location_provider(path, said)
    for name in ("a", "00000-0-é b.parquet"):
        context = "db/t/" if hashed == "true" and "s3://" in said.get("write.data.path", "") else ""
        assert place_of(source.metadata).path((), name) == _with(context, theirs.new_data_location(name))
        mine = place_of(source.metadata, source.metadata.layout(1)).path(("eu",), name)
        assert mine == _with(context, theirs.new_data_location(name, Key("region=eu")))


def _with(context: str, path: str) -> str:
    """The path with the context behind its hash."""
    parts = path.split("/")
    return "/".join([*parts[:8], context.rstrip("/"), *parts[8:]]) if context else path


def test_a_folder_for_hashed_paths_alone_is_used_for_these_alone(tmp_path: Path) -> None:
    folders = {"write.object-storage.path": "s3://lake/hashed", "write.folder-storage.path": "s3://lake/plain"}
    found = []
    for hashed in ("true", "false"):
        path = make_table(tmp_path / "db" / hashed, 2, properties={HASHED: hashed, **folders})
        source = tamis.open(path, cache=False).source
        assert isinstance(source, IcebergTable)
        found.append(place_of(source.metadata).path((), "c"))
    assert found == ["s3://lake/hashed/0010/1101/0110/01011111/db/true/c", "s3://lake/plain/c"]
