"""Randomized response over all labels (Warner 1965; Definition 21 of the unbiased paper)."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from labeldp_verify.forms import Domain, output_values

from labeldp_compile.mechanisms.mechanism import Mechanism
from labeldp_compile.mechanisms.problem import Problem, Solved
from labeldp_compile.mechanisms.tables import TableLayout, response_layout
from labeldp_compile.rounding.randomized_response import randomized_response


class RandomizedResponse(Mechanism):
    """Randomized response over all labels (Warner 1965)."""

    kind: Literal["randomized_response"]
    joins = True

    def build(self, problem: Problem) -> Solved:
        """Every label is an output; the prior and the loss are not used."""
        values = output_values(problem.domain)
        rows = range(problem.domain.size)
        return Solved(randomized_response(values, rows, problem.epsilon, problem.word_bits))

    def layouts(
        self, domain: Domain, loss: str, epsilon: Fraction, weights: Sequence[int] | None
    ) -> list[TableLayout]:
        """One layout: nothing depends on the prior."""
        return [response_layout(domain.size, domain.size, epsilon)]
