"""RRWithPrior: RRTop-k with the best k under the prior (NeurIPS 2021, Algorithm 2)."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Literal

from labeldp_verify.analysis import exp_lower
from labeldp_verify.forms import Domain

from labeldp_compile.mechanisms.problem import Problem, Solved
from labeldp_compile.mechanisms.rr_top_k import KeepsLikeliest, by_weight, kept_layout
from labeldp_compile.mechanisms.tables import TableLayout, adapted_bytes

_GRID = 36  # entries of the lookup grid for each label, at most


class RRWithPrior(KeepsLikeliest):
    """RRTop-k with the best k under the prior (RRWithPrior, NeurIPS 2021, Algorithm 2)."""

    kind: Literal["rr_with_prior"]

    def least_entries(self, labels: int) -> int:
        """It adapts to the room for outputs, and rarely needs more."""
        return min(4 * labels, 64)

    def build(self, problem: Problem) -> Solved:
        """Keep the best number of likeliest labels."""
        k = best_k(problem.weights, problem.epsilon)
        randomizer = self.keep(problem, k)
        # Only with very many labels is the file too large; then fewer labels are kept.
        while k > 1 and not problem.fits(randomizer):
            k = best_k(problem.weights, problem.epsilon, most=k // 2)
            randomizer = self.keep(problem, k)
        return self.proved(problem, randomizer)

    def layouts(
        self, domain: Domain, loss: str, epsilon: Fraction, weights: Sequence[int] | None
    ) -> list[TableLayout]:
        """The layout of the best k, or of powers of two if the prior is not known."""
        k = domain.size
        if weights is not None:
            return [kept_layout(k, best_k(weights, epsilon), epsilon)]
        powers = (1 << e for e in range(k.bit_length()))
        return [kept_layout(k, kept, epsilon) for kept in sorted({*powers, k})]

    def most_table_bytes(self, domain: Domain, epsilon: Fraction, room: int) -> int:
        """The bytes for any k, as long as they fit."""
        return adapted_bytes(domain.size, _GRID * domain.size + 64, 3 * domain.size, room)


def best_k(weights: Sequence[int], epsilon: Fraction, most: int | None = None) -> int:
    """argmax over k of e^ε/(e^ε + k − 1)·Σ (the k largest weights); the smallest k if several.

    ``most`` is the largest k to try. Compared as integers, with e^ε replaced by a rational within
    2^-200 of it.
    """
    ratio = exp_lower(epsilon)
    sums = accumulate(weights[y] for y in by_weight(weights)[:most])
    best, best_sum, best_cost = 1, 0, 1
    for k, total in enumerate(sums, start=1):
        cost = ratio.numerator + (k - 1) * ratio.denominator
        if total * best_cost > best_sum * cost:
            best, best_sum, best_cost = k, total, cost
    return best
