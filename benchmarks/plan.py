"""What ``labeldp plan`` predicts, beside what a compile really takes and makes.

For mechanisms, losses, k, ε and priors: predicted and measured seconds, bytes and outputs. Prints
markdown. A measured value counts as predicted within the factor if it lies between the least
predicted value divided by the factor and the most predicted one times it.
"""

import argparse
import time
from fractions import Fraction

import numpy as np

from labeldp_compile.build.assembly import assemble
from labeldp_compile.build.forecast import EpsilonBudget, forecast
from labeldp_compile.errors import InputError
from labeldp_compile.prior.plan import PriorPlan
from labeldp_compile.prior.priors import Prior
from labeldp_compile.spec import parse_spec
from tests.fixtures.compiled import integer_spec, public

MECHANISMS = (
    ("{kind: randomized_response}", "squared", 100_000),
    ("{kind: rr_with_prior}", "zero_one", 100_000),
    ("{kind: rr_top_k, k: 5}", "squared", 100_000),
    ("{kind: rr_on_bins}", "squared", 20_000),
    ("{kind: rr_on_bins}", "absolute", 20_000),
    ("{kind: rr_on_bins}", "poisson", 100_000),
    ("{kind: optimal_unbiased}", "squared", 20_000),
    ("{kind: optimal_unbiased, bias: {max: 1}}", "squared", 2001),
    ("{kind: optimal_unbiased, outputs: {grid: 60}}", "absolute", 200),
    ("{kind: debiased_rr}", "squared", 20_000),
    ("{kind: laplace}", "squared", 20_000),
    ("{kind: laplace, clip: true, lattice: 0.05}", "squared", 2001),
    ("{kind: staircase}", "absolute", 2001),
    ("{kind: exponential}", "squared", 401),
)
SMALL = 10
FACTORS = {"seconds": 3, "bytes": 2, "outputs": 2}


def priors(k):
    generator = np.random.default_rng(7)
    return {
        "uniform": [1] * k,
        "geometric": [max(int(x), 1) for x in 1e9 * 0.9 ** np.arange(k)],
        "random": [int(x) + 1 for x in 1000 * generator.exponential(size=k)],
    }


def compare(mechanism, loss, k, epsilon, name, weights):
    """One row, and for each number whether it was predicted within its factor."""
    spec = parse_spec(integer_spec(k, mechanism, epsilon=epsilon, loss=loss, prior=public(weights)))
    total = Fraction(str(epsilon))
    budget = EpsilonBudget(PriorPlan(Fraction(0), total))
    begin = time.perf_counter()
    predicted = forecast(spec, budget)
    planning = time.perf_counter() - begin
    prior = Prior.of({"kind": "public", "weights": weights}, total)
    try:
        if k <= SMALL:
            assemble(spec, prior, "0" * 64)  # loads the solver, which the seconds leave out
        begin = time.perf_counter()
        artifact = assemble(spec, prior, "0" * 64)
    except InputError as error:
        print(f"| {mechanism} | {loss} | {k:,} | {epsilon:g} | {name} | {error} |")
        return {}
    measured = {
        "seconds": (predicted.seconds, time.perf_counter() - begin),
        "bytes": (predicted.size, len(artifact.model)),
        "outputs": (predicted.outputs, artifact.randomizer.outputs),
    }
    within = {
        key: guess.least / FACTORS[key] <= actual <= guess.most * FACTORS[key]
        for key, (guess, actual) in measured.items()
    }
    shown = " | ".join(
        f"{_range(guess)} | {actual:,.3g}{'' if within[key] else ' **outside**'}"
        for key, (guess, actual) in measured.items()
    )
    print(
        f"| {mechanism} | {loss} | {k:,} | {epsilon:g} | {name} | {shown} | {planning:.3f} |",
        flush=True,
    )
    return within


def _range(guess):
    ends = [f"{end:,.3g}" for end in (guess.least, guess.most)]
    return ends[0] if ends[0] == ends[1] else " – ".join(ends)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 52, 401, 2001, 20_000])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 4])
    parser.add_argument("--mechanism", help="only mechanisms whose text holds this")
    arguments = parser.parse_args()
    names = ("seconds", "bytes", "outputs")
    columns = " | ".join(f"{name} predicted | measured" for name in names)
    print(f"| mechanism | loss | k | ε | prior | {columns} | seconds of plan |")
    print("|" + "---|" * 12)
    results = []
    for mechanism, loss, most in MECHANISMS:
        if arguments.mechanism and arguments.mechanism not in mechanism:
            continue
        for k in (k for k in arguments.sizes if k <= most):
            for epsilon in arguments.epsilons:
                for name, weights in priors(k).items():
                    results.append(compare(mechanism, loss, k, epsilon, name, weights))
    print()
    for name in names:
        known = [result[name] for result in results if result]
        print(f"{name}: {sum(known)} of {len(known)} within a factor of {FACTORS[name]}")


if __name__ == "__main__":
    main()
