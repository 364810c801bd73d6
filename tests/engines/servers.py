"""Real servers for catalogs: PostgreSQL from the system's package, and Iceberg's own REST server.

Each is started on a free port of this machine in a folder of its own, and stopped afterwards. `Unavailable` says what
is missing where one cannot be had.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["Unavailable", "postgres", "rest_server"]

POM: Final = Path(__file__).with_name("pom.xml")
PATIENCE: Final = 60.0
"""Seconds to wait for a server: they need one to three on an idle machine."""


class Unavailable(RuntimeError):
    """A server that cannot be had on this machine, and why."""


@contextmanager
def postgres() -> Iterator[str]:
    """A new, empty PostgreSQL; gives `127.0.0.1:port/postgres`, where user postgres may enter without a password."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        raise Unavailable("no PostgreSQL server under /usr/lib/postgresql (Debian: postgresql)")
    binaries = found[-1].parent
    # initdb refuses root, and pytest's folders are closed to other users.
    as_postgres = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    home = Path(tempfile.mkdtemp(prefix="tamis-postgres-"))
    if as_postgres:
        shutil.chown(home, "postgres", "postgres")
    port, data = free_port(), home / "data"
    control = [*as_postgres, str(binaries / "pg_ctl"), "-D", str(data), "-w"]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={home} -c fsync=off"
    try:
        init = [str(binaries / "initdb"), "-D", str(data), "-A", "trust", "-U", "postgres", "-N", "--no-locale"]
        _run([*as_postgres, *init, "-E", "UTF8"], cwd=home)
        _run([*control, "-l", str(home / "log"), "-o", options, "start"], cwd=home)
        try:
            yield f"127.0.0.1:{port}/postgres"
        finally:
            _run([*control, "-m", "immediate", "stop"], cwd=home)
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def rest_server(home: Path, hadoop: Path) -> Iterator[str]:
    """Iceberg's REST catalog with a warehouse in home; gives its URI. hadoop is the folder with pyspark's jars."""
    jars = _rest_jars()
    clients = [str(path) for name in ("api", "runtime") for path in hadoop.glob(f"hadoop-client-{name}-*.jar")]
    port = free_port()
    settings = {
        "CATALOG_WAREHOUSE": (home / "warehouse").as_uri(),
        "CATALOG_URI": f"jdbc:sqlite:file:{home / 'catalog.db'}",  # in memory it answers 500 under concurrency
        "CATALOG_REST_PORT": str(port),
    }
    command = ["java", "-Xmx256m", "-cp", os.pathsep.join([f"{jars}/*", *clients])]
    with (
        (home / "server.log").open("wb") as log,
        subprocess.Popen(
            [*command, "org.apache.iceberg.rest.RESTCatalogServer"],
            env=os.environ | settings,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
        ) as server,
    ):
        try:
            uri = f"http://127.0.0.1:{port}"
            _await(f"{uri}/v1/config", server, home / "server.log")
            yield uri
        finally:
            server.terminate()


def free_port() -> int:
    """A port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _rest_jars() -> Path:
    """The server's jars: fetched once by Maven, then kept in the user's cache under the digest of their list."""
    digest = hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tamis-tests"
    jars = cache / f"iceberg-rest-{digest}"
    if jars.is_dir():
        return jars
    if shutil.which("mvn") is None:
        raise Unavailable("Maven, which fetches Iceberg's REST server, is not installed (Debian: maven)")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as work:
        fetched = Path(work) / "jars"
        _run(["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={fetched}"])
        if not jars.is_dir():
            fetched.rename(jars)
    return jars


def _await(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - an http URL of this machine
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise Unavailable(f"Iceberg's REST server does not answer: {log.read_text(errors='replace')[-400:]}")


def _run(command: list[str], cwd: Path | None = None) -> None:
    """Run a tool to its end; Unavailable with the end of its output if it fails."""
    with tempfile.TemporaryFile() as output:  # a pipe would stay open as long as the server that it starts
        done = subprocess.run(command, check=False, cwd=cwd, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        if done.returncode:
            output.seek(0)
            raise Unavailable(f"{Path(command[0]).name} failed: {output.read().decode(errors='replace')[-400:]}")
