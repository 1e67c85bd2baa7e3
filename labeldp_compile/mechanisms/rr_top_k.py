"""RRTop-k and RRWithPrior (deep learning with label DP, NeurIPS 2021, Algorithms 1 and 2)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

from labeldp_verify.analysis.bias_rule import BiasRule
from labeldp_verify.analysis.bounds import exp_lower

from labeldp_compile.mechanisms.label_values import label_values
from labeldp_compile.mechanisms.problem import Problem, Solved
from labeldp_compile.rounding.rr_top_k import rr_top_k
from labeldp_compile.solve.dual_bound import DualBound
from labeldp_compile.solve.zero_one_dual import dual_of_zero_one
from labeldp_compile.spec.mechanism import RRTopK


def build(problem: Problem) -> Solved:
    """Keep the k likeliest labels: the k of the spec, or the best one.

    With the 0-1 loss, duals come along that bound every ε-DP randomizer (Theorem 3).
    """
    mechanism, weights = problem.mechanism, problem.weights
    order = by_weight(weights)
    k = mechanism.k if isinstance(mechanism, RRTopK) else best_k(weights, problem.epsilon)
    values = label_values(problem.domain)
    while True:
        randomizer = rr_top_k(values, sorted(order[:k]), problem.epsilon, problem.word_bits)
        # Only among very many labels would the file be too large; then fewer are kept.
        if k == 1 or isinstance(mechanism, RRTopK) or problem.fits(randomizer):
            break
        k = best_k(weights, problem.epsilon, most=k // 2)
    if problem.loss != "zero_one" or problem.domain.size > MAX_CERTIFIED_LABELS:
        return Solved(randomizer)
    alpha = dual_of_zero_one(problem.prior(), float(problem.epsilon))
    return Solved(randomizer, DualBound(alpha.tolist(), [0.0] * len(alpha), BiasRule("any")))


MAX_CERTIFIED_LABELS = 20_000  # beyond, the duals would outweigh the tables


def by_weight(weights: Sequence[int]) -> list[int]:
    """Label indices from the heaviest to the lightest; of equal ones, the first comes first."""
    return sorted(range(len(weights)), key=lambda y: -weights[y])


def best_k(weights: Sequence[int], epsilon: Fraction, most: int | None = None) -> int:
    """argmax over k of e^ε/(e^ε + k − 1)·Σ (the k largest weights); the least k if several.

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
