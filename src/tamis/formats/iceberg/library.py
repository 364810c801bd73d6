"""PyIceberg, an optional library: loaded when it is needed, or an error that names the cure."""

from __future__ import annotations

from typing import Any

from tamis.errors import CatalogError, MissingDependency
from tamis.formats.storage.secrets import safe_message

__all__ = ["pyiceberg", "unconfigured"]


def pyiceberg() -> tuple[Any, Any]:
    """PyIceberg's load_catalog, and its error for a table that is not there."""
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
        raise unconfigured(error) from error
    return load_catalog, NoTable


def unconfigured(error: Exception) -> CatalogError:
    """The error for a configuration that PyIceberg cannot read."""
    return CatalogError(
        f"cannot read PyIceberg's configuration: {safe_message(error)}. "
        "Check .pyiceberg.yaml (in $PYICEBERG_HOME, ~ or this folder).",
        table=None,
        catalog=None,
        reason=type(error).__name__,
    )
