"""DataFusion's Avro reader: blocks in, Arrow out.

Only its native module is loaded. The Python package around it imports pandas and takes more than a second; the
native module alone takes a few milliseconds.

The reader does not end on a block that holds more than the records that it announces: it is given none such.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pyarrow as pa

from tamis.errors import MissingDependency

__all__ = ["DecodeError", "decode", "patience", "renew_lock", "used", "version"]

_NATIVE: Final = "datafusion._internal"
_LOADING: Final = [threading.Lock()]
"""In a list, so that a forked process can have one that nobody holds."""
_PURGE: Final = "MIMALLOC_PURGE_DELAY"
_PURGE_MILLIS: Final = "1000"
_PATIENCE: Final = 10.0
_PATIENCE_PER_BYTE: Final = 2e-6
"""Seconds to wait, and more for each byte: fifty times what a sound file takes on a slow machine."""


_USED: Final = threading.Event()


def used() -> bool:
    """Whether this process, or the one that it was forked from, has ever decoded."""
    return _USED.is_set()


def renew_lock() -> None:
    """In a fork: forget who was loading the native module."""
    _LOADING[0] = threading.Lock()


def patience(size: int) -> float:
    """Seconds to wait for so many bytes to be decoded in another process."""
    return _PATIENCE + size * _PATIENCE_PER_BYTE


class DecodeError(Exception):
    """The decoder did not understand the blocks; never shown without the file's name."""


def decode(path: str, schema: pa.Schema, batch_rows: int, most: int) -> pa.Table:
    """The columns of schema from an Avro file; other columns are skipped.

    It comes in batches of so many rows, and no batch is begun once there are more rows than most. The interpreter's
    lock is released meanwhile, so that several threads decode at once.
    """
    try:
        stream = _session(batch_rows).read_avro(path, schema, [], "").execute_stream()
        return pa.Table.from_batches(_up_to(stream, most), schema)
    except MissingDependency:
        raise
    except BaseException as error:
        # A panic of the native code is no Exception.
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise DecodeError(_first_line(error)) from error
        raise


def _up_to(stream: Any, most: int) -> Iterator[pa.RecordBatch]:  # noqa: ANN401 - the native module has no types
    rows = 0
    while rows <= most:
        try:
            batch = stream.next().to_pyarrow()
        except StopIteration:
            return
        rows += batch.num_rows
        yield batch


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0].removeprefix("DataFusion error: ")


def _session(batch_rows: int) -> Any:  # noqa: ANN401 - the native module has no types
    native = _native()
    _USED.set()
    settings = {
        "datafusion.execution.batch_size": str(batch_rows),
        # One manifest is one task; tasks run side by side.
        "datafusion.execution.target_partitions": "1",
    }
    return native.SessionContext(native.SessionConfig(settings))


def _native() -> ModuleType:
    """The native module alone; through its package if it does not stand where it should."""
    with _LOADING[0]:
        return sys.modules.get(_NATIVE) or _load()


def version() -> str:
    """Which decoder this is: its release, and size and time of its native module; empty if it is not installed."""
    package = find_spec("datafusion")
    files = []
    for folder in (package.submodule_search_locations or ()) if package is not None else ():
        files += [path.name for path in sorted(Path(folder).parent.glob("datafusion-*.dist-info"))]
        for path in sorted(Path(folder).glob("_internal*")):
            status = path.stat()
            files.append(f"{path.name} {status.st_size} {status.st_mtime_ns}")
    return ", ".join(files)


@contextmanager
def _memory_kept() -> Iterator[None]:
    """Have the native module's own allocator keep what is freed for a second, not ten milliseconds.

    Files are decoded one after the other into memory of the same size. Given back to the system in between, it has to
    be made and cleared anew for each: a third of the time of decoding. The allocator reads its settings when it is
    loaded, and no other that is in the process reads this one then.
    """
    if _PURGE in os.environ:
        yield
        return
    os.environ[_PURGE] = _PURGE_MILLIS
    try:
        yield
    finally:
        del os.environ[_PURGE]


def _load() -> ModuleType:
    package = find_spec("datafusion")
    if package is None:
        raise MissingDependency(
            "reading Avro metadata needs 'datafusion': pip install 'tamis'", package="datafusion", extra=None
        )
    for folder in package.submodule_search_locations or ():
        for suffix in EXTENSION_SUFFIXES:
            path = Path(folder, f"_internal{suffix}")
            spec = spec_from_file_location(_NATIVE, path) if path.exists() else None
            if spec is not None and spec.loader is not None:
                with _memory_kept():
                    module = module_from_spec(spec)
                # It may be initialised once in a process: a later `import datafusion` must find this one.
                sys.modules[_NATIVE] = module
                try:
                    spec.loader.exec_module(module)
                except ImportError:
                    del sys.modules[_NATIVE]
                    raise
                return module
    return importlib.import_module(_NATIVE)
