"""The decoder's native module is loaded with a setting of its own, and nothing of that stays behind."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os
from tamis.formats.avro import decoder
seen = []
of_spec = decoder.module_from_spec
def watched(spec):
    seen.append(os.environ.get("MIMALLOC_PURGE_DELAY"))
    return of_spec(spec)
decoder.module_from_spec = watched
decoder._native()
print(*seen, os.environ.get("MIMALLOC_PURGE_DELAY"))
"""


@pytest.mark.parametrize(("given", "seen"), [(None, "1000 None"), ("7", "7 7")])
def test_setting_for_the_native_module_is_gone_when_it_is_loaded(given: str | None, seen: str) -> None:
    """Whoever has set it has a reason, and a process that is started later must not inherit ours."""
    environment = {name: value for name, value in os.environ.items() if name != "MIMALLOC_PURGE_DELAY"}
    environment |= {} if given is None else {"MIMALLOC_PURGE_DELAY": given}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True, env=environment
    )
    assert done.stdout.strip() == seen
