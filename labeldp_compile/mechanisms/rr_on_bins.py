"""RR-on-Bins: randomized response on the optimal intervals (ICLR 2023, Algorithms 1 and 2)."""

from __future__ import annotations

import numpy as np

from labeldp_compile.mechanisms.problem import Problem, Solved
from labeldp_compile.randomizer import CategoricalDomain
from labeldp_compile.randomizer.randomized_response import randomized_response
from labeldp_compile.solve.rr_on_bins import solve_rr_on_bins


def build(problem: Problem) -> Solved:
    """Solve for the bins and their outputs, then realise the response in integers."""
    domain, loss = problem.domain, problem.loss
    if isinstance(domain, CategoricalDomain) or loss == "zero_one":
        raise ValueError("rr_on_bins needs ordered labels and a loss that grows with distance")
    labels = np.array([float(label) for label in domain.labels()])
    total = sum(problem.weights)
    prior = np.array([weight / total for weight in problem.weights])
    solution = solve_rr_on_bins(labels, prior, float(problem.epsilon), loss)
    values = [float(value) + 0.0 for value in solution.values]  # + 0.0 turns −0.0 into 0.0
    bins = np.searchsorted(solution.starts, np.arange(domain.size), side="right") - 1
    return Solved(randomized_response(values, bins.tolist(), problem.epsilon, problem.word_bits))
