"""What executors are sent, and what they are told they lack; without Spark, as far as that goes."""

from __future__ import annotations

import pickle
import sys
import zipfile
from collections.abc import Iterator
from typing import Any, cast

import pyarrow as pa
import pytest

from tamis.errors import ExecutorError, UnevaluableError
from tamis.spark import shipping

ROWS = pa.RecordBatch.from_pydict({"n": list(range(1000))})


class Recorder:
    """Stands for a session: remembers what it was given."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def addArtifacts(self, *path: str, **_: bool) -> None:  # noqa: N802 - Spark's name
        self.given += path


def executor(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - facts of any kind
    return {**shipping._about(), **changes}


def lacking(*found: dict[str, Any]) -> tuple[tuple[str, ...], list[str]]:
    spark = Recorder()
    return shipping._lacking(cast("Any", spark), list(found)), spark.given


def test_executor_that_has_everything_is_sent_nothing_more() -> None:
    assert lacking(executor(), executor()) == ((), [])


def test_one_executor_without_the_decoder_is_enough_to_send_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipping, "_datafusion", lambda: shipping.Path("/x/datafusion-1.zip"))
    assert lacking(executor(), executor(datafusion=None)) == (
        ("datafusion-1",),
        ["/x/datafusion-1.zip#datafusion-1"],
    )


@pytest.mark.parametrize("name", ["pyarrow", "numpy"])
def test_one_executor_without_pyarrow_or_numpy_is_an_error_with_its_cure(name: str) -> None:
    """A worker that has loaded pyarrow does not find a numpy that is brought later."""
    with pytest.raises(
        ExecutorError, match=rf"no {name}; .*pip install '{name}>=.*PYSPARK_PYTHON.*spark\.archives"
    ) as caught:
        lacking(executor(), executor(**{name: None}))
    assert caught.value.needs.startswith(f"{name}>=")


def test_native_module_travels_alone() -> None:
    """The package around it imports pandas."""
    with zipfile.ZipFile(shipping._datafusion()) as archive:
        (name,) = archive.namelist()
    assert name.startswith("datafusion/_internal")


def test_native_package_is_not_sent_to_another_platform() -> None:
    """It would not load there, and the error would be the loader's."""
    with pytest.raises(ExecutorError, match=r"no datafusion, and what is installed here does not fit .*-arm64"):
        lacking(executor(datafusion=None, like=["CPython", "3.11", "macosx-14-arm64", "no glibc"]))


def test_other_platform_that_has_everything_is_no_error() -> None:
    assert lacking(executor(like=["CPython", "3.11", "macosx-14-arm64", "no glibc"]))[1] == []


@pytest.mark.parametrize(("name", "version"), [("pyarrow", "15.0.0"), ("numpy", "1.24.4")])
def test_package_that_is_too_old_is_named_with_the_version_that_is_needed(name: str, version: str) -> None:
    with pytest.raises(ExecutorError, match=rf"executors have {name} {version}; tamis needs"):
        lacking(executor(**{name: version}))


def test_package_is_the_sources_and_has_the_same_name_each_time() -> None:
    """Spark refuses another file of a name that it knows; the same one is no problem."""
    first = shipping._package()
    shipping._package.cache_clear()
    assert shipping._package() == first
    with zipfile.ZipFile(first) as archive:
        names = archive.namelist()
    assert "tamis/__init__.py" in names
    assert "tamis/spark/judging.py" in names
    assert all(name.endswith(".py") for name in names)


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("Traceback ...\nModuleNotFoundError: No module named 'pyarrow'\n", "pyarrow"),
        ("[PACKAGE_NOT_INSTALLED] PyArrow >= 15.0.0 must be installed; however, it was not found.", "pyarrow"),
        ("ModuleNotFoundError: No module named 'numpy'\n at org.apache", "numpy"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9", "Python 3."),
    ],
)
def test_what_a_worker_lacks_is_read_from_its_traceback(text: str, needs: str) -> None:
    found = shipping.explained(RuntimeError(text))
    assert isinstance(found, ExecutorError)
    assert found.needs.startswith(needs)


def test_any_other_error_of_a_job_stays_what_it_is() -> None:
    for error in (RuntimeError("no space left"), UnevaluableError("x", reason="y")):
        assert shipping.explained(error) is error


def doubled(batches: Iterator[pa.RecordBatch], factor: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"n": [factor * n for n in batch.column(0).to_pylist()]})


def test_shipped_work_in_this_process_needs_no_path() -> None:
    before = list(sys.path)
    shipped = shipping.Shipped(pickle.dumps((doubled, (2,))))
    assert next(shipped([ROWS])).column(0)[1].as_py() == 2
    assert sys.path == before
