"""How a table's writers have placed rows in buckets, over all of its history: what is stated of files to the sieve.

Rows are hashed when they are written, with the types that the bucket key has then, and a compaction leaves them where
they are, in a file of a newer schema. So a file's schema does not tell how its rows were placed: any schema that the
table has had may have. Law: buckets prune only where every hash that may have placed a row is known.

| in the table's history | buckets |
|---|---|
| bucket > 0, or -2 (postpone) | prune: each file's number with its own total, since partitions are rescaled |
| bucket -1 (dynamic, unaware) | are shown; no hash of the row chose them |
| the key has always had its types | prune |
| the key was widened: TINYINT to SMALLINT to INT to BIGINT, or text made longer | prune, by either type's hash |
| another change of a key's type, another key, another function, or a schema that is missing | prune nothing |
| FLOAT, DOUBLE, CHAR or nested keys; `fields.KEY.default-value` | prune nothing |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import pyarrow as pa

from tamis.formats.paimon.bucket_keys import KeyType, Root, key_type
from tamis.formats.paimon.hashing import bucket_hash
from tamis.formats.paimon.options import Options
from tamis.formats.paimon.schema import PaimonField, PaimonSchema
from tamis.predicate.schema import Column, ColumnId
from tamis.sieve.file_buckets import FileBuckets
from tamis.sieve.hashing import BucketHash

__all__ = ["Placement", "placement"]

_INTS: Final = (Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT)
"""Each holds the numbers of those before it."""


@dataclass(frozen=True, slots=True)
class Placement:
    """By what rows found their buckets."""

    columns: tuple[Column, ...] = ()
    """The bucket key, as it is hashed."""
    hash: BucketHash | None = None
    fault: str | None = None
    """Why buckets prune nothing although a hash chose them."""

    def of(self, bucket: pa.Array, total: pa.Array) -> FileBuckets:
        """The buckets of files."""
        return FileBuckets(bucket, total, self.columns, self.hash)

    def notes(self, wanted: Iterable[ColumnId]) -> tuple[str, ...]:
        """What is to be said to somebody who asks for these columns: nothing unless the whole key is among them."""
        if self.fault is None or not {column.id for column in self.columns} <= set(wanted):
            return ()
        names = ", ".join(column.name for column in self.columns)
        return (f"buckets{' of ' * bool(names)}{names} ignored: {self.fault}",)


def placement(schema: PaimonSchema, schemas: Mapping[int, PaimonSchema]) -> Placement:
    """How rows of a table that is read with this schema, and has had these, were placed."""
    if not _is_hashed(schema):
        return Placement()
    # An older state is read with its own columns and the options of today, which call the key by its name of today.
    newest = schemas[max(schemas)] if schemas else schema
    fields = [schema.field(field.id) for field in newest.bucket_fields]
    key = [field for field in fields if field is not None]
    columns = tuple(Column(field.id, (field.name,), field.type) for field in key)
    if not key or len(key) < len(fields):
        return Placement(fault="the option bucket-key names a column that is not there")
    history = [schemas[id_] for id_ in sorted(schemas)] if schemas else [schema]
    if (default := next((field for field in key if schema.has_read_default(field)), None)) is not None:
        return Placement(columns, fault=f"{default.name} has a default, which some readers put for NULL")
    fault = _gap(schemas) or next((why for old in history if (why := _other_rule(old, newest))), None)
    if fault is not None:
        return Placement(columns, fault=fault)
    types: list[tuple[KeyType, ...]] = []
    for old in (schema, *history):
        found = _types([old.field(field.id) for field in key])
        if isinstance(found, str):
            return Placement(columns, fault=found)
        types.append(found)
    for before, after in pairwise(history):
        for field in key:
            if (why := _narrowed(before.field(field.id), after.field(field.id), after.id)) is not None:
                return Placement(columns, fault=why)
    by = bucket_hash(_function(newest), list(dict.fromkeys(types)))
    return Placement(columns, fault=by) if isinstance(by, str) else Placement(columns, by)


def _is_hashed(schema: PaimonSchema) -> bool:
    return Options.of(schema).bucket_mode in ("fixed", "postpone")


def _function(schema: PaimonSchema) -> str:
    return schema.options.get("bucket-function.type", "default").strip().lower()


def _gap(schemas: Mapping[int, PaimonSchema]) -> str | None:
    missing = sorted(set(range(max(schemas, default=-1) + 1)) - set(schemas))
    return f"schema {missing[0]} is missing, and rows may have been hashed by it" if missing else None


def _other_rule(old: PaimonSchema, now: PaimonSchema) -> str | None:
    """How an older schema places rows otherwise, whatever their types."""
    if not _is_hashed(old):
        return f"in schema {old.id} the table had no buckets that a hash chooses"
    if [field.id for field in old.bucket_fields] != [field.id for field in now.bucket_fields]:
        return f"the bucket key was another in schema {old.id}"
    if _function(old) != _function(now):
        return f"bucket-function.type was {_function(old)} in schema {old.id}"
    return None


def _types(fields: Sequence[PaimonField | None]) -> tuple[KeyType, ...] | str:
    found: list[KeyType] = []
    for field in fields:
        if field is None:
            return "a column of the bucket key was not there from the beginning"
        type_ = key_type(field.paimon_type)
        if type_ is None:
            return f"{field.name} is {field.paimon_type or 'nested'}, whose hash does not follow from its value"
        if pa.types.is_null(field.type):
            return f"{field.name} is {field.paimon_type}, which Spark compares by more than its bytes"
        found.append(type_)
    return tuple(found)


def _narrowed(before: PaimonField | None, after: PaimonField | None, id_: int) -> str | None:
    """How a change of type makes other values of those that were hashed; None if they stay what they were."""
    if before is None or after is None or _same(before, after):
        return None
    old, new = key_type(before.paimon_type), key_type(after.paimon_type)
    if old is not None and new is not None:
        if old.root in _INTS and new.root in _INTS and _INTS.index(old.root) <= _INTS.index(new.root):
            return None
        if old == new and old.root in (Root.TEXT, Root.BYTES) and _length(before) <= _length(after):
            return None
    return f"{after.name} became {after.paimon_type} in schema {id_}, and was hashed as {before.paimon_type} before"


def _same(before: PaimonField, after: PaimonField) -> bool:
    spelled = [field.paimon_type.upper().replace(" ", "") for field in (before, after)]
    return spelled[0] == spelled[1]


def _length(field: PaimonField) -> float:
    """Most bytes; a BINARY, which is filled up to its length, is as long as nothing else."""
    if field.paimon_type.upper().startswith("BINARY"):
        return float("nan")
    return float("inf") if field.length is None else field.length
