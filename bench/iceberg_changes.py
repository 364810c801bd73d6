# ruff: noqa: S608 - SQL made of our own names
"""Claim: DELETE, UPDATE and MERGE of Iceberg tables take no longer than Spark's connector takes for the same.

A DELETE that covers whole files, a month in a table of 100,000 files of three specs, changes metadata alone: below
two seconds. UPDATE of one partition and MERGE of one per cent run on 10,000,000 rows of two specs, copy-on-write and
merge-on-read: ours on one table, the connector's on another that was made alike, in one session, from the same state
in every round. Ours counts from opening the table's folder. Afterwards the rows are compared, by sums over columns.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

import tamis
from bench.harness import CACHE, Claim, best_of, in_turns, main, require
from bench.iceberg_tables.java import CACHE as METADATA
from bench.iceberg_tables.tables import java_table
from bench.star.session import ICEBERG, star_session

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

FILES: Final = 100_000
MONTH: Final = "ts >= timestamp '2024-03-01 00:00:00Z' and ts < timestamp '2024-04-01 00:00:00Z'"
"""Whole days, and a whole month: no file of any spec has other rows beside these."""
ROWS: Final = int(os.environ.get("TAMIS_BENCH_ROWS", "10000000"))
ROUNDS: Final = 2
"""The first has the JVM compile; the better one counts, on either side."""
REGIONS: Final = 10
PART: Final = 4
"""The region that is updated: a tenth of the rows, in files of both specs."""
WAREHOUSE: Final = CACHE / "changes"
CATALOG: Final = {
    **{key: value for key, value in ICEBERG.items() if not key.startswith("spark.sql.catalog")},
    **{
        f"spark.sql.catalog.{name}{key}": value
        for name, folder in (("lake", WAREHOUSE), ("files", METADATA))
        for key, value in {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "hadoop",
            ".warehouse": str(folder),
            ".cache-enabled": "false",
        }.items()
    },
}
OURS: Final = "lake.db.ours"
THEIRS: Final = "lake.db.theirs"
PEER: Final = "Iceberg's connector"
MODES: Final[tuple[Literal["copy-on-write", "merge-on-read"], ...]] = ("copy-on-write", "merge-on-read")
COLUMNS: Final = (
    "id",
    f"cast(id * 7 % {REGIONS} as int) as region",
    "timestamp_seconds(1700000000 + id * 7) as ts",
    "cast(id % 100000 as double) / 7 as amount",
    "'note number ' || (id * 2654435761 % 1000003) as note",
)
SUMS: Final = ("count(*)", "sum(id)", "sum(region)", "sum(unix_seconds(ts))", "sum(xxhash64(*) % 1000000007)")


def run() -> list[Claim]:
    """Each statement in both modes."""
    shutil.rmtree(WAREHOUSE / "local", ignore_errors=True)
    with star_session(CATALOG) as spark:
        claims = [whole_files(spark)]
        states = {name: made(spark, name) for name in (OURS, THEIRS)}
        for mode in MODES:
            claims += [updated(spark, states, mode), merged(spark, states, mode)]
        return claims


def whole_files(spark: SparkSession) -> Claim:
    """The DELETE of a month, each time on the table as it was made."""
    folder = java_table(FILES)

    def ours() -> tuple[int, int]:
        with untouched(folder):
            done = tamis.open(str(folder)).delete(MONTH)
            require(done.files_rewritten == 0, "files were read")
            return totals(folder, done.snapshot_id)

    def theirs() -> tuple[int, int]:
        with untouched(folder):
            spark.sql(f"delete from files.`{folder.name}` where {MONTH}")
            return totals(folder, None)

    timed, peer = in_turns(ours, theirs, rounds=3)
    require(timed.result == peer.result, f"{timed.result} and {peer.result} files and rows are left")
    return Claim(
        "delete_whole_files",
        f"DELETE a month of {FILES:,} files, whole files",
        timed.best,
        peer_name=PEER,
        peer=peer.best,
        at_most=2.0,
        at_least=1.0,
        notes=(f"{FILES - timed.result[0]:,} files left, {timed.result[0]:,} stayed",),
    )


def totals(folder: Path, snapshot_id: int | None) -> tuple[int, int]:
    """How many files and rows the newest snapshot says that it has."""
    source: Any = tamis.open(str(folder)).source
    snapshot = source.selection.snapshot
    require(snapshot_id in (None, snapshot.id), "another snapshot is the newest")
    return int(snapshot.summary["total-data-files"]), int(snapshot.summary["total-records"])


@contextmanager
def untouched(folder: Path) -> Iterator[None]:
    """What a statement adds to the table's metadata is removed again."""
    metadata = folder / "metadata"
    before = {path: path.read_bytes() if path.suffix == ".text" else b"" for path in metadata.iterdir()}
    try:
        yield
    finally:
        for path in set(metadata.iterdir()) - before.keys():
            path.unlink()
        for path, data in before.items():
            if path.suffix == ".text":
                path.write_bytes(data)


def made(spark: SparkSession, name: str) -> int:
    """The table, half of it by region, then by region and bucket: the snapshot to start from."""
    spark.sql(f"drop table if exists {name} purge")
    spark.sql(
        f"create table {name} (id bigint, region int, ts timestamp, amount double, note string) using iceberg "
        "partitioned by (region) tblproperties ('format-version' = '2')"
    )
    half = ROWS // 2
    for first, end in ((0, half), (half, ROWS)):
        spark.range(first, end).selectExpr(*COLUMNS).writeTo(name).append()
        if not first:
            spark.sql(f"alter table {name} add partition field bucket(2, id)")
    return int(spark.sql(f"select snapshot_id from {name}.snapshots order by committed_at desc").first()[0])  # type: ignore[index]


def source(spark: SparkSession) -> DataFrame:
    """One per cent of the rows, of the newest tenth: four in five are there, one in five is new."""
    folder = WAREHOUSE / "source"
    if not folder.exists():
        count, tenth = ROWS // 100, ROWS // 10
        ids = spark.range(count).selectExpr(f"{ROWS - tenth} + id * 10 + if(id % 5 = 0, {tenth}, 0) as id")
        ids.selectExpr(*COLUMNS[:3], "-1D as amount", "'merged ' || id as note").coalesce(1).write.parquet(
            str(folder)
        )
    return spark.read.parquet(str(folder))


def updated(spark: SparkSession, states: dict[str, int], mode: Literal["copy-on-write", "merge-on-read"]) -> Claim:
    """UPDATE of one partition."""

    def ours() -> None:
        tamis.open(folder_of(OURS)).update(
            {"amount": "amount * 2 + 1"}, where=f"region = {PART}", spark=spark, mode=mode
        )

    def theirs() -> None:
        spark.sql(f"update {THEIRS} set amount = amount * 2 + 1 where region = {PART}")

    return compared(spark, states, mode, "update", f"UPDATE a tenth of {ROWS:,} rows", (ours, theirs))


def merged(spark: SparkSession, states: dict[str, int], mode: Literal["copy-on-write", "merge-on-read"]) -> Claim:
    """MERGE of one per cent."""
    rows = source(spark)
    rows.createOrReplaceTempView("changes")

    def ours() -> None:
        merge = tamis.open(folder_of(OURS)).merge(rows, on="t.id = s.id", mode=mode)
        merge.when_matched_update_all().when_not_matched_insert_all().run(spark)

    def theirs() -> None:
        spark.sql(
            f"merge into {THEIRS} t using changes s on t.id = s.id "
            "when matched then update set * when not matched then insert *"
        )

    return compared(spark, states, mode, "merge", f"MERGE 1 % of {ROWS:,} rows", (ours, theirs))


def compared(
    spark: SparkSession,
    states: dict[str, int],
    mode: str,
    command: str,
    says: str,
    sides: tuple[Callable[[], None], Callable[[], None]],
) -> Claim:
    """Both sides in turns, each from the state that the tables were made in."""
    names = (OURS, THEIRS)
    for name in names:
        spark.sql(f"alter table {name} set tblproperties ('write.{command}.mode' = '{mode}')")
    best = [float("inf"), float("inf")]
    for _ in range(ROUNDS):
        for place, (name, side) in enumerate(zip(names, sides, strict=True)):
            spark.sql(f"call lake.system.set_current_snapshot('{name.removeprefix('lake.')}', {states[name]})")
            best[place] = min(best[place], best_of(side, 1, warm_up=False).best)
    rows = [spark.table(name).selectExpr(*SUMS).collect() for name in names]
    require(rows[0] == rows[1], f"{says}: the rows differ: {rows}")
    return Claim(f"{command}_{mode}", f"{says}, {mode}", best[0], peer_name=PEER, peer=best[1], at_least=1.0)


def folder_of(name: str) -> str:
    """The folder of one of the two tables."""
    return str(WAREHOUSE.joinpath(*name.split(".")[1:]))


if __name__ == "__main__":
    main(run)
