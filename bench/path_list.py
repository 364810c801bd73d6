"""Claim: 10,000 files become a DataFrame in seconds, a fifth of the time that Spark takes with its defaults.

Both sides are given the same paths and the same schema. Ours counts from a plan to a DataFrame, the peer's is
`spark.read.schema(...).parquet(*paths)`, which starts a task for each file to look at it. Nothing is read yet; then
both count their rows once, and the counts are compared.

A file costs no more among 100,000 than a third above what it does among 10,000: a message to Spark, and two looks of
Spark's at the file, which it has no public way to leave out.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField

import tamis
from bench.harness import CACHE, Claim, best_of, main, require
from bench.star.session import star_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILES: Final = 10_000
MANY: Final = 100_000
ROWS: Final = 3
THREADS: Final = 16
"""That put files: a store answers each of them after a while."""


def table(count: int = FILES) -> str:
    """The metadata file of a table with very many small files."""
    folder = CACHE / f"paths-{count}"
    done = folder / "metadata-location"
    if not done.exists():
        (folder / "data").mkdir(parents=True, exist_ok=True)
        (folder / "catalog.db").unlink(missing_ok=True)
        catalog = SqlCatalog("paths", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
        files = small_files(
            f"file://{folder}/data", lambda path, data: Path(path[len("file://") :]).write_bytes(data), count
        )
        done.write_text(listed(catalog, files), encoding="utf-8")
    return done.read_text(encoding="utf-8")


def small_files(root: str, put: Callable[[str, bytes], object], count: int = FILES) -> list[DataFile]:
    """Very many data files below root, each of them put there."""
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])

    def made(number: int) -> DataFile:
        buffer = io.BytesIO()
        pq.write_table(pa.table([[number * ROWS + n for n in range(ROWS)]], schema=schema), buffer)
        path = f"{root}/{number:05}.parquet"
        put(path, buffer.getvalue())
        found = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=path,
            file_format=FileFormat.PARQUET,
            partition=Record(),
            record_count=ROWS,
            file_size_in_bytes=len(buffer.getvalue()),
        )
        found.spec_id = 0
        return found

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(made, range(count)))


def listed(catalog: SqlCatalog, files: Iterable[DataFile]) -> str:
    """The metadata file of a new table that has these files."""
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", Schema(NestedField(1, "id", LongType())))
    with table.transaction() as change, change.update_snapshot().fast_append() as append:
        for file in files:
            append.append_data_file(file)
    return catalog.load_table("db.t").metadata_location


def run() -> list[Claim]:
    """Build both DataFrames a few times, and compare what they hold."""
    with star_session() as spark:
        plan = tamis.open(table()).plan()
        paths = plan.files["path"].to_pylist()
        schema = plan.read(spark).schema

        def ours() -> DataFrame:
            return plan.read(spark)

        def peer() -> DataFrame:
            return spark.read.schema(schema).parquet(*paths)

        mine, theirs = best_of(ours, rounds=3), best_of(peer, rounds=1, warm_up=False)
        require(mine.result.count() == theirs.result.count() == FILES * ROWS, "the rows differ")
        larger = tamis.open(table(MANY)).plan()
        require(len(larger.files) == MANY, "files are missing")
        many = best_of(lambda: larger.read(spark), rounds=2, warm_up=False)
        return [
            Claim(
                "path_list",
                f"{FILES:,} files to a DataFrame",
                mine.best,
                peer_name="spark.read, defaults",
                peer=theirs.best,
                at_most=5.0,
                at_least=5.0,
            ),
            Claim(
                "path_list_growth",
                f"a thousand files to a DataFrame, among {MANY:,}",
                many.best / MANY * 1000,
                peer_name=f"among {FILES:,}",
                peer=mine.best / FILES * 1000,
                at_least=0.75,
                notes=(f"{MANY:,} files in {many.best:.1f} s",),
            ),
        ]


if __name__ == "__main__":
    main(run)
