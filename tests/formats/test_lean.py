"""Planning from the command line loads no pandas."""

from __future__ import annotations

import subprocess
import sys


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
