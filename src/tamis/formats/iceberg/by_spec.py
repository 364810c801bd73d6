"""Files by partition spec: a manifest holds files of one spec only, and is written with a schema that the spec fits.

Law: groups come by ascending spec id, and members keep their order: the same files give the same manifests. A spec
that the table does not have is an error which names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tamis.errors import CommitRefused
from tamis.formats.edit import NewFile, Planned
from tamis.formats.iceberg.metadata import TableMetadata

__all__ = ["check_specs", "find_compatible_schema", "group_entries_by_spec", "group_files_by_spec", "spec_fields"]

FIRST_SPEC: Final = 0
"""The spec of files whose writer knew of no other."""


def group_files_by_spec(files: Sequence[NewFile]) -> dict[int, list[NewFile]]:
    """New files by their spec; those without one are of the first."""
    ids = [FIRST_SPEC if file.spec_id is None else file.spec_id for file in files]
    if len(set(ids)) == 1:
        return {ids[0]: list(files)}
    groups: dict[int, list[NewFile]] = {id_: [] for id_ in sorted(set(ids))}
    for id_, file in zip(ids, files, strict=True):
        groups[id_].append(file)
    return groups


def group_entries_by_spec(entries: Sequence[Planned]) -> dict[int, list[Planned]]:
    """Files that stand in the table, by their spec."""
    ids = [FIRST_SPEC if one.batch.spec_id is None else one.batch.spec_id for one in entries]
    groups: dict[int, list[Planned]] = {id_: [] for id_ in sorted(set(ids))}
    for id_, one in zip(ids, entries, strict=True):
        if len(one):
            groups[id_].append(one)
    return {id_: members for id_, members in groups.items() if members}


def check_specs(name: str, metadata: TableMetadata, files: Sequence[NewFile]) -> None:
    """CommitRefused for a file of a spec that the table does not have, or without a value for each of its fields.

    Also for one whose fields have no type that can be written down.
    """
    known = {layout.spec_id: layout for layout in metadata.specs}
    for spec_id, group in group_files_by_spec(files).items():
        if spec_id not in known:
            raise CommitRefused(
                f"cannot commit to {name}: {group[0].path} has partition spec {spec_id}, which the table does not "
                f"have. Its specs: {', '.join(map(str, sorted(known)))}.",
                table=name,
                feature=f"partition spec {spec_id}",
            )
        width = len(known[spec_id].types)
        odd = next((file for file in group if len(file.partition) != width), None)
        if odd is not None:
            raise CommitRefused(
                f"cannot commit to {name}: {odd.path} has {len(odd.partition)} partition values, and spec {spec_id} "
                f"has {width} fields.",
                table=name,
                feature=f"partition spec {spec_id}",
            )
        if None in known[spec_id].types:
            place = known[spec_id].types.index(None)
            field = known[spec_id].spec.fields[place]
            raise CommitRefused(
                f"cannot commit to {name}: {group[0].path} has partition spec {spec_id}, and nobody knows the type "
                f"of its field {field.name!r} ({field.transform}): its column is in no schema of the table any more. "
                "Rewrite the files of that spec with the engine that made them.",
                table=name,
                feature=f"partition spec {spec_id}",
            )


def find_compatible_schema(name: str, document: Mapping[str, Any], spec_id: int) -> Mapping[str, Any]:
    """A schema that has the columns of a spec: the current one if it does, else the newest one that did.

    A field that was dropped is void, and its column may be gone from every schema.
    """
    sources = {
        source
        for one in spec_fields(document, spec_id)
        if one.get("transform") != "void"
        for source in one.get("source-ids") or [one.get("source-id")]
    }
    schemas = document.get("schemas") or [document.get("schema")]
    current = document.get("current-schema-id") or 0
    newest_first = sorted(schemas, key=lambda one: -(one.get("schema-id") or 0))
    for schema in sorted(newest_first, key=lambda one: (one.get("schema-id") or 0) != current):
        if sources <= _ids(schema):
            return dict(schema)
    raise CommitRefused(
        f"cannot commit to {name}: no schema of the table has the columns of its partition spec {spec_id}. Rewrite "
        "the files of that spec with the engine that made them.",
        table=name,
        feature=f"partition spec {spec_id}",
    )


def spec_fields(document: Mapping[str, Any], spec_id: int) -> Any:  # noqa: ANN401 - JSON
    """The fields of a spec, as the document spells them."""
    for one in document.get("partition-specs") or ():
        if one.get("spec-id") == spec_id:
            return one["fields"]
    return document.get("partition-spec") or []


def _ids(node: Any) -> set[Any]:  # noqa: ANN401 - JSON
    """The ids of all fields of a schema, nested ones included."""
    if isinstance(node, list):
        return {id_ for part in node for id_ in _ids(part)}
    if not isinstance(node, dict):
        return set()
    found = {node[key] for key in ("id", "element-id", "key-id", "value-id") if key in node}
    return found.union(*(_ids(part) for part in node.values()))
