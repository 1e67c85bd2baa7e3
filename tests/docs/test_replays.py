"""The pages on replays: golden words are those of the tests, and commands and names exist."""

import re

from click.testing import CliRunner
from labeldp_runtime import Key

from labeldp_compile.cli import main
from runtime.tests.test_keyed_words import GOLDEN, GOLDEN_BY_GROUP, SECRET
from tests.docs.pages import text_of

PAGE = text_of("replays.md") + text_of("keyed-words.md")


def test_the_golden_words_are_tested_ones():
    stated = re.findall(r"^\|.*\| `([0-9a-f]{16} [0-9a-f]{16} [0-9a-f]{16})` \|$", PAGE, re.M)
    assert stated == [expected for *_, expected in (*GOLDEN, *GOLDEN_BY_GROUP)]
    assert f"`{Key(SECRET).fingerprint}`" in PAGE


def test_the_options_exist():
    for command in ("keygen", "randomize"):
        usage = CliRunner().invoke(main, [command, "--help"]).output
        for line in PAGE.splitlines():
            if line.startswith(f"    labeldp {command} "):
                assert all(option in usage for option in re.findall(r"--[a-z-]+", line))
