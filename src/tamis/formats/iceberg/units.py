"""Data manifests as units of work, and the reader that makes files of them, wherever their content is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tamis.formats.iceberg.entries import Types
from tamis.formats.iceberg.held import HeldFiles
from tamis.formats.iceberg.manifest_list import Manifest
from tamis.formats.iceberg.manifests import THREADS, data_batches, decoding_tasks
from tamis.formats.iceberg.metadata import TableMetadata
from tamis.formats.iceberg.stored import Keeper
from tamis.formats.listing import Unit
from tamis.formats.storage import Fetch
from tamis.formats.storage.cache import MetadataCache
from tamis.sieve.files import FileBatch

__all__ = ["ManifestReader", "Manifests", "manifest_units"]


@dataclass(frozen=True, slots=True)
class Manifests:
    """Manifests of a unit, each with its index among all that are read."""

    indices: tuple[int, ...]
    manifests: tuple[Manifest, ...]

    def __reduce__(self) -> tuple[object, ...]:
        """Without summaries: they have done their work when manifests were chosen."""
        return Manifests, (self.indices, tuple(replace(manifest, summaries=None) for manifest in self.manifests))


def manifest_units(manifests: Sequence[Manifest]) -> tuple[Unit, ...]:
    """The manifests in groups that are decoded together, here or elsewhere.

    Groups matter: a join's keys are tested within a budget for each batch, and a note gives an example of each.
    """
    return tuple(_unit(manifests, indices) for indices in decoding_tasks(manifests, THREADS))


def _unit(manifests: Sequence[Manifest], indices: Sequence[int]) -> Unit:
    chosen = tuple(manifests[index] for index in indices)
    about = Manifests(tuple(indices), chosen)
    return Unit(tuple(manifest.path for manifest in chosen), sum(manifest.length or 0 for manifest in chosen), about)


class ManifestReader:
    """Files of a unit's manifests, with statistics of the wanted columns only.

    What the cache has, or an earlier listing, is not fetched again. Elsewhere, where it is sent, it has neither.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        wanted: Types,
        keeper: Keeper | None = None,
        cache: MetadataCache | None = None,
        held: HeldFiles | None = None,
    ) -> None:
        self._metadata = metadata
        self._wanted = wanted
        self._keeper = keeper
        self._cache = cache
        self._held = held

    @classmethod
    def of(
        cls,
        metadata: TableMetadata,
        wanted: Types,
        manifests: Sequence[Manifest],
        cache: MetadataCache | None,
        held: HeldFiles | None,
    ) -> ManifestReader:
        """A reader of these manifests for this process."""
        keeper = None if cache is None else Keeper(cache, metadata, wanted, manifests)
        return cls(metadata, wanted, keeper, cache, held)

    def __reduce__(self) -> tuple[object, ...]:
        """A table's history is not needed to read its manifests."""
        small = replace(self._metadata, snapshots=(), refs=(), snapshot_log=(), properties={})
        return ManifestReader, (small, self._wanted)

    def __call__(self, unit: Unit, fetch: Fetch) -> list[FileBatch]:
        """The files of the unit's manifests, in their order."""
        about: Manifests = unit.about
        if self._held is not None and (read := self._held.find(about.indices)) is not None:
            return read
        chosen = dict(zip(about.indices, about.manifests, strict=True))
        batches = data_batches(self._metadata, chosen, fetch, self._wanted, self._keeper, about.indices)
        if self._held is not None:
            self._held.add(about.indices, batches)
        return batches

    def close(self) -> None:
        """Keep the cache within its size."""
        if self._cache is not None:
            self._cache.trim()
