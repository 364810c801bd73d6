"""Storage over a real object store: one winner for each name, whoever races, and no secret in what is said."""

from __future__ import annotations

import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context

import pytest

from tamis.errors import UnreadableMetadataError, UnwritableFileError
from tamis.formats import FORMATS
from tamis.formats.storage import Listed, Storage
from tamis.formats.storage.objects import EnvironmentStorage
from tests.engines.servers import ObjectStore

pytestmark = pytest.mark.engine
pytest.importorskip("obstore")

LOG = "s3://lake/t/_delta_log"
WRONG = "wr0ngAndNobodyKnowsIt"


@pytest.fixture(autouse=True)
def environment(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user sets for a store that is not Amazon's."""
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", store.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", store.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", store.secret)


def version(folder: str, number: int) -> str:
    return f"{LOG}/{folder}/{number:020}.json"


def test_one_of_many_threads_puts_an_object() -> None:
    storage, writers, rounds = EnvironmentStorage(), 6, 12
    barrier = threading.Barrier(writers)

    def writer(number: int) -> list[bool]:
        won = []
        for at in range(rounds):
            barrier.wait()
            won.append(storage.put_if_absent(version("threads", at), f"writer {number}".encode()))
        return won

    with ThreadPoolExecutor(writers) as pool:
        found = list(pool.map(writer, range(writers)))
    for at in range(rounds):
        (winner,) = (number for number in range(writers) if found[number][at])
        assert storage(version("threads", at)) == f"writer {winner}".encode()
    assert len(storage.list(f"{LOG}/threads")) == rounds


def put_all(number: int, rounds: int) -> list[bool]:
    storage = EnvironmentStorage()
    return [storage.put_if_absent(version("processes", at), f"writer {number}".encode()) for at in range(rounds)]


def test_one_of_two_processes_puts_an_object() -> None:
    rounds = 20
    with get_context("spawn").Pool(2) as pool:
        found = pool.starmap(put_all, [(0, rounds), (1, rounds)])
    for at in range(rounds):
        (winner,) = (number for number in range(2) if found[number][at])
        assert EnvironmentStorage()(version("processes", at)) == f"writer {winner}".encode()


@pytest.mark.parametrize(
    "name", ["plain", "a b", "50%", "a%20b", "ü€𝄞", "q?x=1", "h#1", "p+q", "dt=2024-01-15 10:00"]
)
def test_object_is_put_where_it_is_read(name: str) -> None:
    """Two clients, one name: what one escapes the other must not."""
    storage = EnvironmentStorage()
    folder = f"s3://lake/names/{name}"
    location = f"{folder}/{name}.json"
    assert storage.put_if_absent(location, b"first") is True
    assert storage.put_if_absent(location, b"second") is False
    assert storage(location) == b"first"
    assert storage.list(folder) == [Listed(f"{name}.json", 5)]
    storage.put(location, b"third!")
    assert storage.put_if_absent(location, b"fourth") is False
    with storage.open(location) as stream:
        stream.seek(2)
        assert stream.read(3) == b"ird"
    assert storage.size(location) == 6
    storage.remove(location)
    storage.remove(location)
    assert storage.size(location) is None
    assert storage.list(folder) == []
    with pytest.raises(UnreadableMetadataError):
        storage(location)


def test_list_is_in_order_after_a_name_and_of_one_folder() -> None:
    storage = EnvironmentStorage()
    for name in ("b", "a", "ü", "folder/below", "B", ".tamis-0123456789abcdef0123456789abcdef.tmp"):
        storage.put(f"s3://lake/list/{name}", name.encode())
    assert [one.name for one in storage.list("s3://lake/list")] == ["B", "a", "b", "ü"]
    assert [one.name for one in storage.list("s3://lake/list/", "a")] == ["b", "ü"]
    assert storage.list("s3://lake/nothing/there") == []


def test_bytes_that_stay_whole_beyond_one_part() -> None:
    data = bytes(range(256)) * 48_000  # 12 MB: more than the clients put into one part of several
    storage = EnvironmentStorage()
    assert storage.put_if_absent("s3://lake/large/a", data)
    storage.put("s3://lake/large/b", data)
    assert storage("s3://lake/large/a") == storage("s3://lake/large/b") == data


def test_marks_of_formats_are_seen_in_the_store() -> None:
    storage = EnvironmentStorage()
    marks = {
        "iceberg": "metadata/v1.metadata.json",
        "delta": "_delta_log/00000000000000000000.json",
        "paimon": "schema/schema-0",
    }
    for key, mark in marks.items():
        storage.put(f"s3://lake/marks/{key}/{mark}", b"{}")
        for slash in ("", "/"):
            found = [one.key for one in FORMATS if one.is_table_folder(f"s3://lake/marks/{key}{slash}", storage)]
            assert found == [key]


def test_nothing_is_left_of_the_trial(store: ObjectStore) -> None:
    EnvironmentStorage().put_if_absent("s3://lake/trial/0.json", b"x")
    assert [path.name for path in (store.folder / "lake" / "trial").iterdir()] == ["0.json"]


@pytest.mark.parametrize("variable", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_wrong_credentials_are_one_line_without_them(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, WRONG)
    storage = EnvironmentStorage()
    for writing in (storage.put, storage.put_if_absent):
        with pytest.raises(UnwritableFileError) as caught:
            writing("s3://lake/denied/0.json", b"x")
        said = f"{caught.value} {vars(caught.value)}"
        assert str(caught.value).startswith("cannot write s3://lake/denied/0.json: ")
        assert "the permission to write there" in str(caught.value)
        assert "\n" not in str(caught.value)
        assert not [secret for secret in (store.key, store.secret, WRONG) if secret in said]
    assert not (store.folder / "lake" / "denied").exists()


def test_missing_bucket_is_an_error_that_names_it() -> None:
    with pytest.raises(UnwritableFileError, match=r"cannot write s3://nowhere/0\.json") as caught:
        EnvironmentStorage().put_if_absent("s3://nowhere/0.json", b"x")
    assert not caught.value.unknown


def test_storage_is_pickled_without_its_clients(store: ObjectStore) -> None:
    storage = EnvironmentStorage()
    storage.put("s3://lake/pickled", b"x")
    data = pickle.dumps(storage)
    assert not [secret for secret in (store.key, store.secret) if secret.encode() in data or secret in repr(storage)]
    again = pickle.loads(data)  # noqa: S301 - made above
    assert isinstance(again, Storage)
    assert again("s3://lake/pickled") == b"x"


def test_library_that_is_missing_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(Exception, match=r"pip install 'tamis\[objects\]'"):
        EnvironmentStorage().put_if_absent("s3://lake/0.json", b"x")
