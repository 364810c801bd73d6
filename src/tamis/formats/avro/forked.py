"""Decoding in a process that was forked from one that had decoded before.

DataFusion's threads stay behind in the process that was forked, and its runtime waits for them for ever. A forked
process, a worker of a multiprocessing pool above all, hands its blocks to a fresh interpreter of its own, which
decodes them the usual way and ends with it. Law: what decodes in the first process decodes to the same in a fork.
"""

from __future__ import annotations

import json
import os
import select
import struct
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from typing import IO, Final

import pyarrow as pa

from tamis.errors import ForkedProcessError, MissingDependency
from tamis.formats.avro import decoder
from tamis.formats.avro.decoder import DecodeError
from tamis.formats.avro.sheet import Sheet, new_sheet

__all__ = ["decode", "serve"]

_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from tamis.formats.avro.forked import serve; serve(int(sys.argv[1]))"
)
_READY: Final = b"tamis decodes\n"
_START: Final = 120.0
"""Seconds for an interpreter to start: a hundred times what it takes."""
_SLACK: Final = 30.0
"""Seconds beyond the decoder's own patience, after which its process is given up."""
_ASKED: Final = struct.Struct("<QQQQ")
"""Lengths of the schema and of the blocks, the rows of a batch, and most rows."""
_ANSWER: Final = struct.Struct("<cQ")
"""What kind of answer follows, and its length."""
_TABLE, _ERROR, _MISSING = b"t", b"e", b"m"
_SHOWN: Final = 400


def decode(sheet: Sheet, schema: pa.Schema, batch_rows: int, most: int) -> pa.Table:
    """The columns of schema from an Avro file, in a process that can decode."""
    if not _STATE.forked:
        return decoder.decode(sheet.path, schema, batch_rows, most)
    with _STATE.lock:
        if _STATE.child is None:
            _STATE.child = _Child()
        try:
            return _STATE.child.decode(sheet.content(), schema, batch_rows, most)
        except ForkedProcessError:
            # It has ended, or is taken for dead: the next file gets a new one.
            _STATE.child.end()
            _STATE.child = None
            raise


class _State:
    """What a process must know of its past. A fork gets a new lock, for nobody is left who would open the old one."""

    def __init__(self) -> None:
        self.forked = False
        self.child: _Child | None = None
        self.lock = threading.Lock()

    def after_fork(self) -> None:
        # Also somebody else's use of datafusion starts the threads that a fork lacks.
        self.forked = self.forked or decoder.used() or "datafusion" in sys.modules
        self.lock = threading.Lock()
        decoder.renew_lock()
        child, self.child = self.child, None
        if child is not None:
            child.forget()


_STATE: Final = _State()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_STATE.after_fork)


class _Child:
    """An interpreter that decodes what it is sent, one file after the other, until its owner ends."""

    def __init__(self) -> None:
        answers, theirs = os.pipe()
        self._answers: IO[bytes] = open(  # noqa: PTH123, SIM115 - a pipe, as long as the process
            answers, "rb", buffering=0
        )
        self._said: IO[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._said = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, on our own program
                [_interpreter(), "-c", _PROGRAM, str(theirs), json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                pass_fds=(theirs,),
            )
        except (OSError, TypeError, ValueError) as error:
            self._close()
            raise _failed(str(error)) from error
        finally:
            os.close(theirs)
        try:
            self._read(len(_READY), _START)
        except ForkedProcessError:
            self.end()
            raise

    def decode(self, blocks: bytes, schema: pa.Schema, batch_rows: int, most: int) -> pa.Table:
        written = schema.serialize()
        size = len(blocks)
        assert self._process is not None  # noqa: S101 - for the type checker: it was started
        asked = self._process.stdin
        assert asked is not None  # noqa: S101 - as above: a pipe
        try:
            asked.write(_ASKED.pack(written.size, size, batch_rows, most))
            asked.write(written)
            asked.write(blocks)
            asked.flush()
        except OSError as error:
            raise _failed(self._last_words() or str(error)) from error
        kind, length = _ANSWER.unpack(self._read(_ANSWER.size, decoder.patience(size) + _SLACK))
        body = self._read(length, _SLACK)
        if kind == _TABLE:
            return pa.ipc.open_stream(body).read_all()
        text = body.decode(errors="replace")
        if kind == _MISSING:
            raise MissingDependency(text, package="datafusion", extra=None)
        raise DecodeError(text)

    def _read(self, size: int, seconds: float) -> bytes:
        """So many bytes, each part of which comes within so many seconds."""
        found = bytearray()
        poll = select.poll()
        poll.register(self._answers, select.POLLIN)
        while len(found) < size:
            part = self._answers.read(size - len(found)) if poll.poll(seconds * 1000) else b""
            if not part:
                raise _failed(self._last_words() or f"it did not answer within {seconds:.0f} s")
            found += part
        return bytes(found)

    def _last_words(self) -> str:
        if self._said is None:
            return ""
        self._said.seek(0)
        return self._said.read().decode(errors="replace").strip()[-_SHOWN:]

    def end(self) -> None:
        """Stop it. It is our own process, and holds nothing that would be lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._close()

    def forget(self) -> None:
        """In a fork: it is the parent's, and ends when the parent closes its pipe. Ours must not keep it open."""
        if self._process is not None:
            self._process.returncode = 0
        self._close()

    def _close(self) -> None:
        asked = None if self._process is None else self._process.stdin
        for file in (asked, self._answers, self._said):
            with suppress(OSError):  # what was not sent is not wanted any more
                if file is not None:
                    file.close()


def _interpreter() -> str:
    """Whoever embeds Python has told multiprocessing where an interpreter is."""
    spawn = sys.modules.get("multiprocessing.spawn")
    return str(os.fsdecode(spawn.get_executable() or "")) if spawn is not None else sys.executable


def _failed(reason: str) -> ForkedProcessError:
    return ForkedProcessError(
        f"cannot read metadata in process {os.getpid()}: it was forked from one that had read metadata already, "
        f"whose threads a fork does not have, and no interpreter could be started to read for it ({reason}). "
        "Start worker processes afresh: call multiprocessing.set_start_method('spawn') before they are made.",
        pid=os.getpid(),
        reason=reason,
    )


def serve(answer: int) -> None:
    """Decode what comes in on standard input until it ends. The program of the fresh interpreter."""
    incoming = sys.stdin.buffer
    with open(answer, "wb") as answers:
        answers.write(_READY)
        answers.flush()
        while len(asked := incoming.read(_ASKED.size)) == _ASKED.size:
            width, size, batch_rows, most = _ASKED.unpack(asked)
            schema = pa.ipc.read_schema(pa.py_buffer(incoming.read(width)))
            kind, body = _answered(incoming.read(size), schema, batch_rows, most)
            answers.write(_ANSWER.pack(kind, len(body)))
            answers.write(body)
            answers.flush()


def _answered(blocks: bytes, schema: pa.Schema, batch_rows: int, most: int) -> tuple[bytes, bytes | pa.Buffer]:
    try:
        with new_sheet() as sheet:
            sheet.write(blocks)
            sheet.finish()
            found = decoder.decode(sheet.path, schema, batch_rows, most)
    except DecodeError as error:
        return _ERROR, str(error).encode()
    except MissingDependency as error:
        return _MISSING, str(error).encode()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, found.schema) as stream:
        stream.write_table(found)
    return _TABLE, memoryview(sink.getvalue())
