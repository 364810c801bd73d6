"""A process that was forked from one that has planned plans the same: workers of a multiprocessing pool, above all.

Each test is a program of its own. pytest has threads, and what it has loaded, to hand down to a fork.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")

COMMON = """
import multiprocessing, os, threading
from tamis.formats.avro.container import parse_avro
from tamis.formats.avro.reading import decode_columns
from tests.making.manifests import avro_bytes

SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long", "field-id": 1}]}
FORK = multiprocessing.get_context("fork")


def numbers(count, announced=None):
    data = avro_bytes(SCHEMA, [{"n": number} for number in range(count)], codec="null")
    if announced is not None:
        begin = parse_avro("x", data).start
        data = data[:begin] + bytes([announced * 2]) + data[begin + 1 :]
    try:
        (found,) = decode_columns([parse_avro("a.avro", data)], [(1,)], {})
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return found.columns[(1,)].to_pylist()


def pooled(*arguments):
    with FORK.Pool(2) as pool:
        return pool.starmap(numbers, arguments, 1)

"""


def said(program: str) -> list[str]:
    """The lines that a program prints."""
    command = [sys.executable, "-W", "error", "-c", COMMON + program]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert not done.stderr
    return done.stdout.splitlines()


def test_pool_that_is_forked_after_a_plan_reads_the_same() -> None:
    """The workers used to wait for threads that a fork does not have, and then spoke of corruption."""
    program = "print(numbers(5)); print(pooled((5,), (3,), (2,), (1,))); print(numbers(2))"
    assert said(program) == ["[0, 1, 2, 3, 4]", "[[0, 1, 2, 3, 4], [0, 1, 2], [0, 1], [0]]", "[0, 1]"]


def test_damaged_file_is_the_same_error_in_a_fork_and_the_next_file_is_read() -> None:
    program = "print(numbers(3, 4)); print(*pooled((3, 4)), sep=chr(10)); print(pooled((3, 4), (2,), (1,))[1:])"
    first, second, rest = said(program)
    assert first.startswith("UnreadableMetadataError: cannot read a.avro")
    assert second == first
    assert rest == "[[0, 1], [0]]"


def test_fork_of_a_fork_reads_the_same() -> None:
    """Its parent's interpreter is not its own: two that speak to one would get each other's answers."""
    program = """
def both(count):
    mine = numbers(count)
    reading, writing = os.pipe()
    if not os.fork():
        os.write(writing, str(numbers(count + 1)).encode())
        os._exit(0)
    os.wait()
    return mine, os.read(reading, 1000).decode(), numbers(count + 2)

numbers(1)
print(both(1))
with FORK.Pool(1) as pool:
    print(pool.map(both, [1]))
"""
    assert said(program) == ["([0], '[0, 1]', [0, 1, 2])", "[([0], '[0, 1]', [0, 1, 2])]"]


def test_fork_after_somebody_elses_use_of_datafusion_reads_the_same() -> None:
    """The threads that a fork lacks are those of the library, whoever started them."""
    program = """
import datafusion, tempfile
with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    file.write("a\\n1\\n")
    file.flush()
    datafusion.SessionContext().read_csv(file.name).collect()

def known_and_read():
    return forked._STATE.forked, numbers(2)

from tamis.formats.avro import forked
with FORK.Pool(1) as pool:
    print(pool.apply(known_and_read))
"""
    # Some forks come through after a wait, so the answer alone does not tell.
    assert said(program) == ["(True, [0, 1])"]


def test_fork_before_any_plan_needs_no_other_interpreter() -> None:
    """Nothing was started that a fork could lack."""
    program = """
import tamis
multiprocessing.set_executable("/no/such/python")
print(pooled((2,)))
"""
    assert said(program) == ["[[0, 1]]"]


def test_fork_in_the_middle_of_somebody_elses_plan_reads_the_same() -> None:
    """A lock that another thread holds at that moment is held for ever in a fork."""
    program = """
from tamis.formats.avro import decoder, forked
with forked._STATE.lock, decoder._LOADING[0]:
    print(pooled((2,)))
"""
    assert said(program) == ["[[0, 1]]"]


def test_without_an_interpreter_the_error_names_the_way_out() -> None:
    """Where no process may be started, the user has to start the workers in another way."""
    program = """
numbers(1)
multiprocessing.set_executable("/no/such/python")
print(*pooled((2,), (1,)), sep=chr(10))
"""
    for line in said(program):
        assert line.startswith("ForkedProcessError: cannot read metadata in process")
        assert "multiprocessing.set_start_method('spawn')" in line


def test_interpreter_that_ends_at_once_is_an_error_with_its_last_words() -> None:
    program = """
numbers(1)
multiprocessing.set_executable("/bin/cat")
print(*pooled((2,)), sep=chr(10))
"""
    assert said(program)[0].startswith("ForkedProcessError: cannot read metadata in process")
