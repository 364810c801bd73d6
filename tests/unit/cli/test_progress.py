"""The bar of a long read: on a terminal only, after a while only, on standard error only."""

from __future__ import annotations

import io
import sys
import time

import pytest

from tamis.cli import progress
from tamis.cli.progress import Watch


class Terminal(io.StringIO):
    """Standard error of somebody who looks at it."""

    def isatty(self) -> bool:
        return True


def look(monkeypatch: pytest.MonkeyPatch, patience: float = 0.01) -> Terminal:
    """Sit down at a terminal. In the test itself: pytest puts its own capture back after fixtures."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "PATIENCE", patience)
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    return screen


def wait_for(text: str, screen: Terminal) -> None:
    deadline = time.monotonic() + 20
    while text not in screen.getvalue() and time.monotonic() < deadline:
        time.sleep(0.05)


def test_long_read_shows_how_many_files_have_come_in(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = look(monkeypatch)
    with Watch() as watch:
        watch(2000, 4000)
        wait_for("2000/4000", screen)
    assert "reading metadata" in screen.getvalue()
    assert "2000/4000" in screen.getvalue()
    assert capsys.readouterr().out == ""


def test_short_read_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = look(monkeypatch, patience=30)
    with Watch() as watch:
        watch(1, 1)
    assert screen.getvalue() == ""


def test_nothing_is_shown_where_nobody_looks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    with Watch() as watch:
        watch(1, 10)
        time.sleep(0.1)
    assert capsys.readouterr() == ("", "")


def test_bar_is_taken_away_when_the_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message that follows must stand on a line of its own."""
    screen = look(monkeypatch)

    def fail() -> None:
        with Watch():
            wait_for("reading metadata", screen)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert screen.getvalue().endswith("\x1b[2K"), "the last word to the terminal is to clear the line"
