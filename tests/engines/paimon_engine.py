"""Paimon's own Java core, asked from Python: a process that takes a JSON line and answers with one.

The program is in `tests/engines/paimon`, compiled once; its jars are fetched by Maven. Its commands:

| command | takes | gives |
|---|---|---|
| `create_table` | columns `[[name, type], ...]`, `partition_keys`, `primary_keys`, `options` | `location`, `schema` |
| `alter` | changes `[{"op": "change_type", "name": ..., "type": ...}, ...]` | `schema` |
| `write`, `delete` | rows `[{column: value, ...}, ...]`, `overwrite` of a partition, `bucket` | `snapshot` |
| `rescale` | `buckets`; of one `partition`; `rewrite=False` only alters | `snapshot` |
| `compact` | `full`, one `bucket`, one `partition` | `snapshot` |
| `delete_by_position` | `partition`, `bucket`, positions `{file: [0, 5], ...}` | `snapshot` |
| `read`, `plan` | `predicate`, `columns`, `snapshot_id`, `tag`, `per_split` | `rows`, `splits` with their `files` |
| `read_optimized` | | `rows` of the table's `$ro` form |
| `files`, `manifests`, `snapshots`, `describe` | `snapshot_id` | what the metadata says |
| `bucket_of` | rows | `bucket`, `key_hash` and `key_hex` of each |
| `tag`, `rollback`, `expire` | `tag`, `snapshot_id`, `retain` | |

All take `table` (in the database `db` unless told), and `dynamic`: options for this command alone. Binary values are
base64, decimals, dates and timestamps are text, NaN and infinities are `"NaN"` and `"Infinity"`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from tests.engines.servers import Unavailable, jars_of

__all__ = ["PaimonEngine", "Refusal", "java_classpath", "paimon_engine"]

SOURCE: Final = Path(__file__).with_name("paimon")
SPARK_JARS: Final = ("hadoop-client-api", "hadoop-client-runtime", "slf4j-api", "jcl-over-slf4j", "snappy-java")
JVM: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx1g", "-Xshare:auto")


class Refusal(RuntimeError):
    """What Paimon refused to do, in its own words."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(f"{answer['type']}: {answer['error']}")
        self.trace = answer["trace"]


@dataclass(frozen=True, slots=True)
class PaimonEngine:
    """A running engine over a warehouse: `engine("read", "orders", columns=["id"])["rows"]`."""

    warehouse: Path
    process: subprocess.Popen[str]
    log: Path

    def __call__(self, command: str, table: str | None = None, /, **arguments: object) -> dict[str, Any]:
        """The answer to a command; Refusal if Paimon does not do it."""
        asked = {"cmd": command, "warehouse": self.warehouse.as_uri(), "table": table, **arguments}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"Paimon's engine ended: {self.log.read_text(errors='replace')[-2000:]}")
        answer = cast("dict[str, Any]", json.loads(line))
        if not answer["ok"]:
            raise Refusal(answer)
        return answer

    def create(self, table: str, columns: dict[str, str], **more: object) -> Path:
        """A new table of these columns, with `partition_keys`, `primary_keys` and `options`; gives its folder."""
        self("create_table", table, columns=[[name, type_] for name, type_ in columns.items()], **more)
        return self.path(table)

    def path(self, table: str, database: str = "db") -> Path:
        """The folder of a table."""
        return self.warehouse / f"{database}.db" / table


@contextmanager
def paimon_engine(warehouse: Path) -> Iterator[PaimonEngine]:
    """An engine over a folder; Unavailable where Java, Maven or pyspark's jars are missing."""
    classpath = java_classpath()
    log = warehouse / "engine.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            ["java", *JVM, f"-Djava.io.tmpdir={warehouse}", "-cp", classpath, "PaimonEngine"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
        )
        with process:
            try:
                yield PaimonEngine(warehouse, process, log)
            finally:
                process.terminate()


def java_classpath() -> str:
    """The compiled program, Paimon's jar and Hadoop's from pyspark."""
    try:
        import pyspark
    except ImportError as error:
        raise Unavailable("PySpark, whose jars Paimon's core needs, is not installed") from error
    if shutil.which("javac") is None:
        raise Unavailable("javac, which compiles Paimon's engine, is not installed (Debian: openjdk-17-jdk-headless)")
    spark = Path(pyspark.__file__).parent / "jars"
    hadoop = [str(jar) for name in SPARK_JARS for jar in spark.glob(f"{name}-*.jar")]
    paimon = jars_of("paimon")
    jars = os.pathsep.join([*map(str, paimon.glob("*.jar")), *hadoop])
    return os.pathsep.join([str(_compiled(jars, paimon)), jars])


def _compiled(jars: str, beside: Path) -> Path:
    """The classes of the program as it stands now: compiled once, kept under the digest of its source."""
    sources = sorted(SOURCE.glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    classes = beside.with_name(f"{beside.name}-classes-{digest}")
    if classes.is_dir():
        return classes
    with tempfile.TemporaryDirectory(dir=beside.parent) as work:
        made = Path(work) / "classes"
        command = ["javac", "-nowarn", "-Xlint:none", "-d", str(made), "-cp", jars, *map(str, sources)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"Paimon's engine does not compile: {done.stderr[-2000:]}")
        if not classes.is_dir():
            made.rename(classes)
    return classes
