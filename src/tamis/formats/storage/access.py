"""Who may enter an object store, as a catalog, another library or the environment says: to be handed to Spark.

Law: it is handed on to readers and writers of the same table alone. Nothing of it is in a repr, and it cannot be
pickled: what a writer on an executor is given is made for it, at the user's request.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

from tamis.errors import SparkStorageError
from tamis.formats.errors import shown

__all__ = [
    "ANY_REGION",
    "S3",
    "Access",
    "Grants",
    "access_of",
    "environment_access",
    "environment_endpoint",
    "environment_region",
    "not_handed",
    "renamed",
    "s3_access",
    "s3_place",
]

S3: Final = frozenset({"s3", "s3a", "s3n"})
"""Schemes of the one store whose access can be handed on."""

ANY_REGION: Final = "us-east-1"
"""Of a store that is not Amazon's and was given none: most of them take requests that are signed for this one."""
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_NOT_HANDED: Final = (
    *("s3.signer", "s3.signer.uri", "s3.signer.endpoint", "s3.role-arn", "client.role-arn"),
    *("s3.profile-name", "client.profile-name"),
)
"""Properties by which a client asks somebody else for each request, or for other credentials."""


@dataclass(frozen=True, slots=True, repr=False)
class Access:
    """Where S3, or a store that speaks it, is, and who enters. None: whatever the reader finds by itself."""

    endpoint: str | None = None
    region: str | None = None
    key: str | None = None
    secret: str | None = None
    token: str | None = None
    """Of credentials that end, such as those that a catalog vends."""
    anonymous: bool = False
    virtual_hosts: bool = False
    """Whether a bucket of the endpoint is a host name; else it is the first part of the path."""
    needs: str | None = None
    """A property that says how to enter and that no other reader can follow; None if all can be handed on."""

    def __repr__(self) -> str:
        return "Access()"

    def __reduce__(self) -> tuple[object, ...]:
        """TypeError: credentials travel in no pickle."""
        raise TypeError("credentials of a store are not pickled")

    def for_arrow(self) -> dict[str, Any]:
        """What pyarrow's client for S3 is told, on whichever machine: the one form in which credentials travel."""
        told: dict[str, Any] = {
            **s3_place(self.endpoint, self.region),
            "force_virtual_addressing": self.virtual_hosts or None,
            "anonymous": self.anonymous or None,
        }
        if not self.anonymous:
            told |= {"access_key": self.key, "secret_key": self.secret, "session_token": self.token}
        return {name: value for name, value in told.items() if value is not None}


@runtime_checkable
class Grants(Protocol):
    """Files behind a client that knows who may enter."""

    def access(self) -> Access:
        """Where the store is, and who enters."""


def access_of(files: object) -> Access:
    """The access to these files: a client knows what it was given; of others it is what the environment says."""
    return files.access() if isinstance(files, Grants) else environment_access()


def environment_access() -> Access:
    """What the variables of AWS's tools say. Profiles and roles are not looked up: every reader has its own."""
    return s3_access({})


def s3_access(properties: Mapping[str, str]) -> Access:
    """The access that properties give, by PyIceberg's names; what they leave out is as the environment says.

    Key, secret and token are of one source: a token of another belongs to another key.
    """
    said = {name: str(value) for name, value in properties.items() if value not in (None, "")}
    key, secret, token = (_said(said, name) for name in ("access-key-id", "secret-access-key", "session-token"))
    anonymous = said.get("s3.anonymous", "").lower() == "true"
    if not (key and secret) and not anonymous:
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        key, secret, token = (os.environ.get(name) or None for name in names)
    signed = said.get("s3.remote-signing-enabled", "true").lower() != "false"
    needs = next((name for name in _NOT_HANDED if name in said and ("signer" not in name or signed)), None)
    return Access(
        _whole(said.get("s3.endpoint")) or environment_endpoint(),
        _said(said, "region") or environment_region(),
        key if key and secret else None,
        secret if key and secret else None,
        token if key and secret else None,
        anonymous,
        said.get("s3.force-virtual-addressing", "").lower() == "true",
        needs,
    )


def s3_place(endpoint: str | None, region: str | None) -> dict[str, Any]:
    """What pyarrow's client for S3 is told of where the store is.

    Amazon's buckets know their region and can be asked for it; other stores have to be given any.
    """
    if not endpoint:
        return {"region": region} if region else {}
    return {"endpoint_override": endpoint, "region": region or ANY_REGION}


def not_handed(path: str, access: Access) -> SparkStorageError | None:
    """Why the access to the store of this path cannot be handed on; None if it can."""
    scheme, _, rest = path.partition("://")
    store = f"{scheme}://{rest.partition('/')[0]}"
    if scheme.lower() not in S3:
        reason = "Hadoop's client of that store takes none from here"
    elif access.needs is not None:
        reason = f"the catalog says {access.needs}, which no other client follows"
    else:
        return None
    return SparkStorageError(
        f"cannot hand the access to {shown(store)} to Spark: {reason}. Leave storage='catalog' out, and give the "
        "session its own settings for the store.",
        path=shown(store),
        scheme=scheme.lower(),
        package=None,
        settings=(),
        reason=reason,
    )


def renamed(properties: Mapping[str, object], names: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Another library's properties by PyIceberg's names: names has for each of these the ones it may have there."""
    found = (
        (name, next((properties[one] for one in known if properties.get(one)), None)) for name, known in names.items()
    )
    return {name: str(value) for name, value in found if value is not None}


def _said(said: Mapping[str, str], name: str) -> str | None:
    return said.get(f"s3.{name}") or said.get(f"client.{name}")


def environment_endpoint() -> str | None:
    """Where the environment says that S3 is; None for Amazon's own."""
    return _whole(_first(_ENDPOINTS))


def environment_region() -> str | None:
    """The region that the environment says."""
    return _first(_REGIONS)


def _whole(endpoint: str | None) -> str | None:
    """The endpoint with its scheme. Clients take one without for https, or cannot read it."""
    return f"https://{endpoint}" if endpoint and "://" not in endpoint else endpoint


def _first(names: tuple[str, ...]) -> str | None:
    return next((value for name in names if (value := os.environ.get(name))), None)
