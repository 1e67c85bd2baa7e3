"""A billion labels in groups and days, from counts: no table of rows is made.

The true labels are counts of each label in each of 10 groups on each of 30 days: multinomial draws
from shares that differ by group and drift by day. As on a cluster, a file of counts gives the
private prior, once for all, and the artifact is compiled from it. Private labels are counts, too: a
cell's labels of one value become outputs by a multinomial draw from their row of the artifact's
verified table, which is the law of as many independent rows. Then the estimators of `labeldp
estimate` say what they would of such a table. Prints markdown, of 20 releases: root mean squares of
the errors over the standard errors that are stated, and how many of the 95 % intervals cover.

    python benchmarks/scale.py [LABELS [SEED]]
"""

import resource
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from labeldp_verify.analysis.probabilities import matrix

sys.path.insert(0, str(Path(__file__).parents[1]))

from labeldp_learn.estimation import Estimation, GroupCounts
from labeldp_learn.estimators import OutputCounts
from labeldp_verify.opening import open_artifact

from labeldp_compile import compile_spec

GROUPS, DAYS, K, RELEASES = 10, 30, 53, 20
CASES = [  # mechanism, ε
    ("optimal_unbiased", 1),
    ("optimal_unbiased", 4),
    ("randomized_response", 1),
    ("randomized_response", 4),
    ("rr_on_bins", 1),
    ("rr_on_bins", 4),
]
SPEC = """
version: 1
name: scale
label: {{column: y, domain: {{kind: integer, min: 0, max: {last}}}}}
loss: squared
privacy: {{epsilon: {epsilon}, split: paper}}
prior: {{kind: private, data: counts.parquet, counts: n, rows: {labels}}}
mechanism: {{kind: {mechanism}}}
"""
COLUMNS = [
    "artifact",
    "ε",
    "ε₁",
    "prior off by",
    "compile, draw, estimate: s",
    "mean of all: s.e.",
    "error over s.e.",
    "covered",
    "means of the cells: error over s.e.",
    "covered",
    "shares of all: error over s.e.",
    "covered",
    "shares of the cells: error over s.e.",
    "covered",
]


def sizes(labels):
    """Rows [GROUPS, DAYS] of the cells: groups of unlike size, a week in the days."""
    weight = np.outer(1 / np.arange(1, GROUPS + 1), 5 + np.arange(DAYS) % 7)
    cells = np.floor(labels * weight / weight.sum()).astype(np.int64)
    cells[0, 0] += labels - cells.sum()
    return cells


def true_counts(labels, generator):
    """Counts [GROUPS, DAYS, K] of labels: geometric tails, in some groups with more zeros."""
    y = np.arange(K)
    cells, counts = sizes(labels), np.empty((GROUPS, DAYS, K), np.int64)
    for group in range(GROUPS):
        for day in range(DAYS):
            tail = 3 + group + 2 * np.sin(2 * np.pi * day / DAYS)
            shares = np.exp(-y / tail) / np.exp(-y / tail).sum()
            shares = 0.05 * group * (y == 0) + (1 - 0.05 * group) * shares
            counts[group, day] = generator.multinomial(cells[group, day], shares)
    return counts


def private_counts(counts, rows, generator):
    """Counts [GROUPS, DAYS, m] of outputs: a label's rows are multinomial over its row of P."""
    drawn = np.zeros((*counts.shape[:2], rows.shape[1]), np.int64)
    for y in range(K):
        drawn += generator.multinomial(counts[..., y], rows[y])
    return drawn


def ratio(found, truth):
    """Root mean square of error over the stated standard error, and the share that covers."""
    value, error, low, high = (
        np.array([getattr(each, name) for each in found])
        for name in ("value", "error", "low", "high")
    )
    scaled = (value - truth) / error
    return np.sqrt((scaled**2).mean()), ((low <= truth) & (truth <= high)).mean()


def shares_of(counts, classes):
    shares = np.zeros((*counts.shape[:-1], classes.count))
    for y, number in enumerate(classes.of_label):
        shares[..., number] += counts[..., y]
    return shares / shares.sum(axis=-1, keepdims=True)


def cells_of(mechanism, epsilon, counts, folder, generator):
    """A line of the table."""
    labels, pooled = int(counts.sum()), counts.sum(axis=(0, 1))
    table = pa.table({"y": np.arange(K), "n": pooled})
    pq.write_table(table, folder / "counts.parquet")
    spec = folder / "scale.yaml"
    spec.write_text(
        SPEC.format(last=K - 1, epsilon=epsilon, labels=labels, mechanism=mechanism),
        encoding="utf-8",
    )
    start = time.perf_counter()
    artifact = compile_spec(spec)
    (folder / "scale.onnx").write_bytes(artifact.model)
    compiled = time.perf_counter()
    decoded = open_artifact(folder / "scale.onnx")
    rows = matrix(decoded.tables[0], range(K))
    rows /= rows.sum(axis=1, keepdims=True)  # sums of floats: off by 1e-16
    estimation, seconds, found = Estimation.of(decoded), [], []
    for _ in range(RELEASES):
        begun = time.perf_counter()
        drawn = private_counts(counts, rows, generator)
        done = time.perf_counter()
        assert drawn.sum() == labels
        cells = [drawn.sum(axis=(0, 1)), *drawn.reshape(-1, drawn.shape[-1])]
        groups = [
            GroupCounts((n,), {0: OutputCounts(cell.nonzero()[0], cell[cell.nonzero()[0]])})
            for n, cell in enumerate(cells)
        ]
        found.append(estimation(groups, "rows"))
        seconds.append((done - begun, time.perf_counter() - done))
    weights = np.array([int(w) for w in artifact.certificate.to_json()["prior"]["weights"]], float)
    off = np.abs(weights / weights.sum() - pooled / labels).sum() / 2
    spent = Fraction(artifact.certificate.exact.epsilon_prior)
    times = [compiled - start, *np.median(seconds, axis=0)]
    line = [mechanism, f"{epsilon:g}", f"{float(spent):.2g}", f"{off:.1e}"]
    line += [", ".join(f"{each:.1f}" for each in times)]
    truth = np.vstack([pooled, counts.reshape(-1, K)])
    means = (truth @ np.arange(K) / truth.sum(axis=1))[:, None]
    shares = shares_of(truth, estimation.classes)
    for name, true in (("mean", means), ("histogram", shares)):
        parts = [[getattr(each, name) for each in release] for release in found]
        if parts[0][0] is None:
            line += ["—"] * (5 if name == "mean" else 4)
            continue
        if name == "mean":
            line += [f"{parts[0][0].error[0]:.1e}"]
        for part in (slice(1), slice(1, None)):
            some = [each for release in parts for each in release[part]]
            size, covered = ratio(some, np.tile(true[part], (RELEASES, 1)))
            line += [f"{size:.2f}", per_cent(covered)]
    return f"| {' | '.join(line)} |"


def per_cent(share):
    return f"{100 * share:.1f} %"


def main():
    labels = int(sys.argv[1]) if len(sys.argv) > 1 else 10**9
    generator = np.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    counts = true_counts(labels, generator)
    cells = counts.sum(axis=-1)
    print(
        f"{counts.sum():,} labels of {K} values in {GROUPS} groups × {DAYS} days "
        f"({cells.min():,} to {cells.max():,} each); {RELEASES} releases\n"
    )
    print(f"| {' | '.join(COLUMNS)} |\n|---|{'---:|' * (len(COLUMNS) - 1)}")
    with tempfile.TemporaryDirectory() as folder:
        for mechanism, epsilon in CASES:
            print(cells_of(mechanism, epsilon, counts, Path(folder), generator), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\n{time.process_time():.0f} s of CPU, {peak:,.0f} MiB at most")


if __name__ == "__main__":
    main()
