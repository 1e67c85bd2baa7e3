"""Time of portable files beside the files that they were made from, in turns, in one run.

    python benchmarks/portable.py --cpu

One thread, batches of 65,536 labels and of 1, fresh random words drawn by the runtime in both. A
ratio is the median of those of all rounds, with its quartiles. ``--cpu`` counts the processor's
time instead of the clock's, for a machine that is shared. Prints markdown.
"""

import argparse
import statistics
import time

import numpy as np
from labeldp_runtime import Randomizer

from benchmarks.randomizing import CASES, in_turns
from labeldp_compile.export.portable import as_portable_file
from tests.fixtures.compiled import compile_text, integer_spec


def main():
    """One line a case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--rounds", type=int, default=41)
    options = parser.parse_args()
    clock = time.process_time if options.cpu else time.perf_counter
    print("| file | time of 65,536 labels, portable / plain | time of one label |")
    print("|---|---:|---:|")
    for mechanism, labels, epsilon in CASES:
        compiled = compile_text(integer_spec(labels, mechanism, epsilon=epsilon))
        both = [as_portable_file(compiled.artifact).model, compiled.model]
        readers = [Randomizer(model) for model in both]
        cells = [
            ratio(readers, np.arange(count) % labels, clock, options.rounds * repeat, calls)
            for count, repeat, calls in ((65_536, 1, 1), (1, 1, 200))
        ]
        print(f"| {mechanism}, k = {labels}, ε = {epsilon} | {cells[0]} | {cells[1]} |", flush=True)


def ratio(readers, labels, clock, rounds, calls):
    """How many times as long the first reader takes as the second."""

    def run(reader):
        for _ in range(calls):
            reader(labels)

    one, other = in_turns([lambda r=r: run(r) for r in readers], rounds, clock)
    low, middle, high = statistics.quantiles(np.divide(one, other).tolist(), n=4)
    return f"{middle:.2f} ({low:.2f}–{high:.2f})"


if __name__ == "__main__":
    main()
