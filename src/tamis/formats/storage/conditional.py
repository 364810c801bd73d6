"""A file put into an object store only if there is none of that name.

Arrow's clients cannot ask a store for that, so obstore does: `If-None-Match: *` on S3, and its likes on Google's and
Azure's stores. Law: never a blind put. A store that is not known to refuse the second of two puts is tried out
first, beside the file; one that does not refuse, and one that has no such put, is an error by name.
"""

from __future__ import annotations

import os
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from tamis.errors import MissingDependency, UnwritableFileError
from tamis.formats.errors import is_denied, unwritable
from tamis.formats.storage.access import ANY_REGION, Access, environment_endpoint, environment_region
from tamis.formats.storage.disk import unfinished_name
from tamis.formats.storage.s3 import bucket_region
from tamis.formats.storage.secrets import safe_message, silence

__all__ = ["put_object_if_absent", "s3_endpoint"]

ATTEMPTS: Final = 5
"""How often a put is tried whose answer was lost, over about three seconds: the condition makes that safe."""
_BASE_SECONDS: Final = 0.1
_IGNORES: Final = "its store ignores conditions on a put (If-None-Match)"
_OTHER_STORE: Final = "Keep the table in a store that honours them, such as Amazon's S3, or on a local disk."
_proven: set[tuple[str, str]] = set()
"""Endpoints and buckets that have refused the second of two puts."""


def s3_endpoint() -> dict[str, str]:
    """Where the environment says that S3 is, if it does: Arrow takes credentials from there, but not the endpoint.

    The region is given only with it. Amazon's own buckets are asked for theirs, which may be another.
    """
    endpoint = environment_endpoint()
    return {"s3.endpoint": endpoint, "s3.region": environment_region() or ANY_REGION} if endpoint else {}


@dataclass(frozen=True, slots=True)
class _Target:
    """Where an object is to lie."""

    location: str
    store: Any
    key: str
    endpoint: str | None
    """Of a store that is not Amazon's, Google's or Azure's own: it may honour conditions, or not."""
    bucket: str
    given: Access | None = field(default=None, repr=False)

    def put(self, key: str, data: bytes) -> None:
        """Put an object if there is none, in one request."""
        self.store.put(key, data, mode="create", use_multipart=False)

    def held(self) -> bytes | None:
        """What is there; None if nothing is."""
        try:
            return bytes(self.store.get(self.key).bytes())
        except FileNotFoundError:  # so obstore has it, not as an error of its own
            return None

    def failed(self, error: Exception, reason: str | None = None, *, unknown: bool = False) -> UnwritableFileError:
        """The error for a put that the store refused, or did not answer."""
        given = self.given
        known = {**os.environ, "secret": [] if given is None else [given.key, given.secret, given.token]}
        message = reason or f"{type(error).__name__}: {safe_message(error, known)}"
        cure = None if is_denied(error) or reason is None else _OTHER_STORE
        found = unwritable(self.location, error, message, cure, unknown=unknown)
        silence(error, self.location, known)
        return found


def put_object_if_absent(location: str, data: bytes, given: Access | None = None) -> bool:
    """Put an object if there is none of that name; False if there is one.

    data must be this writer's own, with an id in it that no other writes: where an answer was lost, what the store
    holds is compared with it. given is the access to S3, if it is not the environment's.
    """
    from_client = _exceptions()
    target = _target(location, given)
    refused = (from_client.PermissionDeniedError, from_client.UnauthenticatedError, FileNotFoundError)
    unclear: Exception | None = None
    try:
        _prove(target, from_client)
        for attempt in range(ATTEMPTS):
            try:
                target.put(target.key, data)
            except (from_client.AlreadyExistsError, from_client.PreconditionError):
                held = target.held()
                if held is not None:
                    return unclear is not None and held == data
                # Another's put was under way, and failed: there is still no object.
            except (*refused, from_client.NotSupportedError, from_client.InvalidPathError):
                raise
            except (from_client.BaseError, OSError) as error:
                unclear = error
            else:
                return True
            time.sleep(_BASE_SECONDS * 2**attempt * random.uniform(0.5, 1))  # noqa: S311 - to spread writers
        held = target.held()
    except from_client.NotSupportedError as error:
        raise target.failed(error, "its store cannot put a file only if there is none") from error
    except (from_client.BaseError, OSError) as error:
        raise target.failed(error, unknown=unclear is not None) from error
    if held is not None:
        return held == data
    raise target.failed(unclear or OSError("others were writing it all the time"), unknown=unclear is not None)


def _prove(target: _Target, from_client: Any) -> None:  # noqa: ANN401 - a module
    """See the store refuse the second of two puts, once a process and bucket, unless it is known to."""
    if target.endpoint is None or (target.endpoint, target.bucket) in _proven:
        return
    key = f"{target.key.rpartition('/')[0]}/{unfinished_name()}".lstrip("/")
    target.put(key, b"first")
    try:
        target.put(key, b"second")
    except (from_client.AlreadyExistsError, from_client.PreconditionError):
        _proven.add((target.endpoint, target.bucket))
    else:
        raise target.failed(OSError(_IGNORES), _IGNORES)
    finally:
        # Who may write need not be allowed to remove: what is left has a name that nobody reads.
        with suppress(from_client.BaseError, OSError):
            target.store.delete(key)


def _target(location: str, given: Access | None) -> _Target:
    from obstore import store

    scheme, _, rest = location.partition("://")
    bucket, _, key = rest.partition("/")
    # It would try again by itself, and then find its own object: whether an answer was lost has to be known here.
    once: Any = {"max_retries": 0, "retry_timeout": timedelta(seconds=60)}
    match scheme.lower():
        case "s3" | "s3a" | "s3n":
            endpoint = s3_endpoint().get("s3.endpoint") if given is None else given.endpoint
            client: Any = {"allow_http": (endpoint or "").startswith("http://")}
            config = _environment(bucket) if given is None else _config(given, bucket)
            made: Any = store.S3Store(bucket, config=config, client_options=client, retry_config=once)
            return _Target(location, made, key, endpoint, bucket, given)
        case "gs" | "gcs":
            return _Target(location, store.GCSStore(bucket, retry_config=once), key, None, bucket)
        case "abfs" | "abfss":
            container, _, host = bucket.partition("@")
            azure = store.AzureStore(container, account_name=host.partition(".")[0], retry_config=once)
            return _Target(location, azure, key, None, bucket)
    reason = f"files of {scheme}:// cannot be put only if there is none"
    raise unwritable(location, OSError(reason), reason, _OTHER_STORE)


def _config(given: Access, bucket: str) -> Any:  # noqa: ANN401 - a typed dict of obstore's
    said = {
        "access_key_id": given.key,
        "secret_access_key": given.secret,
        "session_token": given.token,
        "endpoint": given.endpoint,
        "region": given.region or (ANY_REGION if given.endpoint else bucket_region(bucket)),
    }
    flags = {"skip_signature": given.anonymous, "virtual_hosted_style_request": given.virtual_hosts}
    return {name: value for name, value in said.items() if value is not None} | flags


def _environment(bucket: str) -> Any:  # noqa: ANN401 - a typed dict of obstore's
    settings = s3_endpoint()
    if not settings:
        return {"region": bucket_region(bucket)}
    return {"region": settings["s3.region"], "endpoint": settings["s3.endpoint"]}


def _exceptions() -> Any:  # noqa: ANN401 - a module
    try:
        from obstore import exceptions
    except ImportError as error:
        raise MissingDependency(
            "committing to a table in an object store needs 'obstore': pip install 'tamis[objects]'",
            package="obstore",
            extra="objects",
        ) from error
    return exceptions
