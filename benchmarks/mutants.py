"""Do the tests of what decides about privacy notice a changed operator or number?

    make mutants                                       # 1,000 mutants, hours
    python benchmarks/mutants.py --count 50 --seed 2   # a sample; needs cosmic-ray

A mutant is one change of cosmic-ray's operators (a comparison, a number, an arithmetic operator, a
loop that is not entered …) in one file of a room below, drawn with a seed. It is made in a copy of
this checkout. It is killed if the tests of its room fail or take ten times as long as without it;
otherwise it survives, and its line is printed: then a test is missing, or the line decides nothing.
"""

import argparse
import importlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest
from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.mutating import use_mutation
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parents[1]
TRAINER = "trainer/labeldp_trainer"
# What decides, and the tests that are asked: those of the same folder.
ROOMS = {
    "kernel": (["verifier/labeldp_verify/kernel.py"], ["verifier/tests/kernel"]),
    "claims": (["verifier/labeldp_verify/claims"], ["verifier/tests", "tests/verify"]),
    "rounding": (
        ["labeldp_compile/rounding"],
        ["tests/randomizer", "tests/mechanisms", "tests/pipeline/test_optimal_unbiased.py"],
    ),
    "sampler": (
        [f"{TRAINER}/discrete_gaussian", "labeldp_compile/prior/discrete_laplace.py"],
        ["trainer/tests/discrete_gaussian", "tests/prior/test_laplace_noise.py"],
    ),
    "sensitivities": (
        [f"{TRAINER}/one_release/plan.py", f"{TRAINER}/one_release/rows.py"],
        ["trainer/tests/one_release"],
    ),
}
# A changed annotation or decorator decides nothing.
IGNORED = ("core/NoOp", "core/RemoveDecorator", "core/VariableReplacer", "core/VariableInserter")
PACKAGES = ["verifier", "runtime", "learn", ".", "trainer"]
# Loaded once, before a process is forked for each mutant.
LOADED = ["numpy", "onnx", "onnxruntime", "hypothesis", "cryptography", "pydantic", "scipy"]


def mutants():
    """(room, path, operator, occurrence, line) of every change that can be made."""
    operators = {n: get_operator(n)() for n in operator_names() if not n.startswith(IGNORED)}
    for room, (names, _) in ROOMS.items():
        for path in (p for n in names for p in [ROOT / n, *(ROOT / n).rglob("*.py")]):
            if path.suffix != ".py":
                continue
            nodes = list(ast_nodes(get_ast_from_path(path)))
            for name, operator in operators.items():
                places = [start for node in nodes for start, _ in operator.mutation_positions(node)]
                for occurrence, (line, _) in enumerate(places):
                    yield room, path.relative_to(ROOT), name, occurrence, line


def passes(tests, copy, patience):
    """Whether quick tests pass in a copy of the checkout, within ``patience`` seconds."""
    child = os.fork()
    if not child:
        signal.alarm(patience)
        os.chdir(copy)
        sys.path[:0] = [str(copy / package) for package in PACKAGES]
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        asked = ["-x", "-q", "-p", "no:cacheprovider", "--assert=plain", "-m", "not slow"]
        os._exit(pytest.main([*asked, *tests]))
    return os.waitpid(child, 0)[1] == 0


def copied(folder):
    """A copy of what git knows of this checkout."""
    tracked = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    for name in filter(None, tracked.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=1000)
    options.add_argument("--seed", type=int, default=1)
    asked = options.parse_args()
    sys.dont_write_bytecode = True  # two mutants of one second would share it
    for name in LOADED:
        importlib.import_module(name)
    every = sorted(mutants())
    sample = random.Random(asked.seed).sample(every, min(asked.count, len(every)))
    made, killed, patience = Counter(), Counter(), {}
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(Path(folder) / "copy")
        for room, path, name, occurrence, line in sample:
            tests = ROOMS[room][1]
            if room not in patience:
                started = time.monotonic()
                if not passes(tests, copy, 0):
                    sys.exit(f"{room}: its tests fail without a mutant")
                patience[room] = 60 + round(10 * (time.monotonic() - started))
            with use_mutation(copy / path, get_operator(name)(), occurrence) as (_, changed):
                survives = changed is not None and passes(tests, copy, patience[room])
            made[room] += 1
            killed[room] += not survives
            if survives:
                print(f"survives: {path}:{line} {name}", flush=True)
    print(f"\n{len(every):,} mutants can be made; seed {asked.seed}\n\n| room | mutants | killed |")
    print("|---|---:|---:|")
    for room, count in made.items():
        print(f"| {room} | {count} | {killed[room]} ({100 * killed[room] / count:.0f}%) |")


if __name__ == "__main__":
    main()
