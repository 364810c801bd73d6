"""The Spark session of a command: started, kept quiet, and ended with it.

Law: what the JVM prints goes to a file, and never into the rows. The file is removed if all went well, and named if
Spark failed. What Spark raises leaves here as one message.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import typer

from tamis.cli.failures import SparkFailure, explained, not_started
from tamis.cli.progress import starting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["TIME_ZONE", "Session"]

TIME_ZONE: Final = "spark.sql.session.timeZone"
QUIET: Final = {
    "spark.ui.enabled": "false",  # nobody looks at the pages of a command that is over in a minute
    "spark.ui.showConsoleProgress": "false",  # it would go to the log: the command shows its own
}
"""What a session is started with, unless --conf says otherwise."""
CONNECT_PORT: Final = 15002
REACH_SECONDS: Final = 10.0
"""How long to wait for a Connect server to answer at all. PySpark itself would try for ten minutes."""
LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging")
"""PySpark's own: each error that it raises, it also prints, with its whole Java trace."""
_OUTPUT: Final = (1, 2)


@dataclass(frozen=True, slots=True)
class Session:
    """Which Spark a command runs on."""

    master: str
    remote: str | None
    conf: dict[str, str]

    @classmethod
    def of(
        cls,
        master: str | None,
        remote: str | None,
        conf: Sequence[str] = (),
        time_zone: str | None = None,
        *,
        case_sensitive: bool = False,
    ) -> Session:
        """As the options say it; BadParameter for what makes no sense, BindError for an unknown time zone."""
        if master is not None and remote is not None:
            raise typer.BadParameter("give only one of them", param_hint="--master, --remote")
        settings = dict(_pair(text) for text in conf)
        if time_zone is not None:
            from tamis.predicate.compare.zones import find_zone

            find_zone(time_zone)
            settings[TIME_ZONE] = time_zone
        if case_sensitive:
            settings["spark.sql.caseSensitive"] = "true"
        if master is None:
            remote = remote or os.environ.get("SPARK_REMOTE")
        return cls(master or settings.get("spark.master", "local[*]"), remote, settings)

    @property
    def shares_files(self) -> bool:
        """Whether the executors run in this machine, and see its files as this process does."""
        return (self.remote or self.master).startswith("local")

    @contextmanager
    def started(self) -> Iterator[SparkSession]:
        """The session, for the time of a block. SparkFailure tells the reason, and where Spark's output is."""
        import tamis.spark  # noqa: F401 - MissingDependency if there is no PySpark

        descriptor, name = tempfile.mkstemp(prefix="tamis-spark-", suffix=".log")
        os.close(descriptor)
        log, keep = Path(name), False
        spark = None
        try:
            spark = self._start(log)
            with _interruptible():
                yield spark
        except Exception as error:
            failure = explained(error, log)
            keep = isinstance(failure, SparkFailure) and failure.log is not None
            if failure is error:
                raise
            raise failure from error
        finally:
            if spark is not None:
                with _printing_to(log), suppress(Exception):  # a JVM that has died cannot be stopped, and need not
                    spark.stop()
            if not keep:
                log.unlink(missing_ok=True)

    def _start(self, log: Path) -> SparkSession:
        from tamis.spark.session import checked

        embedded = self.remote is None or self.remote.startswith("local")
        if embedded:
            _require_java()
        else:
            _reach(self.remote or "")
        self._set_environment()
        try:
            what = "starting Spark" if embedded else "connecting to Spark"
            with _uninterrupted(), starting(what), _printing_to(log):
                return checked(self._built(embedded=embedded))
        except Exception as error:
            raise not_started(error, log) from error

    def _built(self, *, embedded: bool) -> SparkSession:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.appName("tamis")
        builder = builder.master(self.master) if self.remote is None else builder.remote(self.remote)
        settings = {**(QUIET if embedded else {}), **self.conf}
        settings.pop("spark.master", None)
        for name, value in settings.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()

    def _set_environment(self) -> None:
        """What this process and the JVM, which inherits it, should know before either starts."""
        if self.remote is None or os.environ.get("SPARK_REMOTE", self.remote) != self.remote:
            os.environ.pop("SPARK_REMOTE", None)  # an option is stronger than the environment
        if self.remote is not None:
            os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        if self.shares_files:
            os.environ["PYSPARK_PYTHON"] = sys.executable  # another Python may lack pyarrow
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # nobody else has to reach it
        else:
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        from pyspark.logger import PySparkLogger

        for name in LOGGERS:
            PySparkLogger.getLogger(name).disabled = True


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Spark finish its start before Ctrl-C counts: a JVM whose start is broken off lives on.

    It looks for a folder that PySpark has removed, fails, and waits for ever. A second Ctrl-C counts at once, and
    ends the processes that this one has started.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = 0

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked += 1
        if asked > 1:
            for child in _children():
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        _end_jvm()
        raise KeyboardInterrupt


def _end_jvm() -> None:
    """Stop a session that nobody waits for any more; its JVM ends with this process."""
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    if spark is not None:
        spark.stop()


def _children() -> list[int]:
    """The processes that this one has started, where the system tells."""
    processes: list[int] = []
    for task in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            processes += map(int, task.read_text(encoding="ascii").split())
    return processes


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C be a KeyboardInterrupt: PySpark's own handler calls the JVM first, amid a call that is under way."""
    asked = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        signal.default_int_handler(number, frame)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except Exception as error:
        if asked:
            raise KeyboardInterrupt from error  # py4j makes an error of its own of it
        raise
    finally:
        signal.signal(signal.SIGINT, before)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name.strip() or not equals:
        raise typer.BadParameter(f"{text!r} is not a setting: write name=value", param_hint="--conf")
    return name.strip(), value


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        where = f"in JAVA_HOME, which is {home}" if home else "on the PATH"
        raise SparkFailure(
            f"Spark needs Java 17 or newer, and there is no java {where}. Install a JDK (Debian: "
            "openjdk-17-jre-headless), set JAVA_HOME, or connect to a running Spark with --remote sc://host:port.",
            reason="no Java",
            log=None,
        )


def _reach(remote: str) -> None:
    """SparkFailure if nobody answers there."""
    try:
        url = urlsplit(remote)
        host, port = url.hostname, url.port or CONNECT_PORT
    except ValueError:
        host = port = None
    if not remote.startswith("sc://") or host is None or port is None:
        raise typer.BadParameter("write sc://host:port, as Spark Connect has it", param_hint="--remote")
    try:
        socket.create_connection((host, port), REACH_SECONDS).close()
    except OSError as error:
        raise SparkFailure(
            f"no Spark Connect server answers at {host}:{port}: {error.strerror or error}. "
            "Start one there, or leave out --remote and SPARK_REMOTE to run Spark here.",
            reason=str(error),
            log=None,
        ) from error


@contextmanager
def _printing_to(log: Path) -> Iterator[None]:
    """Send what this process, and the JVM that it starts meanwhile, prints to a file. The JVM keeps doing so."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(descriptor) for descriptor in _OUTPUT]
    with log.open("ab") as file:
        try:
            for descriptor in _OUTPUT:
                os.dup2(file.fileno(), descriptor)
            yield
        finally:
            for descriptor, old in zip(_OUTPUT, kept, strict=True):
                os.dup2(old, descriptor)
                os.close(old)
