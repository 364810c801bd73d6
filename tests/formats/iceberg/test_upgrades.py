"""Commits that meet a newer version of the format than they were begun with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tamis.errors import CommitConflict
from tests.making.edits import data_file, edit, entries, latest, make_table, planned, writable


def append(path: str, number: int) -> None:
    """One file."""
    table = writable(path)
    table.commit(edit(table, "append", added=(data_file(path, number, 1),)))


@pytest.mark.parametrize("rewrites", [True, False])
def test_rows_get_ids_while_they_are_written_again(tmp_path: Path, rewrites: bool) -> None:
    """With version 3, which comes meanwhile, rows have ids: files that were begun before have none for them."""
    path = make_table(tmp_path, 2)
    append(path, 1)
    table = writable(path)
    _, mine = planned(table, lambda _: True)
    document = {**latest(path), "format-version": 3, "next-row-id": 0}
    Path(path, "metadata", "v3.metadata.json").write_text(json.dumps(document))
    append(path, 2)  # gives all rows that there are their ids
    if rewrites:
        with pytest.raises(CommitConflict, match="lose the ids"):
            table.commit(edit(table, "overwrite", removed=mine, added=(data_file(path, 3, 3),)))
    else:
        table.commit(edit(table, "delete", removed=mine))
    names = sorted(Path(one.path).stem for one in entries(path))
    assert names == (["f1", "f2"] if rewrites else ["f2"])
