"""The main paths on three kinds of Spark: local and classic, Spark Connect, a standalone cluster of bare workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clusters import KINDS, Cluster, bare_python, cluster, run
from tests.evolved_tables import evolved

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
    """Executors of the standalone cluster have Python and pyarrow alone: tamis, numpy and the decoder come along."""
    with cluster(kind, tmp_path / kind) as spark:
        found = run(spark, HERE / "main_paths.py", metadata)
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


def test_executors_without_pyarrow_are_one_error_with_its_remedy(metadata: str, tmp_path: Path) -> None:
    python = bare_python(tmp_path / "empty", pyarrow=False)
    spark = Cluster("classic", tmp_path, {"PYSPARK_PYTHON": str(python)})
    kind, message = run(spark, HERE / "without_pyarrow.py", metadata)
    assert kind == "ExecutorError"
    assert message.startswith("executors have no pyarrow: install it there, or set PYSPARK_PYTHON")
