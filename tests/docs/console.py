"""Console blocks of a page: the commands in order, and whether they print what is shown."""

import re
import shlex
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

from click.testing import CliRunner

from labeldp_compile.cli import main

ROOT = Path(__file__).parents[2]
NOT_SHOWN = "…"
_PROGRAMS = {
    "labeldp-verify": ["-m", "labeldp_verify"],
    "python": [],
}


def examples(text):
    """(words of the command, lines shown) in order."""
    blocks = re.findall(r"^```console\n\$ ([^\n]*)\n(.*?)^```$", text, re.M | re.S)
    return [(shlex.split(command), output.splitlines()) for command, output in blocks]


def masked(line):
    """Without what differs from draw to draw: numbers, digests, lengths of bars."""
    line = re.sub(r"\b(?=\d*[a-f])[0-9a-f]{16,64}\b", "DIGEST", line)  # a number has no letter
    line = re.sub(r"-?\b\d+(,\d{3})*(\.\d+)?(e[-+]\d+)?", "N", line)
    return re.sub(r" +", " ", re.sub(r" *[█▏▎▍▌▋▊▉]+", "", line)).rstrip()


def follows(shown, printed):
    """Whether these are those, but for whole lines where the first has an ellipsis."""
    pattern = "".join(
        "(?:.*\n)*?" if line == NOT_SHOWN else re.escape(line) + "\n" for line in shown
    )
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def is_shown(shown, printed):
    """The same, whatever the draw of random bits was."""
    return follows([*map(masked, shown)], [*map(masked, printed)])


def run_all(text, folder):
    """What each command really prints, in a folder like the clone."""
    (folder / "specs").symlink_to(ROOT / "specs")
    with chdir(folder):
        return [_printed(*words) for words, _ in examples(text)]


def _printed(program, *words):
    if program == "labeldp":
        done = CliRunner().invoke(main, words)
        code, output = done.exit_code, done.output
    else:
        command = [sys.executable, *_PROGRAMS[program], *words]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        code, output = made.returncode, made.stdout + made.stderr
    assert code == 0, (words, output)
    return [line.rstrip() for line in output.splitlines()]
