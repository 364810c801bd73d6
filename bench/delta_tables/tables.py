"""Logs of Delta tables, made on first use and kept under bench/.cache.

Ten columns with statistics, partitioned by day and region, as one classic checkpoint in row groups of 100,000
actions. Statistics are JSON alone, as delta-rs writes them, or JSON and columns, as Spark does. A tail has commits
after the checkpoint: each adds a file and, every second one, removes a file of the checkpoint. Every run makes
the same log.
"""

from __future__ import annotations

import json
import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.harness import CACHE

__all__ = ["DAYS", "REGIONS", "TAIL", "delta_table", "files_of"]

DAYS = 250
REGIONS = ("eu-west", "eu-north", "us-east", "us-west", "ap-south", "ap-east", "sa-east", "af-south")
TAIL = 1000
FIRST = date(2024, 1, 1)
ROW_GROUP = 100_000
ROWS = 10_000
"""Of each file: ids and times are dense."""
TEXTS = ("customer_name", "sku", "note")
COLUMNS = {
    "id": "long",
    "ts": "timestamp",
    "customer": "integer",
    "amount": "double",
    "price": "decimal(12,2)",
    "customer_name": "string",
    "sku": "string",
    "note": "string",
    "quantity": "integer",
    "shipped": "date",
    "day": "date",
    "region": "string",
}
TYPES = {
    "long": pa.int64(),
    "integer": pa.int32(),
    "double": pa.float64(),
    "decimal(12,2)": pa.decimal128(12, 2),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}
MAP = pa.map_(pa.string(), pa.string())


def files_of(files: int, first: int = 0) -> pa.Table:
    """What the files hold: a row for each, with the bounds of each column, its day and its region."""
    numbers = np.arange(first, first + files)
    random = np.random.default_rng(first + 1)
    days = (numbers * DAYS) // max(files, 1) % DAYS if first == 0 else numbers % DAYS
    low_id = numbers * ROWS
    base = np.datetime64(FIRST) + days
    seconds = random.integers(0, 43_200, files)
    customers = random.integers(0, 1 << 20, files)
    cents = random.integers(1, 10_000, files)
    words = pa.array(random.integers(0, 1 << 40, files)).cast(pa.string())
    sides: dict[str, tuple[Any, Any]] = {
        "id": (low_id, low_id + ROWS - 1),
        "ts": tuple((base.astype("datetime64[us]") + (seconds + more) * 1_000_000) for more in (0, 43_000)),
        "customer": (customers.astype(np.int32), (customers + 4096).astype(np.int32)),
        "amount": (cents / 64, cents / 64 + 1000),
        "price": (_decimals(cents), _decimals(cents + 100_000)),
        "customer_name": (_text("Customer#", words), _text("Customer~", words)),
        "sku": (_text("A-", words), _text("Z-", words)),
        "note": (_text("about ", words), _text("within ", words)),
        "quantity": (np.ones(files, np.int32), np.full(files, 50, np.int32)),
        "shipped": (base, base + 30),
    }
    found: dict[str, pa.Array] = {}
    for name, (low, high) in sides.items():
        type_ = TYPES[COLUMNS[name]]
        for side, values in (("min", low), ("max", high)):
            found[f"{side}.{name}"] = (values if isinstance(values, pa.Array) else pa.array(values)).cast(type_)
    found["day"] = pa.array(base).cast(pa.date32())
    found["region"] = pa.array(REGIONS).take(pa.array(numbers % len(REGIONS)))
    found["path"] = _paths(found["day"], found["region"], random, files)
    found["size"] = pa.array(random.integers(1 << 20, 1 << 27, files))
    return pa.table(found)


def _text(prefix: str, words: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(prefix, words, "")


def _decimals(cents: np.ndarray[Any, Any]) -> pa.Array:
    # An integer c as a decimal, and then as a hundredth of it: its words are the same.
    whole = pa.array(cents).cast(pa.decimal128(19, 0))
    return pa.Array.from_buffers(pa.decimal128(12, 2), len(whole), whole.buffers())


def _paths(days: pa.Array, regions: pa.Array, random: np.random.Generator, files: int) -> pa.Array:
    drawn = random.bytes(16 * files).hex()
    names = pa.array([drawn[at : at + 32] for at in range(0, 32 * files, 32)])
    return pc.binary_join_element_wise(
        "day=", days.cast(pa.string()), "/region=", regions, "/part-00000-", names, ".c000.snappy.parquet", ""
    )


def _stats_json(files: pa.Table) -> pa.Array:
    """The statistics as writers write them."""

    def fields(side: str) -> list[Any]:
        parts: list[Any] = []
        for name, type_ in COLUMNS.items():
            if f"{side}.{name}" not in files.column_names:
                continue
            values = files[f"{side}.{name}"]
            if type_ == "timestamp":
                text = pc.strftime(values, "%Y-%m-%dT%H:%M:%S.000Z")
                text = pc.replace_substring_regex(text, r"\.\d+\.000Z$", ".000Z")
            else:
                text = values.cast(pa.string())
            quote = '"' if type_ in {"timestamp", "string", "date"} else ""
            parts += [f'{"," if parts else ""}"{name}":{quote}', text, quote]
        return parts

    nulls = ",".join(f'"{name}":0' for name in COLUMNS if f"min.{name}" in files.column_names)
    head = f'{{"numRecords":{ROWS},"minValues":{{'
    pieces = [head, *fields("min"), '},"maxValues":{', *fields("max"), f'}},"nullCount":{{{nulls}}}}}']
    return pc.binary_join_element_wise(*pieces, "").combine_chunks()


def _stats_parsed(files: pa.Table) -> pa.StructArray:
    names = [name for name in COLUMNS if f"min.{name}" in files.column_names]
    sides = [
        pa.StructArray.from_arrays([files[f"{side}.{name}"].combine_chunks() for name in names], names)
        for side in ("min", "max")
    ]
    zeros = pa.array(np.zeros(len(files), np.int64))
    nulls = pa.StructArray.from_arrays([zeros] * len(names), names)
    rows = pa.array(np.full(len(files), ROWS))
    return pa.StructArray.from_arrays([rows, *sides, nulls], ["numRecords", "minValues", "maxValues", "nullCount"])


def _adds(files: pa.Table, *, parsed: bool) -> pa.StructArray:
    count = len(files)
    texts = [files["day"].cast(pa.string()).combine_chunks(), files["region"].combine_chunks()]
    items = pa.concat_arrays(texts).take(pa.array(np.arange(2 * count).reshape(2, count).T.reshape(-1)))
    keys = pa.array(["day", "region"]).take(pa.array(np.tile([0, 1], count)))
    columns: dict[str, pa.Array] = {
        "path": files["path"].combine_chunks(),
        "partitionValues": pa.MapArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32) * 2), keys, items),
        "size": files["size"].combine_chunks(),
        "modificationTime": pa.array(np.full(count, 1_700_000_000_000)),
        "dataChange": pa.array(np.zeros(count, np.bool_)),
        "stats": _stats_json(files),
    }
    if parsed:
        columns["stats_parsed"] = _stats_parsed(files)
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))


def _table_actions() -> tuple[dict[str, Any], dict[str, Any]]:
    fields = [{"name": name, "type": type_, "nullable": True, "metadata": {}} for name, type_ in COLUMNS.items()]
    metadata = {
        "id": "6a1e1f3e-0000-4000-8000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": ["day", "region"],
        "configuration": {},
        "createdTime": 1,
    }
    return {"minReaderVersion": 1, "minWriterVersion": 2}, metadata


def delta_table(files: int, *, parsed: bool, tail: bool = False) -> Path:
    """The folder of a table of so many files in its checkpoint; a tail adds half as many as it has commits."""
    kind = f"{'parsed' if parsed else 'json'}{'-tail' if tail else ''}"
    location = CACHE / "delta" / f"{kind}-{files}"
    if (location / "done").exists():
        return location
    shutil.rmtree(location, ignore_errors=True)
    log = location / "_delta_log"
    log.mkdir(parents=True)
    if tail:
        base = delta_table(files, parsed=parsed) / "_delta_log"
        for one in base.iterdir():
            shutil.copy(one, log / one.name)
        _write_tail(log, files)
    else:
        _write_checkpoint(log, files, parsed=parsed)
    (location / "done").touch()
    return location


def _write_checkpoint(log: Path, files: int, *, parsed: bool) -> None:
    protocol, metadata = _table_actions()
    types = {
        "metaData": pa.struct(
            [
                ("id", pa.string()),
                ("format", pa.struct([("provider", pa.string()), ("options", MAP)])),
                ("schemaString", pa.string()),
                ("partitionColumns", pa.list_(pa.string())),
                ("configuration", MAP),
                ("createdTime", pa.int64()),
            ]
        ),
        "protocol": pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())]),
        "remove": pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())]),
        "txn": pa.struct([("appId", pa.string()), ("version", pa.int64())]),
    }
    whole = files_of(files)
    with pq.ParquetWriter(log / f"{0:020d}.checkpoint.parquet", _checkpoint_schema(types, parsed=parsed)) as writer:
        schema = writer.schema
        top = [
            {"protocol": protocol},
            {"metaData": {**metadata, "format": {"provider": "parquet", "options": []}, "configuration": []}},
        ]
        writer.write_table(pa.Table.from_pylist(top, schema))
        for start in range(0, files, ROW_GROUP):
            add = _adds(whole.slice(start, ROW_GROUP), parsed=parsed)
            columns = [add if name == "add" else pa.nulls(len(add), schema.field(name).type) for name in schema.names]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=ROW_GROUP)
    first = [{"protocol": protocol}, {"metaData": metadata}, {"commitInfo": {"timestamp": 1, "operation": "WRITE"}}]
    (log / f"{0:020d}.json").write_text("\n".join(map(json.dumps, first)) + "\n", encoding="utf-8")
    (log / "_last_checkpoint").write_text(json.dumps({"version": 0, "size": files + 2}), encoding="utf-8")


def _checkpoint_schema(types: dict[str, pa.DataType], *, parsed: bool) -> pa.Schema:
    types = {**types, "add": _adds(files_of(1), parsed=parsed).type}
    return pa.schema([(name, types[name]) for name in ("txn", "add", "remove", "metaData", "protocol")])


def _write_tail(log: Path, files: int) -> None:
    added = files_of(TAIL, files)
    stats = _stats_json(added).to_pylist()
    removed = files_of(files)["path"]
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    for place, row in enumerate(added.to_pylist()):
        actions: list[dict[str, Any]] = [{"commitInfo": {"timestamp": 1, "operation": "WRITE"}}]
        actions.append(
            {
                "add": {
                    "path": row["path"],
                    "partitionValues": {"day": str(row["day"]), "region": row["region"]},
                    "size": row["size"],
                    "modificationTime": int((moment + timedelta(minutes=place)).timestamp() * 1000),
                    "dataChange": True,
                    "stats": stats[place],
                }
            }
        )
        if place % 2:
            path = removed[place * (files // TAIL)].as_py()
            actions.append({"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}})
        text = "\n".join(map(json.dumps, actions)) + "\n"
        (log / f"{place + 1:020d}.json").write_text(text, encoding="utf-8")
