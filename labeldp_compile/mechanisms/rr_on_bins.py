"""RR-on-Bins: randomized response on the optimal intervals (ICLR 2023, Algorithms 1 and 2)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from labeldp_verify.analysis.bias_rule import BiasRule
from labeldp_verify.forms import CategoricalDomain, WindowRandomizer

from labeldp_compile.mechanisms.problem import Problem, Solved
from labeldp_compile.rounding.randomized_response import randomized_response
from labeldp_compile.solve.dual_bound import DualBound
from labeldp_compile.solve.rr_on_bins import solve_rr_on_bins

MAX_CERTIFIED_LABELS = 20_000  # beyond, the duals would outweigh the tables


def build(problem: Problem) -> Solved:
    """Solve for the bins and their outputs, then realise the response in integers."""
    domain, loss = problem.domain, problem.loss
    if isinstance(domain, CategoricalDomain) or loss == "zero_one":
        raise ValueError("rr_on_bins needs ordered labels and a loss that grows with distance")
    labels = np.array([float(label) for label in domain.labels()])
    prior = problem.prior()
    solution = solve_rr_on_bins(labels, prior, float(problem.epsilon), loss)
    values = [float(value) + 0.0 for value in solution.values]  # + 0.0 turns −0.0 into 0.0
    bins = np.searchsorted(solution.starts, np.arange(domain.size), side="right") - 1
    randomizer = _small(problem, values, bins.tolist())
    if loss == "poisson" or domain.size > MAX_CERTIFIED_LABELS:
        return Solved(randomizer)
    # SciPy takes a third of a second to import: only those who want the proof wait for it.
    from labeldp_compile.solve.rr_on_bins_dual import dual_of_rr_on_bins  # noqa: PLC0415

    alpha = dual_of_rr_on_bins(labels, prior, float(problem.epsilon), loss, solution)
    # Without slopes the bound speaks of every ε-DP randomizer, biased or not.
    return Solved(randomizer, DualBound(alpha.tolist(), [0.0] * len(labels), BiasRule("any")))


def rehearse(problem: Problem) -> Solved:
    """Two bins, whatever the prior: no solver is asked."""
    labels = problem.domain.labels()
    low, high = Fraction(labels[0]), Fraction(labels[-1])
    values = [float((low + high) / 2), float(high)]
    rows = [2 * y // len(labels) for y in range(len(labels))]
    return Solved(randomized_response(values, rows, problem.epsilon, problem.word_bits))


def _small(problem: Problem, values: Sequence[float], bins: Sequence[int]) -> WindowRandomizer:
    """Bins are joined in pairs until the file is small enough: only among very many labels."""
    while True:
        randomizer = randomized_response(values, bins, problem.epsilon, problem.word_bits)
        if len(values) == 1 or problem.fits(randomizer):
            return randomizer
        values, bins = values[::2], [b // 2 for b in bins]
