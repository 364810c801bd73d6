"""Tables by name: in the folders of a warehouse, or through pypaimon's catalogs.

A catalog tells where a table's folder is; tamis reads it. A warehouse of folders needs no pypaimon: `db.table` is the
folder `db.db/table`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tamis.errors import CatalogError, MissingDependency, NoSuchTableError
from tamis.formats.errors import shown
from tamis.formats.paimon.door import is_pypaimon_catalog
from tamis.formats.paimon.options import Options
from tamis.formats.paimon.snapshots import MAIN
from tamis.formats.storage import Storage
from tamis.formats.storage.access import renamed, s3_access
from tamis.formats.storage.objects import EnvironmentStorage
from tamis.formats.storage.secrets import safe_message, silence

__all__ = ["find_table", "loaded_table"]

_FOLDERS: Final = "filesystem"
_PARTS: Final = 2
_PATH_STYLE: Final = "s3.path-style-access"


def _spelt(*names: str, other: tuple[str, ...] = ()) -> tuple[str, ...]:
    """A property of S3 in every spelling that Paimon takes."""
    return (*other, *(f"{prefix}.{name}" for prefix in ("s3", "s3a", "fs.s3", "fs.s3a") for name in names))


_NAMES: Final = {
    "s3.access-key-id": _spelt("access-key", "access.key", other=("fs.s3.accessKeyId",)),
    "s3.secret-access-key": _spelt("secret-key", "secret.key", other=("fs.s3.accessKeySecret",)),
    "s3.session-token": _spelt(
        *("session-token", "session.token", "security-token", "security.token"), other=("fs.s3.securityToken",)
    ),
    "s3.endpoint": _spelt("endpoint"),
    "s3.region": _spelt("region"),
    _PATH_STYLE: _spelt("path-style-access", "path.style.access"),
}
"""PyIceberg's names of what Paimon calls by several."""


def find_table(name: str, catalog: object, branch: str | None = None) -> tuple[str, str | None, Storage]:
    """The folder of a table by its name in a catalog, its branch if it is not the main one, and its files."""
    parts = name.split(".")
    if len(parts) != _PARTS or not all(parts):
        raise NoSuchTableError(
            f"no table {name!r}: a name in a Paimon catalog has two parts, database.table.", table=name
        )
    if isinstance(catalog, Mapping):
        if str(catalog.get("metastore") or _FOLDERS).lower() == _FOLDERS:
            return f"{_warehouse(catalog, name).rstrip('/')}/{parts[0]}.db/{parts[1]}", None, _storage(catalog)
        catalog = _created(catalog, name)
    if not is_pypaimon_catalog(catalog):
        raise CatalogError(
            f"cannot find {name} in the catalog {catalog!r}: Paimon's catalogs are not configured by name. Give the "
            'catalog\'s properties, such as {"warehouse": "/warehouse"}, or a Catalog of pypaimon.',
            table=name,
            catalog=str(catalog),
            reason="no such catalog",
        )
    return loaded_table(_table(catalog, name if branch in (None, MAIN) else f"{name}$branch_{branch}"))


def loaded_table(table: Any) -> tuple[str, str | None, Storage]:  # noqa: ANN401 - pypaimon has no types
    """The folder of a table that pypaimon has loaded, its branch if it is not the main one, and its files.

    Files are read with the options of S3 that the table carries.
    """
    path, schema = str(table.table_path), table.table_schema
    options = {str(key): str(value) for key, value in (schema.options or {}).items()}
    Options(options, bool(schema.primary_keys)).check(path, path)
    branch = str(table.current_branch()) if hasattr(table, "current_branch") else MAIN
    return path, None if branch == MAIN else branch, _storage(_carried(table, path))


def _carried(table: Any, path: str) -> Mapping[str, Any]:  # noqa: ANN401 - as above
    """The options of the table's files, with what its catalog has vended for them."""
    files: Any = getattr(table, "file_io", None)
    if callable(getattr(files, "file_io", None)):
        try:
            files = files.file_io()
        except Exception as error:
            options: Mapping[str, Any] = getattr(files.properties, "to_map", dict)()
            raise _unreachable(path, error, options) from error
    given: Any = getattr(files, "properties", None)
    return given.to_map() if hasattr(given, "to_map") else {}


def _storage(properties: Mapping[str, Any]) -> Storage:
    """The files behind a catalog of these properties."""
    said = renamed({str(name): value for name, value in properties.items()}, _NAMES)
    if not said:
        return EnvironmentStorage()
    virtual = said.pop(_PATH_STYLE, "false").lower() != "true"  # as pypaimon has it
    return EnvironmentStorage(given=s3_access(said | {"s3.force-virtual-addressing": str(virtual)}))


def _warehouse(catalog: Mapping[str, Any], name: str) -> str:
    found = catalog.get("warehouse")
    if not isinstance(found, str) or not found:
        raise CatalogError(
            f"cannot find {name}: the catalog's properties have no 'warehouse'. Give the folder that its databases "
            "are in.",
            table=name,
            catalog=None,
            reason="no warehouse",
        )
    return found


def _created(properties: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - pypaimon has no types
    try:
        from pypaimon import CatalogFactory
    except ImportError as error:
        raise MissingDependency(
            "opening Paimon tables through a catalog needs 'pypaimon': pip install 'tamis[paimon]'",
            package="pypaimon",
            extra="paimon",
        ) from error
    try:
        return CatalogFactory.create(dict(properties))
    except Exception as error:
        raise _unreachable(name, error, properties) from error


def _table(catalog: Any, name: str) -> Any:  # noqa: ANN401 - pypaimon has no types
    try:
        return catalog.get_table(name)
    except Exception as error:
        if "NotExist" in type(error).__name__:
            raise NoSuchTableError(f"there is no table {name} in the catalog.", table=name) from error
        raise _unreachable(name, error, {}) from error


def _unreachable(name: str, error: Exception, properties: Mapping[str, Any]) -> CatalogError:
    message = safe_message(error, properties)
    silence(error, properties=properties)
    return CatalogError(
        f"cannot ask the catalog for {shown(name)}: {message}.",
        table=name,
        catalog=None,
        reason=type(error).__name__,
    )
