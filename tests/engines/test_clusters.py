"""The main paths on kinds of Spark: local and classic, Spark Connect, a standalone cluster, a Connect server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.making.clusters import KINDS, Cluster, Unavailable, bare_python, cluster, run
from tests.making.evolved_tables import evolved

pytest.importorskip("pyspark.sql", reason="PySpark is not installed")
pytestmark = pytest.mark.engine

HERE = Path(__file__).parent
WRITTEN = [*range(48), *range(100, 148), *range(200, 248), *range(300, 348), *range(400, 412)]
GONE = {0, 12, 24, 36, 7, 107, 207, 307}
"""By position the first row of each file of the first spec in region eu; by equality four ids."""


@pytest.fixture(scope="module")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> str:
    return evolved(tmp_path_factory.mktemp("clusters"))


@pytest.mark.parametrize("kind", KINDS)
def test_main_paths_give_the_same_on_every_kind_of_spark(kind: str, metadata: str, tmp_path: Path) -> None:
    """Executors of the standalone cluster have Python, pyarrow and numpy alone: tamis and the decoder come along.

    The Connect server is a process of its own, and its client has neither a JVM nor py4j.
    """
    try:
        with cluster(kind, tmp_path / kind) as spark:
            found = run(spark, HERE / "main_paths.py", metadata)
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert found["jvm"] == (kind != "server")
    live = [id_ for id_ in WRITTEN if id_ not in GONE]
    some = [id_ for id_ in live if id_ % 4 == 0 and id_ < 250]
    assert found["planning"] == {"same": True, "elsewhere": True, "kept": 25, "told": [123, 123]}
    assert found["reading"] == {"some": some, "all": live, "again": len(some)}
    assert found["keys"] == {
        "kept": [5, 0],
        "files": 123,
        "bloom": "id in a bloom filter of 2,000 join keys [1000 … 2999]",
    }
    assert found["joining"] == {"rows": [[4, "four"], [205, "many"]]}


@pytest.mark.parametrize(("packages", "lacks"), [((), "pyarrow"), (("pyarrow",), "numpy")])
def test_executors_without_a_package_are_one_error_with_its_remedy(
    packages: tuple[str, ...], lacks: str, metadata: str, tmp_path: Path
) -> None:
    python = bare_python(tmp_path / "bare", packages)
    spark = Cluster("classic", tmp_path, {"PYSPARK_PYTHON": str(python)})
    kind, message, needs = run(spark, HERE / "without_packages.py", metadata)
    assert kind == "ExecutorError"
    assert message.startswith(f"executors have no {lacks}; tamis needs {needs} there: pip install '{needs}' on ")
    assert "PYSPARK_PYTHON" in message
    assert "spark.archives" in message
