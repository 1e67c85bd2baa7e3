"""All mechanisms on one real label: noisy label loss against ε, as a table.

    python benchmarks/mechanisms.py census_kdd_train.parquet weeks_worked_in_year 0 52

(without arguments: doctor visits of the quickstart data, 0 to 77)
takes the file's histogram as a public prior, compiles (and verifies) every mechanism at every ε
and prints a markdown table of the noisy label loss ½E(ŷ − y)². With ``--many`` it prints seconds
and sizes for 100,000 labels instead, without a file.
"""

import argparse
import tempfile
from fractions import Fraction
from pathlib import Path
from statistics import median

import numpy as np

from labeldp_compile.prior.priors import Prior
from labeldp_compile.spec import parse_spec
from labeldp_compile.sweeps.points import find_candidates, measure
from labeldp_compile.sweeps.sweep import sweep_spec

EPSILONS = ("0.5", "1", "2", "4", "8")
QUICKSTART = (Path(__file__).parents[1] / "specs" / "data" / "randhie.parquet", "mdvis", 0, 77)
MANY = 100_000
MANY_EPSILONS = ("0.1", "1", "8")
RUNS = 3

SPEC = """
version: 1
name: {name}
goal: labels
label:
  column: {column}
  domain: {{kind: integer, min: {low}, max: {high}}}
loss: squared
privacy: {{epsilon: 1}}
prior: {prior}
mechanism: {{kind: rr_on_bins}}
"""


def compare(path, column, low, high):
    prior = f"{{kind: public, data: {path}}}"
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "spec.yaml"
        text = SPEC.format(name=column, column=column, low=low, high=high, prior=prior)
        spec.write_text(text, encoding="utf-8")
        sweep = sweep_spec(spec, [Fraction(epsilon) for epsilon in EPSILONS])
    losses = {(point.mechanism, point.epsilon): point for point in sweep.points}
    print("| mechanism | " + " | ".join(f"ε = {epsilon}" for epsilon in EPSILONS) + " |")
    print("|---" + "|---:" * len(EPSILONS) + "|")
    for mechanism in sweep.mechanisms():
        points = [losses[mechanism, float(epsilon)] for epsilon in EPSILONS]
        name = f"{mechanism} (unbiased)" if points[0].unbiased else mechanism
        cells = [
            f"**{p.loss:.5g}**" if p is sweep.best(p.epsilon) else f"{p.loss:.5g}" for p in points
        ]
        print(f"| {name} | " + " | ".join(cells) + " |")


def many():
    """A skewed prior, as counts of money or clicks are."""
    text = SPEC.format(name="many", column="y", low=0, high=MANY - 1, prior="{kind: uniform}")
    weights = np.random.default_rng(0).geometric(1 / 20_000, MANY).tolist()
    statement = {"kind": "public", "weights": weights}
    print("| mechanism | ε | seconds, median (range) | MB | outputs |")
    print("|---|---:|---:|---:|---:|")
    kinds = ("randomized_response", "rr_with_prior", "laplace", "rr_on_bins")
    chosen = find_candidates(parse_spec(text), list(kinds)).chosen
    candidates = {m.kind: m for m in reversed(chosen)}  # of laplace the unclipped one
    for kind in kinds:
        for epsilon in MANY_EPSILONS:
            prior = Prior.of(statement, Fraction(epsilon))
            points = [
                measure(parse_spec(text), candidates[kind], prior, "0" * 64) for _ in range(RUNS)
            ]
            times = sorted(point.seconds for point in points)
            print(
                f"| {kind} | {epsilon} | {median(times):.1f} ({times[0]:.1f}–{times[-1]:.1f}) "
                f"| {points[0].bytes / 1e6:.1f} | {points[0].outputs:,} |",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="?", type=Path, help="Parquet file")
    parser.add_argument("column", nargs="?")
    parser.add_argument("low", nargs="?", type=int)
    parser.add_argument("high", nargs="?", type=int)
    parser.add_argument("--many", action="store_true")
    arguments = parser.parse_args()
    if arguments.many:
        many()
    elif arguments.data is None:
        compare(*QUICKSTART)
    elif arguments.high is None:
        parser.error("a file needs its column, and the lowest and the highest label")
    else:
        path = arguments.data.absolute()
        compare(path, arguments.column, arguments.low, arguments.high)


if __name__ == "__main__":
    main()
