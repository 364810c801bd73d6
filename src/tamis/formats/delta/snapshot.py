"""The state of a table at one version: what its log says, once the commits after the checkpoint are replayed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tamis.formats.delta.actions import check_names, named_actions
from tamis.formats.delta.checkpoints import Sidecar, Top, read_top
from tamis.formats.delta.log import Log, Segment
from tamis.formats.delta.metadata import TableMetadata, parse_metadata
from tamis.formats.delta.protocol import Protocol, parse_protocol
from tamis.formats.delta.replay import Tail, replay
from tamis.formats.delta.schema import DeltaSchema, parse_schema
from tamis.formats.errors import unreadable
from tamis.formats.storage import Storage
from tamis.formats.storage.ordered import in_order

__all__ = ["THREADS", "Snapshot", "load"]

_CLUSTERING: Final = "delta.clustering"
THREADS: Final = 16
"""Commits that are fetched at a time: each is one small request."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table's state at one version."""

    segment: Segment
    protocol: Protocol
    metadata: TableMetadata
    schema: DeltaSchema
    tail: Tail
    sidecars: tuple[Sidecar, ...]
    checkpoint_files: int
    """About how many files the checkpoint tells of."""
    clustering: tuple[tuple[str, ...], ...] = ()
    """The clustering columns, by their physical paths; none if the table has none."""

    @property
    def version(self) -> int:
        """The version."""
        return self.segment.version


def load(storage: Storage, log: Log, version: int, table: str) -> Snapshot:
    """The state at a version; UnsupportedFormatError if it has a feature that this version does not read."""
    segment = log.segment(version)
    locations = [one.location for one in segment.commits]
    texts = dict(zip(locations, in_order(storage, locations, THREADS), strict=True))
    for commit in segment.commits:
        # Writers commit their commitInfo at least: an empty file was never filled. Compaction leaves commitInfo out.
        if not commit.compacted and not texts[commit.location].strip():
            raise unreadable(
                commit.location,
                f"it is empty: what version {commit.first} changed is lost, or is not written yet",
                cure="Restore the file, or open a version before it.",
            )
    check_names(texts)
    protocol: Protocol | None = None
    metadata: TableMetadata | None = None
    described = log.folder
    domains: dict[str, Mapping[str, Any]] = {}
    for location, name, action in named_actions(texts, ("protocol", "metaData", "domainMetadata")):
        match name:
            case "protocol":
                protocol = parse_protocol(location, action)
            case "metaData":
                metadata, described = parse_metadata(location, action), location
            case _:
                domains[str(action.get("domain"))] = action
    top = Top(None, None, (), 0, {})
    if segment.checkpoint is not None:
        location = segment.checkpoint.locations[0]
        top = read_top(storage, segment.checkpoint, log.folder, described=None not in (protocol, metadata))
        if protocol is None and top.protocol is not None:
            protocol = parse_protocol(location, top.protocol)
        if metadata is None and top.metadata is not None:
            metadata, described = parse_metadata(location, top.metadata), location
    if protocol is None or metadata is None:
        replay(texts, ())  # a commit that cannot be read is named: it may be the one that had it
        lacks = "protocol" if protocol is None else "metaData"
        raise unreadable(log.folder, f"no action up to version {version} is the table's {lacks}")
    protocol.check(table)
    schema = parse_schema(metadata.schema_string, metadata.configuration, metadata.partition_columns, path=described)
    schema = schema if protocol.generates else schema.without_generation()
    tail = replay(texts, [field.physical_name for field in schema.partition_fields])
    clustering = _clustering({**top.domains, **domains}.get(_CLUSTERING))
    return Snapshot(segment, protocol, metadata, schema, tail, top.sidecars, top.files, clustering)


def _clustering(domain: Mapping[str, Any] | None) -> tuple[tuple[str, ...], ...]:
    """The clustering columns that a domain's text names; none if it was removed, or says something else."""
    if domain is None or domain.get("removed"):
        return ()
    try:
        columns = json.loads(domain.get("configuration") or "{}").get("clusteringColumns", [])
        return tuple(tuple(map(str, path)) for path in columns if isinstance(path, list))
    except (ValueError, AttributeError, TypeError, RecursionError):
        return ()
