"""Tables by name, through PyIceberg's catalogs and its configuration; files through its FileIO.

Whatever `load_catalog` gives serves: REST, SQL, Hive, Glue. PyIceberg finds the metadata file; tamis reads it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from tamis.errors import MissingDependency
from tamis.formats.errors import CatalogError, NoSuchTableError, shown, unreadable
from tamis.formats.iceberg.locate import local_path
from tamis.formats.iceberg.reading import Fetch, fetch_local

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

__all__ = ["FileIOFetch", "fetch_through", "file_io", "find_table"]


def find_table(name: str, catalog: str | Mapping[str, str] | None) -> tuple[str, Fetch]:
    """The location of the table's metadata file, and how to fetch its files.

    name is `catalog.db.table`; the first part is the catalog, unless one is given, by its configured name or by its
    properties.
    """
    load_catalog, no_such_table = _pyiceberg()
    first, _, rest = name.partition(".")
    identifier = name if catalog is not None else rest
    is_path = catalog is None and ("/" in name or "\\" in name)
    if is_path or "." not in identifier:
        raise NoSuchTableError(
            f"no table {name!r}: it is no file or folder here, and a name in a catalog has three parts, "
            "catalog.namespace.table.",
            table=name,
        )
    if not isinstance(catalog, Mapping):
        _check_configured(catalog or first, identifier)
    label = "the given catalog" if isinstance(catalog, Mapping) else f"catalog {catalog or first!r}"
    try:
        settings = dict(catalog) if isinstance(catalog, Mapping) else {"name": catalog or first}
        loaded = load_catalog(settings.pop("name", "tamis"), **settings)
        table = loaded.load_table(identifier)
    except no_such_table as error:
        raise NoSuchTableError(f"{label} has no table {identifier!r}. Check the name.", table=identifier) from error
    except Exception as error:
        # Catalogs raise what their clients raise: none of it is ours, and all of it means the same to the user.
        reason = type(error).__name__
        raise CatalogError(
            f"cannot open {identifier!r} through {label}: {reason}: {_safe(error)}. "
            "Check the catalog's settings (~/.pyiceberg.yaml, PYICEBERG_CATALOG__...) and that it is reachable.",
            table=identifier,
            catalog=label,
            reason=reason,
        ) from error
    return table.metadata_location, fetch_through(table.io)


def _check_configured(name: str, table: str) -> None:
    """CatalogError, which names those that there are, if PyIceberg's configuration has no such catalog."""
    from pyiceberg.catalog import list_catalogs

    try:
        known = sorted(list_catalogs())
    except ValueError:
        return  # the configuration is malformed: load_catalog says how
    if name.lower() not in known:
        variable = f"PYICEBERG_CATALOG__{name.upper().replace('-', '_')}__URI"
        raise CatalogError(
            f"no catalog {name!r} is configured to open {table!r} with; configured: {', '.join(known) or 'none'}. "
            "Check the name or path, add the catalog to .pyiceberg.yaml (in $PYICEBERG_HOME, ~ or this folder), or "
            f"set {variable}.",
            table=table,
            catalog=name,
            reason="not configured",
        )


@dataclass(frozen=True, slots=True)
class FileIOFetch:
    """Files through a catalog's FileIO; local ones directly."""

    io: FileIO

    def __call__(self, location: str) -> bytes:
        """The whole file."""
        if local_path(location) is not None:
            return fetch_local(location)
        with self.open(location) as stream, _explained(location):
            return bytes(stream.read())

    def open(self, location: str) -> BinaryIO:
        """The file, to read parts of it."""
        with _explained(location):
            return cast("BinaryIO", self.io.new_input(location).open())


@contextmanager
def _explained(location: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # An object store's client raises its own errors; the file and the kind of failure are what helps.
        # It may quote half a URI (bucket name 'key:secret@bucket'): with a credential, the kind alone.
        kind = type(error).__name__
        raise unreadable(location, kind if shown(location) != location else f"{kind}: {_safe(error)}") from error


def fetch_through(io: FileIO) -> Fetch:
    """How to fetch a file: the local ones directly, all others through the catalog's FileIO."""
    return FileIOFetch(io)


def file_io(location: str, properties: Mapping[str, str]) -> FileIO:
    """PyIceberg's FileIO for a location outside any catalog; S3's endpoint and credentials are the environment's."""
    _pyiceberg()
    from pyiceberg.io import load_file_io

    return load_file_io({**_endpoint(), **properties}, location)


def _endpoint() -> dict[str, str]:
    """Where the environment says that S3 is, if it does: Arrow takes credentials from there, but not the endpoint.

    The region is given only with it. Amazon's own buckets are asked for theirs, which may be another.
    """
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        if found := os.environ.get(name):
            region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
            return {"s3.endpoint": found, "s3.region": region}
    return {}


def _pyiceberg() -> tuple[Any, Any]:
    try:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NoSuchTableError as NoTable
    except ImportError as error:
        raise MissingDependency(
            "opening Iceberg tables by name needs 'pyiceberg': pip install 'tamis[iceberg]'",
            package="pyiceberg",
            extra="iceberg",
        ) from error
    except Exception as error:
        # PyIceberg reads its configuration when it is imported, and raises whatever its parser does.
        raise CatalogError(
            f"cannot read PyIceberg's configuration: {_safe(error)}. "
            "Check .pyiceberg.yaml (in $PYICEBERG_HOME, ~ or this folder).",
            table="",
            catalog="",
            reason=type(error).__name__,
        ) from error
    return load_catalog, NoTable


def _safe(error: BaseException) -> str:
    """The first line of a message, without credentials in any URI and without its full stop."""
    line = str(error).strip().partition("\n")[0]
    return " ".join(shown(word) for word in line.split(" "))[:300].rstrip(".")
