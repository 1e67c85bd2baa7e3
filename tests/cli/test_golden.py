"""Transcripts of the command line: each command of ``golden/*.txt`` prints what stands below it.

A transcript is lines ``$ labeldp …``, each followed by its output (indented), its diagnostics
(after ``!``) and its exit code if that is not 0. Comments begin with ``#``. The commands of one
file run in one folder, which holds ``specs``, ``tests`` and the files of ``golden/inputs``. Secret
bits are the same in every run, and so are the versions that an artifact states; times and hashes
are masked, and a usage error is its last line.

After a sentence has changed, write the transcripts again, and read the difference:

    LABELDP_GOLDEN=write pytest tests/cli/test_golden.py
"""

import difflib
import os
import random
import re
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).with_name("golden")
MASKED = {
    "TIME": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?"),
    "HASH": re.compile(r"\b[0-9a-f]{16,64}\b"),
    "(1 + GAP)": re.compile(r"\(1 \+ \d\.\d+e-1[5-9]\)"),  # the last digits of a processor's floats
    "model of N": re.compile(r"model of [\d,]+"),
}


def transcript(line):
    """What a command prints: its results, its diagnostics, and its exit code."""
    words, _, source = line.removeprefix("$ labeldp ").partition(" < ")
    given = Path(source).read_bytes() if source else None
    ran = CliRunner().invoke(main, shlex.split(words), prog_name="labeldp", input=given)
    shown = [f"  {text}".rstrip() for text in ran.stdout.splitlines()]
    told = re.sub(r"(?s)\AUsage: .*?(?=Error: )", "", ran.stderr)
    shown += [f"! {text}".rstrip() for text in told.splitlines()]
    shown += [f"exit code {ran.exit_code}"] * bool(ran.exit_code)
    shown = [text.replace(f"{Path.cwd()}/", "") for text in shown]
    for mask, pattern in MASKED.items():
        shown = [pattern.sub(mask, text) for text in shown]
    return shown


@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.txt")))
def test_commands_print_what_their_transcript_says(name, tmp_path, inside, monkeypatch):
    for folder in ("specs", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    shutil.copytree(GOLDEN / "inputs", tmp_path, dirs_exist_ok=True)
    inside(tmp_path)
    (tmp_path / "config.toml").touch(mode=0o600)
    monkeypatch.setenv("LABELDP_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("labeldp_runtime.entropy._of_kernel", random.Random(name).randbytes)
    monkeypatch.setattr("labeldp_compile.sweeps.points.time.perf_counter", lambda: 0.0)
    monkeypatch.setattr("labeldp_compile.build.assembly._version", lambda name: "1.0.0")
    file = GOLDEN / f"{name}.txt"
    said = file.read_text(encoding="utf-8")
    now = []
    for line in said.splitlines():
        if line.startswith("$ "):
            now += ["", line, *transcript(line)]
        elif line.startswith("#"):
            now += ["", line]
    text = re.sub(r"(?m)(^#.*\n)\n(?=[#$])", r"\1", "\n".join(now[1:]) + "\n")
    if os.environ.get("LABELDP_GOLDEN") == "write":
        file.write_text(text, encoding="utf-8")
    if text != said:
        changes = difflib.unified_diff(said.splitlines(), text.splitlines(), lineterm="", n=1)
        pytest.fail("\n".join(["is LABELDP_GOLDEN=write right?", *changes]), pytrace=False)
