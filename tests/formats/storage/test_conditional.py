"""A put that must not replace anything, over stores that lose answers, say "later", or ignore the condition.

No real store does these on demand: a small one in this process speaks as much of S3 as one object needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

import pytest

from tamis.errors import UnwritableFileError
from tamis.formats.storage import conditional
from tamis.formats.storage.disk import UNFINISHED
from tamis.formats.storage.objects import EnvironmentStorage

pytest.importorskip("obstore")

LOCATION = "s3://lake/t/_delta_log/0.json"
KEY = "/lake/t/_delta_log/0.json"


class Store(ThreadingHTTPServer):
    """One that does to the puts of the object, one after the other, what the script says, and then behaves."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Requests)
        self.objects: dict[str, bytes] = {}
        self.script: list[str] = []
        self.honours = True
        self.removes = True
        self.removed: list[str] = []
        self.puts = 0
        self.lock = Lock()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Requests(BaseHTTPRequestHandler):
    server: Store
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self) -> None:
        data, store = self.rfile.read(int(self.headers["Content-Length"])), self.server
        with store.lock:
            step = ""
            if self.path == KEY:
                store.puts += 1
                step = store.script.pop(0) if store.script else ""
            if step.isdigit():
                self.answer(int(step))
                return
            if step == "lost request":
                self.close_connection = True
                self.connection.close()
                return
            if step.startswith("other: "):
                store.objects[self.path] = step.removeprefix("other: ").encode()
            there = self.path in store.objects and store.honours and self.headers["If-None-Match"] == "*"
            if not there:
                store.objects[self.path] = data
            if step == "lost answer":
                self.close_connection = True
                self.connection.close()
                return
        self.answer(412 if there else 200)

    def do_GET(self) -> None:
        found = self.server.objects.get(self.path)
        self.answer(404 if found is None else 200, found or b"")

    def do_POST(self) -> None:
        """Several objects are removed at once, by their keys in the bucket."""
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if not self.server.removes:
            self.answer(403)
            return
        keys = re.findall("<Key>(.*?)</Key>", text)
        for key in keys:
            self.server.removed.append(f"/lake/{key}")
            self.server.objects.pop(f"/lake/{key}", None)
        gone = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
        self.answer(200, f"<DeleteResult>{gone}</DeleteResult>".encode())


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(conditional, "_BASE_SECONDS", 0.001)
    with Store() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k3yOfNobody")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3tOfNobody")
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def put(data: bytes = b"mine") -> bool:
    return EnvironmentStorage().put_if_absent(LOCATION, data)


def test_second_put_is_refused_and_nothing_else_is_left(store: Store) -> None:
    assert put() is True
    assert put(b"another's") is False
    assert store.objects == {KEY: b"mine"}


def test_equal_bytes_of_another_are_not_ours(store: Store) -> None:
    """Only a lost answer makes us look whose the object is."""
    store.objects[KEY] = b"mine"
    assert put() is False


def test_store_that_ignores_the_condition_is_refused_before_anything_is_put(store: Store) -> None:
    """It would answer 200, and one commit would be gone."""
    store.honours = False
    store.objects[KEY] = b"another's"
    for _ in range(2):
        with pytest.raises(UnwritableFileError, match="ignores conditions on a put") as caught:
            put()
        assert not caught.value.unknown
    assert store.objects == {KEY: b"another's"}
    assert store.puts == 0


def test_trial_lies_beside_the_file_under_a_name_that_no_list_shows(store: Store) -> None:
    assert put()
    (key,) = store.removed
    folder, _, name = key.rpartition("/")
    assert folder == KEY.rpartition("/")[0]
    assert UNFINISHED.fullmatch(name)


def test_who_may_not_remove_may_put(store: Store) -> None:
    store.removes = False
    assert put() is True
    (left,) = store.objects.keys() - {KEY}
    assert UNFINISHED.fullmatch(left.rpartition("/")[2])


def test_put_whose_answer_was_lost_is_known_by_what_the_store_holds(store: Store) -> None:
    store.script = ["lost answer"]
    assert put() is True
    assert store.objects == {KEY: b"mine"}
    assert store.puts == 2


def test_put_that_was_lost_before_another_won_is_not_ours(store: Store) -> None:
    store.script = ["lost request", "other: another's"]
    assert put() is False
    assert store.objects == {KEY: b"another's"}


@pytest.mark.parametrize("step", ["409", "503", "500", "lost request"])
def test_put_is_tried_again_while_the_store_says_later(store: Store, step: str) -> None:
    """409 is said while another's put is under way, which may fail: there need not be an object then."""
    store.script = [step, step]
    assert put() is True
    assert store.objects == {KEY: b"mine"}


def test_store_that_never_answers_leaves_the_outcome_unknown(store: Store) -> None:
    store.script = ["503"] * 20
    with pytest.raises(UnwritableFileError, match="is not known: look before you try again") as caught:
        put()
    assert caught.value.unknown
    assert store.puts == conditional.ATTEMPTS
    assert "s3cr3t" not in f"{caught.value} {vars(caught.value)}"
    assert "\n" not in str(caught.value)


def test_answers_lost_to_the_end_are_settled_by_a_last_look(store: Store) -> None:
    store.script = ["503"] * (conditional.ATTEMPTS - 1) + ["lost answer"]
    assert put() is True


def test_refusal_is_known(store: Store) -> None:
    store.script = ["403"]
    with pytest.raises(UnwritableFileError, match="the permission to write there") as caught:
        put()
    assert (caught.value.unknown, store.puts) == (False, 1)


@pytest.mark.parametrize("location", ["hdfs://host/t/0.json", "ftp://host/0.json"])
def test_store_without_such_a_put_is_named(location: str) -> None:
    with pytest.raises(UnwritableFileError, match="cannot be put only if there is none") as caught:
        EnvironmentStorage().put_if_absent(location, b"x")
    assert caught.value.path == location
