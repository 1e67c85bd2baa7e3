"""README.md: short, its commands run and print what it shows, its figures are measured ones."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
NOT_SHOWN = "…"
# What no draw of the prior's noise changes.
CERTAIN = ("init", "randomize")


def examples():
    """(words of the command, lines shown) in order."""
    blocks = re.findall(r"^```console\n\$ labeldp ([^\n]*)\n(.*?)^```$", TEXT, re.M | re.S)
    return [(shlex.split(command), output.splitlines()) for command, output in blocks]


def masked(line):
    """Without what differs from draw to draw: numbers, digests, lengths of bars."""
    line = re.sub(r"\b[0-9a-f]{16,64}\b", "DIGEST", line)
    line = re.sub(r"\d+(,\d{3})*(\.\d+)?(e[-+]\d+)?", "N", line)
    return re.sub(r"N +N%", "N N%", re.sub(" *[█▏▎▍▌▋▊▉]+", "", line)).rstrip()


def follows(shown, printed):
    """Whether these are those, but for whole lines where the first has an ellipsis."""
    pattern = "".join(
        "(?:.*\n)*?" if line == NOT_SHOWN else re.escape(line) + "\n" for line in shown
    )
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What each command really prints, as on a terminal, in a folder like the clone."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "specs").symlink_to(ROOT / "specs")
    lines = []
    for words, _ in examples():
        done = subprocess.run(
            [sys.executable, "-m", "labeldp_compile.cli", *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
            check=False,
        )
        output = done.stdout.decode()
        assert done.returncode == 0, (words, output)
        lines.append([line.rstrip() for line in output.splitlines()])
    return lines


def test_it_fits_a_screen_or_two():
    assert len(TEXT.splitlines()) <= 100


def test_its_commands_print_what_is_shown(printed):
    assert [words[0] for words, _ in examples()] == [
        *("init", "compile", "verify", "randomize", "estimate"),
    ]
    for (words, shown), lines in zip(examples(), printed, strict=True):
        assert len(shown) > shown.count(NOT_SHOWN)
        assert follows([*map(masked, shown)], [*map(masked, lines)]), (words, lines)
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
    assert (
        "make install" in first and "make demo" in first and "docs/images/before-after.png" in first
    )


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
