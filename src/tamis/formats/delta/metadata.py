"""What a table says of itself at one version: its columns, its partition columns, its properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tamis.formats.errors import unreadable

__all__ = ["TableMetadata", "parse_metadata"]


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """The newest metadata action up to a version."""

    id: str
    schema_string: str
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]
    name: str | None = None
    description: str | None = None
    created_ms: int | None = None

    @property
    def in_commit_timestamps(self) -> bool:
        """Whether commits say themselves when they were made."""
        return self.configuration.get("delta.enableInCommitTimestamps", "").lower() == "true"


def parse_metadata(location: str, action: Mapping[str, Any]) -> TableMetadata:
    """A metadata action; UnreadableMetadataError if it is none."""
    provider = (action.get("format") or {}).get("provider") or "parquet"
    if str(provider).lower() != "parquet":
        raise unreadable(location, f"its data files are {provider} files, and a Delta table's are Parquet files")
    schema, columns = action.get("schemaString"), action.get("partitionColumns") or []
    configuration = action.get("configuration") or {}
    if isinstance(configuration, list):  # as Arrow gives a map
        configuration = dict(configuration)
    if not isinstance(schema, str) or not isinstance(columns, list) or not isinstance(configuration, dict):
        raise unreadable(location, "its metaData action is not what it should be")
    return TableMetadata(
        str(action.get("id")),
        schema,
        tuple(map(str, columns)),
        {str(key): str(value) for key, value in configuration.items() if value is not None},
        action.get("name"),
        action.get("description"),
        action.get("createdTime"),
    )
