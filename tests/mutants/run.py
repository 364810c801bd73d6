"""Break the source one line at a time, and see whether the tests notice: `python -m tests.mutants.run [NAME ...]`.

A mutant is a wrong line that a person might write, and the tests that have to fail on it. The source is copied and
the copy is broken; the working tree is never touched. A mutant that survives shows a rule that no test holds. One
whose line is gone from the source says nothing any more: it is stale, and a failure as well.
"""

from __future__ import annotations

import argparse
import compileall
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final, Literal

__all__ = ["LISTS", "Mutant", "StaleError", "load"]

ROOT: Final = Path(__file__).parents[2]
LISTS: Final = sorted(Path(__file__).parent.glob("*.toml"))
TIME_LIMIT: Final = 300.0
"""Seconds for the tests of one mutant. A break that never ends is noticed by that."""
WHOLE_LIMIT: Final = 3600.0
"""Seconds for the tests of all mutants together, before any is tried: some minutes, more on a busy machine."""
FAILED: Final = 1
"""Pytest's exit code if tests ran and some failed. All others but 0 mean that they did not run as they should."""

Fate = Literal["caught", "survived", "stale", "no test ran"]


class StaleError(Exception):
    """The mutant's line is not in the source, or is there more than once."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One break: in which file, which text becomes which, why that is wrong, and which tests must fail."""

    name: str
    file: str
    """Below src/tamis."""
    old: str
    """The text to break; it stands in the file exactly once."""
    new: str
    why: str
    """What goes wrong for a user."""
    tests: tuple[str, ...]
    """What pytest is asked to run."""

    def broken(self, source: str) -> str:
        """The file's text with the break in it; StaleError if it does not apply."""
        count = source.count(self.old)
        if count != 1 or self.old == self.new:
            there = "changes nothing" if count == 1 else f"stands {count} times"
            raise StaleError(f"{self.name}: {self.old!r} {there} in src/tamis/{self.file}")
        return source.replace(self.old, self.new)


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutant."""

    mutant: Mutant
    fate: Fate
    detail: str
    seconds: float = 0.0


def load(lists: Iterable[Path] = LISTS) -> list[Mutant]:
    """Every mutant of these lists. A TOML key that is missing or unknown is an error."""
    found = []
    for path in lists:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        found += [Mutant(**{**one, "tests": tuple(one["tests"])}) for one in document["mutant"]]
    return found


def run_tests(source: Path, tests: Sequence[str], limit: float = TIME_LIMIT) -> tuple[int, str]:
    """Pytest's exit code with this copy of the source, and the first failure; the code of failure if time is up."""
    environment = {**os.environ, "PYTHONPATH": str(source), "TAMIS_HYPOTHESIS_PROFILE": "test"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=no", *tests]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return FAILED, f"the time limit of {limit:g} s"
    failure = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return done.returncode, failure[1] if failure else (done.stdout + done.stderr).strip()[-300:]


def try_mutant(pristine: Path, mutant: Mutant) -> Result:
    """Break a copy of the source, and run the mutant's tests on it."""
    with tempfile.TemporaryDirectory(prefix="tamis-mutant-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(pristine, source)
        target = source / "tamis" / mutant.file
        try:
            text = mutant.broken(target.read_text(encoding="utf-8"))
        except (StaleError, OSError) as error:
            return Result(mutant, "stale", str(error))
        target.write_text(text, encoding="utf-8")
        for compiled in (target.parent / "__pycache__").glob(f"{target.stem}.*.pyc"):
            compiled.unlink()  # it may have the same size and second as the broken file
        start = perf_counter()
        code, detail = run_tests(source, mutant.tests)
        fates: dict[int, Fate] = {0: "survived", FAILED: "caught"}
        return Result(mutant, fates.get(code, "no test ran"), detail, perf_counter() - start)


def copied(folder: Path) -> Path:
    """A compiled copy of the source; a process that is told of it must take it, not the installed one."""
    source = folder / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    compileall.compile_dir(source, quiet=2)
    taken = subprocess.run(
        [sys.executable, "-c", "import tamis; print(tamis.__file__)"],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    if not Path(taken.strip()).is_relative_to(source):
        raise SystemExit(f"Python imports tamis from {taken.strip()}, not from the copy in {source}")
    return source


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.run", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "names", nargs="*", metavar="name", help="which mutants, by a part of their names; all if none"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    options = parser.parse_args()
    chosen = [one for one in load() if not options.names or any(part in one.name for part in options.names)]
    if not chosen:
        parser.error(f"no mutant has {' or '.join(options.names)} in its name")
    with tempfile.TemporaryDirectory(prefix="tamis-mutants-") as folder, ThreadPoolExecutor(options.jobs) as pool:
        source = copied(Path(folder))
        # Tests that fail without a break would catch every mutant.
        code, detail = run_tests(source, sorted({test for one in chosen for test in one.tests}), WHOLE_LIMIT)
        if code:
            print(f"the tests fail without any break: {detail}")
            return 1
        results = []
        for result in pool.map(partial(try_mutant, source), chosen):
            results.append(result)
            print(f"{result.fate:<12} {result.mutant.name}  ({result.seconds:.1f} s; {result.detail})", flush=True)
    wrong = [one for one in results if one.fate != "caught"]
    for result in wrong:
        print(f"\n{result.fate}: {result.mutant.name} in src/tamis/{result.mutant.file}\n  {result.mutant.why}")
    print(f"\n{len(results)} mutants, {len(results) - len(wrong)} caught, {len(wrong)} not")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
