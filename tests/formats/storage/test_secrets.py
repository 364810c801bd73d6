"""Nothing that is raised tells a secret: not the error, and not those that it was raised from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from traceback import format_exception

import pytest

import tamis
from tamis.errors import TamisError
from tamis.formats.storage.objects import EnvironmentStorage
from tamis.formats.storage.secrets import safe_message, silence
from tamis.formats.storage.sinks import DataStore

SECRET = "t0pS3cret"  # noqa: S105 - of nobody
LOCATION = f"s3://key:{SECRET}@lake/x.metadata.json"


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and all that led to it."""
    seen: list[BaseException] = []
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is None or one in seen:
            continue
        seen.append(one)
        waiting += [one.__cause__, one.__context__]
        yield one


WORK: dict[str, Callable[[], object]] = {
    "open": lambda: tamis.open(LOCATION),
    "folder": lambda: tamis.open(LOCATION.removesuffix(".metadata.json"), format="paimon"),
    "read": lambda: EnvironmentStorage()(LOCATION),
    "list": lambda: EnvironmentStorage().list(LOCATION),
    "put": lambda: EnvironmentStorage().put(LOCATION, b"x"),
    "remove": lambda: EnvironmentStorage().remove(LOCATION),
    "write": lambda: DataStore({"s3.endpoint": "http://127.0.0.1:1"}).create(LOCATION),
}


@pytest.mark.parametrize("what", WORK)
def test_a_credential_in_an_address_is_in_no_error_of_the_chain(what: str) -> None:
    """Clients quote half an address; a traceback shows what they said."""
    with pytest.raises((TamisError, OSError)) as caught:
        WORK[what]()
    for one in chain(caught.value):
        assert SECRET not in f"{one} {one!r} {vars(one)}"
    assert SECRET not in "".join(format_exception(caught.value))


def test_errors_that_led_to_one_are_silenced_with_it() -> None:
    inner = OSError(2, f"no such thing as {SECRET}", f"/{SECRET}")
    middle = ValueError(f"token={SECRET}")
    middle.__cause__, inner.__context__ = inner, middle
    outer = RuntimeError("it failed")
    outer.__context__ = middle
    assert safe_message(middle, {"token": SECRET}) == "token=…"
    silence(outer, properties={"token": SECRET})
    assert [str(one) for one in (outer, middle, inner)][:2] == ["it failed", ""]
    assert not [one for one in chain(outer) if SECRET in f"{one} {one!r} {vars(one)}"]


def test_an_error_without_a_secret_keeps_its_words() -> None:
    error = OSError("the store is busy")
    silence(error, "s3://lake/x?versionId=none".partition("?")[0], {"token": SECRET})
    assert str(error) == "the store is busy"
