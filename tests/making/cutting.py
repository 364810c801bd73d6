"""A connection to a server that breaks just when the answer to a commit is due."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

__all__ = ["Cut", "cutting"]


@dataclass(slots=True)
class Cut:
    """What passes between a client and a server: once armed, the first commit is not answered."""

    port: int
    is_commit: Callable[[bytes], bool]
    happens: bool = True
    """Whether the server hears of it."""
    armed: bool = False
    cuts: int = 0
    connections: list[socket.socket] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def arm(self, *, happens: bool) -> None:
        """Cut the next commit."""
        self.happens, self.armed = happens, True

    def takes(self, data: bytes) -> bool:
        """Whether this is the commit to cut."""
        with self.lock:
            taken = self.armed and self.is_commit(data)
            if taken:
                self.armed, self.cuts = False, self.cuts + 1
            return taken


@contextmanager
def cutting(server: int, is_commit: Callable[[bytes], bool]) -> Iterator[Cut]:
    """A port of this machine that leads to the server's, until the end of the block."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        cut = Cut(int(listening.getsockname()[1]), is_commit)
        threading.Thread(target=_accept, args=(listening, server, cut), daemon=True).start()
        try:
            yield cut
        finally:
            for connection in cut.connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


def _accept(listening: socket.socket, server: int, cut: Cut) -> None:
    with suppress(OSError):  # closed, at the end
        while True:
            client, _ = listening.accept()
            cut.connections.append(client)
            threading.Thread(target=_serve, args=(client, server, cut), daemon=True).start()


def _serve(client: socket.socket, port: int, cut: Cut) -> None:
    with client, socket.create_connection(("127.0.0.1", port)) as server, suppress(OSError):
        silent = threading.Event()
        back = threading.Thread(target=_answers, args=(server, client, silent), daemon=True)
        back.start()
        while data := client.recv(1 << 20):
            if not cut.takes(data):
                server.sendall(data)
                continue
            if cut.happens:
                silent.set()
                server.sendall(data)
                _rest_of(client, server, back)
            break
        for end in (server, client):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        back.join(30)


def _rest_of(client: socket.socket, server: socket.socket, back: threading.Thread) -> None:
    """What belongs to the commit may come in parts: until the answer has come."""
    client.settimeout(0.05)
    for _ in range(600):
        if not back.is_alive():
            return
        with suppress(TimeoutError):
            server.sendall(client.recv(1 << 20))


def _answers(server: socket.socket, client: socket.socket, silent: threading.Event) -> None:
    with suppress(OSError):
        while data := server.recv(1 << 20):
            if silent.is_set():
                return
            client.sendall(data)
