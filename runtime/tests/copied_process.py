"""Runs a program that copies its process (copied_process.c), and tells what both of them wrote."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

COPIES = ("snapshot", "namespace", "reused")
ASK = "/copy/of/this/process"  # access() gives the original 0, and the copy -1
_SCRIPT = """
import hashlib, os, sys
{imports}
def draw():
    return hashlib.sha256(bytes({draw})).hexdigest()
draw()
os.access("{ask}", 0)
print(os.getpid(), draw(), draw(), flush=True)
os._exit(0)
"""
_SOURCE = Path(__file__).with_suffix(".c")
_CAPABLE = (
    ["unshare", "--pid", "--fork"],
    ["unshare", "--user", "--map-root-user", "--pid", "--fork"],
)
# Process 1 of a namespace: runs a program, and ends after all that the program left behind.
_FIRST = """
import os, subprocess, sys
subprocess.run(sys.argv[1:], check=False)
try:
    while True:
        os.wait()
except ChildProcessError:
    pass
"""


class CopyingProcess:
    """Programs that run with ``copied_process.c``, which was compiled into a folder."""

    def __init__(self, folder: Path) -> None:
        """Skips the test where there is no C compiler."""
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("g++")
        if compiler is None:
            pytest.skip("no C compiler: a process that is copied cannot be tried")
        self.library = folder / "copied_process.so"
        command = [compiler, "-x", "c", "-shared", "-fPIC", "-Wall", "-Werror"]
        subprocess.run([*command, "-o", self.library, _SOURCE], check=True)

    def __call__(self, copy: str, command: Sequence[str]) -> list[str]:
        """The lines that the program and its copy wrote, of which each begins with its pid.

        Skips the test where the machine does not permit what the copy needs.
        """
        environment = {**os.environ, "LD_PRELOAD": str(self.library), "LABELDP_COPY": copy}
        preload = ["env", *(f"{k}={environment[k]}" for k in ("LD_PRELOAD", "LABELDP_COPY"))]
        begin = [] if copy == "snapshot" else self._namespace()
        if copy == "reused":
            begin += [sys.executable, "-c", _FIRST]
        done = subprocess.run(
            [*begin, *preload, *command], capture_output=True, text=True, timeout=300, check=False
        )
        lines = done.stdout.splitlines()
        if copy != "snapshot" and len(lines) == 1 and not done.stderr:
            pytest.skip(f"no permission for a copy by way of: {copy}")
        assert len(lines) == 2, (lines, done.stderr)
        pids = {line.split()[0] for line in lines}
        assert len(pids) == 1, "the copy has another process id: it could have noticed"
        return [line.split(maxsplit=1)[1] for line in lines]

    @staticmethod
    def _namespace() -> list[str]:
        for command in _CAPABLE if shutil.which("unshare") else ():
            if not subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
                return [*command]
        pytest.skip("no permission to make a process id namespace")


def assert_unlike(copying_process: CopyingProcess, copy: str, imports: str, draw: str) -> None:
    """Two draws of a program and two of its copy are four different ones."""
    script = _SCRIPT.format(imports=imports, draw=draw, ask=ASK)
    one, other = copying_process(copy, [sys.executable, "-c", script])
    assert len({*one.split(), *other.split()}) == 4
