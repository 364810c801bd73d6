"""Which features a table has, and whether this version reads it.

Law: a table with a reader feature that is not known here is refused by that feature's name. Features of writers alone
change nothing for whoever reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tamis.errors import UnsupportedFormatError
from tamis.formats.errors import shown, unreadable

__all__ = ["READ", "Protocol", "parse_protocol"]

READ: Final = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)
"""The reader features that this version knows."""
_BY_CATALOG: Final = frozenset({"catalogManaged", "catalogOwned", "catalogOwned-preview", "catalogManaged-preview"})
FEATURES: Final = 3
"""From this reader version on a table lists its features; before it a version stands for some."""

_GENERATES: Final = 4
_WRITER_FEATURES: Final = 7
"""From this writer version on a table lists its features; before it version 4 stands for generated columns."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """What readers and writers have to know."""

    reader: int
    writer: int
    reader_features: tuple[str, ...] = ()
    writer_features: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """All features that the table lists."""
        return tuple(sorted({*self.reader_features, *self.writer_features}))

    @property
    def generates(self) -> bool:
        """Whether writers have to keep to generation expressions: only then do these say anything of rows."""
        return "generatedColumns" in self.writer_features or _GENERATES <= self.writer < _WRITER_FEATURES

    def check(self, table: str) -> None:
        """UnsupportedFormatError unless every reader feature is known here."""
        by_catalog = sorted(_BY_CATALOG & {*self.reader_features, *self.writer_features})
        if by_catalog:
            raise _refused(
                table,
                by_catalog[0],
                "only its catalog knows which commits count. Read it through the catalog's own engine",
            )
        unknown = sorted(set(self.reader_features) - READ)
        if unknown:
            listed = ", ".join(unknown)
            raise _refused(table, listed, f"this version does not read it. Known are {', '.join(sorted(READ))}")
        if not 1 <= self.reader <= FEATURES:
            raise _refused(
                table, f"reader version {self.reader}", f"this version reads tables up to reader version {FEATURES}"
            )


def _refused(table: str, feature: str, why: str) -> UnsupportedFormatError:
    return UnsupportedFormatError(
        f"{shown(table)} has the feature {feature}, and {why}.", path=shown(table), feature=feature
    )


def parse_protocol(location: str, action: Mapping[str, Any]) -> Protocol:
    """A protocol action; UnreadableMetadataError if it is none."""
    versions = [action.get(name) for name in ("minReaderVersion", "minWriterVersion")]
    lists = [action.get(name) or [] for name in ("readerFeatures", "writerFeatures")]
    if any(type(one) is not int for one in versions) or not all(isinstance(one, list) for one in lists):
        raise unreadable(location, "its protocol action is not what it should be")
    if versions[0] == FEATURES and action.get("readerFeatures") is None:
        raise unreadable(location, "its protocol action does not list the readerFeatures that its reader version has")
    reader, writer = (tuple(map(str, one)) for one in lists)
    return Protocol(int(versions[0] or 0), int(versions[1] or 0), reader, writer)
