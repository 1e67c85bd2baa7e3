"""``make lint`` finds a word of the list and a sentence that is too long, wherever text stands."""

import importlib.util
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "words"
LONG = "a " + "long word " * 20


@pytest.fixture
def tree(tmp_path):
    """A repository with one text file of each kind; ``found(path, text)`` checks it."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)

    def found(path, text):
        (tmp_path / path).write_text(text, encoding="utf-8")
        subprocess.run(["git", "-C", tmp_path, "add", "-A"], check=True)
        done = subprocess.run(
            [sys.executable, SCRIPT, path],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == int(bool(done.stdout)), done.stderr
        return done.stdout

    return found


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", '"""Whoever reads this."""\n'),
        ("a.py", "x = 1  # whoever reads this\n"),
        ("a.py", 'raise ValueError(f"{1} rows, whoever reads")\n'),
        ("a.md", "Anyone, whoever reads this.\n"),
        ("a.md", "| who | whoever reads |\n"),
        ("a.html.jinja", "<p>{{ name }} whoever reads</p>\n"),
        ("a.yaml", "key: 1  # whoever reads\n"),
    ],
)
def test_a_word_is_found_in_every_kind_of_text(tree, path, text):
    assert "write anyone who" in tree(path, text)
    assert tree(path, text.replace("whoever", "one who").replace("Whoever", "One who")) == ""


def test_a_long_sentence_is_found_in_messages_and_prose(tree):
    assert "words in a sentence" in tree("a.py", f'x = "{LONG}"\n')
    assert "words in a sentence" in tree("a.md", f"{LONG}\n")
    halves = LONG[: len(LONG) // 2], LONG[len(LONG) // 2 :]
    assert tree("a.md", ". ".join(halves) + "\n") == ""


def test_code_is_no_text(tree):
    assert tree("a.md", "```sh\nwhoever\n```\n\n    whoever\n\n`whoever`\n") == ""


def test_the_list_of_exceptions_stays_short():
    loader = SourceFileLoader("words", str(SCRIPT))
    words = importlib.util.module_from_spec(importlib.util.spec_from_loader("words", loader))
    loader.exec_module(words)
    allowed = SCRIPT.with_name("words-allowed.txt").read_text(encoding="utf-8").splitlines()
    assert len(allowed) <= words.MAX_EXCEPTIONS == 20
