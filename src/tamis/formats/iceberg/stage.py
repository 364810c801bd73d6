"""How new rows become files of an Iceberg table: by its columns, default spec, sort order and `write.*` properties.

Law: what the table asks for and tamis cannot do is refused by name, before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from tamis.errors import CommitRefused
from tamis.formats.avro.writer import CODECS
from tamis.formats.edit import Cluster, Stage, WriteField
from tamis.formats.errors import shown
from tamis.formats.iceberg.data_files import DataFiles, ParquetOptions
from tamis.formats.iceberg.data_paths import Hashed, Place
from tamis.formats.iceberg.defaults import default_scalar
from tamis.formats.iceberg.manifest_writing import Codec
from tamis.formats.iceberg.metadata import SpecLayout, TableMetadata
from tamis.formats.iceberg.metrics import metrics_modes
from tamis.formats.iceberg.types import Field
from tamis.formats.storage.local import is_local
from tamis.formats.storage.sinks import SCHEMES, DataStore
from tamis.sieve.transforms import parse_transform

__all__ = [
    "TASK_BYTES",
    "avro_codec",
    "check_supported",
    "data_folder",
    "number",
    "parquet_options",
    "place_of",
    "stage_of",
    "write_fields",
]

HASHED: Final = "write.object-storage.enabled"
TARGET_BYTES: Final = 512 << 20
TASK_BYTES: Final = 384 << 20
"""Of Spark's shuffle: compressed rows take about three times what they take in Parquet, so a file of 128 MB."""
_CODECS: Final = {
    "zstd": "zstd",
    "gzip": "gzip",
    "snappy": "snappy",
    "lz4": "lz4",
    "brotli": "brotli",
    "uncompressed": "none",
}
_LEVELS: Final[Mapping[str, int | None]] = {"zstd": 3, "gzip": 6, "brotli": None}
"""Codecs that have levels, and which Iceberg's own writers take where the table says none: pyarrow's are 1 and 9."""


def check_supported(name: str, document: Mapping[str, Any], metadata: TableMetadata) -> None:
    """CommitRefused for a table that asks of its writers what tamis does not do."""
    properties = metadata.properties

    def refuse(feature: str, why: str) -> None:
        raise CommitRefused(f"cannot write to {name}: {why}.", table=name, feature=feature)

    if document.get("encryption-keys") or any(
        key.startswith("encryption.") and key.endswith("key-id") for key in properties
    ):
        refuse("encryption", "it is encrypted, and this version writes no encrypted files")
    if "write.location-provider.impl" in properties:
        refuse("write.location-provider.impl", "a class of its own chooses its paths (write.location-provider.impl)")
    if properties.get("write.format.default", "parquet").strip().lower() != "parquet":
        refuse(
            "write.format.default",
            f"its write.format.default is {properties['write.format.default']!r}, and this version writes Parquet",
        )
    for property_ in ("write.parquet.compression-codec", "write.avro.compression-codec"):
        known = _CODECS if "parquet" in property_ else CODECS
        if properties.get(property_, "zstd").strip().lower() not in known:
            refuse(property_, f"its {property_} is {properties[property_]!r}, not one of {', '.join(known)}")
    folder = data_folder(metadata)
    if not is_local(folder) and folder.partition("://")[0] not in SCHEMES:
        refuse("its file system", f"its data lies in {shown(folder)}, a store that pyarrow does not write to")


def stage_of(
    name: str,
    document: Mapping[str, Any],
    metadata: TableMetadata,
    storage: DataStore,
    lineage: Sequence[WriteField] = (),
) -> Stage:
    """How rows are written to the table as it is now; lineage is what rows have beside the table's columns."""
    check_supported(name, document, metadata)
    fields = (*write_fields(metadata.schema.fields), *lineage)
    layout = metadata.layout(metadata.default_spec_id)
    paths = {field.id: path for path, field in metadata.schema.walk()}
    partition = _partition(name, metadata, layout, paths)
    sort, order_id, sorted_ids = _sort(document, metadata, paths)
    types = tuple(type_ for type_ in layout.types if type_ is not None)
    spec_fields = layout.spec.fields
    files = DataFiles(
        fields=fields,
        spec_id=metadata.default_spec_id,
        partition_types=types,
        given=tuple(place for place, one in enumerate(spec_fields) if one.transform.name != "void"),
        place=place_of(metadata, layout),
        storage=storage,
        modes=metrics_modes(fields, metadata.properties, sorted_ids),
        target_bytes=number(metadata.properties, "write.target-file-size-bytes", TARGET_BYTES),
        options=parquet_options(metadata.properties),
        sort_order_id=order_id,
    )
    chosen = metadata.properties.get("write.distribution-mode", "").strip().lower()
    usual = "range" if sort else "hash" if partition else "none"
    distribution = chosen if chosen in {"none", "hash", "range"} else usual
    if distribution == "hash" and not partition:
        distribution = "none"
    if distribution == "range" and not (sort or partition):
        distribution = "none"
    task_bytes = number(metadata.properties, "write.spark.advisory-partition-size-bytes", TASK_BYTES)
    return Stage(name, fields, partition, sort, distribution, task_bytes, files, files.discard)  # type: ignore[arg-type] # one of three


def write_fields(fields: Sequence[Field]) -> tuple[WriteField, ...]:
    """The columns as files hold them."""
    return tuple(_write_field(one) for one in fields)


def _write_field(one: Field) -> WriteField:
    default = default_scalar(one.type, one.write_default)
    children = write_fields(one.children or one.items)
    return WriteField(one.id, one.name, one.type, one.required, children, default, one.written_type)


def _partition(
    name: str, metadata: TableMetadata, layout: SpecLayout, paths: Mapping[int, tuple[str, ...]]
) -> tuple[Cluster, ...]:
    found = []
    types = metadata.schema.types
    for one, type_ in zip(layout.spec.fields, layout.types, strict=True):
        if type_ is None or one.transform.name == "unknown":
            raise CommitRefused(
                f"cannot write to {name}: nobody knows how its partition field {one.name!r} is computed "
                f"({one.transform}). Replace the field, or write with the engine that made it.",
                table=name,
                feature=f"partition field {one.name}",
            )
        if one.transform.name == "void":
            continue
        if one.source not in paths:
            raise CommitRefused(
                f"cannot write to {name}: the column of its partition field {one.name!r} was dropped. Drop the "
                "partition field as well.",
                table=name,
                feature=f"partition field {one.name}",
            )
        assert isinstance(one.source, int)  # noqa: S101 - Iceberg's columns have numbers
        found.append(Cluster(paths[one.source], one.transform, types[one.source]))
    return tuple(found)


def _sort(
    document: Mapping[str, Any], metadata: TableMetadata, paths: Mapping[int, tuple[str, ...]]
) -> tuple[tuple[Cluster, ...], int, frozenset[int]]:
    """The default sort order, its id, and its columns; none, and 0, for one that cannot be followed."""
    wanted = document.get("default-sort-order-id") or 0
    order = next((one for one in document.get("sort-orders") or () if one.get("order-id") == wanted), None)
    found: list[Cluster] = []
    ids: set[int] = set()
    for one in order.get("fields", ()) if order else ():
        source, transform = one.get("source-id"), parse_transform(str(one.get("transform")))
        if source not in paths or transform.name == "unknown":
            return (), 0, frozenset()
        ids.add(source)
        if transform.name == "void":
            continue
        descending, last = one.get("direction") == "desc", one.get("null-order") == "nulls-last"
        found.append(Cluster(paths[source], transform, metadata.schema.types[source], descending, last))
    return tuple(found), wanted if found else 0, frozenset(ids)


def data_folder(metadata: TableMetadata) -> str:
    """Where data files go."""
    location = metadata.location.rstrip("/")
    properties = metadata.properties
    names = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")
    said = (properties.get(name) for name in names if "object" not in name or _true(properties, HASHED))
    return next(filter(None, said), f"{location}/data").rstrip("/")


def place_of(metadata: TableMetadata, layout: SpecLayout | None = None) -> Place:
    """Where files of the spec lie; None for those of no one partition.

    Values that nobody can type are spelt as they are: a path says nothing to a reader.
    """
    folder, location = data_folder(metadata), metadata.location.rstrip("/")
    hashed = None
    if _true(metadata.properties, HASHED):
        context = "" if folder.startswith(location) else "/".join(location.rsplit("/", 2)[-2:])
        named = metadata.properties.get("write.object-storage.partitioned-paths", "true").strip().lower() == "true"
        hashed = Hashed(context, named)
    if layout is None:
        return Place(folder, hashed=hashed)
    fields = layout.spec.fields
    types = tuple(pa.null() if type_ is None else type_ for type_ in layout.types)
    return Place(folder, tuple(one.name for one in fields), tuple(one.transform for one in fields), types, hashed)


def avro_codec(properties: Mapping[str, str]) -> Codec:
    """How manifests are compressed."""
    name = properties.get("write.avro.compression-codec", "gzip").strip().lower()
    level = properties.get("write.avro.compression-level", "").strip()
    usable = level.isascii() and level.isdigit() and name in {"gzip", "zstd"}
    return Codec(CODECS[name], min(int(level), 9 if name == "gzip" else 22) if usable else None)


def parquet_options(properties: Mapping[str, str]) -> ParquetOptions:
    """How Parquet files are written."""
    codec = properties.get("write.parquet.compression-codec", "zstd").strip().lower()
    level = properties.get("write.parquet.compression-level", "").strip()
    return ParquetOptions(
        codec=_CODECS[codec],
        level=int(level) if level.lstrip("-").isdigit() and codec in _LEVELS else _LEVELS.get(codec),
        row_group_bytes=number(properties, "write.parquet.row-group-size-bytes", 128 << 20),
        page_bytes=number(properties, "write.parquet.page-size-bytes", 1 << 20),
        dictionary_bytes=number(properties, "write.parquet.dict-size-bytes", 2 << 20),
    )


def number(properties: Mapping[str, str], name: str, usual: int) -> int:
    """A property that is a positive number; the usual one if it is not set, or no number."""
    text = properties.get(name, "").strip()
    return int(text) if text.isascii() and text.isdigit() and int(text) else usual


def _true(properties: Mapping[str, str], name: str) -> bool:
    return properties.get(name, "").strip().lower() == "true"
