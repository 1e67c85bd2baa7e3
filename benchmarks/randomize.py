"""Labels a second through the runtime, one thread, beside numpy's own sampling of the same table.

numpy's line draws with PCG64, which is not secure, and searches each row's cumulative counts: it is
here for scale. Medians of 15 runs of a million labels, with the spread; prints a markdown table.
"""

import statistics
import time

import numpy as np
from labeldp_runtime import Randomizer
from labeldp_runtime.entropy import random_words

from labeldp_compile.pipeline import assemble
from labeldp_compile.prior import estimate_prior
from labeldp_compile.spec import parse_spec

SPEC = """
version: 1
name: benchmark
label: {{column: y, domain: {{kind: integer, min: 0, max: {last}}}}}
loss: squared
privacy: {{epsilon: {epsilon}}}
prior: {{kind: uniform}}
mechanism: {{kind: {mechanism}}}
"""
LABELS, RUNS = 1_000_000, 15


def rate(function):
    """Median and range of million labels a second."""
    function()
    rates = []
    for _ in range(RUNS):
        start = time.perf_counter()
        function()
        rates.append(LABELS / (time.perf_counter() - start) / 1e6)
    return f"{statistics.median(rates):.0f} ({min(rates):.0f}–{max(rates):.0f})"


def main():
    generator = np.random.default_rng(0)
    print("million labels a second: median (least–most)\n")
    print("| randomizer | with fresh words | graph alone | words alone | numpy searchsorted |")
    print("|---|---|---|---|---|")
    for mechanism, k, epsilon in [
        ("rr_on_bins", 52, 1),
        ("rr_on_bins", 401, 1),
        ("randomized_response", 52, 1),
        ("randomized_response", 401, 4),
    ]:
        spec = parse_spec(SPEC.format(last=k - 1, epsilon=epsilon, mechanism=mechanism))
        artifact = assemble(spec, estimate_prior(spec, None), "0" * 64)
        randomizer = Randomizer(artifact.model)
        labels = generator.integers(0, k, LABELS)
        words = random_words(LABELS)
        r = artifact.randomizer
        ends = np.array(r.boundaries()[1:])
        owners, values = np.array(r.segment_outputs()), np.array(r.values)
        offsets = np.array(r.offsets)

        def with_numpy(labels=labels, r=r, ends=ends, owners=owners, values=values, s=offsets):
            u = generator.integers(0, r.words, LABELS)
            t = np.where(u >= r.base_total, u + s[labels], u)
            return values[owners[np.searchsorted(ends, t, side="right")]]

        cells = [
            rate(lambda labels=labels, f=randomizer: f(labels)),
            rate(lambda labels=labels, f=randomizer, w=words: f.apply_words(labels, w)),
            rate(lambda: random_words(LABELS)),
            rate(with_numpy),
        ]
        print(f"| {mechanism}, k = {k}, ε = {epsilon} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
