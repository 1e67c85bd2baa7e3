"""Labels a second through tables by group, beside one table for all, in one run.

The same mechanism, k and ε, one thread; medians of alternating runs; prints markdown. Groups have
priors of their own, drawn from a fixed seed, and rows come in random order of their groups: each
label of a batch meets another table.
"""

import argparse
import statistics
import time
from fractions import Fraction

import numpy as np
import onnxruntime
from labeldp_runtime import Randomizer
from labeldp_runtime.entropy import random_words
from labeldp_runtime.randomizer import CHUNK
from labeldp_verify import check_bytes
from labeldp_verify.forms import Groups
from labeldp_verify.graph import choose_grid
from labeldp_verify.graph.bucket_grid import SINGLE_GRID_OF_GROUPS

from labeldp_compile.build.assembly import assemble
from labeldp_compile.errors import InputError
from labeldp_compile.prior.obtain import estimate_prior
from labeldp_compile.prior.priors import Prior, TablePrior
from labeldp_compile.spec import parse_spec
from tests.fixtures.compiled import integer_spec

CASES = [
    ("rr_on_bins", 52, 2),
    ("randomized_response", 52, 1),
    ("randomized_response", 101, 4),
    ("optimal_unbiased", 52, 1),
]
COUNTS = (8, 44, 1000)
SHAPES = 8  # different priors; more groups share them
BATCHES = (100_000, 1_000_000)


def priors(k, generator):
    """Weights [k] of bells of different places and widths."""
    for _ in range(SHAPES):
        centre, width = generator.uniform(0, k), generator.uniform(2, k / 3)
        bell = np.exp(-(((np.arange(k) - centre) / width) ** 2) / 2)
        yield ((1000 * bell).astype(int) + 1).tolist()


def spec_of(mechanism, k, epsilon):
    return parse_spec(integer_spec(k, mechanism, epsilon=epsilon))


def grouped(spec, weights, groups):
    """The file of a table for each of the groups, and one more."""
    epsilon = Fraction(str(spec.privacy.epsilon))
    tables = [
        TablePrior({"kind": "public", "weights": weights[i % len(weights)]}, 1)
        for i in range(groups.tables)
    ]
    return assemble(spec, Prior(Fraction(0), epsilon, tables, groups), "0" * 64)


def alternating(functions, labels, runs):
    """Million labels a second, the median by name."""
    times = {name: [] for name in functions}
    for run in range(runs + 1):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if run:
                times[name].append(time.perf_counter() - start)
    return {name: labels / statistics.median(found) / 1e6 for name, found in times.items()}


def graph_of(randomizer, feed):
    """All chunks of a batch through the graph, as the runtime cuts them."""
    n = len(feed["label"])
    parts = [{name: part[a : a + CHUNK] for name, part in feed.items()} for a in range(0, n, CHUNK)]
    session = randomizer._session
    return lambda: [session.run(None, part) for part in parts]


def speeds(arguments, generator):
    print(f"onnxruntime {onnxruntime.__version__}; million labels a second\n")
    print("| randomizer | groups | labels a call | plain | integers | numbered | text |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for mechanism, k, epsilon in CASES:
        for count in COUNTS:
            spec, weights = spec_of(mechanism, k, epsilon), list(priors(k, generator))
            plain = Randomizer(assemble(spec, estimate_prior(spec, None), "0" * 64).model)
            maps = {
                "integers": [7 * i + 3 for i in range(count)],
                "numbered": list(range(count)),
                "text": [f"group {i}" for i in range(count)],
            }
            try:
                by_group = {
                    name: Randomizer(grouped(spec, weights, Groups.of(tuple(values))).model)
                    for name, values in maps.items()
                }
            except InputError as error:
                print(f"| {mechanism}, k = {k}, ε = {epsilon} | {count:,} | {error} |")
                continue
            for batch in BATCHES:
                labels = generator.integers(0, k, batch)
                words = random_words(batch)
                where = generator.integers(0, count, batch)
                feed = {"label": labels, "entropy": words}
                functions = {"plain": graph_of(plain, feed)}
                calls = {"plain": lambda r=plain, y=labels: r(y)}
                for name, values in maps.items():
                    kind = object if name == "text" else np.int64
                    groups = np.array(values, dtype=kind)[where]
                    randomizer = by_group[name]
                    functions[name] = graph_of(randomizer, {**feed, "group": groups})
                    calls[name] = lambda r=randomizer, y=labels, g=groups: r(y, groups=g)
                for what, chosen in (("graph", functions), ("call", calls)):
                    found = alternating(chosen, batch, arguments.runs)
                    cells = [f"{found['plain']:.3g}"]
                    cells += [f"{found[n]:.3g} ({found[n] / found['plain']:.2f})" for n in maps]
                    name = f"{mechanism}, k = {k}, ε = {epsilon}, {what}"
                    print(f"| {name} | {count:,} | {batch:,} | {' | '.join(cells)} |", flush=True)


def files(generator):
    print("\n| randomizer | groups | bits | grid entries | bytes | verify, s |")
    print("|---|---:|---:|---:|---:|---:|")
    for mechanism, k, epsilon in CASES:
        for count in COUNTS:
            spec, weights = spec_of(mechanism, k, epsilon), list(priors(k, generator))
            try:
                artifact = grouped(spec, weights, Groups.of(range(count)))
            except InputError:
                continue
            randomizer, model = artifact.artifact.lookup, artifact.model
            bits = f"{min(randomizer.word_bits)} … {max(randomizer.word_bits)}"
            grid = choose_grid(randomizer.lines, single_entries=SINGLE_GRID_OF_GROUPS)
            entries = sum(
                ((stop - 1) >> shift) + 1 - (first >> shift)
                for first, stop, shift in grid.stretches(randomizer.lines)
            )
            start = time.process_time()
            try:
                report = check_bytes(model)
                took = f"{time.process_time() - start:.1f}" if report.ok else "FAILED"
            except Exception as error:
                took = str(error)[:60]
            name = f"{mechanism}, k = {k}, ε = {epsilon}"
            print(
                f"| {name} | {count:,} | {bits} | {entries:,} | {len(model):,} | {took} |",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--files", action="store_true", help="sizes and costs of verifying, too")
    arguments = parser.parse_args()
    speeds(arguments, np.random.default_rng(0))
    if arguments.files:
        files(np.random.default_rng(0))


if __name__ == "__main__":
    main()
