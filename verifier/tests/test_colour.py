"""Colour marks a status on a terminal, and nothing else ever does."""

import io

import pytest
from labeldp_verify.printable import Marked, rendered, shows_colour


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def colours(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.usefixtures("colours")
@pytest.mark.parametrize(("status", "code"), [("ok", "32"), ("warning", "33"), ("failed", "1;31")])
def test_a_marked_line_is_coloured_on_a_terminal_only(status, code):
    line = Marked("all is said", status)
    assert rendered(line, Terminal()) == f"\x1b[{code}mall is said\x1b[0m"
    assert rendered(line, io.StringIO()) == "all is said"
    assert rendered("all is said", Terminal()) == "all is said"


@pytest.mark.usefixtures("colours")
def test_a_line_brings_no_colour_of_its_own():
    assert rendered(Marked("a\x1b[31mb\nc", "ok"), Terminal()) == "\x1b[32ma�[31mb�c\x1b[0m"
    assert rendered("a\x1b[31mb", Terminal()) == "a�[31mb"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colour_can_be_turned_off(monkeypatch, name, value):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert shows_colour(Terminal())
    monkeypatch.setenv(name, value)
    assert not shows_colour(Terminal())
