"""Whether ``sweep --target`` hits what it is asked for: random targets, simulated errors.

Prints markdown. Of each kind of target: how often it is reached at the least ε of all, and how
often by a mechanism that is not useful at a hundredth less ε (some labels are alike to it, for
instance). Of the others, the range of the simulated error over the asked one, and the least error
over the asked one at a hundredth less ε (of means and shares by the formula: a simulation's own
deviation would hide a hundredth).
"""

import argparse
import math
import tempfile
import time
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
from labeldp_verify.artifact import Table

from benchmarks.shared.random_targets import compiled, random_demand, simulated_error
from labeldp_compile import InputError, choose
from labeldp_compile.sweeps.points import are_degenerate

LESS = Fraction(99, 100)


def hit(demand, folder, draw, repetitions):
    """(kind, error over target, the same at 1 % less ε, seconds), or None.

    The third is None at the end of the range, and infinite where the mechanism is not useful there.
    """
    path = folder / "asked.yaml"
    path.write_text(demand.text, encoding="utf-8")
    begin = time.perf_counter()
    try:
        choice = choose(path, **demand.asked)
    except InputError as error:
        assert error.exit_code == 1, error
        return None
    seconds = time.perf_counter() - begin
    lines, less = choice.spec_lines(), None
    error = simulated_error(demand, compiled(demand, lines), draw, repetitions) / demand.most
    if choice.missed_at is not None:
        old, new = (f"epsilon: {float(e):.10g}" for e in (choice.epsilon, choice.epsilon * LESS))
        smaller = [line.replace(old, new) for line in lines]
        assert smaller != lines
        less = error_of(demand, choice.spec, compiled(demand, smaller), draw) / demand.most
    return demand.kind, error, less, seconds


def error_of(demand, spec, artifact, draw):
    """The figure that is asked for, infinite where it is not useful."""
    domain = spec.label.to_domain("unbiased")
    found = Table(domain, artifact.randomizer, artifact.certificate)
    if are_degenerate(found.shortcomings, spec.goal):
        return math.inf
    if demand.rows is not None:
        error = found.usefulness.margin(demand.rows)
        return math.inf if error is None else error
    return simulated_error(demand, artifact, draw, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=20_000)
    arguments = parser.parse_args()
    draw, found = np.random.default_rng(arguments.seed), defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.targets):
            result = hit(random_demand(draw), Path(folder), draw, arguments.repetitions)
            kind, *numbers = result or ("reached by no ε",)
            found[kind].append(numbers)
    print(
        "| target | asked | at the least ε | not useful below | error over target | within 5 % | "
        "at 1 % less ε | seconds, median (most) |"
    )
    print("|---|---:|---:|---:|---|---:|---:|---|")
    for kind, results in sorted(found.items()):
        known = [numbers for numbers in results if numbers]
        ends = [numbers for numbers in known if numbers[1] is None]
        jumps = [numbers for numbers in known if numbers[1] == math.inf]
        inside = [numbers for numbers in known if numbers[1] not in (None, math.inf)]
        if not inside:
            print(f"| {kind} | {len(results)} |" + " |" * 6)
            continue
        errors, less, seconds = zip(*inside, strict=True)
        near = sum(0.95 <= error <= 1.05 for error in errors)
        print(
            f"| {kind} | {len(results)} | {len(ends)} | {len(jumps)} | "
            f"{min(errors):.3f} – {max(errors):.3f} | {near} of {len(inside)} | "
            f"≥ {min(less):.4f} | {np.median(seconds):.2f} ({max(seconds):.2f}) |"
        )
        for name, others in (("at the least ε", ends), ("not useful below", jumps)):
            if others:
                errors = [numbers[0] for numbers in others]
                print(f"({kind}, {name}: error over target {min(errors):.3f} – {max(errors):.3f})")


if __name__ == "__main__":
    main()
