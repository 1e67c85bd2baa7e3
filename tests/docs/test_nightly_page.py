"""docs/nightly.md: its commands run in order, and print what is shown."""

import re
import shlex
import subprocess
import sys

import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main
from labeldp_compile.tabular.parts_folder import ListedPart
from tests.docs.blocks import DOCS, blocks_of
from tests.docs.console import is_shown

PAGE = (DOCS / "nightly.md").read_text(encoding="utf-8")


def commands():
    """(words, lines shown) in order; a block may hold several commands."""
    for block in blocks_of("nightly.md"):
        if block.language == "console":
            for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
                command, *shown = part.splitlines()
                yield shlex.split(command), shown


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """(words, shown, printed) of each command."""
    folder = tmp_path_factory.mktemp("page")
    for block in blocks_of("nightly.md"):
        if block.file_name:
            (folder / block.file_name).write_text(block.text, encoding="utf-8")
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("LABELDP_CONFIG", str(folder / "config.toml"))
        (folder / "config.toml").touch(mode=0o600)
        for (program, *words), shown in commands():
            if program == "python":
                subprocess.run([sys.executable, *words], check=True, cwd=folder)
                continue
            assert program == "labeldp"
            done = CliRunner().invoke(main, words)
            assert done.exit_code == 0, (words, done.output)
            lines = [
                line for line in done.output.splitlines() if "a new key, with which" not in line
            ]
            found.append((words, shown, [line.rstrip() for line in lines]))
    return found


@pytest.mark.slow
def test_the_commands_print_what_is_shown(printed):
    assert len(printed) > 12
    for words, shown, lines in printed:
        if "--quiet" not in words:
            assert is_shown(shown, lines), (words, lines)


def test_counts_of_rows_are_those_of_the_page(printed):
    """Draws are random, and rows are not."""
    counts = re.compile(r"([\d,]+ rows|[\d,]+ private labels of|[\d,]+ ids are)")
    for words, shown, lines in printed:
        if "--quiet" not in words and "…" not in shown:
            assert counts.findall("\n".join(shown)) == counts.findall("\n".join(lines)), words


def test_the_table_of_the_manifest_is_whole():
    table = PAGE.split("| field | is |\n")[1].split("\n\n")[0]
    stated = {
        name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    assert stated == {"format_version", "folder", "parts", *ListedPart.__annotations__}
