"""Tables that the deltalake package has loaded: their folder, their version, and the options of their store."""

from __future__ import annotations

import re
from typing import Any, Final

from tamis.errors import UnsupportedFormatError
from tamis.formats.errors import shown
from tamis.formats.storage import Storage
from tamis.formats.storage.access import renamed, s3_access
from tamis.formats.storage.local import local_path
from tamis.formats.storage.objects import EnvironmentStorage

__all__ = ["is_deltalake_table", "loaded_storage"]

_NAMES: Final = {
    "s3.access-key-id": ("aws_access_key_id", "access_key_id"),
    "s3.secret-access-key": ("aws_secret_access_key", "secret_access_key"),
    "s3.session-token": ("aws_session_token", "aws_token", "session_token", "token"),
    "s3.endpoint": ("aws_endpoint_url_s3", "aws_endpoint_url", "aws_endpoint", "endpoint_url", "endpoint"),
    "s3.region": ("aws_region", "region", "aws_default_region", "default_region"),
    "s3.anonymous": ("aws_skip_signature", "skip_signature"),
    "s3.force-virtual-addressing": ("aws_virtual_hosted_style_request", "virtual_hosted_style_request"),
}
"""PyIceberg's names of what deltalake calls by several, in any case."""
_S3: Final = frozenset({"s3", "s3a"})
_OTHERS: Final = re.compile(r"role_arn$|profile$|web_identity|container_credentials")
"""Options by which deltalake's client gets other credentials than those that are in the options."""


def is_deltalake_table(target: object) -> bool:
    """Whether this is a DeltaTable of the deltalake package."""
    return any(of.__name__ == "DeltaTable" and of.__module__.startswith("deltalake.") for of in type(target).__mro__)


def loaded_storage(table: Any) -> Storage:  # noqa: ANN401 - deltalake is no dependency
    """The files of a table, with the options that it was loaded with; those of S3 are known."""
    uri = str(table.table_uri)
    # deltalake hands its options to its own readers in no other way.
    options = {str(key).lower(): value for key, value in (getattr(table, "_storage_options", None) or {}).items()}
    if not options or local_path(uri) is not None:
        return EnvironmentStorage()
    if uri.partition("://")[0].lower() not in _S3:
        raise UnsupportedFormatError(
            f"the DeltaTable at {shown(uri)} has storage options, and this version takes those of S3 alone. Give its "
            "address instead, and the credentials by the environment.",
            path=shown(uri),
            feature="storage options",
        )
    other = next((name for name in sorted(options) if _OTHERS.search(name)), None)
    if other is not None:
        raise UnsupportedFormatError(
            f"the DeltaTable at {shown(uri)} has the storage option {other}, by which its own client asks for "
            "credentials. Give its address instead, and the credentials by the environment.",
            path=shown(uri),
            feature="storage options",
        )
    return EnvironmentStorage(given=s3_access(renamed(options, _NAMES)))
