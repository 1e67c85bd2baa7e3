"""How close to the loss of RR-on-Bins radii prove a bound: prints a Markdown table.

    python benchmarks/radii.py [--labels 20001] [--losses squared absolute] [--epsilons 0.5 1 4 8]

Radii at a few labels stand for a dual value of each. A cell holds the relative gap between what the
verifier proves from them, in integers, and the loss; the number of radii; and the seconds of the
processor that it took to find them.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from time import process_time

import numpy as np
from labeldp_verify.forms.exact_numbers import ExactNumbers, whole

from labeldp_compile.build.assembly import prove_radii
from labeldp_compile.mechanisms.mechanism import RadiusBound
from labeldp_compile.solve.rr_on_bins import solve_rr_on_bins
from labeldp_compile.solve.rr_on_bins_radii import radii_of_rr_on_bins

COUNTS = 10**6


def priors(k: int) -> dict[str, np.ndarray]:
    """Whole weights [k] by name."""
    y = np.arange(k)
    x, rng = y / k, np.random.default_rng(0)
    bumps = np.exp(-0.5 * ((x - 0.25) / 0.08) ** 2) + 0.6 * np.exp(-0.5 * ((x - 0.7) / 0.05) ** 2)
    return {
        "uniform": np.ones(k, np.int64),
        "geometric, e^-8 at the end": np.round(COUNTS * np.exp(-8 * x)).astype(np.int64),
        "two bumps": np.round(COUNTS * bumps).astype(np.int64),
        "two bumps, Poisson counts of 3 at most on average": rng.poisson(3 * bumps / bumps.max()),
        "exponential noise": np.round(COUNTS * rng.exponential(size=k)).astype(np.int64),
        "lognormal noise, sd of log 2": np.exp(2 * rng.standard_normal(k) + 10).astype(np.int64),
        "20 spikes of half the mass": np.where(np.arange(k) % (k // 20) == 7, k // 20, 1),
        "0.9^y": np.round(10**12 * 0.9**y).astype(np.int64) + 1,
        "1/(1 + y)": np.round(10**10 / (1.0 + y)).astype(np.int64),
    }


def cell(weights: np.ndarray, loss: str, epsilon: float) -> str:
    """Gap, radii, seconds."""
    labels = np.arange(float(weights.size))
    solution = solve_rr_on_bins(labels, weights * 1.0, epsilon, loss)
    begin = process_time()
    found = radii_of_rr_on_bins(labels, weights * 1.0, epsilon, loss, solution)
    seconds = process_time() - begin
    if found is None:
        return "none"
    dual = RadiusBound(found.knots.tolist(), found.radii.tolist())
    exact = ExactNumbers(whole(range(weights.size)))
    proved = prove_radii(dual, loss, exact, weights.tolist(), Fraction(epsilon))
    if proved is None:
        return "none"
    gap = 1.0 - float(proved.value) / solution.loss
    return f"{max(gap, 0.0):.1e}; {found.knots.size:,}; {seconds:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--labels", type=int, default=20_001)
    parser.add_argument("--losses", nargs="+", default=["squared", "absolute"])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 4.0, 8.0])
    arguments = parser.parse_args()
    print("| prior | loss |" + "".join(f" ε = {epsilon:g} |" for epsilon in arguments.epsilons))
    print("|---|---|" + "---:|" * len(arguments.epsilons))
    for name, weights in priors(arguments.labels).items():
        for loss in arguments.losses:
            cells = [cell(weights, loss, epsilon) for epsilon in arguments.epsilons]
            print(f"| {name} | {loss} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
