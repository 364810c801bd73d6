"""The list of mutants stays fresh: each still applies to the source, and names tests that are there."""

from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.run import LISTS, Mutant, StaleError, load

ROOT = Path(__file__).parents[2]
MUTANTS = load()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_still_applies_to_the_source(mutant: Mutant) -> None:
    """A line that has changed takes its mutant along: write it anew in tests/mutants, and run `make mutants`."""
    source = (ROOT / "src" / "tamis" / mutant.file).read_text(encoding="utf-8")
    compile(mutant.broken(source), mutant.file, "exec")
    for test in mutant.tests:
        path, _, name = test.partition("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert not name or f"def {name.partition('[')[0]}(" in text, f"{path} has no {name}"


def test_every_mutant_has_a_name_of_its_own_and_a_reason() -> None:
    assert len(LISTS) >= 3
    assert not [name for name, count in Counter(one.name for one in MUTANTS).items() if count > 1]
    assert all(one.why.endswith(".") and one.tests for one in MUTANTS)
    assert {one.file.split("/")[0] for one in MUTANTS} >= {"predicate", "sieve", "formats"}


def test_mutant_that_does_not_apply_is_stale() -> None:
    mutant = Mutant("m", "x.py", "a < b", "a <= b", "Why.", ("tests/unit",))
    assert mutant.broken("if a < b:") == "if a <= b:"
    for source in ("if a > b:", "a < b or a < b"):
        with pytest.raises(StaleError, match="m: 'a < b'"):
            mutant.broken(source)
