"""The plainest reading of composition: every outcome of every choice of labels, in rationals."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product

from labeldp_verify.analysis.probabilities import equally_likely, row
from labeldp_verify.forms import Randomizer

Rows = list[list[int]]


def rows_of(randomizer: Randomizer, labels: int) -> tuple[Rows, int]:
    return [row(randomizer, y) for y in range(labels)], equally_likely(randomizer)


def largest_divergence(uses: Sequence[tuple[Rows, int, int]], alpha: Fraction) -> Fraction:
    """max Σ (P − α·Q)⁺ over all labels of a user and all that may replace them.

    ``uses``: for each randomizer its rows of counts, their sum, and the number of labels.
    """
    choices = [
        list(combinations_with_replacement(permutations(range(len(rows)), 2), count))
        for rows, _, count in uses
    ]
    worst = Fraction(0)
    for choice in product(*choices):
        outcomes = {(1, 1): 1}  # products of counts under both, and how often they come
        total = 1
        for (rows, words, _), pairs in zip(uses, choice, strict=True):
            for y, other in pairs:
                total *= words
                more: dict[tuple[int, int], int] = {}
                for (p, q), times in outcomes.items():
                    for a, b in zip(rows[y], rows[other], strict=True):
                        key = (p * a, q * b)
                        more[key] = more.get(key, 0) + times
                outcomes = more
        excess = sum(
            max(p * alpha.denominator - alpha.numerator * q, 0) * times
            for (p, q), times in outcomes.items()
        )
        worst = max(worst, Fraction(excess, alpha.denominator * total))
    return worst
