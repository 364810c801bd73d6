"""The makers whose formats are held to the contract, and tables that they have made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import pytest
from hypothesis import reject

from tests.contract.delta import DELTA
from tests.contract.delta_mapped import MAPPED
from tests.contract.history import History
from tests.contract.iceberg import ICEBERG
from tests.contract.maker import Made, Maker, Refused
from tests.contract.paimon import PAIMON
from tests.making.sparks import spark, started_spark

__all__ = ["MAKERS", "Making", "maker", "making", "spark", "started_spark"]

MAKERS: tuple[Maker, ...] = (*ICEBERG, *DELTA, *MAPPED, *PAIMON)
"""One entry a format, or a kind of its tables."""

Making = Callable[[History], AbstractContextManager[Made]]
"""Makes a table of the maker's format, and removes it."""


@pytest.fixture(scope="session", params=MAKERS, ids=lambda one: one.name)
def maker(request: pytest.FixtureRequest) -> Maker:
    """Each format in turn."""
    found: Maker = request.param
    return found


@pytest.fixture(scope="session")
def making(maker: Maker, tmp_path_factory: pytest.TempPathFactory) -> Making:
    """Tables of the format, each for as long as it is looked at."""
    base = tmp_path_factory.mktemp("contract")

    @contextmanager
    def made(history: History) -> Iterator[Made]:
        folder = Path(mkdtemp(dir=base))
        try:
            try:
                table = maker.make(folder, history)
            except Refused:
                reject()
            yield table
        finally:
            rmtree(folder)

    return made
