# ruff: noqa: S608 - SQL made of our own names
"""Claim: a selective join opens the files that it needs, and takes an eighth of the time that the connector takes.

The fact table is TPC-H's lineitem in three eras: unpartitioned and sorted by order key, then in buckets of it, then
by month and day of shipping. Both sides run the same join with the same dimension on one session, Spark's and the
connector's defaults; ours counts from opening the table's folder to the result, the keys' collection included. The
results are compared, and so are the files that we open with those that truly hold a matching row.

An unselective join takes no longer than the connector's; reading the whole table may take ten per cent more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import tamis
from bench.harness import Claim, in_turns, main, require
from bench.star.session import star_session
from bench.star.tables import BUCKETED, DATED, FACT, fact_folder, make, raw

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

RESULT: Final = ("count(*) as lines", "sum(l_extendedprice) as price", "sum(l_quantity) as quantity")


@dataclass(frozen=True, slots=True)
class Query:
    """A join: the dimension as SQL over TPC-H's files, the columns that are compared, and a condition on the fact."""

    name: str
    says: str
    dimension: str
    on: dict[str, str]
    where: str | None = None
    selective: bool = True


@dataclass(frozen=True, slots=True)
class Star:
    """A fact table as both sides read it, and what is claimed of its selective joins."""

    folder: Path
    rows: Callable[[], DataFrame]
    """The connector's."""
    connector: str
    goal: float
    file: str
    """The connector's name for the file that a row lies in."""


QUERIES: Final = (
    Query(
        "orders",
        "join the orders of one customer",
        "select o_orderkey, o_orderdate from orders "
        f"where o_custkey = (select min(o_custkey) from orders) and o_orderkey <= {DATED}",
        {"l_orderkey": "o_orderkey"},
    ),
    Query(
        "days",
        "join three days, in the newest orders",
        "select day from values (date'1995-03-15'), (date'1997-06-01'), (date'1998-02-02') as days(day)",
        {"l_shipdate": "day"},
        where=f"l_orderkey > {DATED}",
    ),
    Query(
        "both",
        "join by order and day of shipping",
        "select l_orderkey as key, max(l_shipdate) as shipped from fact where l_orderkey in ("
        f"select o_orderkey from orders where o_orderkey > {BUCKETED} order by o_totalprice desc limit 20) "
        "group by l_orderkey",
        {"l_orderkey": "key", "l_shipdate": "shipped"},
    ),
    Query(
        "half",
        "join half of all orders",
        "select o_orderkey, o_orderpriority from orders where o_orderdate >= date'1995-06-01'",
        {"l_orderkey": "o_orderkey"},
        selective=False,
    ),
    Query(
        "parts",
        "join a quarter of all parts",
        "select p_partkey, p_brand from part where p_size <= 12",
        {"l_partkey": "p_partkey"},
        selective=False,
    ),
)


def run() -> list[Claim]:
    """Every query on both sides, and a scan of everything."""
    with star_session() as spark:
        make(spark)
        for name in ("orders", "part", "customer"):
            spark.read.parquet(str(raw(name))).createOrReplaceTempView(name)
        spark.table(FACT).createOrReplaceTempView("fact")
        star = Star(fact_folder(), lambda: spark.table(FACT), "Iceberg's connector", 8.0, "_file")
        claims = [claim for query in QUERIES for claim in joined(spark, star, query)]
        return [*claims, scanned(spark, star)]


def dimension(spark: SparkSession, query: Query) -> DataFrame:
    """The other side, as a DataFrame that reads a small file: what a join bench is not about is done before."""
    folder = raw(f"dimension-{query.name}")
    if not folder.exists():
        spark.sql(query.dimension).write.parquet(str(folder))
    return spark.read.parquet(str(folder))


def joined(spark: SparkSession, star: Star, query: Query) -> list[Claim]:
    """The time of a join against the connector's, and the files that it opens against those that hold a match."""
    other = dimension(spark, query)

    def ours() -> list[Row]:
        table = tamis.open(str(star.folder))
        return table.join(other, query.on, where=query.where).selectExpr(*RESULT).collect()

    def fact() -> DataFrame:
        rows = star.rows()
        return rows if query.where is None else rows.where(query.where)

    def matched(rows: DataFrame) -> DataFrame:
        same = [rows[mine] == other[theirs] for mine, theirs in query.on.items()]
        condition = same[0]
        for one in same[1:]:
            condition = condition & one
        return rows.join(other, condition)

    def peer() -> list[Row]:
        return matched(fact()).selectExpr(*RESULT).collect()

    timed, peers = in_turns(ours, peer, rounds=5 if query.selective else 4)
    require(timed.result == peers.result, f"{query.name}: the joins differ")
    plan = tamis.open(str(star.folder)).plan_join(other, query.on, where=query.where)
    kept = plan.plan.stats.kept
    files = plan.plan.stats.files
    notes = (f"{kept:,} of {files:,} files opened; median {timed.median:.2f} s and {peers.median:.2f} s",)
    goal = star.goal if query.selective else 1.0
    claims = [
        Claim(
            f"join_{query.name}",
            query.says,
            timed.best,
            peer_name=star.connector,
            peer=peers.best,
            at_least=goal,
            notes=notes,
        )
    ]
    if query.selective:
        truth = matched(fact().selectExpr("*", f"{star.file} as _at")).select("_at").distinct().count()
        says = f"files opened: {query.says}"
        claims.append(
            Claim(
                f"files_{query.name}",
                says,
                kept,
                unit="files",
                peer_name="files that hold a match",
                peer=truth,
                at_least=1 / 1.1,
            )
        )
    return claims


def scanned(spark: SparkSession, star: Star) -> Claim:
    """Reading everything, every column, against the connector's scan."""
    from pyspark.sql import functions as f

    def digest(frame: DataFrame) -> Callable[[], list[Row]]:
        return lambda: frame.select(f.bit_xor(f.xxhash64(*frame.columns))).collect()

    def ours() -> list[Row]:
        return digest(tamis.open(str(star.folder)).plan().read(spark))()

    def peer() -> list[Row]:
        return digest(star.rows())()

    timed, peers = in_turns(ours, peer, rounds=4)
    require(timed.result == peers.result, "the scans differ")
    return Claim(
        "scan",
        "read the whole table",
        timed.best,
        peer_name=star.connector,
        peer=peers.best,
        at_least=1 / 1.1,
        notes=(f"median {timed.median:.2f} s and {peers.median:.2f} s",),
    )


if __name__ == "__main__":
    main(run)
