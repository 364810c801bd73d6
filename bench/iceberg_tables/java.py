"""The small Java program on Iceberg's own runtime jar: compiled once, its tables and its planner called from here."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pyspark

__all__ = ["CACHE", "JavaPlan", "java_files", "java_plans", "run_java"]

HERE = Path(__file__).parent
CACHE = HERE.parent / ".cache" / "iceberg"
SOURCE = HERE / "IcebergTables.java"
VERSION = "1.12.0"
ARTIFACT = "iceberg-spark-runtime-4.1_2.13"


@dataclass(frozen=True, slots=True)
class JavaPlan:
    """What Java's planFiles found for one filter, and how long it took."""

    name: str
    files: int
    first_seconds: float
    """The first call in a fresh JVM; the JVM's own start is not in it."""
    best_seconds: float


def runtime_jar() -> Path:
    """Iceberg's Spark runtime, from Maven's local repository; fetched once through Maven's own client."""
    repository = Path(os.environ.get("MAVEN_REPOSITORY", Path.home() / ".m2" / "repository"))
    jar = repository / "org/apache/iceberg" / ARTIFACT / VERSION / f"{ARTIFACT}-{VERSION}.jar"
    if not jar.exists():
        artifact = f"org.apache.iceberg:{ARTIFACT}:{VERSION}"
        subprocess.run(["mvn", "-q", "dependency:get", f"-Dartifact={artifact}", "-Dtransitive=false"], check=True)
    return jar


def class_path() -> str:
    """Compiled classes, the runtime jar and pyspark's jars; compiles if the source is newer."""
    classes = CACHE / "classes"
    jars = f"{runtime_jar()}{os.pathsep}{Path(pyspark.__file__).parent / 'jars' / '*'}"
    made = classes / "IcebergTables.class"
    if not made.exists() or made.stat().st_mtime < SOURCE.stat().st_mtime:
        classes.mkdir(parents=True, exist_ok=True)
        subprocess.run(["javac", "-d", str(classes), "-cp", jars, str(SOURCE)], check=True)
    return f"{classes}{os.pathsep}{jars}"


def run_java(*arguments: str) -> str:
    """The program's standard output."""
    command = ["java", "-Xmx2g", "-cp", class_path(), "IcebergTables", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def java_plans(location: Path, rounds: int = 5, only: str | None = None) -> list[JavaPlan]:
    """Java's own planner over the table, each filter, or only one, in one warm JVM with two worker threads."""
    chosen = [] if only is None else [only]
    lines = [line.split() for line in run_java("plan", str(location), str(rounds), *chosen).splitlines()]
    return [JavaPlan(name, int(files), float(first), float(best)) for name, files, first, best in lines]


def java_files(location: Path, name: str) -> set[str]:
    """The paths of the files that Java's planner keeps for a filter."""
    return set(run_java("files", str(location), name).splitlines())
