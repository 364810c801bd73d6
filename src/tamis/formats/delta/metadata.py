"""What a table says of itself at one version: its columns, its partition columns, its properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tamis.formats.delta.schema import mapping_mode
from tamis.formats.document import kind_of
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
    def column_mapping(self) -> str:
        """How columns are known in files: `none`, `name` or `id`."""
        return mapping_mode(self.configuration)

    @property
    def in_commit_timestamps(self) -> bool:
        """Whether commits say themselves when they were made."""
        return self.configuration.get("delta.enableInCommitTimestamps", "").lower() == "true"


def parse_metadata(location: str, action: Mapping[str, Any]) -> TableMetadata:
    """A metadata action; UnreadableMetadataError if it is none."""
    kind, configuration = action.get("format") or {}, action.get("configuration") or {}
    schema, columns = action.get("schemaString"), action.get("partitionColumns") or []
    if isinstance(configuration, list) and all(isinstance(one, tuple) for one in configuration):
        configuration = dict(configuration)  # as Arrow gives a map
    for name, value, type_ in (
        ("format", kind, dict),
        ("configuration", configuration, dict),
        ("schemaString", schema, str),
        ("partitionColumns", columns, list),
    ):
        if not isinstance(value, type_):
            raise unreadable(location, f"{name} of its metaData action is {kind_of(value)}")
    provider = kind.get("provider") or "parquet"
    if str(provider).lower() != "parquet":
        raise unreadable(location, f"its data files are {provider} files, and a Delta table's are Parquet files")
    return TableMetadata(
        str(action.get("id")),
        str(schema),
        tuple(map(str, columns)),
        {str(key): str(value) for key, value in configuration.items() if value is not None},
        action.get("name"),
        action.get("description"),
        action.get("createdTime"),
    )
