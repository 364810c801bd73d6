"""Real servers: PostgreSQL from the system's package, Iceberg's own REST server, and S3Proxy, an object store.

Each is started on a free port of this machine in a folder of its own, and stopped afterwards. `Unavailable` says what
is missing where one cannot be had.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final

__all__ = ["ObjectStore", "Unavailable", "jars_of", "object_store", "postgres", "rest_server"]

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
def rest_server(home: Path, hadoop: Path, store: ObjectStore | None = None) -> Iterator[str]:
    """Iceberg's REST catalog with a warehouse in home; gives its URI. hadoop is the folder with pyspark's jars.

    With a store its warehouse is the store's bucket `lake`, and with each table it gives the credentials for that.
    """
    jars = jars_of("iceberg-rest")
    clients = [str(path) for name in ("api", "runtime") for path in hadoop.glob(f"hadoop-client-{name}-*.jar")]
    port = free_port()
    settings = {
        "CATALOG_WAREHOUSE": (home / "warehouse").as_uri(),
        "CATALOG_URI": f"jdbc:sqlite:file:{home / 'catalog.db'}",  # in memory it answers 500 under concurrency
        "CATALOG_REST_PORT": str(port),
    }
    if store is not None:
        settings |= _vending(home, store)
        # Before the others: the catalog's test jar has classes of Hadoop's client in it, of another version.
        clients = [f"{jars_of('hadoop-aws')}/*", *clients, str(home), *map(str, hadoop.glob("http[cr]*-4.*.jar"))]
        clients += [str(path) for name in ("slf4j-api", "jcl-over-slf4j") for path in hadoop.glob(f"{name}-*.jar")]
    command = ["java", "-Xmx256m", "-cp", os.pathsep.join([*clients, f"{jars}/*"])]
    uri = f"http://127.0.0.1:{port}"
    with _running([*command, "org.apache.iceberg.rest.RESTCatalogServer"], settings, f"{uri}/v1/config", home):
        yield uri


def _vending(home: Path, store: ObjectStore) -> dict[str, str]:
    """The settings of a catalog that has its tables in the store, and vends credentials. Hadoop reads for it."""
    client = {
        "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "fs.s3a.endpoint": store.endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": store.key,
        "fs.s3a.secret.key": store.secret,
    }
    said = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in client.items()
    )
    (home / "core-site.xml").write_text(f"<configuration>{said}</configuration>", encoding="utf-8")
    return {
        "CATALOG_WAREHOUSE": "s3://lake/vended",
        "CATALOG_IO__IMPL": "org.apache.iceberg.hadoop.HadoopFileIO",
        "CATALOG_INCLUDE__CREDENTIALS": "true",
        "CATALOG_S3_ACCESS__KEY__ID": store.key,
        "CATALOG_S3_SECRET__ACCESS__KEY": store.secret,
    }


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A server that speaks S3, and who may enter it."""

    endpoint: str
    folder: Path
    """Where it keeps its objects: a folder for each bucket."""
    key: str = "k3yOfTheStore"
    secret: str = "s3cretOfTheStore"  # noqa: S105 - of a server that lives for a test


@contextmanager
def object_store(home: Path) -> Iterator[ObjectStore]:
    """S3Proxy over a folder in home, without buckets."""
    (jar,) = jars_of("s3proxy").glob("*.jar")
    store = ObjectStore(f"http://127.0.0.1:{free_port()}", home / "buckets")
    store.folder.mkdir(exist_ok=True)
    settings = {
        "s3proxy.endpoint": store.endpoint,
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.identity": store.key,
        "s3proxy.credential": store.secret,
        "jclouds.provider": "filesystem-nio2",
        "jclouds.filesystem.basedir": str(store.folder),
    }
    properties = home / "s3proxy.conf"
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
    # Without a limit it grows to 1.8 GB.
    command = ["java", "-Xmx256m", "-jar", str(jar), "--properties", str(properties)]
    with _running(command, {}, store.endpoint, home):
        yield store


@contextmanager
def _running(command: list[str], settings: Mapping[str, str], url: str, home: Path) -> Iterator[None]:
    """A server that answers at url; its log is in home. It is stopped at the end."""
    if shutil.which(command[0]) is None:
        raise Unavailable(f"{command[0]}, which the server runs on, is not installed")
    with (
        (home / "server.log").open("wb") as log,
        subprocess.Popen(
            command, env=os.environ | settings, stdout=log, stderr=log, stdin=subprocess.DEVNULL
        ) as server,
    ):
        try:
            _await(url, server, home / "server.log")
            yield
        finally:
            server.terminate()


def free_port() -> int:
    """A port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def jars_of(profile: str) -> Path:
    """A server's jars: fetched once by Maven, then kept in the user's cache under the digest of their list."""
    digest = hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tamis-tests"
    jars = cache / f"{profile}-{digest}"
    if jars.is_dir():
        return jars
    if shutil.which("mvn") is None:
        raise Unavailable(f"Maven, which fetches {profile}, is not installed (Debian: maven)")
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock, tempfile.TemporaryDirectory(dir=cache) as work:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two Mavens that fill one repository get in each other's way
        if jars.is_dir():
            return jars
        fetched = Path(work) / "jars"
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={fetched}"]
        _run(["mvn", "-q", "-B", "-f", str(POM), "-P", profile, *goal])
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
        except urllib.error.HTTPError as answer:
            answer.close()
            if answer.code == HTTPStatus.FORBIDDEN:
                return  # it knows strangers from users, and so it is ready
        except OSError:
            pass
        time.sleep(0.1)
    raise Unavailable(f"the server at {url} does not answer: {log.read_text(errors='replace')[-400:]}")


def _run(command: list[str], cwd: Path | None = None) -> None:
    """Run a tool to its end; Unavailable with the end of its output if it fails."""
    with tempfile.TemporaryFile() as output:  # a pipe would stay open as long as the server that it starts
        done = subprocess.run(command, check=False, cwd=cwd, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        if done.returncode:
            output.seek(0)
            raise Unavailable(f"{Path(command[0]).name} failed: {output.read().decode(errors='replace')[-400:]}")
