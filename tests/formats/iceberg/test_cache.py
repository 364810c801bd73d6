"""A plan from the cache is the plan without it, whatever has happened to the cache in between."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestampType, UUIDType

import tamis
from tamis.errors import TamisError
from tamis.formats.iceberg import stored
from tamis.formats.iceberg.manifest_list import Manifest, read_manifest_list
from tamis.formats.iceberg.manifests import read_data_files
from tamis.formats.iceberg.metadata import TableMetadata
from tamis.formats.storage.cache import FOLDER, MetadataCache
from tamis.formats.storage.local import fetch_local
from tamis.sieve.files import FileBatch
from tests.making.manifests import avro_bytes, create, entry, entry_schema, metadata_of, parsed, table_document

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "region", StringType()),
    NestedField(3, "ts", TimestampType()),
    NestedField(4, "price", DoubleType()),
    NestedField(5, "trace", UUIDType()),
)
SPEC = PartitionSpec(
    PartitionField(3, 1000, DayTransform(), "ts_day"),
    PartitionField(1, 1001, BucketTransform(4), "id_bucket"),
    PartitionField(5, 1002, IdentityTransform(), "trace"),
)
STATS = ("lower", "upper", "null_count", "nan_count")
PREDICATES = (
    None,
    "region = 'eu'",
    "id in (3, 7)",
    "price > 4.5 or trace is null",
    "ts >= timestamp '2024-01-02'",
    "id = 3 and region = 'eu'",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the cache of these tests is, and nothing in it yet."""
    chosen = tmp_path / "cache of my own"
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(chosen))
    monkeypatch.delenv("TAMIS_CACHE")
    return chosen


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table of three snapshots, its place named as an awkward user would."""
    made = create(tmp_path / "wärehouse #1 50%", SCHEMA, SPEC)
    for start in range(3):
        rows = [
            {
                "id": start * 10 + row,
                "region": "eu" if row % 2 else None,
                "ts": f"2024-01-0{start + 1}T0{row}:00:00",
                "price": float("nan") if row == 1 else row * 1.5,
                "trace": bytes([start + 1] * 16),
            }
            for row in range(4)
        ]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        made.append(
            pa.table(
                {
                    "id": pa.array(columns["id"], pa.int64()),
                    "region": pa.array(columns["region"], pa.string()),
                    "ts": pa.array(columns["ts"], pa.string()).cast(pa.timestamp("us")),
                    "price": pa.array(columns["price"], pa.float64()),
                    "trace": pa.array(columns["trace"], pa.binary(16)),
                }
            )
        )
    return made


def told(table: Table, *, cache: bool | None) -> list[object]:
    """All that plans say of the table's files."""
    opened = tamis.open(table.metadata_location, cache=cache)
    plans = [opened.plan(where) for where in PREDICATES]
    return [(plan.files.to_pylist(), plan.verdicts.to_pylist(), plan.stats.kept) for plan in plans]


def records(folder: Path) -> list[Path]:
    """The cache's files."""
    return sorted(folder.glob(f"{FOLDER}/*/*/*.pack"))


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many manifests each decoding was given from now on."""
    found: list[int] = []
    real = stored.Keeper.keep

    def keep(self: stored.Keeper, batches: Iterable[FileBatch], lacking: stored.Lookup) -> None:
        found.append(len(lacking.missing))
        real(self, batches, lacking)

    monkeypatch.setattr(stored.Keeper, "keep", keep)
    return found


def test_a_hit_gives_the_plan_of_a_miss(table: Table, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the second run of a query would touch other files than the first."""
    without = told(table, cache=False)
    assert not folder.exists()
    assert told(table, cache=None) == without
    decoded = count_reads(monkeypatch)
    assert told(table, cache=None) == without
    assert records(folder)
    assert not decoded


def test_batches_from_the_cache_are_equal_in_every_column(table: Table, folder: Path) -> None:
    """A commit reads what no plan shows: sequence numbers, and where an entry stands."""
    metadata, manifests, wanted = _manifests(table)
    cache = MetadataCache(folder)

    def read(used: MetadataCache | None) -> pa.Table:
        return _flat(read_data_files(metadata, manifests, fetch_local, wanted, cache=used))

    plain = read(None)
    assert plain.num_rows
    assert read(cache).equals(plain)
    assert read(cache).equals(plain)


def test_another_column_is_read_once_and_shares_the_files(
    table: Table, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a plan needs of a file is kept once, however many columns are asked for over time."""
    opened = tamis.open(table.metadata_location)
    opened.plan("id = 3")
    before = len(records(folder))
    decoded = count_reads(monkeypatch)
    opened.plan("region = 'eu'")
    assert decoded
    assert len(records(folder)) == before + before // 2  # files and id; then region
    decoded.clear()
    opened.plan("region = 'eu' and id = 3")
    opened.plan()
    assert not decoded


@pytest.mark.parametrize("place", [0, 3, 20, 70, -1, -400])
def test_a_damaged_record_is_read_anew(table: Table, folder: Path, place: int) -> None:
    """One flipped bit in a bound would drop a file that matches."""
    without = told(table, cache=None)
    for path in records(folder):
        data = bytearray(path.read_bytes())
        data[place] ^= 0x40
        path.write_bytes(data)
    assert told(table, cache=None) == without
    assert told(table, cache=None) == without


@pytest.mark.parametrize("size", [0, 10, 64, 500])
def test_a_cut_off_record_is_read_anew(table: Table, folder: Path, size: int) -> None:
    """A machine that lost power may have the name of a file and not its content."""
    without = told(table, cache=None)
    for path in records(folder):
        path.write_bytes(path.read_bytes()[:size])
    assert told(table, cache=None) == without


def test_a_pack_under_anothers_name_is_a_miss(folder: Path) -> None:
    """A copied, renamed or restored file has the files of another manifest: its own key is in it, and is compared."""
    cache = MetadataCache(folder / FOLDER)
    save(cache, "shelf", "a", numbers(1))
    save(cache, "shelf", "b", numbers(2))
    save(cache, "other", "a", numbers(3))
    save(cache, "other", "c", numbers(3))
    assert [load(cache, *key) for key in (("shelf", "a"), ("shelf", "b"), ("other", "a"))] == [1, 2, 3]
    pack(cache, "shelf", "a").write_bytes(pack(cache, "shelf", "b").read_bytes())
    pack(cache, "shelf", "b").write_bytes(pack(cache, "other", "a").read_bytes())
    pack(cache, "other", "c").replace(pack(cache, "shelf", "c"))
    assert load(cache, "shelf", "c") is None
    assert load(cache, "shelf", "a") is None
    assert load(cache, "shelf", "b") is None


@pytest.mark.parametrize("how", [{"TAMIS_CACHE": "off"}, {"TAMIS_CACHE": " OFF "}, {"TAMIS_CACHE_BYTES": "0"}])
def test_switched_off_nothing_is_written(
    table: Table, folder: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, str]
) -> None:
    """A user who may leave no trace says so once, in the environment."""
    for name, value in how.items():
        monkeypatch.setenv(name, value)
    told(table, cache=None)
    assert not folder.exists()


def test_the_argument_outweighs_the_environment(table: Table, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever writes cache=True means it."""
    monkeypatch.setenv("TAMIS_CACHE", "off")
    told(table, cache=True)
    assert records(folder)


def test_the_folder_is_the_users_alone(table: Table, folder: Path) -> None:
    """Bounds are values of rows: nobody else may read them."""
    told(table, cache=None)
    assert (folder / FOLDER).stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o077 == 0 for path in records(folder))


def test_a_folder_that_others_can_write_to_is_not_used(table: Table, folder: Path) -> None:
    """Another user could plant records that hide files."""
    (folder / FOLDER).mkdir(parents=True)
    (folder / FOLDER).chmod(0o777)
    without = told(table, cache=False)
    assert told(table, cache=None) == without
    assert not records(folder)


@pytest.mark.parametrize("obstacle", ["a file", "read only"])
def test_an_unwritable_cache_is_no_error(table: Table, folder: Path, obstacle: str) -> None:
    """A plan in a sandbox, or with a full disk, is still a plan."""
    if obstacle == "a file":
        folder.write_text("in the way", encoding="utf-8")
    else:
        folder.mkdir(mode=0o500)
    assert told(table, cache=None) == told(table, cache=False)


def digest(name: str) -> bytes:
    """A key as the cache has it."""
    return hashlib.blake2b(name.encode(), digest_size=32).digest()


def numbers(*values: int) -> pa.RecordBatch:
    """A batch to keep."""
    return pa.record_batch({"x": pa.array(values, pa.int64())})


def save(cache: MetadataCache, shelf: str, name: str, batch: pa.RecordBatch) -> None:
    """Keep a batch as one manifest's."""
    made = cache.shelf(shelf, 1)
    assert made is not None
    cache.save(made, [digest(name)], [batch.num_rows], batch)


def pack(cache: MetadataCache, shelf: str, name: str) -> Path:
    """Where that is."""
    return cache.folder / digest(shelf).hex() / "one" / f"{digest(name).hex()}.pack"


def load(cache: MetadataCache, shelf: str, name: str) -> int | None:
    """The first number of the batch that was kept; None if it is not there."""
    made = cache.shelf(shelf, 1)
    place = None if made is None else made.find(digest(name))
    batch = None if made is None or place is None else made.load(place.pack)
    return None if batch is None else batch.column(0)[0].as_py()


def test_the_longest_unused_go_first(folder: Path) -> None:
    """A cache that grows for ever fills the disk; one that forgets at random is of no use."""
    batch = numbers(*range(1000))
    big = MetadataCache(folder / FOLDER)
    for place, name in enumerate("abcd"):
        save(big, "s", name, batch)
        os.utime(pack(big, "s", name), (1_000_000 + place, 1_000_000 + place))
    assert load(big, "s", "a") is not None  # used just now
    size = records(folder)[0].stat().st_size
    small = MetadataCache(folder / FOLDER, limit=size * 7 // 2)
    save(small, "s", "e", batch)
    small.trim()
    assert [name for name in "abcde" if load(small, "s", name) is not None] == ["a", "d", "e"]


def test_what_does_not_fit_is_not_written(folder: Path) -> None:
    """A table larger than the limit would push out everything, itself included."""
    cache = MetadataCache(folder / FOLDER, limit=100)
    save(cache, "s", "a", numbers(*range(1000)))
    assert not records(folder)
    assert load(cache, "s", "a") is None


def test_unfinished_files_of_a_crash_are_removed(folder: Path) -> None:
    """They have no name under which anything could find them."""
    cache = MetadataCache(folder / FOLDER, limit=10_000)
    save(cache, "s", "a", numbers(1))
    old, new = (records(folder)[0].with_suffix(f".{end * 16}.part") for end in "0f")
    old.write_bytes(b"x")
    new.write_bytes(b"x")
    os.utime(old, (1, 1))
    cache.trim()
    assert not old.exists()
    assert new.exists()


def test_the_same_name_with_other_content_is_another_manifest(tmp_path: Path, folder: Path) -> None:
    """A table that is made anew may use old names: its files are told apart by when they were written."""
    path = tmp_path / "m.avro"
    cache = MetadataCache(folder / FOLDER)

    def found(name: str) -> list[str]:
        path.write_bytes(avro_bytes(entry_schema(), [entry(name)], codec="null"))
        os.utime(path, ns=(found.calls, found.calls))  # type: ignore[attr-defined] # a counter beside the function
        found.calls += 1_000_000_000  # type: ignore[attr-defined] # as above
        manifest = Manifest(str(path), path.stat().st_size, 0, 0, snapshot_id=1)
        batches = read_data_files(parsed(table_document()), [manifest], fetch_local, {}, cache=cache)
        return [path for batch in batches for path in batch.path.to_pylist()]

    found.calls = 1_000_000_000  # type: ignore[attr-defined] # as above
    assert found("a.parquet") == ["a.parquet"]
    assert found("b.parquet") == ["b.parquet"]


def test_a_manifest_of_unknown_length_is_never_kept(folder: Path) -> None:
    """Its name alone does not say which content is meant."""
    data = avro_bytes(entry_schema(), [entry("a.parquet")])
    cache = MetadataCache(folder / FOLDER)
    for length, kept in ((None, 0), (len(data), 1)):
        manifest = Manifest("s3://b/m.avro", length, 0, 0)
        fetch: Callable[[str], bytes] = {"s3://b/m.avro": data}.__getitem__
        list(read_data_files(parsed(table_document()), [manifest], fetch, {}, cache=cache))
        assert len(records(folder)) == kept


def test_manifests_of_two_layouts_keep_their_order(folder: Path) -> None:
    """The same input gives the same plan, with a cold cache, a warm one and one that has half of it."""
    files, manifests = {}, []
    for place in range(6):
        data = avro_bytes(entry_schema(version=1 + place % 2), [entry(f"{place}-{row}") for row in range(3)])
        files[f"m{place}"] = data
        manifests.append(Manifest(f"m{place}", len(data), 0, 0, sequence_number=1, snapshot_id=place))
    cache = MetadataCache(folder / FOLDER)

    def paths(chosen: list[Manifest], used: MetadataCache | None) -> list[str]:
        batches = read_data_files(parsed(table_document()), chosen, files.__getitem__, {}, cache=used)
        return [path for batch in batches for path in batch.path.to_pylist()]

    expected = [f"{place}-{row}" for place in range(6) for row in range(3)]
    assert paths(manifests, None) == expected
    paths(manifests[2:4], cache)
    assert paths(manifests, cache) == expected
    assert paths(manifests, cache) == expected


def test_several_processes_share_a_cache(table: Table, folder: Path) -> None:
    """Two jobs that start together write the same records: each sees whole ones or none."""
    script = (
        "import sys, tamis\n"
        "for _ in range(5):\n"
        "    plans = [tamis.open(sys.argv[1]).plan(w) for w in (None, \"region = 'eu'\", 'id in (3, 7)')]\n"
        "print([plan.stats.kept for plan in plans])\n"
    )
    command = [sys.executable, "-c", script, table.metadata_location]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = {process.communicate(timeout=120)[0].strip() for process in running}
    opened = tamis.open(table.metadata_location, cache=False)
    assert said == {str([opened.plan(where).stats.kept for where in PREDICATES[:3]])}
    assert not list(folder.rglob("*.part"))


def test_a_manifest_cut_off_between_blocks_is_named() -> None:
    """Every block of it is sound; only the manifest list knows how long it was."""
    data = avro_bytes(entry_schema(), [entry("a"), entry("b")], block=1)
    sync = data[-16:]
    cut = data[: data.rindex(sync, 0, len(data) - 16) + 16]
    manifest = Manifest("/t/m.avro", len(data), 0, 0)
    with pytest.raises(TamisError, match=r"/t/m.avro .*truncated"):
        list(read_data_files(parsed(table_document()), [manifest], {"/t/m.avro": cut}.__getitem__, {}))


def _manifests(table: Table) -> tuple[TableMetadata, list[Manifest], dict[int, pa.DataType]]:
    metadata = metadata_of(table)
    selection = metadata.select()
    assert selection.snapshot is not None
    listed = read_manifest_list(selection.snapshot, fetch_local)
    return metadata, listed, {id_: selection.schema.types[id_] for id_ in range(1, 6)}


def _flat(batches: Iterable[FileBatch]) -> pa.Table:
    """Every array of the batches, as columns."""
    tables = []
    for batch in batches:
        columns = {"path": batch.path, "size": batch.size, "rows": batch.rows, "partition": batch.partition}
        columns |= dict(batch.extra)
        for id_, stats in batch.stats.items():
            parts = {f"{id_} {name}": getattr(stats, name) for name in (*STATS, "value_count")}
            columns |= {name: values for name, values in parts.items() if values is not None}
        tables.append(pa.table({name: columns[name] for name in sorted(columns)}))
    return pa.concat_tables(tables).combine_chunks()
