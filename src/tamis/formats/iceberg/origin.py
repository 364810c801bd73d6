"""Where an Iceberg table was opened from: what a commit needs, and what a reader may leave alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tamis.formats.errors import shown

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

__all__ = ["Origin"]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Origin:
    """Where a table was opened from.

    A catalog's credentials are in nothing that is shown or pickled: what is unpickled knows the name alone, and has
    no catalog to commit to.
    """

    kind: Literal["catalog", "folder", "file"]
    """A folder is a Hadoop table, whose versions are files. From a metadata file alone nothing can be committed."""
    name: str
    """The name in the catalog, `namespace.table`; the folder; or the metadata file."""
    catalog: Catalog | None = None
    """PyIceberg's own, loaded. None if the kind is another, or this value was pickled."""
    identifier: tuple[str, ...] = ()
    """The name in its parts, as the catalog takes it: one may have a dot in it."""

    def __repr__(self) -> str:
        return f"<{self.kind} {shown(self.name)}>"

    def __reduce__(self) -> tuple[object, ...]:
        return Origin, (self.kind, self.name, None, self.identifier)
