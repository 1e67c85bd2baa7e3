"""README.md: short, its commands run and print what it shows, its figures are measured ones."""

import re

import pytest

from tests.docs.pages import NOT_SHOWN, ROOT, follows, require_shown, run_page

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
# What no draw of the prior's noise changes.
CERTAIN = ("init", "randomize")


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clone")
    run = run_page("README.md", folder, lambda block: block.language == "console")
    require_shown(run)
    return {it.words[1]: it for it in run.commands}


def test_its_commands_print_what_is_shown(commands):
    assert [*commands] == ["init", "compile", "verify", "randomize", "estimate"]
    for name, it in commands.items():
        assert len(it.shown) > it.shown.count(NOT_SHOWN)
        assert name not in CERTAIN or follows(it.shown, it.printed), it


def test_the_example_is_right_on_average_and_useful(commands):
    verified = "\n".join(commands["verify"].printed)
    assert "standard deviation" in verified and "warning:" not in verified


def test_its_figures_are_those_of_the_page_of_measurements():
    (section,) = re.findall(r"^## Measured$(.*?)(?=^Apache)", TEXT, re.M | re.S)
    page = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    figures = re.findall(r"(?<![\w.])\d+\.\d+(?:e-?\d+)?(?![\w.]\d)|\b\d{3}\b(?!,)", section)
    assert len(figures) >= 6
    for figure in figures:
        assert re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d.])", page), figure
    scripts = re.findall(r"`(benchmarks/\w+\.py)`", section)
    assert len(scripts) >= 2 and all((ROOT / script).is_file() for script in scripts)


def test_it_asks_for_targets_that_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {word for line in re.findall(r"^([\w ]+):", makefile, re.M) for word in line.split()}
    asked = set(re.findall(r"^make (\w+)|`make (\w+)`", TEXT, re.M))
    assert {one or other for one, other in asked} <= targets
