"""What executors need of tamis, brought to them once a session: they have Python, pyarrow and numpy, and no more.

The package itself travels as a zip of its sources, which Spark puts on the path of its Python workers. DataFusion's
native module travels too, if a first small job finds that the executors lack it: as an archive of what is installed
here, which fits only where the platform is the same. Law: what is there already is used, never replaced; what can
neither be found nor brought is an ExecutorError that names its remedy.

This module runs on both sides, so it imports only what every executor and every client has: the standard library and
pyarrow.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import platform
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import pyarrow as pa

from tamis.errors import ExecutorError, TamisError
from tamis.spark.archives import remember_archives
from tamis.spark.session import checked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Shipped", "Work", "on_executors", "ship"]

Work = Callable[..., Iterator[pa.RecordBatch]]
"""A function of a module of tamis, not a lambda: it takes batches and then its arguments, and gives batches."""

DATAFUSION: Final = "datafusion"
OLDEST: Final = {"pyarrow": (19, 0, 1), "numpy": (1, 26)}
"""As pyproject.toml has them."""
_SOURCES: Final = Path(__file__).parents[1]
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The date of every file in an archive: the same content makes the same archive."""
_MODULE: Final = "No module named "

_lock = RLock()
_shipped: WeakKeyDictionary[SparkSession, tuple[str, ...]] = WeakKeyDictionary()
"""The names of the unpacked archives that a session has beside tamis."""


@dataclass(frozen=True, slots=True)
class Shipped:
    """Work with its arguments, as mapInArrow takes it. Nothing of it is unpickled before its packages are found."""

    pickled: bytes = field(repr=False)
    """What writes files may have been told who enters their store."""
    archives: tuple[str, ...] = ()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The work's batches, on an executor."""
        sys.path += [folder for folder in _unpacked(self.archives) if folder not in sys.path]
        function, arguments = pickle.loads(self.pickled)  # noqa: S301 - as Spark does with every function
        yield from function(batches, *arguments)
        remember_archives()


def ship(spark: SparkSession) -> None:
    """Make tamis importable on the executors; nothing if this session has it already."""
    _ship(spark)


def on_executors(spark: SparkSession, work: Work, *arguments: object) -> Shipped:
    """The work, ready for mapInArrow, with whatever it needs on the way to the executors."""
    return Shipped(pickle.dumps((work, arguments), protocol=5), _ship(spark))


def _ship(spark: SparkSession) -> tuple[str, ...]:
    with _lock:
        known = _shipped.get(spark)
        if known is None:
            checked(spark)
            spark.addArtifacts(str(_package()), pyfile=True)
            known = _shipped[spark] = _lacking(spark, _probe(spark))
        return known


def _lacking(spark: SparkSession, reports: list[dict[str, Any]]) -> tuple[str, ...]:
    """Bring DataFusion if any of the probed executors lacks it; ExecutorError if they lack anything else."""
    for name, oldest in OLDEST.items():
        for report in reports:
            if report[name] is None or _version(report[name]) < oldest:
                raise lacks(name, report[name])
    here = _about()
    lacking = [report for report in reports if report[DATAFUSION] is None]
    for report in lacking:
        if report["like"] != here["like"]:
            reason = f"they run {' '.join(report['like'])}, and this process {' '.join(here['like'])}"
            raise ExecutorError(
                f"executors have no {DATAFUSION}, and what is installed here does not fit them: {reason}. "
                f"Install it there ({_remedy(DATAFUSION)}), or run the driver on the executors' Python and platform.",
                needs=DATAFUSION,
                reason=reason,
            )
    if not lacking:
        return ()
    archive = _datafusion()
    spark.addArtifacts(f"{archive}#{archive.stem}", archive=True)
    return (archive.stem,)


def lacks(name: str, version: str | None = None) -> ExecutorError:
    """The error for executors without a package that has to be there, or with one that is too old."""
    needs = f"{name}>={'.'.join(map(str, OLDEST[name]))}"
    has = f"executors have no {name}" if version is None else f"executors have {name} {version}"
    return ExecutorError(
        f"{has}; tamis needs {needs} there: {_remedy(needs)}.",
        needs=needs,
        reason=f"no module named {name}" if version is None else f"{name} {version}",
    )


def _remedy(needs: str) -> str:
    return (
        f"pip install '{needs}' on every worker node, or set PYSPARK_PYTHON / spark.pyspark.python to an interpreter "
        "that has it, or send an environment with spark.archives"
    )


def _probe(spark: SparkSession) -> list[dict[str, Any]]:
    """What some executors have. Two tasks: a cluster's machines are mostly alike, and the work itself looks again."""
    frame = spark.range(0, 2, 1, 2).mapInArrow(_report, "found string")
    try:
        rows = frame.collect()
    except Exception as error:
        found = explained(error)
        if found is not error:
            raise found from error
        raise
    return [json.loads(row[0]) for row in rows]


def explained(error: Exception) -> Exception:
    """The error of a job as the user should see it: a lack of the executors by name, all else as it is.

    py4j's errors and those of Spark Connect share no root but Exception, and all carry the worker's traceback.
    """
    if isinstance(error, TamisError):
        return error
    text = str(error)
    if f"{_MODULE}'pyarrow" in text or "PyArrow >= " in text or "[PACKAGE_NOT_INSTALLED] PyArrow" in text:
        return lacks("pyarrow")
    if "PYTHON_VERSION_MISMATCH" in text:
        return ExecutorError(
            "the executors' Python has another minor version than this one, "
            f"{platform.python_version()}: set PYSPARK_PYTHON / spark.pyspark.python to one that has the same.",
            needs=f"Python {sys.version_info[0]}.{sys.version_info[1]}",
            reason=text.partition("PYTHON_VERSION_MISMATCH] ")[2].partition("\n")[0],
        )
    if _MODULE in text:
        name = text.partition(_MODULE)[2].partition("\n")[0].strip().strip("'")
        return ExecutorError(
            f"an executor has no Python module {name!r}, though others may. Give all executors the same Python: "
            f"{_remedy(name)}.",
            needs=name,
            reason=f"no module named {name}",
        )
    return error


def _report(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On an executor: what there is. A row for each task."""
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"found": [json.dumps(_about())]})


def _about() -> dict[str, Any]:
    """What this process is and has."""
    like = [platform.python_implementation(), "{}.{}".format(*sys.version_info), sysconfig.get_platform()]
    facts: dict[str, Any] = {"like": [*like, platform.libc_ver()[0] or "no glibc"]}
    for name in OLDEST:
        facts[name] = str(__import__(name).__version__) if find_spec(name) is not None else None
    # Loading its package takes a second, and any version serves.
    facts[DATAFUSION] = "" if find_spec(DATAFUSION) is not None else None
    return facts


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3] if part.isdigit())


def _unpacked(archives: Iterable[str]) -> list[str]:
    """Where Spark has put the archives, on an executor."""
    if not archives:
        return []
    from pyspark import SparkFiles  # executors have it; a client of a Connect server need not

    root = Path(SparkFiles.getRootDirectory()).resolve()
    return [str(root / name) for name in archives]


@cache
def _package() -> Path:
    """A zip of tamis's own sources."""
    return _zip("tamis", ((path, path.relative_to(_SOURCES.parent)) for path in _SOURCES.rglob("*.py")))


@cache
def _datafusion() -> Path:
    """A zip of DataFusion's native module, as it is installed here: the package around it imports pandas."""
    spec = find_spec(DATAFUSION)
    if spec is None or not spec.submodule_search_locations:
        raise ExecutorError(
            f"neither the executors nor this process have {DATAFUSION}: install it.",
            needs=DATAFUSION,
            reason=f"no module named {DATAFUSION}",
        )
    folder = Path(next(iter(spec.submodule_search_locations)))
    return _zip(
        f"tamis-{DATAFUSION}", ((path, path.relative_to(folder.parent)) for path in folder.glob("_internal*"))
    )


def _zip(name: str, files: Iterable[tuple[Path, Path]]) -> Path:
    """An archive whose name tells its content: the same files have the same name, others another."""
    folder = _folder()
    unnamed = folder / f"{name}.part"
    with zipfile.ZipFile(unnamed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path, inside in sorted(files, key=lambda pair: pair[1].as_posix()):
            archive.writestr(
                zipfile.ZipInfo(inside.as_posix(), _EPOCH), path.read_bytes(), zipfile.ZIP_DEFLATED, compresslevel=1
            )
    with unnamed.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    return unnamed.rename(folder / f"{name}-{digest}.zip")


@cache
def _folder() -> Path:
    """Where archives lie until this process ends: Spark reads them when an executor asks."""
    keeper = tempfile.TemporaryDirectory(prefix="tamis-ship-", ignore_cleanup_errors=True)
    _kept.append(keeper)
    return Path(keeper.name)


_kept: Final[list[object]] = []
