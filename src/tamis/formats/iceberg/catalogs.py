"""Tables by name, through PyIceberg's catalogs and its configuration; files through its FileIO.

Whatever `load_catalog` gives serves: REST, SQL, Hive, Glue. PyIceberg finds the metadata file; tamis reads it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias, cast

from tamis.errors import CatalogError, MissingDependency, NoSuchTableError, TamisError
from tamis.formats.errors import shown, unreachable
from tamis.formats.iceberg.locate import local_path
from tamis.formats.iceberg.reading import Fetch, fetch_local

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table as PyIcebergTable

__all__ = [
    "CatalogLike",
    "CatalogListing",
    "FileIOFetch",
    "fetch_through",
    "file_io",
    "find_table",
    "is_pyiceberg_table",
    "list_catalog",
    "loaded_table",
]

_QUERY: Final = re.compile(r"\?[^\s'\")]*=[^\s'\")]*")
"""What follows a path in a URI, whether the URI is whole or a client quotes its path alone."""
_SECRET: Final = re.compile(
    "token|secret|passw|passphrase|credential|access-?key|account-?key|api-?key|private-?key|sas"
    "|authorization|cookie|signature|connection-?string",
    re.IGNORECASE,
)
"""Names of properties whose values are secret, PyIceberg's own and those of headers that it is told to send."""
SHORTEST_SECRET: Final = 4
"""Shorter values occur in any text by chance."""
LONGEST_SCHEME: Final = 9
"""Words up to this length say how one authenticates: Basic, Bearer, Negotiate."""


CatalogLike: TypeAlias = "str | Mapping[str, str] | Catalog"
"""A catalog: by its name in PyIceberg's configuration, by its properties, or as PyIceberg's own object."""
UNNAMED: Final = "tamis"
"""What a catalog is called whose properties have no name. A SQL catalog finds its tables by that name."""
MOST_NEAR: Final = 3


@dataclass(frozen=True, slots=True)
class CatalogListing:
    """What is below a name, by full names."""

    namespaces: tuple[str, ...]
    tables: tuple[str, ...]
    empty: str
    """What to say if there is nothing."""


def is_pyiceberg_table(target: object) -> bool:
    """Whether target is a table that PyIceberg has loaded."""
    return any(of.__name__ == "Table" and of.__module__ == "pyiceberg.table" for of in type(target).__mro__)


def loaded_table(table: PyIcebergTable) -> tuple[str, str, Fetch]:
    """The name and the metadata file of a table that PyIceberg has loaded, and how to fetch its files."""
    return ".".join(table.name()), table.metadata_location, fetch_through(table.io)


def find_table(name: str, catalog: CatalogLike | None) -> tuple[str, Fetch]:
    """The location of the table's metadata file, and how to fetch its files.

    name is `catalog.db.table`; the first part is the catalog, unless one is given.
    """
    _, no_such_table = _pyiceberg()
    first, _, rest = name.partition(".")
    identifier = name if catalog is not None else rest
    is_path = catalog is None and ("/" in name or "\\" in name)
    if is_path or "." not in identifier:
        raise NoSuchTableError(
            f"no table {name!r}: it is not a file or folder here, and a name in a catalog has three parts, "
            "catalog.namespace.table.",
            table=name,
        )
    loaded, label = _loaded(catalog or first, identifier)
    with _reported(loaded, label, f"cannot open {identifier!r} through {label}", identifier):
        try:
            table = loaded.load_table(identifier)
        except no_such_table as error:
            raise NoSuchTableError(
                f"{label} has no table {identifier!r}. {_near(loaded, identifier)}", table=identifier
            ) from error
    return table.metadata_location, fetch_through(table.io)


def list_catalog(name: str | None) -> CatalogListing:
    """The configured catalogs; the namespaces of one; or the tables, and the namespaces, of a namespace."""
    _pyiceberg()
    if name is None:
        from pyiceberg.catalog import list_catalogs

        empty = "no catalog is configured: see ~/.pyiceberg.yaml, or set PYICEBERG_CATALOG__NAME__URI"
        try:
            return CatalogListing(tuple(sorted(list_catalogs())), (), empty)
        except ValueError as error:
            raise _unconfigured(error) from error
    first, _, namespace = name.partition(".")
    loaded, label = _loaded(first, name)
    with _reported(loaded, label, f"cannot list {name!r}", name):
        inside = loaded.list_namespaces(namespace or ())
        tables = loaded.list_tables(namespace) if namespace else []
    below = sorted({".".join((first, *path)) for path in inside} - {name})
    return CatalogListing(
        tuple(below), tuple(sorted(".".join((first, *path)) for path in tables)), f"there is nothing in {name}"
    )


def _loaded(catalog: CatalogLike, wanted: str) -> tuple[Catalog, str]:
    """The catalog, and what to call it in a message."""
    load_catalog, _ = _pyiceberg()
    if isinstance(catalog, str):
        _check_configured(catalog, wanted)
        label, settings = f"catalog {catalog!r}", {"name": catalog}
    elif isinstance(catalog, Mapping):
        settings = dict(catalog)
        asked = settings.setdefault("name", UNNAMED)
        label = "the given catalog" + (f", asked by the name {UNNAMED!r} since it has none," * (asked == UNNAMED))
    else:
        return catalog, f"catalog {catalog.name!r}"
    with _reported(settings, label, f"cannot open {wanted!r} through {label}", wanted):
        given = {key: value for key, value in settings.items() if key != "name"}
        return load_catalog(settings["name"], **given), label


@contextmanager
def _reported(catalog: Catalog | Mapping[str, str], label: str, what: str, wanted: str) -> Iterator[None]:
    """Whatever a catalog's client raises, as one error without secrets."""
    try:
        yield
    except TamisError:
        raise
    except Exception as error:
        # Catalogs raise what their clients raise: none of it is ours, and all of it means the same to the user.
        reason = type(error).__name__
        properties = catalog if isinstance(catalog, Mapping) else catalog.properties
        every = {**_configured(properties.get("name")), **properties}
        raise CatalogError(
            f"{what}: {reason}: {_safe(error, every)}. "
            "Check the catalog's settings (~/.pyiceberg.yaml, PYICEBERG_CATALOG__...) and that it is reachable.",
            table=wanted,
            catalog=label,
            reason=reason,
        ) from error


def _near(catalog: Catalog, identifier: str) -> str:
    """Tables of nearly that name, as a question; or what to do."""
    namespace, _, name = identifier.rpartition(".")
    try:
        known = [".".join(path) for path in catalog.list_tables(namespace)]
    except Exception:  # noqa: BLE001 - a catalog that cannot list, for whatever reason, has no suggestions
        known = []
    by_name = {path.rpartition(".")[2].lower(): path for path in known}
    near = [by_name[one] for one in get_close_matches(name.lower(), by_name, MOST_NEAR, 0.5)]
    return f"Did you mean {', '.join(near)}?" if near else "Check the name; `tamis ls` lists what there is."


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

    def __reduce__(self) -> tuple[object, ...]:
        """Without the credentials that the FileIO holds: whoever unpickles it uses the environment's."""
        return EnvironmentFetch, ()

    def __call__(self, location: str) -> bytes:
        """The whole file."""
        if local_path(location) is not None:
            return fetch_local(location)
        with self.open(location) as stream, _explained(location):
            return bytes(stream.read())

    def size(self, location: str) -> int | None:
        """The size of a file; None if it cannot be had this way. IsADirectoryError for a folder."""
        try:
            return len(self.io.new_input(location))
        except TypeError as error:
            raise IsADirectoryError(location) from error  # PyArrow knows no size of a folder
        except Exception:  # noqa: BLE001 - whatever an object store's client raises: Spark may have other means
            return None

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
        reason = kind if shown(location) != location else f"{kind}: {_safe(error)}"
        raise unreachable(location, error, reason) from error


@dataclass(slots=True)
class EnvironmentFetch:
    """Files with the environment's credentials, through a FileIO that is made when the first one is asked for."""

    found: dict[str, FileIOFetch] = field(default_factory=dict)

    def __reduce__(self) -> tuple[object, ...]:
        return EnvironmentFetch, ()

    def __call__(self, location: str) -> bytes:
        """The whole file."""
        return fetch_local(location) if local_path(location) is not None else self._of(location)(location)

    def open(self, location: str) -> BinaryIO:
        """The file, to read parts of it."""
        return self._of(location).open(location)

    def _of(self, location: str) -> FileIOFetch:
        scheme = location.partition("://")[0]
        if scheme not in self.found:
            self.found[scheme] = FileIOFetch(file_io(location, {}))
        return self.found[scheme]


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
        raise _unconfigured(error) from error
    return load_catalog, NoTable


def _unconfigured(error: Exception) -> CatalogError:
    return CatalogError(
        f"cannot read PyIceberg's configuration: {_safe(error)}. "
        "Check .pyiceberg.yaml (in $PYICEBERG_HOME, ~ or this folder).",
        table="",
        catalog="",
        reason=type(error).__name__,
    )


def _configured(name: object) -> Mapping[str, Any]:
    """What PyIceberg's configuration has of a catalog; nothing if it has none, or cannot be read."""
    from pyiceberg.utils.config import Config

    try:
        return Config().get_catalog_config(str(name)) or {}
    except Exception:  # noqa: BLE001 - the error at hand is the one to report, not a second one
        return {}


def _safe(error: BaseException, properties: Mapping[str, Any] = MappingProxyType({})) -> str:
    """The first line of a message, without credentials or query in any URI, secret values and its full stop."""
    line = _without_values(str(error).strip().partition("\n")[0], properties)
    line = " ".join(shown(word) for word in line.split(" "))
    return _QUERY.sub("?…", line)[:300].rstrip(".")


def _without_values(text: str, properties: Mapping[Any, Any]) -> str:
    """The text without any value that a property keeps secret, however deep it stands."""
    for value in sorted(_secrets(properties, secret=False), key=len, reverse=True):
        text = text.replace(value, "…")
    return text


def _secrets(value: object, *, secret: bool) -> Iterator[str]:
    match value:
        case Mapping():
            for name, inner in value.items():
                yield from _secrets(inner, secret=secret or _SECRET.search(str(name)) is not None)
        case list() | tuple():
            for inner in value:
                yield from _secrets(inner, secret=secret)
        case str() if secret and len(value) >= SHORTEST_SECRET:
            # A header says how it authenticates before what with.
            yield from {value, *(word for word in value.split() if len(word) > LONGEST_SCHEME)}
