"""A primary-key table of five million rows in eight buckets, with files at three levels."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from bench.harness import CACHE
from tests.engines.paimon_engine import paimon_engine

if TYPE_CHECKING:
    from numpy import typing as npt

__all__ = ["ROWS", "TABLE", "WAREHOUSE", "make"]

ROWS: Final = 5_000_000
WAREHOUSE: Final = CACHE / "paimon_reads"
TABLE: Final = "keys"
SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("name", pa.string()),
        ("amount", pa.float64()),
        ("qty", pa.int32()),
        ("ts", pa.timestamp("us")),
    ]
)
SMALL_RUNS: Final = {"num-sorted-run.compaction-trigger": "2", "compaction.size-ratio": "1"}


def make() -> Path:
    """The table's folder; it is made when there is none: written by pypaimon, compacted by Java."""
    folder = WAREHOUSE / "db.db" / TABLE
    done = WAREHOUSE / "done"
    if done.exists():
        return folder
    shutil.rmtree(WAREHOUSE, ignore_errors=True)
    WAREHOUSE.mkdir(parents=True)
    chance = np.random.default_rng(1)
    table = _created()
    with paimon_engine(WAREHOUSE) as engine:
        _write(table, np.arange(ROWS - 500_000), 0)
        engine("compact", TABLE)
        _write(table, np.sort(chance.choice(ROWS - 500_000, 600_000, replace=False)), 1)
        _write(table, np.arange(ROWS - 500_000, ROWS), 1)
        engine("compact", TABLE, full=False, dynamic=SMALL_RUNS)
        _write(table, np.sort(chance.choice(ROWS, 200_000, replace=False)), 2)
        levels = {one["file"]["level"] for one in engine("files", TABLE)["files"]}
    if len(levels) != 3:
        raise RuntimeError(f"the table has files at the levels {sorted(levels)}, not at three")
    done.touch()
    return folder


def _created() -> Any:  # noqa: ANN401 - pypaimon's table
    from pypaimon import CatalogFactory, Schema

    catalog = CatalogFactory.create({"warehouse": WAREHOUSE.as_uri()})
    catalog.create_database("db", ignore_if_exists=True)
    options = {"bucket": "8", "write-only": "true"}
    schema = Schema.from_pyarrow_schema(SCHEMA, primary_keys=["id"], options=options)
    catalog.create_table(f"db.{TABLE}", schema, ignore_if_exists=False)
    return catalog.get_table(f"db.{TABLE}")


def _write(table: Any, ids: npt.NDArray[np.int64], version: int) -> None:  # noqa: ANN401 - pypaimon's table
    values = {
        "id": ids,
        "name": np.char.add("name-", ((ids * 7 + version) % 100_003).astype(str)),
        "amount": ids * 0.5 + version,
        "qty": (ids % 1000 + version).astype(np.int32),
        "ts": (ids * 1_000_003 + 1_700_000_000_000_000 + version).astype("datetime64[us]"),
    }
    builder = table.new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    write.write_arrow(pa.table(values, schema=SCHEMA))
    commit.commit(write.prepare_commit())
    write.close()
    commit.close()
