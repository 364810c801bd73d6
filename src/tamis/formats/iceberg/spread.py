"""Data manifests as units of work, and the reader that makes files of their content, wherever that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tamis.formats.errors import unreadable
from tamis.formats.iceberg.entries import Types
from tamis.formats.iceberg.manifest_list import Manifest
from tamis.formats.iceberg.manifests import THREADS, decoding_tasks, read_data_files
from tamis.formats.iceberg.metadata import TableMetadata
from tamis.formats.spread import Unit
from tamis.sieve.files import FileBatch

__all__ = ["ManifestReader", "Placed", "manifest_units"]

Placed = tuple[tuple[int, Manifest], ...]
"""Manifests, each with its place among all that are read."""


def manifest_units(manifests: Sequence[Manifest]) -> tuple[Unit, ...]:
    """The manifests in the groups in which this process would decode them.

    Groups matter: a join's keys are tested within a budget for each batch, and a note gives an example of each.
    """
    return tuple(_unit(manifests, places) for places in decoding_tasks(manifests, THREADS))


def _unit(manifests: Sequence[Manifest], places: Sequence[int]) -> Unit:
    chosen = [manifests[place] for place in places]
    # Summaries have done their work when manifests were chosen.
    about = tuple((place, replace(one, summaries=None)) for place, one in zip(places, chosen, strict=True))
    return Unit(tuple(one.path for one in chosen), sum(one.length or 0 for one in chosen), about)


@dataclass(frozen=True, slots=True)
class ManifestReader:
    """Files of a unit's manifests, with statistics of the wanted columns only."""

    metadata: TableMetadata
    wanted: Types

    @classmethod
    def of(cls, metadata: TableMetadata, wanted: Types) -> ManifestReader:
        """A reader that is small to send: a table's history is not needed to read its manifests."""
        return cls(replace(metadata, snapshots=(), refs=(), snapshot_log=(), properties={}), wanted)

    def __call__(self, about: Placed, contents: Mapping[str, bytes]) -> Iterator[FileBatch]:
        """The batches that read_data_files gives of these manifests among all others."""

        def fetch(location: str) -> bytes:
            if location not in contents:
                raise unreadable(location, "it was not sent with its unit")
            return contents[location]

        places = pa.array([place for place, _ in about], pa.int32())
        manifests = [one for _, one in about]
        for batch in read_data_files(self.metadata, manifests, fetch, self.wanted, threads=1):
            place = places.take(batch.extra["manifest"])
            yield replace(batch, extra={**batch.extra, "manifest": place})
