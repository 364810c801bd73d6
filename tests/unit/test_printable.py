"""What a table's writer chose, on a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import BindError
from tamis.printable import printable, printable_lines

UNSAFE = {*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), *"\u200e\u200f\u202a\u202e\u2066\u2069\u2028\u2029"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("naïve 😀 数据", "naïve 😀 数据"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x9b31mred", "\\x9b31mred"),
        ("a\tb\r\nc", "a\\tb\\r\\nc"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("\ud800", "\\ud800"),
        ("\x00", "\\x00"),
    ],
)
def test_only_what_a_terminal_obeys_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(st.characters(exclude_categories=())))
def test_printable_text_is_one_line_that_can_be_encoded(text: str) -> None:
    shown = printable(text)
    assert not set(shown) & UNSAFE
    assert len(shown.splitlines()) <= 1
    shown.encode()
    assert printable(shown) == shown


def test_lines_of_a_message_stay() -> None:
    assert printable_lines("one\n\x1btwo") == "one\n\\x1btwo"


def test_message_of_every_error_is_printable_and_its_facts_are_not_changed() -> None:
    error = BindError("no column a\x1b]0;x\x07", column="a\x1b]0;x\x07", nearest=())
    assert str(error) == error.message == "no column a\\x1b]0;x\\x07"
    assert error.facts["column"] == "a\x1b]0;x\x07"
