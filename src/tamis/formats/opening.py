"""What is asked for when a table is opened, and what a catalog lists: the same for every format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from tamis.formats.errors import shown
from tamis.formats.storage import Storage
from tamis.formats.storage.cache import MetadataCache
from tamis.formats.storage.objects import EnvironmentStorage

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

__all__ = ["At", "CatalogLike", "CatalogListing", "Opening", "StateError"]

CatalogLike: TypeAlias = "str | Mapping[str, str] | Catalog"
"""A catalog: by its configured name, by its properties, or as the object of the library that loads it."""


class StateError(ValueError):
    """A state was asked for in more than one way, or in one that the table's format does not have."""


@dataclass(frozen=True, slots=True)
class At:
    """Which state of the table: at most one of these, else the newest."""

    snapshot_id: int | None = None
    ref: str | None = None
    """A branch or a tag."""
    as_of_ms: int | None = None
    """The state at a time, in milliseconds since 1970."""
    version: int | None = None
    """The number of a commit, in a format that counts them."""


@dataclass(frozen=True, slots=True)
class Opening:
    """A table that is to be opened."""

    target: Any
    """A folder or file, by path or URI, a name in a catalog; or a table that another library has loaded."""
    at: At = At()
    catalog: CatalogLike | None = None
    """If there is one, target is a name in it."""
    cache: MetadataCache | None = None
    """Where decoded metadata is kept; None to read all anew."""
    storage: Storage = field(default_factory=EnvironmentStorage)
    """Where files are, for formats that no catalog gives a client of its own."""

    @property
    def shown(self) -> str:
        """The target as it may be shown."""
        return shown(self.target) if isinstance(self.target, str) else f"a {type(self.target).__name__}"


@dataclass(frozen=True, slots=True)
class CatalogListing:
    """What is below a name, by full names."""

    namespaces: tuple[str, ...]
    tables: tuple[str, ...]
    empty: str
    """What to say if there is nothing."""
