"""Kinds of Spark, to run one script on: classic and local, Spark Connect, a standalone cluster, a Connect server.

A process holds one SparkContext and one kind of session, so each kind is a process of its own. The executors of the
standalone cluster run a Python that has pyarrow and numpy, no more: what else tamis needs there, it has to bring.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.request import urlopen

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["KINDS", "Cluster", "Unavailable", "bare_python", "cluster", "connect_server", "open_session", "run"]

KINDS: Final = ("classic", "standalone", "server")
"""There is "connect" as well, a server that the client starts itself: one of its own shows the same, and more."""
CLIENT: Final = "pyspark-client==4.1.3"
"""What a client of the server has of PySpark: no JVM, no py4j. Not every release of it is to be had."""
FOREIGN: Final = ("pyspark", "py4j", "_tamis", "tamis", "__editable__", "_virtualenv", "distutils-precedence")
"""What a client does not take over from the tests' own Python."""
PATIENCE: Final = 60.0
"""Seconds to wait for a master and its workers: they take five on an idle machine."""
_ROOT: Final = Path(__file__).parents[2]
_PATH: Final = os.pathsep.join([str(_ROOT / "src"), str(_ROOT)])
_MASTER: Final = "TAMIS_TEST_MASTER"
_KIND: Final = "TAMIS_TEST_KIND"
_HOME: Final = "TAMIS_TEST_HOME"


class Unavailable(RuntimeError):
    """A kind of Spark that cannot be had on this machine, and why."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A kind of Spark that is ready to take a script."""

    kind: str
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    python: str = sys.executable
    """What runs the script."""


@contextmanager
def cluster(kind: str, folder: Path, *conf: str) -> Iterator[Cluster]:
    """The kind of Spark; whatever was started for it is stopped afterwards. conf is for a Connect server."""
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "server":
        python = client_python(folder / "client")
        with connect_server(folder, *conf) as remote:
            # No java on its path.
            yield Cluster(kind, folder, {_MASTER: remote, "PATH": str(python.parent), "JAVA_HOME": ""}, str(python))
        return
    if kind != "standalone":
        yield Cluster(kind, folder, {"PYSPARK_PYTHON": sys.executable})
        return
    python = bare_python(folder / "bare")
    with _standalone(folder) as master:
        yield Cluster(kind, folder, {_MASTER: master, "PYSPARK_PYTHON": str(python)})


def run(on: Cluster, script: Path, *arguments: str, timeout: float = 500.0, **environment: str) -> Any:  # noqa: ANN401 - JSON
    """What the script prints as its last line, as JSON. It opens its session by open_session."""
    settings = {**os.environ, "PYTHONPATH": _PATH, "TAMIS_CACHE": "off", _KIND: on.kind, _HOME: str(on.folder)}
    settings.pop("SPARK_REMOTE", None)
    log, printed = (on.folder / f"{script.stem}.{kind}" for kind in ("log", "json"))
    # Into files: a JVM that lives a little longer would hold a pipe open.
    with log.open("ab") as errors, printed.open("wb") as output:
        done = subprocess.run(
            [on.python, str(script), *arguments],
            env=settings | dict(on.environment) | environment,
            stdout=output,
            stderr=errors,
            timeout=timeout,
            check=False,
        )
    if done.returncode:
        raise AssertionError(f"{script.name} failed on {on.kind}; the end of {log}:\n{log.read_text()[-4000:]}")
    return json.loads(printed.read_text().splitlines()[-1])


def open_session() -> SparkSession:
    """The session of the kind that `run` has named, inside the script that it runs."""
    from pyspark.sql import SparkSession

    kind, home = os.environ[_KIND], Path(os.environ[_HOME])
    if kind == "server":
        return SparkSession.builder.remote(os.environ[_MASTER]).getOrCreate()
    builder = (
        SparkSession.builder.appName("tamis clusters")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
    )
    if kind == "connect":
        from pyspark.sql.connect.client import DefaultChannelBuilder

        # A local server is looked for on one fixed port: two runs on one machine would meet there.
        port = _free_port()
        DefaultChannelBuilder.default_port = staticmethod(lambda: port)  # type: ignore[method-assign]
        builder = builder.config("spark.connect.grpc.binding.port", str(port))
        return builder.remote("local[2]").getOrCreate()
    return builder.master(os.environ.get(_MASTER, "local[2]")).getOrCreate()


def bare_python(folder: Path, packages: Sequence[str] = ("pyarrow", "numpy")) -> Path:
    """A Python of the tests' own version with these packages in it, and nothing else."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        (target,) = folder.glob("lib/python*/site-packages")
        for name in packages:
            installed = Path(import_module(name).__file__ or "").parent
            # Wheels put the libraries that they bring into a folder beside the package.
            for part in (installed, installed.with_name(f"{name}.libs")):
                if part.exists():
                    (target / part.name).symlink_to(part, target_is_directory=True)
    return python


def client_python(folder: Path) -> Path:
    """A Python with all that the tests' own has, but of PySpark the client alone."""
    client, python = _client(), folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        (target,) = folder.glob("lib/python*/site-packages")
        own = Path(pa.__file__).parents[1]
        for part in (*client.iterdir(), *(one for one in own.iterdir() if not one.name.startswith(FOREIGN))):
            if part.suffix != ".pth" and part.name != "__pycache__" and not (target / part.name).exists():
                (target / part.name).symlink_to(part, target_is_directory=part.is_dir())
    return python


def _client() -> Path:
    """PySpark's client, installed once into the user's cache; Unavailable if it cannot be had."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tamis-tests"
    folder = cache / f"{CLIENT}-py{sys.version_info[0]}{sys.version_info[1]}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as work:
            target = Path(work) / "client"
            command = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--no-deps"]
            where = ["--python", sys.executable, "--target", str(target)]
            done = subprocess.run([*command, *where, CLIENT], check=False, capture_output=True, text=True)
            if done.returncode:
                raise Unavailable(f"{CLIENT} cannot be installed: {done.stderr.strip()[-300:]}")
            if not folder.is_dir():
                target.rename(folder)
    return folder


@contextmanager
def connect_server(folder: Path, *conf: str) -> Iterator[str]:
    """The URL of a Connect server in a process of its own, as sbin/start-connect-server.sh starts it."""
    import pyspark

    port = _free_port()
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    # The pip package has no such script: it would call this one with these arguments.
    script = Path(pyspark.__file__).parent / "sbin" / "spark-daemon.sh"
    class_ = "org.apache.spark.sql.connect.service.SparkConnectServer"
    told = [
        part for one in (*(f"{key}={value}" for key, value in settings.items()), *conf) for part in ("--conf", one)
    ]
    environment = os.environ | {
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOG_DIR": str(folder / "logs"),
        "SPARK_PID_DIR": str(folder),
    }
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen(
            ["bash", str(script), "submit", class_, "1", "--name", "tamis tests", *told],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            _until(lambda: _listens(port), folder / "server.log")
            yield f"sc://127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, signal.SIGTERM)  # the script, and the JVM that it has started
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def _standalone(folder: Path) -> Iterator[str]:
    """The URL of a master that has two workers with a core each."""
    port, page = _free_port(), _free_port()
    url = f"spark://127.0.0.1:{port}"
    master = ("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page))
    one = ("worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g")
    with ExitStack() as started:
        started.enter_context(_daemon(folder, "master", *master))
        _until(lambda: _workers(page) is not None, folder / "master.log")
        for name in ("worker1", "worker2"):
            work = ("--work-dir", str(folder / name))
            started.enter_context(_daemon(folder, name, *one, *work, url))
        _until(lambda: _workers(page) == 2, folder / "master.log")
        yield url


@contextmanager
def _daemon(folder: Path, name: str, class_: str, *arguments: str) -> Iterator[None]:
    import pyspark

    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = os.environ | {
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [str(program), f"org.apache.spark.deploy.{class_}", *arguments],
            env=environment,
            stdout=log,
            stderr=log,
        )
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _workers(page: int) -> int | None:
    """How many workers the master knows; None if it does not answer yet."""
    try:
        with urlopen(f"http://127.0.0.1:{page}/json/", timeout=5) as answer:
            return int(json.load(answer)["aliveworkers"])
    except OSError:
        return None


def _until(ready: Any, log: Path) -> None:  # noqa: ANN401 - a question
    end = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > end:
            raise AssertionError(f"no cluster or server within {PATIENCE:.0f} s; see {log}")
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
