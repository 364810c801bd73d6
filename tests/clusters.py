"""Three kinds of Spark, to run one script on: classic and local, Spark Connect, a standalone master with two workers.

A process holds one SparkContext and one kind of session, so each kind is a process of its own. The executors of the
standalone cluster run a Python that has pyarrow and nothing else: what tamis needs there, it has to bring.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.request import urlopen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["KINDS", "Cluster", "bare_python", "cluster", "open_session", "run"]

KINDS: Final = ("classic", "connect", "standalone")
PATIENCE: Final = 60.0
"""Seconds to wait for a master and its workers: they take five on an idle machine."""
_ROOT: Final = Path(__file__).parents[1]
_MASTER: Final = "TAMIS_TEST_MASTER"
_KIND: Final = "TAMIS_TEST_KIND"
_HOME: Final = "TAMIS_TEST_HOME"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A kind of Spark that is ready to take a script."""

    kind: str
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def cluster(kind: str, folder: Path) -> Iterator[Cluster]:
    """The kind of Spark; whatever was started for it is stopped afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    if kind != "standalone":
        yield Cluster(kind, folder, {"PYSPARK_PYTHON": sys.executable})
        return
    python = bare_python(folder / "bare")
    with _standalone(folder) as master:
        yield Cluster(kind, folder, {_MASTER: master, "PYSPARK_PYTHON": str(python)})


def run(on: Cluster, script: Path, *arguments: str, timeout: float = 500.0, **environment: str) -> Any:  # noqa: ANN401 - JSON
    """What the script prints as its last line, as JSON. It opens its session by open_session."""
    settings = {**os.environ, "PYTHONPATH": str(_ROOT), "TAMIS_CACHE": "off", _KIND: on.kind, _HOME: str(on.folder)}
    settings.pop("SPARK_REMOTE", None)
    log, printed = (on.folder / f"{script.stem}.{kind}" for kind in ("log", "json"))
    # Into files: a JVM that lives a little longer would hold a pipe open.
    with log.open("ab") as errors, printed.open("wb") as output:
        done = subprocess.run(
            [sys.executable, str(script), *arguments],
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


def bare_python(folder: Path, *, pyarrow: bool = True) -> Path:
    """A Python of the tests' own version with pyarrow in it, if that is wanted, and nothing else."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        if pyarrow:
            import pyarrow as pa

            (target,) = folder.glob("lib/python*/site-packages")
            (target / "pyarrow").symlink_to(Path(pa.__file__).parent, target_is_directory=True)
    return python


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
            raise AssertionError(f"no standalone cluster within {PATIENCE:.0f} s; see {log}")
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
