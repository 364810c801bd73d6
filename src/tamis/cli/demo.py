"""`tamis demo`: what works, on a table made on the spot: explained, read and joined."""

from __future__ import annotations

from collections.abc import Iterator
from tempfile import TemporaryDirectory
from textwrap import wrap
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tamis.cli.demo_table import make
from tamis.cli.failures import SparkFailure
from tamis.cli.sparks import Session
from tamis.errors import MissingDependency

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tamis.table import Table, TablePlan

__all__ = ["demo"]

WHERE: Final = "ts >= timestamp '2024-01-30' AND date(ts) < '2024-02-03' AND customer_id IN (7, 471)"
JOIN_WHERE: Final = "ts >= timestamp '2024-01-10' AND amount > 230"
CUSTOMERS: Final = ((3, "Ada", "Oslo"), (50, "Grace", "Rome"), (595, "Emmy", "Oslo"), (779, "Sofja", "Rome"))
WIDTH: Final = 80
ROWS: Final = 8


def demo(
    *,
    spark: Annotated[
        bool, typer.Option("--spark/--no-spark", help="Read and join the table, too, on a local Spark.")
    ] = True,
) -> None:
    """Make an Iceberg table that has evolved, ask which files a query has to read, read them, and join them."""
    import tamis

    with TemporaryDirectory(prefix="tamis-demo-") as folder:
        _step("1. An Iceberg table that has evolved")
        typer.echo("Partitioned by nothing, then by month(ts), then by day(ts) and bucket(4, customer_id). Its")
        typer.echo("column `region` has been renamed to `market`, and `coupon` was added: old files have neither.")
        table = tamis.open(make(folder), cache=False)

        _step("2. Which of its files can hold a matching row?")
        typer.echo("Metadata alone decides; no data file is opened. Every file is judged by its own spec.\n")
        plan = table.plan(WHERE)
        typer.echo(plan.explain())
        typer.echo("\nWhy, file by file (one of each):")
        for line in _one_of_each(plan.verdicts.to_pylist()):
            typer.echo(line)
        if spark:
            try:
                _on_spark(table, plan)
            except (MissingDependency, SparkFailure) as error:
                typer.echo(f"\nReading and joining the table is left out: {error}")


def _on_spark(table: Table, plan: TablePlan) -> None:
    """What needs rows."""
    session = Session.of("local[2]", None, ["spark.sql.shuffle.partitions=2"], "UTC")
    start = perf_counter()
    with session.started() as spark:
        _step("3. Read the rows, on Spark")
        typer.echo(f"A local Spark has started in {_took(start)}. It is given the files that are left, no others:\n")
        start = perf_counter()
        _show(plan.read(spark).orderBy("ts"))
        typer.echo(f"\nread in {_took(start)}")
        _step("4. Join: the keys of the small side prune the large one")
        _join(table, spark)


def _join(table: Table, spark: SparkSession) -> None:
    from tamis.explain.words import readable_bytes, readable_files, readable_seconds

    customers = spark.createDataFrame(CUSTOMERS, "customer_id bigint, name string, city string")
    typer.echo('table.join(customers, "customer_id", where=...), with customers in Oslo alone:\n')
    joined = table.plan_join(customers.where("city = 'Oslo'"), "customer_id", where=JOIN_WHERE)
    stats = joined.plan.stats
    (keys,) = stats.runtime_filters
    typer.echo(f"WHERE  {joined.plan.sieve.predicate.sql}")
    typer.echo(f"JOIN   {keys.text}\n")
    by_where = stats.files - stats.kept - keys.files
    facts = ", ".join(f"{count} by {name}" for name, count in keys.dropped.items() if count)
    typer.echo(f"{readable_files(stats.files)} of the table")
    typer.echo(f"  -{by_where:>3} that the condition rules out")
    typer.echo(f"  -{keys.files:>3} that hold none of the keys: {facts}; {readable_bytes(keys.bytes)} less to read")
    typer.echo(f"  ={stats.kept:>3} to read, of all three ages\n")
    typer.echo(f"{keys.keys} keys, collected in {readable_seconds(keys.collect_seconds or 0)}\n")
    start = perf_counter()
    _show(joined.read().orderBy("ts"))
    typer.echo(f"\njoined in {_took(start)}")


def _step(title: str) -> None:
    typer.echo(f"\n{title}\n{'-' * len(title)}")


def _took(start: float) -> str:
    from tamis.explain.words import readable_seconds

    return readable_seconds(perf_counter() - start)


def _show(frame: DataFrame) -> None:
    from tamis.cli.rows import table_lines

    shown = table_lines(frame.limit(ROWS + 1), ROWS)
    for line in shown.lines:
        typer.echo(line)
    if shown.more:
        typer.echo("…")


def _one_of_each(verdicts: list[dict[str, str | None]]) -> Iterator[str]:
    """The first file of every layer and verdict."""
    pairs: set[tuple[str | None, str | None]] = set()
    for row in verdicts:
        if (row["layer"], row["verdict"]) not in pairs:
            pairs.add((row["layer"], row["verdict"]))
            by = f" by {row['layer']}" if row["layer"] else ""
            spec = "" if row["spec_id"] is None else f"spec {row['spec_id']}, "
            yield f"  {row['verdict']}{by}: {spec}{row['partition'] or 'no partition'}"
            yield from wrap(row["reason"] or "", WIDTH, initial_indent="    ", subsequent_indent="    ")
