"""Randomized response over all labels (Warner 1965; Definition 21 of the unbiased paper)."""

from __future__ import annotations

from labeldp_compile.mechanisms.label_values import label_values
from labeldp_compile.mechanisms.problem import Problem, Solved
from labeldp_compile.rounding.randomized_response import randomized_response


def build(problem: Problem) -> Solved:
    """Every label is an output; the prior and the loss play no part."""
    values = label_values(problem.domain)
    rows = range(problem.domain.size)
    return Solved(randomized_response(values, rows, problem.epsilon, problem.word_bits))
