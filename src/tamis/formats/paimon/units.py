"""Manifests as units of work, and the reader that makes files of them, wherever their content is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tamis.formats.listing import Unit
from tamis.formats.paimon.entries import Deleted, live_entries
from tamis.formats.paimon.files import FileMaker
from tamis.formats.paimon.manifests import Manifest
from tamis.formats.storage import Fetch
from tamis.formats.storage.ordered import in_order
from tamis.sieve.files import FileBatch

__all__ = ["THREADS", "ManifestReader", "manifest_units"]

THREADS: Final = 4
JOIN_BYTES: Final = 1 << 20
"""Small manifests are decoded together until they reach this size."""
JOIN_FILES: Final = 256
"""Most manifests to decode together, so that one task does not fetch a whole table."""


class ManifestReader:
    """Files of a unit's manifests.

    What an earlier listing of the same job has read is not read again.
    """

    def __init__(
        self,
        maker: FileMaker,
        deleted: Deleted,
        held: dict[Any, Any] | None = None,
        fetched: Mapping[str, bytes] | None = None,
    ) -> None:
        """Read what is not held. fetched has manifests that were read for what they delete."""
        self._maker = maker
        self._deleted = deleted
        self._held = held
        self._fetched = fetched or {}

    def __reduce__(self) -> tuple[object, ...]:
        """Without what was read here."""
        return ManifestReader, (self._maker, self._deleted)

    def __call__(self, unit: Unit, fetch: Fetch) -> list[FileBatch]:
        """The files of the unit's manifests, in their order."""
        maker = self._maker
        key = (unit.locations, frozenset(maker.wanted))
        if self._held is not None and key in self._held:
            return list(self._held[key])
        fetched = self._fetched
        contents = in_order(lambda path: fetched[path] if path in fetched else fetch(path), unit.locations, THREADS)
        files = list(zip(unit.locations, contents, strict=True))
        sheet = live_entries(files, unit.about, self._deleted, keys=bool(maker.of_keys), values=bool(maker.of_values))
        found = list(maker.batches(sheet))
        if self._held is not None:
            self._held[key] = found
        return found

    def close(self) -> None:
        """Nothing is kept open."""


def manifest_units(manifests: Sequence[Manifest], *, whole: bool = False) -> tuple[Unit, ...]:
    """The manifests in groups that are decoded together, here or elsewhere; all of them in one if whole.

    A bucket's files may be in any manifest: where they stand or fall together, all have to be known.
    """
    if whole:
        return (_unit(manifests),) if manifests else ()
    groups: list[list[Manifest]] = []
    size = JOIN_BYTES
    for manifest in manifests:
        if size >= JOIN_BYTES or len(groups[-1]) >= JOIN_FILES:
            groups.append([])
            size = 0
        groups[-1].append(manifest)
        size += manifest.size
    return tuple(map(_unit, groups))


def _unit(manifests: Sequence[Manifest]) -> Unit:
    counts = tuple((one.added, one.deleted) for one in manifests)
    return Unit(tuple(one.path for one in manifests), sum(one.size for one in manifests), counts)
