"""Which manifests a commit makes into one: those that many small commits left behind, as Iceberg's own library does.

Manifests of one spec that hold data alike, or deletes alike, are packed from the oldest to the newest into bins of
`commit.manifest.target-size-bytes`, neighbours with neighbours:

    newest  [ 6K 6K 6K ... 6K ] [ 7.9M ] [ 8M ]  oldest

A bin of several becomes one manifest; the newest only when it has `commit.manifest.min-count-to-merge` of them, with
those that the commit adds. So most commits merge nothing, and a table of very many commits has few manifests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from tamis.formats.iceberg.manifest_list import Manifest
from tamis.formats.iceberg.stage import number

__all__ = ["Kind", "Merging"]

MANIFEST_BYTES: Final = 8 << 20
LEAST: Final = 100
ENABLED: Final = "commit.manifest-merge.enabled"

Kind = tuple[int, int]
"""The spec of a manifest's files, and whether they are data or deletes."""


@dataclass(frozen=True, slots=True)
class Merging:
    """How large manifests are to be, and how many small ones there may be."""

    enabled: bool
    target_bytes: int
    least: int

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Merging:
        """As the table says, or as Iceberg does where it says nothing."""
        return cls(
            enabled=properties.get(ENABLED, "true").strip().lower() != "false",
            target_bytes=number(properties, "commit.manifest.target-size-bytes", MANIFEST_BYTES),
            least=number(properties, "commit.manifest.min-count-to-merge", LEAST),
        )

    def bins(
        self, manifests: Sequence[Manifest], mergeable: Iterable[int], new: Counter[Kind]
    ) -> list[tuple[int, ...]]:
        """Places of manifests that are to become one, for each that they become.

        manifests stand from the newest to the oldest; new counts those that the commit adds before them.
        """
        if not self.enabled:
            return []

        def kind(place: int) -> Kind:
            return manifests[place].spec_id, manifests[place].content

        found = []
        for of, places in groupby(sorted(mergeable, key=lambda place: (kind(place), place)), kind):
            packed = self._packed(manifests, list(places))
            found += [one for one in packed[1:] if len(one) > 1]
            if len(packed[0]) > 1 and len(packed[0]) + new[of] >= self.least:
                found.append(packed[0])
        return sorted(found)

    def _packed(self, manifests: Sequence[Manifest], places: Sequence[int]) -> list[tuple[int, ...]]:
        """Neighbours that fit together, filled from the oldest on: what does not fill a bin is the newest."""
        bins: list[list[int]] = []
        room = -1
        for place in reversed(places):
            size = manifests[place].length or 0
            if size > room:
                bins.append([])
                room = self.target_bytes
            bins[-1].append(place)
            room -= size
        return [tuple(reversed(one)) for one in reversed(bins)]
