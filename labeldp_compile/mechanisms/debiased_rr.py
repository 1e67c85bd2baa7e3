"""Debiased randomized response (Definition 23 of the optimal unbiased randomizers paper, 2023)."""

from fractions import Fraction
from typing import Literal

from labeldp_verify.analysis import row_means
from labeldp_verify.forms import CategoricalDomain

from labeldp_compile.mechanisms.problem import Problem, Solved
from labeldp_compile.mechanisms.randomized_response import RandomizedResponse
from labeldp_compile.rounding.randomized_response import randomized_response


class DebiasedRR(RandomizedResponse):
    """Randomized response whose outputs are moved apart to be unbiased (Definition 23)."""

    kind: Literal["debiased_rr"]  # type: ignore[assignment]  # another name
    seconds_a_label = 3e-5
    needs_order = True
    joins = False
    answers = "anywhere"
    may_keep = False

    @property
    def is_unbiased(self) -> bool:
        """Always."""
        return True

    def build(self, problem: Problem) -> Solved:
        """Randomized response whose outputs are moved apart so that means are kept.

        The outputs undo the probabilities of the integers (not e^ε). With base weight b and window
        X, v_y = (2^B·y − b·Σy′)/X has E[v | y] = (b·Σv + X·v_y)/2^B = y, because Σv = Σy.
        """
        domain = problem.domain
        if isinstance(domain, CategoricalDomain):
            raise ValueError("debiased_rr needs labels that are numbers")
        labels = row_means(domain, domain.labels())
        plain = randomized_response(
            [float(y) for y in labels], range(len(labels)), problem.epsilon, problem.word_bits
        )
        base, window, total = plain.base[0], plain.window, sum(labels, Fraction(0))
        if window == 0:
            raise ValueError("ε is too small for an unbiased randomizer with words of this size")
        values = [float((plain.words * y - base * total) / window) + 0.0 for y in labels]
        rows = range(len(labels))
        return Solved(randomized_response(values, rows, problem.epsilon, plain.word_bits))
