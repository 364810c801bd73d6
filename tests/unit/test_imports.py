"""Imports point one way: cli → table → jobs → spark → formats → rewrite → sieve → predicate.

The rooms are read from the source, so that a wrong import fails here also where it would happen to work.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "tamis"

ORDER = ("cli", "table", "jobs", "spark", "formats", "rewrite", "sieve", "predicate")

# Which rooms a room may import beside itself. "" is the package's own __init__, where the version is.
ALLOWED: dict[str, frozenset[str]] = {
    room: frozenset(ORDER[place + 1 :]) | {"errors", "printable", "checks"} for place, room in enumerate(ORDER)
}
ALLOWED["cli"] |= {"explain", "changing", "merging", "results", ""}
ALLOWED["jobs"] |= {""}
ALLOWED["table"] |= {"explain", "arguments"}
ALLOWED["table"] |= {"plans"}
ALLOWED["plans"] = ALLOWED["table"] - {"plans"}
ALLOWED["table"] |= {"changing"}
ALLOWED["results"] = frozenset({"explain", "formats", "sieve", "errors", "printable", "checks"})
ALLOWED["changing"] = frozenset({"jobs", "spark", "formats", "sieve", "predicate", "arguments", "results", "merging"})
ALLOWED["changing"] |= {"errors", "printable", "checks"}
ALLOWED["merging"] = ALLOWED["changing"] - {"merging"}
ALLOWED["arguments"] = frozenset({"formats", "sieve", "predicate", "errors", "printable", "checks"})
ALLOWED["explain"] = frozenset({"rewrite", "sieve", "errors", "printable", "checks"})
ALLOWED["errors"] = frozenset({"printable"})
ALLOWED["printable"] = frozenset()
ALLOWED["checks"] = frozenset({"printable"})
ALLOWED[""] = frozenset({"table", "results", "merging", "jobs", "rewrite", "predicate", "sieve", "errors"})
ALLOWED["__main__"] = frozenset({"cli"})

PURE = frozenset({"predicate", "sieve", "rewrite"})
"""Rooms that compute on Arrow alone: no I/O, no Spark, no format library."""

ENGINES = frozenset(
    {"pyspark", "py4j", "pyiceberg", "pypaimon", "deltalake", "datafusion", "fsspec", "obstore", "pandas"}
)

OUTSIDE = frozenset(
    {
        *(
            "asyncio",
            "glob",
            "http",
            "io",
            "multiprocessing",
            "os",
            "pathlib",
            "requests",
            "shutil",
            "socket",
        ),
        *("sqlite3", "ssl", "subprocess", "tempfile", "urllib"),
        *("pyarrow.csv", "pyarrow.dataset", "pyarrow.feather", "pyarrow.flight", "pyarrow.fs"),
        *("pyarrow.orc", "pyarrow.parquet"),
    }
)
"""Modules that reach files, processes or the network."""

IMPURE = ENGINES | OUTSIDE

FORMAT_ROOMS = frozenset({"iceberg", "delta", "paimon"})
"""Folders of formats/ that nobody outside them may import, but the tuple FORMATS."""

LAZY: dict[tuple[str, str], str] = {
    ("table.py", "tamis.jobs"): "a job was told to run: only then is there a need for Spark",
    ("changing.py", "tamis.jobs"): "a job was told to run: only then is there a need for it, or for Spark",
    ("jobs/delete.py", "tamis.spark"): "a delete of whole files needs no Spark",
    ("changing.py", "tamis.spark"): "a session was given: only then is there one to ask",
    ("merging.py", "tamis.jobs"): "a merge was told to run: only then is there a need for it",
    ("merging.py", "tamis.spark"): "a merge has a DataFrame, and with it Spark; `import tamis` has not",
    ("merging.py", "tamis.predicate.matching"): "a third of a second for the SQL parser, if there is any SQL",
    ("jobs/update.py", "tamis.spark"): "an update of no file needs no Spark",
    ("jobs/marking.py", "tamis.spark"): "without a row to mark there is no need for Spark",
    ("table.py", "tamis.spark"): "a job was told to run: only then is there a need for Spark",
    ("plans.py", "tamis.spark"): "a plan was told to run: only then is there a need for Spark",
    ("spark/shipping.py", "pyspark"): "SparkFiles, which executors have; a client of a Connect server has not",
    ("spark/deletes.py", "tamis.spark.vectors"): "code for executors, which only very many deletes need",
    ("arguments.py", "tamis.predicate.where"): "a third of a second for the SQL parser, if there is any SQL",
    (
        "sieve/join/runtime.py",
        "tamis.spark.keys",
    ): "a filter made of a DataFrame: only then is there a need for Spark",
    ("sieve/plan.py", "tamis.explain"): "a plan explains itself, and explain/ is built on plans",
    ("rewrite/plan.py", "tamis.explain"): "as sieve/plan.py: a plan explains itself",
    ("table.py", "tamis.rewrite"): "a job was asked for: plans of queries have no need for it",
    ("sieve/plan.py", "polars"): "an optional library, which only its users have",
    ("cli/*.py", "*"): "a command loads what it needs when it runs: --version and --help answer at once",
    (
        "formats/*/door.py",
        "tamis.formats",
    ): "a table was opened: only then is its format needed; each costs every start 20 ms",
    ("formats/*.py", "datafusion"): "more than a second that only reading Avro metadata needs",
    ("formats/*.py", "obstore"): "an optional extra: missing, its error names the cure",
    ("formats/*.py", "pyiceberg"): "an optional extra: missing, its error names the cure",
    ("formats/*.py", "pypaimon"): "an optional extra: missing, its error names the cure",
}
"""(file, module) pairs that may be imported inside a function, each with its reason."""

LAZY_BACKWARDS = frozenset(
    {
        ("sieve/plan.py", "tamis.explain"),
        ("rewrite/plan.py", "tamis.explain"),
        ("sieve/join/runtime.py", "tamis.spark.keys"),
    }
)
"""Lazy imports that may also point against the order."""


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module, as an absolute name, and where."""

    module: str
    line: int
    lazy: bool


def imports_of(source: str, path: str) -> Iterator[Import]:
    """Every module that the file at path (relative to the package) imports, names resolved to modules."""
    package = ["tamis", *Path(path).parent.parts]

    def walk(node: ast.AST, *, lazy: bool) -> Iterator[Import]:
        match node:
            case ast.Import(names=names):
                for name in names:
                    yield Import(name.name, node.lineno, lazy)
            case ast.ImportFrom(module=module, names=names, level=level):
                parents = package[: len(package) - level + 1] if level else []
                base = ".".join([*parents, *([module] if module else [])])
                for name in names:
                    # `from tamis import sieve` names a room, `from tamis import __version__` does not.
                    room = (base == "tamis" and name.name in ALLOWED) or (
                        base == "tamis.formats" and name.name in FORMAT_ROOMS
                    )
                    submodule = base == "pyarrow" and f"{base}.{name.name}" in IMPURE
                    yield Import(f"{base}.{name.name}" if room or submodule else base, node.lineno, lazy)
            case _:
                inside = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                for child in ast.iter_child_nodes(node):
                    yield from walk(child, lazy=inside)

    yield from walk(ast.parse(source, path), lazy=False)


def faults_of(source: str, path: str) -> list[str]:
    """What is wrong with the imports of the file at path, a line each; empty if nothing is."""
    faults = []
    here = _room(("tamis", *Path(path).with_suffix("").parts))
    if here not in ALLOWED:
        return [f"{path}: {here!r} is no room: give it a place in ALLOWED"]
    for found in imports_of(source, path):
        where = f"{path}:{found.line}: {here or 'tamis/__init__'}"
        if found.lazy and not _listed(LAZY, path, found.module):
            faults.append(f"{where} imports {found.module} inside a function, and LAZY does not allow it")
        if found.module.split(".")[0] == "tamis":
            there = _room(tuple(found.module.split(".")))
            backwards = found.lazy and _listed(LAZY_BACKWARDS, path, found.module)
            if there != here and there not in ALLOWED[here] and not backwards:
                faults.append(f"{where} must not import {found.module}")
            elif (format_ := _format_room(found.module)) is not None and not _may_know(path, format_):
                faults.append(f"{where} must not know {found.module}: only formats/{format_} and FORMATS do")
        elif here in PURE and _under(found.module, IMPURE):
            faults.append(f"{where} is pure and must not import {found.module}")
    return faults


def _room(module: tuple[str, ...]) -> str:
    inside = [part for part in module[1:] if part != "__init__"]
    return inside[0] if inside else ""


def _format_room(module: str) -> str | None:
    """The format whose folder the module is in, or is; None for one of the common rooms."""
    _, *inside = module.split(".")
    return inside[1] if inside[:1] == ["formats"] and inside[1:] and inside[1] in FORMAT_ROOMS else None


def _may_know(path: str, format_: str) -> bool:
    return path == "formats/__init__.py" or path.startswith(f"formats/{format_}/")


def _under(module: str, roots: frozenset[str]) -> bool:
    return any(module == root or module.startswith(f"{root}.") for root in roots)


def _listed(pairs: dict[tuple[str, str], str] | frozenset[tuple[str, str]], path: str, module: str) -> bool:
    return any(
        fnmatch(path, pattern) and (root == "*" or _under(module, frozenset({root}))) for pattern, root in pairs
    )


FILES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES)
def test_file_imports_only_what_its_room_may(path: str) -> None:
    assert faults_of((SOURCE / path).read_text(encoding="utf-8"), path) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("sieve/judge.py", "from tamis.formats import iceberg"),
        ("sieve/judge.py", "from ..formats.iceberg import manifest"),
        ("sieve/judge.py", "from tamis import table"),
        ("sieve/judge.py", "import os.path"),
        ("sieve/judge.py", "from pyarrow import fs, compute"),
        ("sieve/judge.py", "import pyarrow.parquet as pq"),
        ("sieve/judge.py", "from tamis.explain import text"),
        ("sieve/judge.py", "if TYPE_CHECKING:\n    from pyspark.sql import DataFrame"),
        ("sieve/judge.py", "def f():\n    import math"),
        ("sieve/funnel.py", "from tamis.explain import text"),
        ("predicate/nodes.py", "from tamis.sieve.domain import Domain"),
        ("formats/delta/log.py", "from tamis.spark import read"),
        ("formats/delta/log.py", "from tamis.formats.iceberg.locate import candidates"),
        ("formats/storage/objects.py", "from tamis.formats import iceberg"),
        ("formats/iceberg/open.py", "from .. import paimon"),
        ("spark/read.py", "from tamis.formats.iceberg.table import IcebergTable"),
        ("table.py", "import tamis.formats.iceberg.inspection"),
        ("cli/inspect.py", "if TYPE_CHECKING:\n    from tamis.formats.delta.inspection import DeltaInspection"),
        ("spark/read.py", "from tamis.jobs import append"),
        ("jobs/append.py", "from tamis.table import Table"),
        ("formats/delta/log.py", "class A:\n    def f(self):\n        from tamis import sieve"),
        ("explain/text.py", "from tamis.jobs.rewrite import RewriteJob"),
        ("errors.py", "import tamis.predicate"),
        ("__init__.py", "from tamis.spark import read"),
        ("__init__.py", "from .cli import main"),
        ("cellar.py", ""),
    ],
)
def test_wrong_import_is_found(path: str, source: str) -> None:
    """A guard that cannot fail guards nothing."""
    assert len(faults_of(source, path)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("sieve/judge.py", "import pyarrow.compute as pc\nfrom tamis.predicate import nodes"),
        (
            "sieve/judge.py",
            "from . import domain\nfrom .domain import Domain\nfrom tamis.errors import BindError",
        ),
        ("sieve/plan.py", "def explain(self):\n    from tamis.explain import text"),
        ("table.py", "def run(self):\n    from tamis.spark import read"),
        ("table.py", "from tamis.formats import detect\nfrom tamis.explain import text"),
        ("spark/read.py", "from pyspark.sql import DataFrame\nfrom tamis.sieve import funnel"),
        ("formats/iceberg/manifest.py", "def read():\n    import datafusion"),
        ("formats/__init__.py", "from tamis.formats.delta import open as delta"),
        ("formats/paimon/files.py", "from . import open\nfrom tamis.formats.paimon.metadata import Snapshot"),
        ("jobs/append.py", "from tamis.spark import write\nfrom tamis.formats.edit import Edit"),
        (
            "cli/plan.py",
            "import tamis\ndef plan():\n    from tamis.table import Table\n    import rich.table",
        ),
        ("__init__.py", "from tamis.table import open\nfrom tamis.predicate import col"),
        ("__main__.py", "from tamis.cli import main"),
    ],
)
def test_right_import_is_let_through(path: str, source: str) -> None:
    assert faults_of(source, path) == []


def test_importing_tamis_loads_no_engine() -> None:
    """Planning needs no Spark, no JVM and no format library; datafusion is loaded when Avro is read."""
    loaded = _modules_after("import tamis")
    assert "tamis" in loaded
    assert not loaded & (ENGINES - {"datafusion"})


def test_importing_tamis_does_not_load_datafusion() -> None:
    """It costs more than everything else together, and only Avro metadata needs it."""
    assert "datafusion" not in _modules_after("import tamis")


def test_command_line_loads_no_engine() -> None:
    assert not _modules_after("import tamis.cli") & ENGINES


def _modules_after(statement: str) -> set[str]:
    program = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("package", sorted(SOURCE.rglob("__init__.py")), ids=lambda path: path.parent.name)
def test_no_package_gives_the_name_of_a_room_to_something_else(package: Path) -> None:
    """`import tamis.formats.delta.scan as scan` looks for the name `delta` in the package: it has to be the room."""
    inside = {path.stem for path in package.parent.glob("*.py")}
    inside |= {path.parent.name for path in package.parent.glob("*/__init__.py")}
    called = [
        f"{name.name} as {name.asname}"
        for node in ast.walk(ast.parse(package.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom | ast.Import)
        for name in node.names
        if name.asname in inside and name.name != name.asname
    ]
    assert called == []
