"""Names and values of strangers, printed: nothing that a terminal obeys gets through, in no output."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import tamis
from tamis.errors import TamisError
from tamis.predicate.build import Expression
from tamis.predicate.nodes import Compare, Literal, Ref
from tamis.printable import UNSAFE
from tests.contract.chance import named
from tests.contract.conftest import Making
from tests.contract.history import History
from tests.contract.maker import Made, Maker
from tests.contract.tables import table_of
from tests.contract.truth import opened
from tests.making.cli_tables import run
from tests.making.strategies import PartitionField

EVIL = "a\x1b[31m\u202e\u2028\x07 b\u009b"
VALUES = ("\x1b]0;title\x07", "\u202eeu", "a\tb\x7f", "plain")


def hostile(maker: Maker) -> History:
    """A column of a hostile name with hostile values, partitioned by it where the format can."""
    path = (named(maker, EVIL),)
    able = "identity" in maker.transforms(path, pa.string())
    partition = (PartitionField(path, "identity"),) if able else ()
    return table_of({path: pa.string()}, [{path: value} for value in VALUES], partition=partition)


@pytest.fixture(scope="module")
def made(maker: Maker, making: Making) -> Iterator[Made]:
    with making(hostile(maker)) as found:
        yield found


def safe(text: str) -> str:
    """The text, of which no line has anything that a terminal obeys."""
    assert not any(UNSAFE.search(line) for line in text.split("\n")), ascii(text)
    return text


def asked(made: Made) -> list[tamis.TablePlan]:
    """A plan for each value, and one of everything."""
    path = next(path for path in made.last.types if len(path[0]) > 3)
    nodes = [Compare(">=", Ref(path), Literal(value, pa.string())) for value in VALUES]
    return [opened(made).plan(), *(opened(made).plan(Expression(node)) for node in nodes)]


def test_explanations_and_names_are_escaped(made: Made) -> None:
    for plan in asked(made):
        assert "\\x" in safe(plan.explain()) or plan.stats.kept == plan.stats.files
        safe(plan.explain(timing=True))
        safe(plan.explain("json"))
        safe(repr(plan))
        safe(plan._repr_html_())
    table = opened(made)
    safe(repr(table))
    assert "\\x1b" in safe(table._repr_html_())


def test_errors_are_escaped(made: Made) -> None:
    """The table's own names in advice, and the user's in what is refused."""
    for where in ("`a\x1b[31m\u202e` = 1", "ab = 1", "nowhere = 'x\x1b'", "row = 'x\x1b[31m'"):
        with pytest.raises(TamisError) as caught:
            opened(made).plan(where)
        safe(str(caught.value))
        safe(repr(caught.value))
    with pytest.raises(TamisError) as caught:
        tamis.open(f"{made.target}/\x1b[31m")
    safe(str(caught.value))


def test_command_line_prints_nothing_that_is_obeyed(
    made: Made, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts, tables and documents; and the errors."""
    for arguments in (
        ("inspect", made.target),
        ("inspect", made.target, "--json"),
        ("explain", made.target, "--files"),
        ("explain", made.target, "--kept", "--csv"),
        ("explain", made.target, "--json"),
        ("explain", made.target, "--where", "`a\x1b[31m` = 1"),
        ("explain", made.target + "\x1b[31m"),
    ):
        ran = run(capsys, monkeypatch, *arguments)
        safe(ran.out)
        safe(ran.err)
        assert ran.code == (0 if len(arguments) < 4 and "\x1b" not in arguments[1] else ran.code)
