"""The theory, compiled by Coq."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from labeldp_compile.export.coq import PREFIX, needed, source


def compile_theory(folder: Path, names: Iterable[str] = ("Theorems",)) -> list[str]:
    """What coqc prints for each file of the theory, compiled in this folder."""
    said = []
    for name in needed(names):
        (folder / f"{name}.v").write_text(source(name), encoding="utf-8")
        said.append(run("coqc", "-q", "-Q", ".", PREFIX, f"{name}.v", cwd=folder))
    return said


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stdout}{done.stderr}")
    return done.stdout
