"""Paimon tables as the pypaimon package writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pypaimon import CatalogFactory, Schema

__all__ = ["created", "written"]


def created(
    warehouse: Path,
    columns: pa.Schema,
    *,
    partition: Sequence[str] = (),
    key: Sequence[str] = (),
    name: str = "t",
    **options: str,
) -> Any:  # noqa: ANN401 - pypaimon has no types
    """An empty table db.t of a new warehouse; options have _ for . and __ for -."""
    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database("db", ignore_if_exists=True)
    spelled = {key.replace("__", "-").replace("_", "."): value for key, value in options.items()}
    schema = Schema.from_pyarrow_schema(columns, list(partition), list(key), spelled)
    catalog.create_table(f"db.{name}", schema, ignore_if_exists=False)
    return catalog.get_table(f"db.{name}")


def written(table: Any, rows: Iterable[Mapping[str, object]], columns: pa.Schema) -> None:  # noqa: ANN401 - as above
    """Append the rows in one commit."""
    builder = table.new_batch_write_builder()
    write = builder.new_write()
    write.write_arrow(pa.Table.from_pylist(list(rows), schema=columns))
    commit = builder.new_commit()
    commit.commit(write.prepare_commit())
    write.close()
    commit.close()
