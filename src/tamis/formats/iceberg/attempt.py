"""One try of a commit: manifests and their list, written; the document that names them.

New files get manifests of their own, one for each spec and content, or several if they grow beyond what the table
likes. A manifest that loses files is written anew, and very many small ones become one; every other is listed again
as it is. Law: what was live and does not leave is live afterwards, with all that was said of it; nothing else but
what comes is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import CommitRefused, UnreadableMetadataError
from tamis.formats.edit import Edit, NewFile
from tamis.formats.iceberg import entries as e
from tamis.formats.iceberg.by_spec import find_compatible_schema, group_files_by_spec, spec_fields
from tamis.formats.iceberg.carrying import Thinned, merged, thinned
from tamis.formats.iceberg.conflicts import Standing, standing
from tamis.formats.iceberg.entries import Entries
from tamis.formats.iceberg.homes import Home, State
from tamis.formats.iceberg.manifest_list import DATA, Manifest, parse_manifest_list
from tamis.formats.iceberg.manifest_writing import (
    Carried,
    WrittenManifest,
    carried_entries,
    counted,
    manifest_bytes,
    manifest_list,
)
from tamis.formats.iceberg.merging import Merging
from tamis.formats.iceberg.metadata import Snapshot
from tamis.formats.iceberg.snapshots import Manifests, now_ms, summary_of, with_snapshot
from tamis.formats.iceberg.stage import avro_codec
from tamis.formats.storage.ordered import in_order
from tamis.predicate.arrays import Mask

__all__ = ["Attempt", "Missing"]

NO_PARENT: Final = "null"
"""How a manifest list spells that there is no snapshot before."""
THREADS: Final = 4
"""Manifests to write anew at a time: each is fetched, decoded, encoded and put."""


class Missing(Exception):
    """A file that is to leave is not there any more."""


@dataclass(slots=True)
class Attempt:
    """One try: the metadata files that it writes."""

    home: Home
    name: str
    edit: Edit
    state: State
    parent: Snapshot | None
    uuid: str = field(default_factory=lambda: str(uuid4()))
    files: list[str] = field(default_factory=list)
    carried: Carried = field(default_factory=Carried)
    manifests: tuple[Manifest, ...] = ()
    """Those of the parent, as the entries of carried, in their order."""

    def read(self) -> None:
        """Read what the parent lists."""
        if self.parent is None:
            return
        path = self.parent.manifest_list
        if path is None:
            raise CommitRefused(
                f"cannot commit to {self.name}: its snapshot {self.parent.id} has no manifest list, as the oldest "
                "writers left it. Append to it once with Iceberg's own connector.",
                table=self.name,
                feature="a snapshot without a manifest list",
            )
        data = self.home.fetch(path)
        self.carried, self.manifests = carried_entries(path, data), tuple(parse_manifest_list(path, data))

    def written(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Manifests and their list, written; the document that names them, and its new snapshot."""
        document, metadata, edit = self.state.document, self.state.metadata, self.edit
        version = metadata.format_version
        sequence = metadata.last_sequence_number + 1 if version > 1 else 0
        anew = {} if edit.operation == "append" else self._thinned()
        made = [*self._manifests(edit.added), *self._manifests(edit.deletes)]
        merged = self._merged(made, anew)
        created = [*made, *(one.manifest for one in anew.values()), *merged.values()]
        entries = [self._entry(place, one, sequence) for place, one in enumerate(created)]
        places = [*anew, *(places[0] for places in merged)]
        dropped = {place for places in merged for place in places[1:]}
        carried = self._carried(dict(zip(places, entries[len(made) :], strict=True)), dropped)
        every = [*entries[: len(made)], *carried]
        path = f"{self._folder}/snap-{edit.snapshot_id}-1-{self.uuid}.avro"
        snapshot, head = self._snapshot(every, sequence)
        try:
            data = manifest_list(every, self.carried.unknown, version, head, avro_codec(metadata.properties))
        except ValueError as error:
            raise CommitRefused(
                f"cannot commit to {self.name}: an entry of its manifest list says too little to be carried on "
                f"({error}). Rewrite its manifests with Iceberg's own connector first.",
                table=self.name,
                feature="an old manifest list",
            ) from error
        self._put(path, data)
        gone = [one.gone for one in anew.values()]
        replaced = len(anew) + len(merged) + len(dropped)
        counts = Manifests(len(created), len(carried) - len(anew) - len(merged), replaced)
        snapshot |= {
            "timestamp-ms": now_ms(document),
            "summary": summary_of(
                edit.operation, (*edit.added, *edit.deletes), gone, self.parent, counts, edit.properties
            ),
            "manifest-list": path,
            "schema-id": metadata.current_schema_id,
        }
        return with_snapshot(document, self.state.path, snapshot, edit.branch), snapshot

    def _snapshot(self, every: Sequence[dict[str, Any]], sequence: int) -> tuple[dict[str, Any], dict[str, str]]:
        """The snapshot so far, and what the head of its manifest list says."""
        document, version = self.state.document, self.state.metadata.format_version
        head = {
            "snapshot-id": str(self.edit.snapshot_id),
            "parent-snapshot-id": NO_PARENT if self.parent is None else str(self.parent.id),
        }
        snapshot: dict[str, Any] = {"snapshot-id": self.edit.snapshot_id}
        if self.parent is not None:
            snapshot["parent-snapshot-id"] = self.parent.id
        if version > 1:
            head["sequence-number"] = str(sequence)
            snapshot["sequence-number"] = sequence
        if version > 2:  # noqa: PLR2004 - row lineage
            first_row = document.get("next-row-id") or 0
            rows = _assign_rows(every, first_row)
            head["first-row-id"] = str(first_row)
            snapshot |= {"first-row-id": first_row, "added-rows": rows}
        return snapshot, head

    @property
    def _folder(self) -> str:
        metadata = self.state.metadata
        chosen = metadata.properties.get("write.metadata.path") or f"{metadata.location.rstrip('/')}/metadata"
        return chosen.rstrip("/")

    def _carried(self, anew: Mapping[int, dict[str, Any]], dropped: Collection[int]) -> list[dict[str, Any]]:
        """What was listed and is listed again, by its place the ones that were written anew; not what is dropped.

        An append lists all again. Others leave out manifests without a live file, as Iceberg's own library does.
        """
        found = []
        for place, (entry, manifest) in enumerate(zip(self.carried.entries, self.manifests, strict=True)):
            live = manifest.live_files != 0 or manifest.has_rows
            if place in anew:
                found.append(anew[place])
            elif place in dropped:
                continue
            elif live or self.edit.operation == "append":
                old = self.state.metadata.format_version == 1
                found.append(entry if old else counted(entry, self.home.fetch))
        return found

    def _merged(
        self, made: Sequence[WrittenManifest], anew: Collection[int]
    ) -> dict[tuple[int, ...], WrittenManifest]:
        """Manifests made of many small ones, by the places of these in the list.

        Those that this commit writes are left for a later one. What cannot be merged without loss stays as it is.
        """
        if self.carried.unknown:
            return {}
        metadata = self.state.metadata
        mergeable = [
            place
            for place, (entry, manifest) in enumerate(zip(self.carried.entries, self.manifests, strict=True))
            if place not in anew and manifest.live_files and manifest.length and entry.get("key_metadata") is None
        ]
        new = Counter((one.spec_id, one.content) for one in made)
        new.update((self.manifests[place].spec_id, self.manifests[place].content) for place in anew)
        bins = Merging.of(metadata.properties).bins(self.manifests, mergeable, new)

        def work(places: tuple[int, ...]) -> WrittenManifest | None:
            mine = [self.manifests[place] for place in places]
            try:
                return merged(
                    self.name,
                    mine,
                    list(in_order(self.home.fetch, [one.path for one in mine], THREADS)),
                    metadata.layout(mine[0].spec_id),
                    version=metadata.format_version,
                    snapshot_id=self.edit.snapshot_id,
                    codec=avro_codec(metadata.properties),
                )
            except (CommitRefused, UnreadableMetadataError):
                return None

        return {places: one for places in bins if (one := work(places)) is not None}

    def _thinned(self) -> dict[int, Thinned]:
        """The manifests that lose files, by their place in the list."""
        places = {manifest.path: place for place, manifest in enumerate(self.manifests)}
        spots = standing(self.edit.removed, self.state.metadata, self.manifests, self.home.fetch)
        if spots.missing:
            raise Missing(f"{spots.missing[0]}, which the job replaces, is not there any more")
        tasks = [(places[path], partial(_named, paths)) for path, paths in spots.found.items()]
        found = self._run(sorted(tasks, key=lambda task: task[0]))
        for path, paths in spots.found.items():
            if places[path] not in found or len(found[places[path]].gone.files) < len(pc.unique(paths)):
                raise Missing(f"files of {path}, which the job replaces, are not there any more")
        if self.state.metadata.format_version > 1:
            found |= self._without_deletes(spots, found)
        return dict(sorted(found.items()))

    def _without_deletes(self, removed: Standing, data: Mapping[int, Thinned]) -> dict[int, Thinned]:
        """Delete manifests without what is replaced, vectors of files that left, and what is older than all data."""
        leaving = _LeavingDeletes(
            self.edit.replaced,
            pa.concat_arrays([pa.array([], pa.string()), *removed.found.values()]),
            self._oldest(data),
        )
        tasks = [
            (place, leaving)
            for place, manifest in enumerate(self.manifests)
            if manifest.content != DATA
            and (manifest.live_files != 0 or manifest.has_rows)
            and (leaving.replaced or len(leaving.paths) or manifest.min_sequence_number < leaving.oldest)
        ]
        found = self._run(tasks)
        left = {
            key
            for one in found.values()
            for key in zip(one.gone.files["path"].to_pylist(), one.gone.files["offset"].to_pylist(), strict=True)
        }
        lost = self.edit.replaced - left
        if lost:
            raise Missing(f"the deletes in {min(lost)[0]}, which the job replaces, are not there any more")
        return found

    def _oldest(self, thin: Mapping[int, Thinned]) -> int:
        """No data file that stays has a lesser sequence number."""
        numbers = [self.state.metadata.last_sequence_number]
        for place, manifest in enumerate(self.manifests):
            if manifest.content != DATA:
                continue
            if place in thin:
                least = thin[place].manifest.min_sequence
                numbers += [] if least is None else [least]
            elif manifest.live_files != 0 or manifest.has_rows:
                numbers.append(manifest.min_sequence_number)
        return min(numbers)

    def _run(self, tasks: Sequence[tuple[int, Callable[[Entries], Mask]]]) -> dict[int, Thinned]:
        """Write these manifests anew, several at a time; those that lose nothing are left out."""
        metadata = self.state.metadata

        def work(task: tuple[int, Callable[[Entries], Mask]]) -> Thinned | None:
            place, leaves = task
            manifest = self.manifests[place]
            return thinned(
                self.name,
                manifest,
                self.home.fetch(manifest.path),
                metadata.layout(manifest.spec_id),
                leaves,
                version=metadata.format_version,
                snapshot_id=self.edit.snapshot_id,
                codec=avro_codec(metadata.properties),
            )

        done = zip(tasks, in_order(work, tasks, THREADS), strict=True)
        return {place: one for (place, _), one in done if one is not None}

    def _manifests(self, files: Sequence[NewFile]) -> Iterator[WrittenManifest]:
        """A manifest for each spec, or several, if it grows beyond what the table likes."""
        metadata, document = self.state.metadata, self.state.document
        limit = Merging.of(metadata.properties).target_bytes
        for spec_id, mine in group_files_by_spec(files).items() if files else ():
            made = partial(
                manifest_bytes,
                layout=metadata.layout(spec_id),
                version=metadata.format_version,
                schema=find_compatible_schema(self.name, document, spec_id),
                spec=spec_fields(document, spec_id),
                snapshot_id=self.edit.snapshot_id,
                codec=avro_codec(metadata.properties),
            )
            whole = made(mine)
            parts = -(-len(whole.data) // limit)
            if parts == 1 or len(mine) == 1:
                yield whole
                continue
            step = -(-len(mine) // parts)
            for start in range(0, len(mine), step):
                yield made(mine[start : start + step])

    def _entry(self, place: int, manifest: WrittenManifest, sequence: int) -> dict[str, Any]:
        """What the list says of a new manifest, which is written here."""
        path = f"{self._folder}/{self.uuid}-m{place}.avro"
        self._put(path, manifest.data)
        return {
            "manifest_path": path,
            "manifest_length": len(manifest.data),
            "partition_spec_id": manifest.spec_id,
            "content": manifest.content,
            "sequence_number": sequence,
            "min_sequence_number": sequence if manifest.min_sequence is None else manifest.min_sequence,
            "added_snapshot_id": self.edit.snapshot_id,
            "added_files_count": manifest.added.files,
            "existing_files_count": manifest.existing.files,
            "deleted_files_count": manifest.deleted.files,
            "added_rows_count": manifest.added.rows,
            "existing_rows_count": manifest.existing.rows,
            "deleted_rows_count": manifest.deleted.rows,
            "partitions": None if manifest.partitions is None else list(manifest.partitions),
        }

    def _put(self, path: str, data: bytes) -> None:
        self.files.append(path)
        self.home.put(path, data)

    def clean(self) -> None:
        """Remove the metadata files that this try has written: nothing refers to them."""
        for path in self.files:
            self.home.remove(path)


def _named(paths: pa.Array, entries: Entries) -> Mask:
    """Which entries have one of the paths."""
    mine = pc.is_in(entries.columns[e.FILE_PATH].cast(pa.string()), value_set=paths)
    return np.asarray(mine.to_numpy(zero_copy_only=False), np.bool_)


@dataclass(frozen=True, slots=True)
class _LeavingDeletes:
    """Which deletes leave."""

    replaced: frozenset[tuple[str, int | None]]
    paths: pa.Array
    """Data files that leave, and their vectors with them."""
    oldest: int

    def __call__(self, entries: Entries) -> Mask:
        offsets = entries.column(e.OFFSET, pa.int64())
        sequences = entries.inherited["sequence_number"].fill_null(0).to_numpy(zero_copy_only=False)
        found = np.asarray((sequences > 0) & (sequences < self.oldest), np.bool_)
        if len(self.paths):
            named = pc.is_in(entries.column(e.REFERENCED, pa.string()), value_set=self.paths)
            found |= np.asarray(pc.and_(named, offsets.is_valid()).to_numpy(zero_copy_only=False), np.bool_)
        if self.replaced:
            keys = zip(entries.columns[e.FILE_PATH].to_pylist(), offsets.to_pylist(), strict=True)
            found |= np.fromiter((key in self.replaced for key in keys), np.bool_, entries.count)
        return found


def _assign_rows(entries: Sequence[dict[str, Any]], first: int) -> int:
    """Give the manifests of data without a first row id theirs; how many rows got one."""
    at = first
    for one in entries:
        if (one.get("content") or 0) == 0 and one.get("first_row_id") is None:
            one["first_row_id"] = at
            at += (one.get("added_rows_count") or 0) + (one.get("existing_rows_count") or 0)
    return at - first
