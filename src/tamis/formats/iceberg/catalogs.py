"""Tables by name, through PyIceberg's catalogs and its configuration.

Whatever `load_catalog` gives serves: REST, SQL, Hive, Glue. PyIceberg finds the metadata file; tamis reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tamis.errors import CatalogError, NoSuchTableError, TamisError
from tamis.formats.iceberg.library import pyiceberg, unconfigured
from tamis.formats.opening import CatalogLike, CatalogListing
from tamis.formats.storage.secrets import safe_message, silence
from tamis.predicate.names import nearest

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table as PyIcebergTable

__all__ = ["find_table", "is_pyiceberg_table", "list_catalog", "newest_table"]

UNNAMED: Final = "tamis"
"""What a catalog is called whose properties have no name. A SQL catalog finds its tables by that name."""


def is_pyiceberg_table(target: object) -> bool:
    """Whether target is a table that PyIceberg has loaded."""
    return any(of.__name__ == "Table" and of.__module__ == "pyiceberg.table" for of in type(target).__mro__)


def find_table(name: str, catalog: CatalogLike | None) -> PyIcebergTable:
    """The table as PyIceberg has it, which knows its catalog.

    name is `catalog.db.table`; the first part is the catalog, unless one is given.
    """
    _, no_such_table = pyiceberg()
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
            return loaded.load_table(identifier)
        except no_such_table as error:
            raise NoSuchTableError(
                f"{label} has no table {identifier!r}. {_near(loaded, identifier)}", table=identifier
            ) from error


def newest_table(catalog: Catalog, identifier: tuple[str, ...]) -> PyIcebergTable:
    """The table as its catalog has it by now; NoSuchTableError if it has it no more."""
    _, no_such_table = pyiceberg()
    name, label = ".".join(identifier), f"catalog {catalog.name!r}"
    with _reported(catalog, label, f"cannot read the newest state of {name!r} through {label}", name):
        try:
            return catalog.load_table(identifier)
        except no_such_table as error:
            raise NoSuchTableError(
                f"{label} has no table {name!r} any more: it was dropped or renamed since it was opened. "
                f"{_near(catalog, name)}",
                table=name,
            ) from error


def list_catalog(name: str | None) -> CatalogListing:
    """The configured catalogs; the namespaces of one; or the tables, and the namespaces, of a namespace."""
    pyiceberg()
    if name is None:
        from pyiceberg.catalog import list_catalogs

        empty = "no catalog is configured: see ~/.pyiceberg.yaml, or set PYICEBERG_CATALOG__NAME__URI"
        try:
            return CatalogListing(tuple(sorted(list_catalogs())), (), empty)
        except ValueError as error:
            raise unconfigured(error) from error
    first, _, namespace = name.partition(".")
    loaded, label = _loaded(first, name)
    with _reported(loaded, label, f"cannot list {name!r}", name):
        from pyiceberg.exceptions import NoSuchNamespaceError

        try:
            inside = loaded.list_namespaces(namespace or ())
            tables = loaded.list_tables(namespace) if namespace else []
        except NoSuchNamespaceError as error:
            known = tuple(sorted(".".join(path) for path in loaded.list_namespaces()))
            raise CatalogError(
                f"{label} has no namespace {namespace!r}. It has {', '.join(known) or 'none'}.",
                table=name,
                catalog=label,
                reason="no such namespace",
            ) from error
    below = sorted({".".join((first, *path)) for path in inside} - {name})
    return CatalogListing(
        tuple(below), tuple(sorted(".".join((first, *path)) for path in tables)), f"there is nothing in {name}"
    )


def _loaded(catalog: CatalogLike, wanted: str) -> tuple[Catalog, str]:
    """The catalog, and what to call it in a message."""
    load_catalog, _ = pyiceberg()
    if isinstance(catalog, str):
        _check_configured(catalog, wanted)
        label, settings = f"catalog {catalog!r}", {"name": catalog}
    elif isinstance(catalog, Mapping):
        settings = dict(catalog)
        catalog_name = settings.setdefault("name", UNNAMED)
        label = "the given catalog" + (
            f", asked by the name {UNNAMED!r} since it has none," * (catalog_name == UNNAMED)
        )
    else:
        return catalog, f"catalog {catalog.name!r}"
    with _reported(settings, label, f"cannot open {wanted!r} through {label}", wanted):
        properties = {key: value for key, value in settings.items() if key != "name"}
        return load_catalog(settings["name"], **properties), label


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
        message = safe_message(error, every)
        silence(error, properties=every)
        raise CatalogError(
            f"{what}: {reason}: {message}. "
            "Check the catalog's settings (~/.pyiceberg.yaml, PYICEBERG_CATALOG__...) and that it is reachable.",
            table=wanted,
            catalog=label,
            reason=reason,
        ) from error


def _near(catalog: Catalog, identifier: str) -> str:
    """Tables of nearly that name, as a question; or what to do."""
    namespace, _, name = identifier.rpartition(".")
    try:
        tables = [".".join(path) for path in catalog.list_tables(namespace)]
    except Exception:  # noqa: BLE001 - a catalog that cannot list, for whatever reason, has no suggestions
        tables = []
    near = nearest(name, {path.rpartition(".")[2]: path for path in tables})
    return f"Did you mean {', '.join(near)}?" if near else "Check the name; `tamis ls` lists what there is."


def _check_configured(name: str, table: str) -> None:
    """CatalogError, which names those that there are, if PyIceberg's configuration has no such catalog."""
    from pyiceberg.catalog import list_catalogs

    try:
        names = sorted(list_catalogs())
    except ValueError:
        return  # the configuration is malformed: load_catalog says how
    if name.lower() not in names:
        variable = f"PYICEBERG_CATALOG__{name.upper().replace('-', '_')}__URI"
        raise CatalogError(
            f"no catalog {name!r} is configured to open {table!r} with; configured: {', '.join(names) or 'none'}. "
            "Check the name or path, add the catalog to .pyiceberg.yaml (in $PYICEBERG_HOME, ~ or this folder), or "
            f"set {variable}.",
            table=table,
            catalog=name,
            reason="not configured",
        )


def _configured(name: object) -> Mapping[str, Any]:
    """What PyIceberg's configuration has of a catalog; nothing if it has none, or cannot be read."""
    from pyiceberg.utils.config import Config

    try:
        return Config().get_catalog_config(str(name)) or {}
    except Exception:  # noqa: BLE001 - the error at hand is the one to report, not a second one
        return {}
