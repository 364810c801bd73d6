"""Claim: 200,000 manifest entries are written at twice the speed of PyIceberg's writer, and in half the bytes.

Twelve columns with counts and bounds, a bucket and a day. The peer is PyIceberg's own manifest writer, on fewer
entries: its time is one for each entry. fastavro, which tamis does not use, is measured for information.
"""

from __future__ import annotations

import io
import time
from functools import cache

import pyarrow as pa
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    write_manifest,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, TimestampType

from bench.harness import CACHE, Claim, main, require
from tamis.formats.avro.container import parse_avro
from tamis.formats.avro.records import read_records
from tamis.formats.edit import NewFile
from tamis.formats.iceberg.manifest_schemas import entry_schema
from tamis.formats.iceberg.manifest_writing import Codec, manifest_bytes
from tamis.formats.iceberg.metadata import SpecLayout
from tamis.sieve.partition_keys import PartitionField as Field
from tamis.sieve.partition_keys import PartitionSpec as Spec
from tamis.sieve.transforms import parse_transform

MANY, FEW = 200_000, 10_000
COLUMNS = range(1, 13)
LAYOUT = SpecLayout(
    Spec(0, (Field("b", 1, parse_transform("bucket[16]")), Field("d", 2, parse_transform("day")))),
    (1000, 1001),
    (pa.int32(), pa.date32()),
)
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "ts", TimestampType()))
SPEC = PartitionSpec(
    PartitionField(1, 1000, BucketTransform(16), "b"), PartitionField(2, 1001, DayTransform(), "d"), spec_id=0
)


@cache
def files(count: int) -> tuple[NewFile, ...]:
    """The files, each with statistics of its own."""
    return tuple(
        NewFile(
            f"s3://bucket/db/events/data/b={n % 16}/d={n % 365}/00000-{n}-0c1e8f1a-{n:012d}.parquet",
            100_000_000 + n,
            1_000_000 + n,
            0,
            (n % 16, n % 365),
            column_sizes={id_: 1_000 * id_ + n for id_ in COLUMNS},
            value_counts=dict.fromkeys(COLUMNS, 1_000_000 + n),
            null_counts={id_: n % id_ for id_ in COLUMNS},
            nan_counts={12: 0},
            lower={id_: (n * id_).to_bytes(8, "little") for id_ in COLUMNS},
            upper={id_: (n * id_ + 9_999).to_bytes(8, "little") for id_ in COLUMNS},
            split_offsets=(4,),
            sort_order_id=0,
        )
        for n in range(count)
    )


def ours() -> bytes:
    """All of them in one manifest."""
    made = manifest_bytes(files(MANY), LAYOUT, version=2, schema={}, spec=[], snapshot_id=7, codec=Codec())
    return made.data


def pyiceberg() -> int:
    """Some of them, by PyIceberg; the size of its manifest."""
    path = CACHE / "pyiceberg-manifest.avro"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    output = PyArrowFileIO().new_output(str(path))
    with write_manifest(2, SPEC, SCHEMA, output, 7, "deflate") as writer:
        for file in files(FEW):
            writer.add_entry(
                ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=7, data_file=_theirs(file))
            )
    return path.stat().st_size


def _theirs(file: NewFile) -> DataFile:
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=file.path,
        file_format=FileFormat.PARQUET,
        partition=Record(*file.partition),
        record_count=file.rows,
        file_size_in_bytes=file.size,
        column_sizes=dict(file.column_sizes),
        value_counts=dict(file.value_counts),
        null_value_counts=dict(file.null_counts),
        nan_value_counts=dict(file.nan_counts),
        lower_bounds=dict(file.lower),
        upper_bounds=dict(file.upper),
        split_offsets=list(file.split_offsets),
        sort_order_id=0,
        spec_id=0,
    )


def fastavro(data: bytes) -> tuple[str, ...]:
    """What fastavro takes for some of the same records, for information; nothing if it is not installed."""
    try:
        import fastavro as library
    except ImportError:
        return ()
    records = read_records(parse_avro("m.avro", data))[:FEW]
    schema = entry_schema(2, list(zip(LAYOUT.field_ids, ("b", "d"), LAYOUT.types, strict=True)))
    start = time.process_time()
    library.writer(io.BytesIO(), library.parse_schema(schema), records, codec="deflate", sync_interval=64_000)
    return (f"fastavro: {(time.process_time() - start) * MANY / FEW:.1f} s of processor time for as many",)


def run() -> list[Claim]:
    """Processor time, which other work on the machine disturbs least."""
    files(MANY)
    times = []
    for _ in range(2):
        start = time.process_time()
        data = ours()
        times.append(time.process_time() - start)
    require(parse_avro("m.avro", data).records == MANY, "entries are missing")
    start = time.process_time()
    size = pyiceberg()
    peer = (time.process_time() - start) * MANY / FEW
    notes = (
        f"{len(data) / MANY:.0f} bytes an entry, PyIceberg's {size / FEW:.0f}",
        f"PyIceberg wrote {FEW:,} entries, its time is multiplied",
        *fastavro(data),
    )
    says = f"{MANY:,} manifest entries of 12 columns, written"
    return [
        Claim("manifest_writing", says, min(times), peer_name="PyIceberg", peer=peer, at_least=2, notes=notes),
    ]


if __name__ == "__main__":
    main(run)
