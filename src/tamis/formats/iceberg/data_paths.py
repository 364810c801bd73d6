"""Where new data files lie: under the table's data folder, by partition, under a name of their own.

A path says nothing to a reader: partition values are in the manifests. It is spelt for people, as Iceberg's own
writers spell it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote_plus

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from tamis.sieve.transforms import Transform
from tamis.sieve.transforms.bucket import bucket_of_keys

__all__ = ["Hashed", "Place"]

LONGEST: Final = 180
"""Bytes of a folder's name. File systems take 255, and object stores a thousand for a whole path."""


@dataclass(frozen=True, slots=True)
class Hashed:
    """Paths that begin with a hash, so that an object store spreads them (`write.object-storage.enabled`)."""

    context: str = ""
    """What tells the table, of a folder that is not inside of the table's own."""
    partitions: bool = True
    """Whether they name the partition as well (`write.object-storage.partitioned-paths`)."""


@dataclass(frozen=True, slots=True)
class Place:
    """The data folder, and the fields by which it is divided."""

    folder: str
    names: tuple[str, ...] = ()
    transforms: tuple[Transform, ...] = ()
    types: tuple[pa.DataType, ...] = ()
    hashed: Hashed | None = None

    def path(self, values: Sequence[object], name: str) -> str:
        """The path of a file of the partition with these plain values."""
        told = [
            _folder(field, _text(transform, type_, value))
            for field, transform, type_, value in zip(self.names, self.transforms, self.types, values, strict=True)
            if transform.name != "void"
        ]
        if self.hashed is None:
            return "/".join([self.folder, *told, name])
        inner = "/".join([*told, name] if self.hashed.partitions else [name])
        if self.hashed.context:
            return f"{self.folder}/{_digest(inner)}/{self.hashed.context}/{inner}"
        return f"{self.folder}/{_digest(inner)}{'/' if self.hashed.partitions else '-'}{inner}"


def _digest(name: str) -> str:
    """As Iceberg's own library has it: the last 20 bits of the name's hash, four of them a folder, three times.

    >>> _digest("a")
    '0101/0110/1001/10110010'
    """
    found = bucket_of_keys(pa.array([name.encode()], pa.large_binary()), pa.string(), 1 << 20)
    assert found is not None  # noqa: S101 - for the type checker: texts have a hash
    bits = f"{int(found[0]):020b}"
    return "/".join([bits[:4], bits[4:8], bits[8:12], bits[12:]])


def _folder(name: str, value: str) -> str:
    told = f"{quote_plus(name, safe='*')}={quote_plus(value, safe='*')}"
    if len(told) <= LONGEST:
        return told
    digest = hashlib.sha256(told.encode()).hexdigest()[:16]
    return f"{told[: LONGEST - 17]}-{digest}"


def _text(transform: Transform, type_: pa.DataType, value: object) -> str:
    """A plain value as people read it."""
    if value is None:
        return "null"
    match transform.name:
        case "year" if isinstance(value, int):
            return str(1970 + value)
        case "month" if isinstance(value, int):
            return str(np.datetime64(value, "M"))
        case "hour" if isinstance(value, int):
            return str(np.datetime64(value, "h")).replace("T", "-")
    if pt.is_date32(type_) and isinstance(value, int):
        return str(np.datetime64(value, "D"))
    if pt.is_timestamp(type_) and isinstance(value, int):
        return str(np.datetime64(value, type_.unit)) + ("+00:00" if type_.tz else "")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
