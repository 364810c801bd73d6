"""Every command in the README works as it is written. Its Python examples run as doctests, in `make check`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TAMIS = Path(sys.executable).with_name("tamis")

_SHELL = re.compile(r"^```(?:sh|bash|shell|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"^```(?:python|pycon|py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    """Every line of every shell block, of all pages, once."""
    blocks = [block for page in PAGES for block in _SHELL.findall(page.read_text(encoding="utf-8"))]
    lines = [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]
    return list(dict.fromkeys(line for line in lines if line))


@pytest.mark.parametrize("command", commands())
def test_command_of_the_documentation_works(command: str) -> None:
    """A first command that fails is the last one that a reader tries."""
    program, *arguments = command.split()
    match program:
        case "make":
            # Only whether the targets exist: to run `make test` in a test would never end.
            argv = ["make", "--dry-run", "--no-print-directory", *arguments]
        case "tamis" | ".venv/bin/tamis":
            argv = [str(TAMIS), *arguments]
        case _:
            pytest.fail(f"no test knows how to check {command!r}: teach it, or leave the command out")
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_readme_names_the_two_commands() -> None:
    assert {"make demo", "make test"} <= set(commands())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_example_is_one_that_doctest_runs(page: Path) -> None:
    """Code without a prompt is not run, and the fence after an output without an empty line is taken for output."""
    for block in _PYTHON.findall(page.read_text(encoding="utf-8")):
        assert block.startswith(">>> "), f"not run: {block}"
        assert block.endswith("\n\n"), f"no empty line before the closing fence: {block}"
