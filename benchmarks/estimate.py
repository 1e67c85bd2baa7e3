"""Coverage of the 95 % intervals of ``labeldp estimate`` over simulated releases.

The labels are the first rows of the doctor visits data, cut off at k − 1, in three groups of 40,
400 and 4,560 rows. Each release randomizes them through labeldp-runtime; an interval covers if the
true value of these rows (or of the population, from which each release draws its rows anew) lies
inside.
Histograms: the mean over labels, and the labels with the least and the largest coverage. Quantiles:
the least and the largest coverage of five shares and all sizes. Prints a markdown table.

    python benchmarks/estimate.py [RELEASES [MECHANISM]]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from labeldp_runtime import Randomizer

sys.path.insert(0, str(Path(__file__).parents[1]))

from labeldp_learn.estimation import SHARES, Estimation, GroupCounts
from labeldp_learn.estimators import OutputCounts
from labeldp_verify.opening import open_artifact

from labeldp_compile.estimates.counts import output_indices
from tests.fixtures.compiled import compile_text, integer_spec, public

DATA = Path(__file__).parents[1] / "specs" / "data" / "randhie.parquet"
ENDS = (40, 440, 5000)
CASES = [  # mechanism, k, ε
    ("randomized_response", 10, 1),
    ("randomized_response", 10, 4),
    ("randomized_response", 53, 1),
    ("randomized_response", 53, 6),
    ("rr_on_bins", 53, 2),
    ("debiased_rr", 20, 2),
    ("optimal_unbiased", 20, 2),
    ("optimal_unbiased", 53, 1),
    ("exponential", 5, 4),
    ("laplace", 10, 1),
    ("laplace", 10, 6),
    ("laplace, clip: true", 10, 3),
    ("subset_selection", 10, 0.5),
    ("subset_selection", 10, 1),
    ("subset_selection", 100, 1),
    ("subset_selection", 1000, 2),
]


def parts_of(array):
    return [array, *np.split(array, ENDS[:-1])]


def quantile_covered(found, shares, at_most):
    hits = []
    for q, share in zip(found, shares, strict=True):
        true = int(np.searchsorted(at_most, share - 1e-12))
        hits.append(q.interval is not None and q.interval[0] <= true <= q.interval[1])
    return hits


class Case:
    """An artifact, its labels, and one release after the other."""

    def __init__(self, mechanism, k, epsilon, labels, folder):
        """Compile, verify and load."""
        self.true = np.minimum(labels, k - 1)
        weights = (np.bincount(self.true, minlength=k) + 1).tolist()
        sets = mechanism == "subset_selection"
        text = integer_spec(
            k,
            mechanism,
            epsilon=epsilon,
            loss="zero_one" if sets else "squared",
            prior=public(weights),
        )
        path = Path(folder) / "x.onnx"
        path.write_bytes(compile_text(text).model)
        self.decoded, self.randomizer = open_artifact(path), Randomizer.load(path)
        self.estimation, self.k = Estimation.of(self.decoded), k

    def counts(self, labels):
        """Outputs of all rows and of the groups, from fresh words."""
        private = pa.array(self.randomizer(labels))
        randomizer = self.decoded.tables[0]
        listed = getattr(randomizer, "values", randomizer)
        outputs = output_indices(Path("x"), "y", listed, private)
        return [
            GroupCounts((n,), {0: OutputCounts(*np.unique(part, return_counts=True))})
            for n, part in enumerate(parts_of(outputs))
        ]

    def truth(self, labels):
        """For each part: shares of the classes, and the mean."""
        of_class = self.estimation.classes.of_label
        c = self.estimation.classes.count
        return [
            (np.bincount(of_class[part], minlength=c) / len(part), part.mean())
            for part in parts_of(labels)
        ]

    def release(self, target, generator):
        """Which intervals cover: histograms, means, quantiles."""
        labels, truth = self.true, self.truth(self.true)
        if target == "population":  # drawn from all rows
            truth = [truth[0]] * 4
            labels = generator.choice(self.true, len(self.true))
        histograms, means, quantiles = [], [], []
        found = self.estimation(self.counts(labels), target)
        for (shares, mean), group in zip(truth, found, strict=True):
            if group.histogram is not None:
                h = group.histogram
                histograms.append((h.low <= shares) & (shares <= h.high))
            if group.mean is not None:
                means.append(group.mean.low[0] <= mean <= group.mean.high[0])
            if group.quantiles is not None:
                quantiles.append(quantile_covered(group.quantiles, SHARES, shares.cumsum()))
        return histograms, means, quantiles


def per_cent(share):
    return f"{100 * share:.1f}"


def line(case, target, releases):
    generator = np.random.default_rng(0)
    runs = [case.release(target, generator) for _ in range(releases)]
    cells = []
    for part in range(4):
        h = np.array([run[0][part] for run in runs]).mean(axis=0) if runs[0][0] else None
        if h is None:
            cells.append("–")
        else:
            cells.append(f"{per_cent(h.mean())} ({per_cent(h.min())}–{per_cent(h.max())})")
    for part in range(4):
        cells.append(per_cent(np.mean([r[1][part] for r in runs])) if runs[0][1] else "–")
    if runs[0][2]:
        q = np.array([run[2] for run in runs]).mean(axis=0)
        cells.append(f"{per_cent(q.min())}–{per_cent(q.max())}")
    else:
        cells.append("–")
    return cells


def main():
    releases = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    labels = pq.read_table(DATA, columns=["mdvis"])["mdvis"].to_numpy()[: ENDS[-1]]
    sizes = [f"{n:,}" for n in (ENDS[-1], ENDS[0], ENDS[1] - ENDS[0], ENDS[2] - ENDS[1])]
    headers = [f"histogram, {n}" for n in sizes] + [f"mean, {n}" for n in sizes]
    print(f"| artifact | k | ε | target | {' | '.join(headers)} | quantiles |")
    print("|---|---:|---:|---|" + "---:|" * 9)
    with tempfile.TemporaryDirectory() as folder:
        for mechanism, k, epsilon in CASES:
            if not mechanism.startswith(only):
                continue
            case = Case(mechanism, k, epsilon, labels, folder)
            for target in ("rows", "population"):
                cells = " | ".join(line(case, target, releases))
                print(f"| {mechanism} | {k} | {epsilon} | {target} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
