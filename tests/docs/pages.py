"""Pages whose blocks run from the first to the last, in a folder like the clone."""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import polars as pl
import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NOT_SHOWN = "…"
EXIT_CODE = "$ echo $?"


@dataclass(frozen=True)
class Block:
    language: str
    text: str

    @property
    def file_name(self):
        """The name in a first line ``# NAME.py`` or ``# NAME.yaml``, or None."""
        found = re.match(r"# (\S+\.(?:py|yaml))\n", self.text)
        return found and found[1]


def text_of(page):
    """A page of docs/, or one that is named from the root of the clone."""
    path = DOCS / page
    return (path if path.is_file() else ROOT / page).read_text(encoding="utf-8")


def blocks_of(page):
    """Its fenced blocks in order; a page without any is a mistake of the caller's."""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text_of(page), re.M | re.S)
    assert blocks, page
    return [Block(*pair) for pair in blocks]


@dataclass(frozen=True)
class Command:
    """A command of a page, what the page shows below it, and what it really prints."""

    words: list[str]
    shown: list[str] | None  # a block of ``sh`` shows nothing
    printed: list[str]


@dataclass(frozen=True)
class Run:
    """What came of a page: its commands, the rows of its SQL, the names of its Python."""

    folder: Path
    commands: list[Command]
    queries: list[pl.DataFrame]
    names: dict[str, object]

    def printed(self, *words):
        """What the one command prints that begins with these words, and what is shown of it."""
        (it,) = (it for it in self.commands if it.words[: len(words)] == [*words])
        return it.printed, it.shown


def run_page(page, folder, runs: Callable[[Block], bool] = lambda block: True, names=()):
    """Run every block of which ``runs`` is true; exit codes are 0, or those that are shown.

    ``names`` are those of a page that this one continues.
    """
    run = Run(folder, [], [], {"__name__": "page", **dict(names)})
    blocks = [block for block in blocks_of(page) if runs(block)]
    asked = "\n".join(block.text for block in blocks if block.language in ("console", "sh"))
    (folder / "config.toml").touch(mode=0o600)
    if not (folder / "specs").exists():
        (folder / "specs").symlink_to(ROOT / "specs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("LABELDP_CONFIG", str(folder / "config.toml"))
        for block in blocks:
            name = block.file_name
            if name:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(block.text, encoding="utf-8")
            if block.language == "python" and f"python {name}" not in asked:
                exec(compile(block.text, name or page, "exec"), run.names)
            elif block.language == "sql":
                run.queries.append(duckdb.sql(block.text).pl())
            elif block.language == "sh":
                run.commands.extend(_command(shlex.split(x), None) for x in block.text.splitlines())
            elif block.language == "console":
                for part in re.split(r"^\$ (?!echo \$\?)", block.text, flags=re.M)[1:]:
                    command, *shown = part.splitlines()
                    run.commands.append(_command(shlex.split(command), shown))
    return run


def _command(words, shown):
    wanted = 0
    if shown and EXIT_CODE in shown:
        *shown, _, code = shown
        wanted = int(code)
    program, *options = words
    if program == "labeldp":
        done = CliRunner().invoke(main, options)
        code, output = done.exit_code, done.output
    else:
        module = ["-m", "labeldp_verify"] if program == "labeldp-verify" else []
        assert module or program == "python", words
        command = [sys.executable, *module, *options]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        code, output = made.returncode, made.stdout + made.stderr
    assert code == wanted, (words, output)
    lines = [line.rstrip() for line in output.splitlines()]
    # the reader of a page has a key of ledgers already
    return Command(words, shown, [x for x in lines if "ledger.key: a new key, with" not in x])


def masked(line):
    """Without what differs from draw to draw: numbers, digests, lengths of bars."""
    line = re.sub(r"\b(?=\d*[a-f])[0-9a-f]{16,64}\b", "N", line)  # a digest may have no letter
    line = re.sub(r"-?\b\d+(,\d{3})*(\.\d+)?(e[-+]\d+)?", "N", line)
    return re.sub(r" +", " ", re.sub(r" *[█▏▎▍▌▋▊▉]+", "", line)).rstrip()


def follows(shown, printed):
    """Whether these are those, but for whole lines where the first has an ellipsis."""
    pattern = "".join(
        "(?:.*\n)*?" if line == NOT_SHOWN else re.escape(line) + "\n" for line in shown
    )
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def require_shown(run):
    """Every command prints what is shown, whatever the draw of random bits was."""
    commands = [it for it in run.commands if it.shown is not None and "--quiet" not in it.words]
    assert commands
    for it in commands:
        shown, printed = map(masked, it.shown), map(masked, it.printed)
        assert follows([*shown], [*printed]), (it.words, it.printed)
