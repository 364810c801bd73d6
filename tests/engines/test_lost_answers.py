"""A commit whose answer is lost: what has happened is seen, what nobody knows is said, and nothing is removed."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

import tamis
from tamis.errors import CatalogError, CommitRefused, CommitStateUnknown
from tamis.formats import writable_table
from tamis.formats.edit import Edit, Mode, new_snapshot_id
from tests.engines.conftest import Warehouse
from tests.engines.lakes import Lake, lakes, read_by_all, seeded
from tests.making.cutting import Cut, cutting
from tests.making.referred import files_in
from tests.making.statements import COLUMNS, SEEDED, Condition, Row, Statement

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.engine
COMMITS: dict[str, Callable[[bytes], bool]] = {
    "postgresql": lambda data: b"COMMIT" in data,
    "rest": lambda data: data.startswith(b"POST ") and b"/tables/" in data,
}
WHERE = Condition(3, 25)


@pytest.fixture(scope="module")
def lake(warehouse: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Lake]]:
    with lakes(warehouse.spark, tmp_path_factory.mktemp, "lost") as start:
        yield start


@contextmanager
def opened(lake: Lake, name: str, kind: str) -> Iterator[tuple[tamis.Table, Cut]]:
    """The table through a connection that can be cut."""
    assert lake.properties is not None
    uri = lake.properties["uri"]
    port = urlsplit(uri).port
    assert port is not None
    with cutting(port, COMMITS[kind]) as cut:
        properties = {**lake.properties, "uri": uri.replace(f":{port}", f":{cut.port}")}
        yield tamis.open(f"db.{name}", catalog=properties, cache=False), cut


@pytest.mark.parametrize(
    ("kind", "happens", "mode"),
    [
        ("postgresql", True, "copy-on-write"),
        ("postgresql", False, "merge-on-read"),
        ("rest", True, "merge-on-read"),
        ("rest", False, "copy-on-write"),
    ],
)
def test_a_lost_answer_loses_no_rows_and_doubles_none(
    warehouse: Warehouse, lake: Callable[[str], Lake], kind: str, mode: str, *, happens: bool
) -> None:
    found, spark = lake(kind), warehouse.spark
    name = f"t_{mode[:4]}_{happens}".lower()
    seeded(spark, found, name, 3, {})
    one = Statement("lost", "overwrite", WHERE, (Row(50, "eu", 1, "lost"), Row(51, None, 2, "lost")))
    rows = spark.createDataFrame(list(one.rows), COLUMNS)
    with opened(found, name, kind) as (table, cut):
        folder = table.source.location
        before = files_in(folder)
        cut.arm(happens=happens)
        written: set[Path] = set()
        if happens:
            done = table.overwrite(rows, WHERE.sql, mode=mode)  # type: ignore[arg-type] # one of the two
            assert done.table.snapshot_id == done.snapshot_id
        else:
            with pytest.raises(CommitStateUnknown) as caught:
                table.overwrite(rows, WHERE.sql, mode=mode)  # type: ignore[arg-type] # as above
            written = files_in(folder) - before
            assert any(path.suffix == ".parquet" for path in written)
            assert any(str(caught.value.snapshot_id) in path.name for path in written)
            table.overwrite(rows, WHERE.sql, mode=mode)  # type: ignore[arg-type] # as above
        assert cut.cuts == 1
        assert files_in(folder) > before | written
    for reader, read in read_by_all(spark, found, name).items():
        assert read == sorted(map(repr, one.applied(SEEDED))), reader


def test_no_secret_of_a_catalog_is_logged_shown_or_written(
    warehouse: Warehouse,
    lake: Callable[[str], Lake],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Neither when all goes well, nor when a race or an answer is lost, nor when the catalog is gone."""
    found, spark, name = lake("postgresql"), warehouse.spark, "t_secrets"
    seeded(spark, found, name, 2, {})
    assert found.properties is not None
    rows = spark.createDataFrame([Row(70, "eu", 1, "mine")], COLUMNS)
    secrets = {key: f"s3cret-{key}" for key in ("token", "s3.secret-access-key", "s3.session-token", "credential")}
    port = urlsplit(found.properties["uri"]).port
    assert port is not None
    told: list[str] = []
    with caplog.at_level(logging.DEBUG), cutting(port, COMMITS["postgresql"]) as cut:
        uri = found.properties["uri"].replace(":none@", ":s3cret-password@").replace(f":{port}", f":{cut.port}")
        table = tamis.open(f"db.{name}", catalog={**found.properties, "uri": uri, **secrets}, cache=False)
        told += [repr(table), repr(table.source), repr(table.source.origin)]  # type: ignore[attr-defined]
        done = table.append(rows)
        mode: Mode
        for mode in ("copy-on-write", "merge-on-read"):
            told += [repr(done), repr(table.delete("id = 70 or id = 5", spark=spark, mode=mode))]
        to = writable_table(done.table.source)
        edit = Edit("append", to.head("main"), to.schema_id, new_snapshot_id(), branch="nowhere")
        told += [repr(to), repr(edit), repr(to.stage())]
        with pytest.raises(CommitRefused) as refused:
            to.commit(edit)
        cut.arm(happens=False)
        with pytest.raises(CommitStateUnknown) as unknown:
            table.append(rows)
    with pytest.raises(CatalogError) as gone:  # nobody listens there any more
        table.append(rows)
    errors = [refused.value, unknown.value, gone.value]
    told += ["".join(traceback.format_exception(error)) for error in errors[:2]]
    told += [str(error) for error in errors] + [repr(error) for error in errors]
    told += [caplog.text, *capfd.readouterr()]
    told += [path.read_bytes().decode("latin-1") for path in files_in(table.source.location)]
    assert len(caplog.text) > 0
    assert not [text for text in told if "s3cret" in text]
