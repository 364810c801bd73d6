"""Another partition spec for new files: PyIceberg's update_spec decides what it is, tamis writes it down.

Files keep the spec that they were written with. Whatever else is in the table's document stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tamis.errors import CommitRefused, MissingDependency
from tamis.formats.edit import Evolution
from tamis.formats.iceberg.homes import State
from tamis.formats.iceberg.parsing import FIRST_PARTITION_ID
from tamis.formats.iceberg.snapshots import now_ms, with_log

if TYPE_CHECKING:
    from pyiceberg.table import Table as PyIcebergTable

__all__ = ["Evolved", "PartitionTerm", "evolved"]

_TERM: Final = re.compile(
    r"(?:(?P<transform>\w+)\s*\(\s*(?:(?P<width>\d+)\s*,\s*)?(?P<inside>[^()]+?)\s*\)|(?P<column>[^()]+?))"
    r"(?:\s+as\s+(?P<name>\w+))?",
    re.IGNORECASE,
)
_TIMES: Final = {f"{unit}{s}": unit for unit in ("year", "month", "day", "hour") for s in ("", "s")}
_WIDE: Final = ("bucket", "truncate")
_WIDEST: Final = 2**31 - 1
"""The widest that Java can read. A table whose metadata has another width, or none, is opened by nobody."""


@dataclass(frozen=True, slots=True)
class PartitionTerm:
    """A partition field as Spark's DDL writes it: a column, or a transform of one, and perhaps a name."""

    column: str
    transform: str
    """As the metadata spells it."""
    name: str | None = None

    @classmethod
    def of(cls, table: str, text: str) -> PartitionTerm:
        """What a text says. CommitRefused if it is no partition field.

        >>> PartitionTerm.of("t", "bucket(8, id) as shard"), PartitionTerm.of("t", "days(ts)").transform
        (PartitionTerm(column='id', transform='bucket[8]', name='shard'), 'day')
        """
        found = _TERM.fullmatch(text.strip())
        if found is not None:
            column = (found["inside"] or found["column"]).replace("`", "")
            word, width = (found["transform"] or "identity").lower(), found["width"]
            if (word in _WIDE) and width and _is_width(width):
                return cls(column, f"{word}[{int(width)}]", found["name"])
            if not width and (word == "identity" or word in _TIMES):
                return cls(column, _TIMES.get(word, word), found["name"])
        raise CommitRefused(
            f"cannot partition {table} by {text!r}: write a column, bucket(N, column), truncate(N, column), years, "
            f"months, days or hours of one, with `as name` behind it if you like. N is from 1 to {_WIDEST}.",
            table=table,
            feature=text,
        )


def _is_width(text: str) -> bool:
    return text.isascii() and len(text) <= len(str(_WIDEST)) and 0 < int(text) <= _WIDEST


@dataclass(frozen=True, slots=True)
class Evolved:
    """The document with the new spec, and what a catalog is asked for."""

    document: Mapping[str, Any]
    requirements: tuple[Any, ...]
    updates: tuple[Any, ...]


def evolved(name: str, state: State, wanted: Evolution) -> Evolved | None:
    """The state with the changes of its partition spec; None if there is nothing to change."""
    document = _with_all_specs(state)
    requirements, updates = _updates(name, state.path, document, wanted)
    if not updates:
        return None
    added = None
    for update in updates:
        said = update.model_dump(by_alias=True, mode="json")
        if said["action"] == "add-spec":
            added = said["spec"]
            document["partition-specs"] = [*(document.get("partition-specs") or ()), added]
            ids = [document.get("last-partition-id") or 0, *(one["field-id"] for one in added["fields"])]
            document["last-partition-id"] = max(ids)
        elif said["action"] == "set-default-spec":
            chosen = said["spec-id"]
            document["default-spec-id"] = added["spec-id"] if chosen == -1 and added is not None else chosen
    if "partition-spec" in document:
        default = document["default-spec-id"]
        document["partition-spec"] = next(
            one["fields"] for one in document["partition-specs"] if one["spec-id"] == default
        )
    return Evolved(with_log(document, state.path, now_ms(state.document)), requirements, updates)


def _with_all_specs(state: State) -> dict[str, Any]:
    """The document, with its specs where all of today's have them, and every field with its id.

    The oldest tables have one spec, under a name of its own, and fields that are known by their order. If another
    were listed without it, no reader would know any more how the table's files are partitioned.
    """
    document = dict(state.document)
    specs = document.get("partition-specs")
    if specs is None:
        specs = [{"spec-id": state.metadata.default_spec_id, "fields": document.get("partition-spec") or []}]
    document["partition-specs"] = [
        {
            **one,
            "fields": [
                {**field, "field-id": id_} for field, id_ in zip(one["fields"], layout.field_ids, strict=True)
            ],
        }
        for one, layout in zip(specs, state.metadata.specs, strict=True)
    ]
    document.setdefault("default-spec-id", state.metadata.default_spec_id)
    if document.get("last-partition-id") is None:
        ids = [id_ for layout in state.metadata.specs for id_ in layout.field_ids]
        document["last-partition-id"] = max(ids, default=FIRST_PARTITION_ID - 1)
    return document


def _updates(
    name: str, path: str, document: Mapping[str, Any], wanted: Evolution
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What PyIceberg's update_spec asks of a catalog: requirements and updates."""
    try:
        from pyiceberg.catalog.noop import NoopCatalog
        from pyiceberg.exceptions import ValidationError
        from pyiceberg.table import CommitTableResponse
    except ImportError as error:
        raise MissingDependency(
            "changing a table's partition spec needs 'pyiceberg': pip install 'tamis[iceberg]'",
            package="pyiceberg",
            extra="iceberg",
        ) from error
    asked: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = []

    class Listening(NoopCatalog):
        """A catalog that only listens."""

        def commit_table(
            self, table: PyIcebergTable, requirements: tuple[Any, ...], updates: tuple[Any, ...]
        ) -> CommitTableResponse:
            asked.append((requirements, updates))
            return CommitTableResponse.model_validate(
                {"metadata": table.metadata, "metadata-location": table.metadata_location}
            )

    table = _model(path, document, Listening("listening"))
    fields = {field.name: field for field in table.spec().fields}
    try:
        with table.update_spec(case_sensitive=True) as update:
            for text in (*wanted.drop, *wanted.replace):
                update.remove_field(_field_name(name, table, fields, text))
            for text in (*wanted.replace.values(), *wanted.add):
                term = PartitionTerm.of(name, text)
                update.add_field(_column_name(name, table, term.column), term.transform, term.name)
    except (ValueError, ValidationError) as error:
        raise CommitRefused(
            f"cannot change how {name} is partitioned: {error}", table=name, feature="its partition spec"
        ) from error
    return asked[0] if asked else ((), ())


def _model(path: str, document: Mapping[str, Any], catalog: Any) -> PyIcebergTable:  # noqa: ANN401 - PyIceberg's own
    from pyiceberg.io import load_file_io
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadataUtil

    metadata = TableMetadataUtil.parse_obj(dict(document))
    return Table(("t",), metadata, path, load_file_io({}, path), catalog)


def _column_name(name: str, table: PyIcebergTable, column: str) -> str:
    """The column as the table spells it: the one of that very name, else the only one that differs in case alone."""
    schema = table.schema()
    if column in schema.column_names:
        return column
    alike = [one for one in schema.column_names if one.lower() == column.lower()]
    if len({schema.find_field(one).field_id for one in alike}) > 1:
        raise CommitRefused(
            f"cannot change how {name} is partitioned: {column!r} may be {' or '.join(map(repr, alike))}. Write it "
            "as the table does.",
            table=name,
            feature=column,
        )
    return alike[0] if alike else column


def _field_name(name: str, table: PyIcebergTable, fields: Mapping[str, Any], text: str) -> str:
    """The partition field that a text names, by its own name or by what it is made of."""
    if text in fields:
        return text
    term = PartitionTerm.of(name, text)
    column = table.schema().find_field(_column_name(name, table, term.column))
    for field in fields.values():
        if field.source_id == column.field_id and str(field.transform) == term.transform:
            return str(field.name)
    known: Sequence[str] = [f"{field.name} ({field.transform})" for field in fields.values()]
    raise CommitRefused(
        f"{name} has no partition field {text!r}. Its fields: {', '.join(known) or 'none'}.", table=name, feature=text
    )
