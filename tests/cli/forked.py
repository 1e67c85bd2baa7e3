"""``labeldp`` in forks of one process that has imported everything: many runs, and kills, quickly.

Each run begins as a new process with one thread. With ``dies_after`` it is ended by the kernel when
it has used so much CPU time, wherever it is then, and as finally as kill -9 does. With ``dies_at``,
MODULE:CLASS.METHOD, it ends when that method has returned; with a ``-`` in front, when that is
called.
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass

SERVER = """
import importlib, json, os, resource, signal, sys
import labeldp_compile.cli.randomize, labeldp_compile.ledger.sqlite_store
import labeldp_compile.ledger.draw_account, labeldp_runtime.randomizer, labeldp_runtime.keyed
from labeldp_compile.cli import main

def end():
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.raise_signal(signal.SIGPROF)

def end_at(place):
    module, _, name = place.lstrip("-").partition(":")
    owner, _, method = name.partition(".")
    owner = getattr(importlib.import_module(module), owner)
    whole = getattr(owner, method)
    def last(*given):
        if not place.startswith("-"):
            whole(*given)
        end()
    setattr(owner, method, last)

for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with open(asked["said"], "w") as said:
            os.dup2(said.fileno(), 1), os.dup2(said.fileno(), 2)
            if asked["dies_at"]:
                end_at(asked["dies_at"])
            if asked["dies_after"]:
                signal.signal(signal.SIGPROF, signal.SIG_DFL)
                signal.setitimer(signal.ITIMER_PROF, asked["dies_after"])
            try:
                main(asked["words"], prog_name="labeldp")
            except SystemExit as error:
                sys.stderr.flush()
                os._exit(error.code or 0)
            os._exit(99)
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    print(json.dumps([code, used.ru_utime + used.ru_stime]), flush=True)
"""


@dataclass
class Done:
    code: int
    seconds: float
    said: str

    @property
    def was_killed(self):
        return self.code == -signal.SIGPROF


class Forks:
    """Hands commands to the process that forks."""

    def __init__(self, folder):
        self._said = folder / "said.txt"
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )

    def __call__(self, *words, dies_after=0.0, dies_at=""):
        asked = {"words": [str(word) for word in words], "dies_after": dies_after}
        asked["dies_at"] = dies_at
        self._process.stdin.write(json.dumps({**asked, "said": str(self._said)}) + "\n")
        self._process.stdin.flush()
        code, seconds = json.loads(self._process.stdout.readline())
        return Done(code, seconds, self._said.read_text(encoding="utf-8"))

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait() == 0
