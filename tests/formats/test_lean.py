"""Planning loads what it needs: no pandas on the command line, and no other format."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.making.cli_tables import events, folder_of


def test_spared_pandas_is_not_loaded_and_comes_when_it_is_asked_for() -> None:
    program = """
import sys
from tamis.formats.lean import spare_pandas
spare_pandas()
import pyarrow as pa
assert pa.array([1, 2]).to_numpy().tolist() == [1, 2]
assert "pandas" not in sys.modules
assert pa.table({"a": [1]}).to_pandas()["a"].tolist() == [1]
import pandas
assert pa.array(pandas.Series([1.0, None])).null_count == 1
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_plan_of_one_format_loads_neither_the_others_nor_what_writes(tmp_path: Path) -> None:
    """Each of them costs every start of the command line some 20 ms."""
    program = """
import sys
import tamis
assert tamis.open(sys.argv[1]).plan("id > 5").stats.files
opened = {name.split(".")[2] for name in sys.modules if name.startswith("tamis.formats.")}
heavy = [name for name in sys.modules if name.endswith(("delta.snapshot", "paimon.snapshots", "iceberg.commit"))]
assert "iceberg" in opened and not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", program, folder_of(events(tmp_path))], check=True)
