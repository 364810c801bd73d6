"""Work in a process of its own on an executor, with packages that the Python worker there cannot take up any more.

Batches go in and come out as Arrow streams. This module runs on executors before anything was
brought there: it imports the standard library and pyarrow.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from threading import Thread
from typing import IO, Final

import pyarrow as pa

__all__ = ["in_child"]

_PROGRAM: Final = "from tamis.spark.child import main; main()"
_LENGTH: Final = 8
_SHOWN: Final = 4000
"""Most characters of a failed process's last words."""


def in_child(pickled: bytes, batches: Iterable[pa.RecordBatch], folders: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The batches that the pickled work makes of these, computed where the folders are on the path."""
    incoming = iter(batches)
    first = next(incoming, None)
    if first is None:
        return
    path = os.pathsep.join([*(str(Path(one).resolve()) for one in sys.path if one), *folders])
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(  # noqa: S603 - this interpreter, on our own program
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert process.stdin is not None  # noqa: S101 - for the type checker: both are pipes
        assert process.stdout is not None  # noqa: S101 - as above
        trouble: list[BaseException] = []
        feeder = Thread(target=_feed, args=(process.stdin, pickled, first, incoming, trouble), daemon=True)
        feeder.start()
        try:
            if process.stdout.peek(1):  # type: ignore[attr-defined] # a buffered reader
                yield from pa.ipc.open_stream(process.stdout)
        except pa.ArrowException as error:
            trouble.append(error)
        finally:
            process.stdout.close()
            code = process.wait()
            feeder.join()
        if code:
            errors.seek(0)
            raise RuntimeError(errors.read().decode(errors="replace")[-_SHOWN:])
        if trouble:
            raise trouble[0]


def _feed(
    pipe: IO[bytes],
    pickled: bytes,
    first: pa.RecordBatch,
    more: Iterator[pa.RecordBatch],
    trouble: list[BaseException],
) -> None:
    try:
        with pipe:
            pipe.write(len(pickled).to_bytes(_LENGTH, "big") + pickled)
            with pa.ipc.new_stream(pipe, first.schema) as stream:
                stream.write_batch(first)
                for batch in more:
                    stream.write_batch(batch)
    except BrokenPipeError:
        pass  # the process has ended: its code says whether it had all that it wanted
    except BaseException as error:  # noqa: BLE001 - raised where it is waited for
        trouble.append(error)


def main() -> None:
    """The process: work from standard input, batches to standard output."""
    # Whatever prints must not print between the batches.
    with os.fdopen(os.dup(1), "wb") as out, os.fdopen(0, "rb", closefd=False) as source:
        os.dup2(2, 1)
        function, arguments = pickle.loads(source.read(int.from_bytes(source.read(_LENGTH), "big")))  # noqa: S301 - ours
        stream = None
        for batch in function(iter(pa.ipc.open_stream(source)), *arguments):
            stream = stream or pa.ipc.new_stream(out, batch.schema)
            stream.write_batch(batch)
        if stream is not None:
            stream.close()
