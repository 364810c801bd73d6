"""Claim: 10,000 files in an object store become a DataFrame no later than with Spark alone.

The store is S3Proxy on this machine, entered by Hadoop's S3A client with the same settings for both sides. Both are
given the same paths and the same schema. Ours counts from a plan to a DataFrame, the peer's is
`spark.read.schema(...).parquet(*paths)`, which asks the store about each path. Nothing is read yet; then both count
their rows once, and the counts are compared.

A store across a network takes longer for each answer than this one, so both sides would take longer there.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from pyiceberg.catalog.sql import SqlCatalog

import tamis
from bench.harness import CACHE, Claim, best_of, main, require
from bench.path_list import FILES, ROWS, listed, small_files
from bench.star.session import star_session
from tamis.formats.storage.objects import EnvironmentStorage
from tests.engines.servers import ObjectStore, jars_of, object_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FOLDER: Final = CACHE / "store"


def catalog_of(store: ObjectStore) -> SqlCatalog:
    """The catalog on this machine that knows the way into the store."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    return SqlCatalog(
        "listing",
        uri=f"sqlite:///{FOLDER}/catalog.db",
        warehouse="s3://lake/warehouse",
        **{
            "s3.endpoint": store.endpoint,
            "s3.region": "us-east-1",
            "s3.access-key-id": store.key,
            "s3.secret-access-key": store.secret,
        },
    )


def table(store: ObjectStore) -> SqlCatalog:
    """The catalog with a table `db.t` of very many small files, made once: the store keeps its objects."""
    done = FOLDER / "done"
    if not done.exists():
        (FOLDER / "catalog.db").unlink(missing_ok=True)
        (store.folder / "lake").mkdir(exist_ok=True)
        listed(catalog_of(store), small_files("s3://lake/data", EnvironmentStorage().put))
        done.touch()
    return catalog_of(store)


def client(store: ObjectStore) -> dict[str, str]:
    """What Spark has to know of the store."""
    s3a = "spark.hadoop.fs.s3a"
    return {
        "spark.jars": ",".join(map(str, jars_of("hadoop-aws").glob("*.jar"))),
        f"{s3a}.endpoint": store.endpoint,
        f"{s3a}.endpoint.region": "us-east-1",
        f"{s3a}.path.style.access": "true",
        f"{s3a}.access.key": store.key,
        f"{s3a}.secret.key": store.secret,
    }


def run() -> list[Claim]:
    """Build each DataFrame once, when Spark knows the way into the store, and compare what they hold."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with object_store(FOLDER) as store:
        os.environ |= {
            "AWS_ENDPOINT_URL": store.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": store.key,
            "AWS_SECRET_ACCESS_KEY": store.secret,
        }
        catalog = table(store)
        with star_session(client(store)) as spark:
            plan = tamis.open("db.t", catalog=catalog).plan()
            paths = [path.replace("s3://", "s3a://", 1) for path in plan.files["path"].to_pylist()]
            schema = plan.read(spark).schema

            def ours() -> DataFrame:
                return plan.read(spark)

            def peer() -> DataFrame:
                return spark.read.schema(schema).parquet(*paths)

            mine, theirs = (best_of(one, rounds=1, warm_up=False) for one in (ours, peer))
            require(mine.result.count() == theirs.result.count() == FILES * ROWS, "the rows differ")
            return [
                Claim(
                    "store_listing",
                    f"{FILES:,} files in an object store to a DataFrame",
                    mine.best,
                    peer_name="spark.read, defaults",
                    peer=theirs.best,
                    at_least=1.0,
                )
            ]


if __name__ == "__main__":
    main(run)
