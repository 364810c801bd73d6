"""Rows to Parquet files, as a task on an executor does it: every row in one file, of its own partition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tamis.formats.edit import NewFile, WriteField
from tamis.formats.iceberg.data_files import DataFiles, ParquetOptions
from tamis.formats.iceberg.data_paths import Place
from tamis.formats.iceberg.metrics import metrics_modes
from tamis.formats.storage.sinks import DataStore
from tamis.sieve.transforms import Transform

FIELDS = (
    WriteField(1, "id", pa.int64(), required=True),
    WriteField(2, "info", pa.struct({"a": pa.int32()}), children=(WriteField(3, "a", pa.int32()),)),
    WriteField(4, "tags", pa.list_(pa.string()), children=(WriteField(5, "element", pa.string()),)),
    WriteField(
        6,
        "pairs",
        pa.map_(pa.string(), pa.int32()),
        children=(WriteField(7, "key", pa.string(), required=True), WriteField(8, "value", pa.int32())),
    ),
)
GIVEN = pa.schema(
    {
        "id": pa.int64(),
        "info": pa.struct({"a": pa.int32()}),
        "tags": pa.list_(pa.string()),
        "pairs": pa.map_(pa.string(), pa.int32()),
        "key": pa.float64(),
    }
)


def plan(folder: Path, fields: tuple[WriteField, ...] = FIELDS, **changes: Any) -> DataFiles:  # noqa: ANN401 - any
    chosen: dict[str, Any] = {
        "fields": fields,
        "spec_id": 3,
        "partition_types": (pa.string(), pa.float64()),
        "given": (1,),
        "place": Place(
            str(folder), ("gone", "k"), (Transform("void"), Transform("identity")), (pa.string(), pa.float64())
        ),
        "storage": DataStore(),
        "modes": metrics_modes(fields, {}),
        "target_bytes": 1 << 29,
        "options": ParquetOptions(),
        "sort_order_id": 0,
    }
    return DataFiles(**chosen | changes)


def batch(*rows: tuple[int | None, float | None]) -> pa.RecordBatch:
    """Rows with a NULL, an empty and a filled value in turn in everything nested, and a partition value."""
    made = [
        {
            "id": id_,
            "info": (None, {"a": None}, {"a": id_})[(id_ or 0) % 3],
            "tags": (None, [], ["x", None, str(id_)])[(id_ or 0) % 3],
            "pairs": (None, [], [("k", None), (str(id_), 1)])[(id_ or 0) % 3],
            "key": key,
        }
        for id_, key in rows
    ]
    return pa.RecordBatch.from_pylist(made, GIVEN)


def written(files: Iterator[NewFile]) -> dict[str, list[dict[str, Any]]]:
    """The rows of all files, by partition value."""
    found: dict[str, list[dict[str, Any]]] = {}
    for file in files:
        rows = pq.read_table(file.path, partitioning=None).to_pylist()
        assert (file.rows, file.size) == (len(rows), Path(file.path).stat().st_size)
        assert (file.spec_id, file.partition[0]) == (3, None)
        found.setdefault(repr(file.partition[1]), []).extend(rows)
    return found


KEY = st.none() | st.sampled_from([0.0, -0.0, float("nan"), 1.5])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(KEY, max_size=8), max_size=4), st.integers(0, 2))
def test_every_row_is_in_one_file_of_its_own_partition(
    tmp_path: Path, batches: list[list[float | None]], skipped: int
) -> None:
    """Whatever the order, in slices of batches too: NULL, NaN and both zeros are partitions of their own."""
    rows = [[(10 * place + n, key) for n, key in enumerate(keys)] for place, keys in enumerate(batches)]
    found = written(plan(tmp_path)((batch(*chunk).slice(skipped) for chunk in rows), "t"))
    wanted: dict[str, list[dict[str, Any]]] = {}
    for chunk in rows:
        for row, (_, key) in zip(batch(*chunk).to_pylist()[skipped:], chunk[skipped:], strict=True):
            wanted.setdefault(repr(key), []).append({name: row[name] for name in GIVEN.names[:-1]})
    assert {key: sorted(map(repr, rows)) for key, rows in found.items()} == {
        key: sorted(map(repr, rows)) for key, rows in wanted.items()
    }
    for path in tmp_path.rglob("*.parquet"):
        path.unlink()


def test_files_have_the_tables_field_ids_and_statistics(tmp_path: Path) -> None:
    """Inside structs, lists and maps as well: readers find columns by nothing else."""
    (file,) = plan(tmp_path)([batch(*((n, 1.5) for n in range(6)))], "t")
    schema = pq.ParquetFile(file.path).schema
    assert [schema.column(place).path for place in range(5)] == [
        "id",
        "info.a",
        "tags.list.element",
        "pairs.key_value.key",
        "pairs.key_value.value",
    ]
    ids = {one.name: int(one.metadata[b"PARQUET:field_id"]) for one in pq.read_schema(file.path)}
    assert ids == {"id": 1, "info": 2, "tags": 4, "pairs": 6}
    assert "field_id=5" in str(schema)
    assert "field_id=8" in str(schema)
    assert schema.column(0).max_definition_level == 0  # required
    assert set(file.column_sizes) == {1, 3, 5, 7, 8}
    assert (file.value_counts, file.null_counts) == ({1: 6, 3: 6}, {1: 0, 3: 4})
    assert file.lower[3] == (2).to_bytes(4, "little")
    assert file.split_offsets == (4,)


def test_a_file_that_is_large_enough_is_followed_by_another(tmp_path: Path) -> None:
    rows = [batch(*((n + 1000 * place, 0.5) for n in range(1000))) for place in range(40)]
    options = ParquetOptions(codec="none", row_group_bytes=50_000)
    files = list(plan(tmp_path, target_bytes=100_000, options=options)(rows, "t"))
    assert len(files) > 3
    assert all(100_000 <= file.size < 200_000 for file in files[:-1])
    assert all(len(file.split_offsets) > 1 for file in files[:-1])
    assert len({file.path for file in files}) == len(files)
    assert sum(file.rows for file in files) == 40_000


@pytest.mark.parametrize("failing", ["null", "source"])
def test_a_task_that_fails_leaves_no_file(tmp_path: Path, failing: str) -> None:
    """Neither the one that was open nor those that were finished."""

    def rows() -> Iterator[pa.RecordBatch]:
        yield batch((1, 1.5), (2, 0.0))
        if failing == "source":
            raise OSError("the network is gone")
        yield batch((None, 0.0))

    with pytest.raises((ValueError, OSError), match=r"NULL in the required column 'id'|network"):
        list(plan(tmp_path)(rows(), "t"))
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_null_in_a_required_part_is_refused_unless_what_holds_it_is_null(tmp_path: Path) -> None:
    part = WriteField(3, "a", pa.int32(), required=True)
    fields = (WriteField(2, "info", pa.struct({"a": pa.int32()}), children=(part,)),)
    schema = pa.schema({"info": pa.struct({"a": pa.int32()}), "key": pa.float64()})
    fine = pa.RecordBatch.from_pylist([{"info": None}, {"info": {"a": 1}}], schema)
    (file,) = plan(tmp_path, fields)([fine], "t")
    assert pq.read_table(file.path, partitioning=None).to_pylist() == [{"info": None}, {"info": {"a": 1}}]
    with pytest.raises(ValueError, match=r"'info\.a'"):
        list(plan(tmp_path, fields)([pa.RecordBatch.from_pylist([{"info": {"a": None}}], schema)], "u"))


def test_files_of_a_failed_job_are_found_by_its_token(tmp_path: Path) -> None:
    ours = plan(tmp_path)
    list(ours([batch((1, 1.5))], "00000-1-mine-x"))
    (other,) = ours([batch((2, 1.5))], "00000-1-theirs-x")
    ours.discard("mine")
    assert [str(path) for path in tmp_path.rglob("*.parquet")] == [other.path]


def test_a_path_is_one_that_every_file_system_takes() -> None:
    """Values of any length and with any characters in them."""
    place = Place("/t/data", ("a b", "d"), (Transform("identity"), Transform("day")), (pa.string(), pa.date32()))
    path = place.path(["é/=😀" * 500, -1], "f.parquet")
    assert path.endswith("/d=1969-12-31/f.parquet")
    folders = path.split("/")
    assert len(folders) == 6
    assert all(len(folder) < 255 and folder.isascii() for folder in folders)
    assert place.path(["x" * 500 + "1", 0], "f") != place.path(["x" * 500 + "2", 0], "f")
    assert place.path([None, 10**8], "f").startswith("/t/data/a+b=null/d=")


def test_a_file_uri_is_written_as_it_is_spelled(tmp_path: Path) -> None:
    """Paths have escapes of their own in them, which a URI's reader must not take for its own."""
    place = Place(tmp_path.as_uri(), ("k",), (Transform("identity"),), (pa.string(),))
    types = {"partition_types": (pa.string(),), "given": (0,), "place": place}
    rows = pa.RecordBatch.from_pylist(
        [{"id": 1, "key": "a/b 50%"}], pa.schema({"id": pa.int64(), "key": pa.string()})
    )
    (file,) = plan(tmp_path, FIELDS[:1], **types)([rows], "t")
    assert "k=a%2Fb+50%25/" in file.path
    assert Path(file.path.removeprefix("file://")).stat().st_size == file.size


@pytest.mark.parametrize(
    ("root", "inside"),
    [
        ("gs://anonymous@bucket", "bucket"),
        ("abfss://box@account.dfs.core.windows.net", "box"),
        ("s3://bucket", "bucket"),
    ],
)
def test_an_object_has_the_name_that_the_manifest_says(root: str, inside: str) -> None:
    """Escapes of a partition's value are part of the name: a store that unescapes them has another object."""
    store = DataStore({"s3.endpoint": "http://localhost:1", "s3.region": "us-east-1"})
    assert store._system(f"{root}/t/p=a%2Fb%3A+c/x.parquet")[1] == f"{inside}/t/p=a%2Fb%3A+c/x.parquet"
