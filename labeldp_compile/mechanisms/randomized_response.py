"""Randomized response over all labels (Warner 1965; Definition 21 of the unbiased paper)."""

from __future__ import annotations

from labeldp_compile.mechanisms.problem import Problem, Solved
from labeldp_compile.randomizer import CategoricalDomain
from labeldp_compile.randomizer.randomized_response import randomized_response
from labeldp_compile.randomizer.window import Output


def build(problem: Problem) -> Solved:
    """Every label is an output; the prior and the loss play no part."""
    domain = problem.domain
    values: list[Output]
    if isinstance(domain, CategoricalDomain):
        values = list(domain.values)
    else:
        values = [float(label) for label in domain.labels()]
    rows = range(domain.size)
    return Solved(randomized_response(values, rows, problem.epsilon, problem.word_bits))
