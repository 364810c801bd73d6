"""Plans of rewrites of Paimon tables: deletion vectors are deletes of their files."""

from __future__ import annotations

from pathlib import Path

import tamis
from tamis.formats.paimon.kept_vectors import KeptVectors
from tests.making.paimon_manifests import MadeTable, entry, row, vectors

ID = {"id": 0, "name": "id", "type": "BIGINT"}
P = {"id": 1, "name": "p", "type": "STRING"}
GOOD = 256 << 20
"""A file of this size is no candidate by it."""


def part(value: str) -> bytes:
    return row(p=("STRING", value))


def candidates(table: MadeTable, **options: object) -> dict[str, tuple[int, int, bool]]:
    """Of each file its vectors, the rows that they delete, and whether it is a candidate."""
    plan = tamis.open(table.folder).rewrite(**options).plan()
    names = ("path", "deletes", "deleted_rows", "candidate")
    rows = zip(*(plan.candidates[name].to_pylist() for name in names), strict=True)
    return {path.rpartition("/")[2]: tuple(told) for path, *told in rows}


def test_rows_that_a_vector_deletes_make_its_file_a_candidate(tmp_path: Path) -> None:
    """Paimon's delete-ratio-threshold is ours: the index manifest tells how many rows each vector deletes."""
    table = MadeTable(tmp_path / "t", [ID])
    files = [entry(name, file_size=GOOD, row_count=10) for name in ("some", "many", "uncounted", "none")]
    index = [
        vectors("some", _CARDINALITY=2),
        vectors("many", _CARDINALITY=3),
        vectors("uncounted", _CARDINALITY=None),
    ]
    table.commit(*files, index=index)
    told = {"some": (1, 2, False), "many": (1, 3, True), "uncounted": (1, 0, False), "none": (0, 0, False)}
    assert candidates(table) == told
    by_word = candidates(table, options={"compaction.delete-ratio-threshold": "0.2"})
    assert [name for name, (*_, chosen) in by_word.items() if chosen] == ["some", "many"]
    by_count = candidates(table, delete_file_threshold=1, delete_ratio_threshold=1)
    assert [name for name, (*_, chosen) in by_count.items() if chosen] == ["some", "many", "uncounted"]


def test_group_has_the_index_files_of_its_files_each_once(tmp_path: Path) -> None:
    table = MadeTable(tmp_path / "t", [ID, P], partition=["p"])
    files = [entry(name, partition=part(p)) for p in ("a", "b") for name in ("f", "g")]
    index = [
        vectors("f", "g", partition=part("a")),
        vectors("g", partition=part("b")) | {"_FILE_NAME": "index-1"},
        vectors("gone", partition=part("b")) | {"_FILE_NAME": "index-2"},
    ]
    table.commit(*files, index=index)
    plan = tamis.open(table.folder).rewrite(rewrite_all=True).plan()
    assert plan.groups["delete_files"].to_pylist() == [
        [f"{table.folder}/index/index-0"],
        [f"{table.folder}/index/index-1"],
    ]
    assert plan.stats.delete_files == 2


def test_index_files_beside_data_files_are_found_there(tmp_path: Path) -> None:
    table = MadeTable(tmp_path / "t", [ID], options={"index-file-in-data-file-dir": "true"})
    table.commit(entry("f"), index=[vectors("f")])
    plan = tamis.open(table.folder).rewrite(rewrite_all=True).plan()
    assert plan.groups["delete_files"].to_pylist() == [[f"{table.folder}/bucket-0/index-0"]]


def test_index_manifest_is_read_once_for_all_batches(tmp_path: Path) -> None:
    """A table of thousands of manifests has as many batches."""
    table = MadeTable(tmp_path / "t", [ID])
    for number in range(3):
        table.commit(entry(f"f{number}"), index=[vectors("f0", "f1")])
    opened = tamis.open(table.folder)
    outcomes, source = opened.plan().outcomes, opened.source
    asked: list[str] = []

    def fetch(path: str) -> bytes:
        asked.append(path)
        return bytes(source.storage(path))

    deletes = KeptVectors(source.index_manifest, fetch, source.state.schema, source.location)
    assert sum(sum(deletes.count(outcome).to_pylist()) for outcome in (*outcomes, *outcomes)) == 4
    assert asked == [source.index_manifest]
