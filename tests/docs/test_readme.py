"""README.md: short, its commands run and print what it shows, its figures are measured ones."""

import re

import pytest

from tests.docs import console
from tests.docs.console import NOT_SHOWN, ROOT, follows, is_shown, run_all

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
# What no draw of the prior's noise changes.
CERTAIN = ("init", "randomize")


def examples():
    """(words of the command behind labeldp, lines shown) in order."""
    return [(words[1:], shown) for words, shown in console.examples(TEXT)]


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    return run_all(TEXT, tmp_path_factory.mktemp("clone"))


def test_it_fits_a_screen_or_two():
    assert len(TEXT.splitlines()) <= 100


def test_its_commands_print_what_is_shown(printed):
    assert [words[0] for words, _ in examples()] == [
        *("init", "compile", "verify", "randomize", "estimate"),
    ]
    for (words, shown), lines in zip(examples(), printed, strict=True):
        assert len(shown) > shown.count(NOT_SHOWN)
        assert is_shown(shown, lines), (words, lines)
        if words[0] in CERTAIN:
            assert follows(shown, lines), (words, lines)


def test_a_line_that_no_command_prints_is_found(printed):
    (words, shown), lines = examples()[0], printed[0]
    assert words[0] == "init"
    for place in range(len(shown)):
        assert not follows([*shown[:place], "  invented", *shown[place:]], lines)
    (_, shown), lines = examples()[1], printed[1]
    assert NOT_SHOWN in shown
    assert not follows([line for line in shown if line != NOT_SHOWN], lines)


def test_the_example_is_right_on_average_and_useful(printed):
    verified = "\n".join(printed[2])
    assert "around the true one" in verified and "warning:" not in verified


def test_its_first_screen_shows_the_problem_the_commands_and_the_picture():
    first = "\n".join(TEXT.splitlines()[:16])
    assert "make test" in first and "make demo" in first and "docs/images/before-after.png" in first


def test_its_figures_are_those_of_the_pages_of_measurements():
    (section,) = re.findall(r"^## Measured$(.*?)(?=^Apache)", TEXT, re.M | re.S)
    docs = ROOT / "docs"
    pages = [docs / "measured.md", docs / "training.md", *(docs / "measured").glob("*.md")]
    page = "\n".join(path.read_text(encoding="utf-8") for path in pages)
    figures = re.findall(r"(?<![\w.])\d+\.\d+(?:e-?\d+)?(?![\w.]\d)|\b\d{3}\b(?!,)", section)
    assert len(figures) >= 6
    for figure in figures:
        assert re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d.])", page), figure
    scripts = re.findall(r"`(benchmarks/\w+\.py)`", section)
    assert len(scripts) >= 2 and all((ROOT / script).is_file() for script in scripts)


def test_nobody_is_told_to_install_a_name_that_a_stranger_could_publish():
    for target in re.findall(r"pip install ([^`\n]*)", TEXT):
        assert all(word.startswith((".", "'.")) for word in target.split()), target


def test_it_asks_for_targets_that_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {word for line in re.findall(r"^([\w ]+):", makefile, re.M) for word in line.split()}
    asked = set(re.findall(r"^make (\w+)|`make (\w+)`", TEXT, re.M))
    assert {one or other for one, other in asked} <= targets
