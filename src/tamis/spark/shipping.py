"""What executors need of tamis, brought to them once a session: they have Python and pyarrow, and no more of ours.

The package itself travels as a zip of its sources, which Spark puts on the path of its Python workers. numpy and
DataFusion's native module travel too, if a first small job finds that the executors lack them: as archives of what is
installed here, which fit only where the interpreter and the platform are the same. Law: what is there already is
used, never replaced; what can neither be found nor brought is an ExecutorError that names its remedy.

This module runs on both sides, so it imports only what every executor has: the standard library, pyarrow and PySpark.
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
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import SparkFiles

from tamis.errors import ExecutorError, TamisError
from tamis.spark.child import in_child
from tamis.spark.session import checked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Shipped", "Work", "on_executors", "ship"]

Work = Callable[..., Iterator[pa.RecordBatch]]
"""A function of a module of tamis, not a lambda: it takes batches and then its arguments, and gives batches."""

NUMPY: Final = "numpy"
DATAFUSION: Final = "datafusion"
OLDEST: Final = {"pyarrow": (19, 0, 1), NUMPY: (1, 26)}
"""As pyproject.toml has them."""
NO_PYARROW: Final = (
    "executors have no pyarrow: install it there, or set PYSPARK_PYTHON / spark.pyspark.python to an interpreter "
    "that has it."
)
_UNNEEDED: Final = frozenset({"tests", "__pycache__", "include"})
_SOURCES: Final = Path(__file__).parents[1]
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The date of every file in an archive: the same content makes the same archive."""
_MODULE: Final = "No module named "

_lock = RLock()
_shipped: WeakKeyDictionary[SparkSession, _Luggage] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class _Luggage:
    """What was brought beside tamis: the names of the unpacked archives, and whether numpy is among them."""

    archives: tuple[str, ...] = ()
    numpy: bool = False


@dataclass(frozen=True, slots=True)
class Shipped:
    """Work with its arguments, as mapInArrow takes it. Nothing of it is unpickled before its packages are found.

    pyarrow looks for numpy once, when it is loaded, and a Python worker may have loaded it for somebody else long
    ago. So where numpy had to be brought, the work runs in a process of its own.
    """

    pickled: bytes
    archives: tuple[str, ...] = ()
    own_process: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The work's batches, on an executor."""
        folders = _unpacked(self.archives)
        if self.own_process:
            yield from in_child(self.pickled, batches, folders)
            return
        sys.path += [folder for folder in folders if folder not in sys.path]
        function, arguments = pickle.loads(self.pickled)  # noqa: S301 - as Spark does with every function
        yield from function(batches, *arguments)


def ship(spark: SparkSession) -> None:
    """Make tamis importable on the executors; nothing if this session has it already."""
    _ship(spark)


def on_executors(spark: SparkSession, work: Work, *arguments: object) -> Shipped:
    """The work, ready for mapInArrow, with whatever it needs on the way to the executors."""
    luggage = _ship(spark)
    return Shipped(pickle.dumps((work, arguments), protocol=5), luggage.archives, luggage.numpy)


def _ship(spark: SparkSession) -> _Luggage:
    with _lock:
        known = _shipped.get(spark)
        if known is None:
            checked(spark)
            spark.addArtifacts(str(_package()), pyfile=True)
            known = _shipped[spark] = _lacking(spark, _probe(spark))
        return known


def _lacking(spark: SparkSession, found: list[dict[str, Any]]) -> _Luggage:
    """Bring what any of the probed executors lacks."""
    for name, oldest in OLDEST.items():
        for one in found:
            if one[name] is not None and _version(one[name]) < oldest:
                raise _too_old(name, one[name], ".".join(map(str, oldest)))
    lacking = [name for name in (NUMPY, DATAFUSION) if any(one[name] is None for one in found)]
    here = _about()
    for one in found if lacking else ():
        if one["like"] != here["like"]:
            names = " and ".join(lacking)
            reason = f"they run {' '.join(one['like'])}, and this process {' '.join(here['like'])}"
            raise ExecutorError(
                f"executors have no {names}, and what is installed here does not fit them: {reason}. Install {names} "
                "there, or run the driver on the executors' Python and platform.",
                needs=names,
                reason=reason,
            )
    archives = []
    for name in lacking:
        archive = _archive(name)
        spark.addArtifacts(f"{archive}#{archive.stem}", archive=True)
        archives.append(archive.stem)
    return _Luggage(tuple(archives), NUMPY in lacking)


def _too_old(name: str, version: str, oldest: str) -> ExecutorError:
    return ExecutorError(
        f"executors have {name} {version}; tamis needs {oldest} or newer there. Upgrade it, or set PYSPARK_PYTHON / "
        "spark.pyspark.python to an interpreter that has it.",
        needs=f"{name}>={oldest}",
        reason=f"{name} {version}",
    )


def _probe(spark: SparkSession) -> list[dict[str, Any]]:
    """What some executors have. Two tasks: a cluster's machines are mostly alike, and the work itself looks again."""
    frame = spark.range(0, 2, 1, 2).mapInArrow(_report, "found string")
    try:
        rows = frame.collect()
    except Exception as error:
        raise explained(error) from error
    return [json.loads(row[0]) for row in rows]


def explained(error: Exception) -> Exception:
    """The error of a job as the user should see it: a lack of the executors by name, all else as it is.

    py4j's errors and those of Spark Connect share no root but Exception, and all carry the worker's traceback.
    """
    if isinstance(error, TamisError):
        return error
    text = str(error)
    if f"{_MODULE}'pyarrow" in text or "PyArrow >= " in text or "[PACKAGE_NOT_INSTALLED] PyArrow" in text:
        return ExecutorError(NO_PYARROW, needs="pyarrow", reason="no module named pyarrow")
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
            f"an executor has no Python module {name!r}, though others may: install it there, or give all executors "
            "the same Python by PYSPARK_PYTHON / spark.pyspark.python.",
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
    found: dict[str, Any] = {"like": [*like, platform.libc_ver()[0] or "no glibc"]}
    for name in ("pyarrow", NUMPY):
        found[name] = str(__import__(name).__version__) if find_spec(name) is not None else None
    # Loading its package takes a second, and any version serves.
    found[DATAFUSION] = "" if find_spec(DATAFUSION) is not None else None
    return found


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3] if part.isdigit())


def _unpacked(archives: Iterable[str]) -> list[str]:
    """Where Spark has put the archives, on an executor."""
    if not archives:
        return []
    root = Path(SparkFiles.getRootDirectory()).resolve()
    return [str(root / name) for name in archives]


@cache
def _package() -> Path:
    """A zip of tamis's own sources."""
    return _zip("tamis", ((path, path.relative_to(_SOURCES.parent)) for path in _SOURCES.rglob("*.py")))


@cache
def _archive(name: str) -> Path:
    """A zip of what is installed here of a package: what it needs to run, and no more."""
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ExecutorError(f"neither the executors nor this process have {name}: install it.", needs=name, reason="")
    folder = Path(next(iter(spec.submodule_search_locations)))
    base = folder.parent
    if name == DATAFUSION:
        # Only the native module is used: the package around it imports pandas.
        files = list(folder.glob("_internal*"))
    else:
        # Wheels put the libraries that they bring into a folder beside the package.
        files = [*folder.rglob("*"), *(base / f"{name}.libs").rglob("*")]
    wanted = (path for path in files if path.is_file() and not _UNNEEDED & set(path.relative_to(base).parts))
    return _zip(f"tamis-{name}", ((path, path.relative_to(base)) for path in wanted))


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
