"""Noise of other private labels for categories: the trace of the covariance of a one-hot estimate.

Uniform classes, one label. ``natural`` estimates are those that papers give, in closed form, exact
rationals of E ≤ e^ε. ``least`` is of the linear unbiased estimate of least variance under uniform
classes, which no other one beats: with probabilities P [k, outputs] and their means D over the
classes it is the trace of (P D⁻¹ Pᵀ)⁻¹ less 1, in floats.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy.stats import binom


def natural_bit_flips(classes: int, root: Fraction) -> Fraction:
    """Each of k one-hot bits kept with probability s/(s + 1), ``root`` s ≤ e^(ε/2).

    Basic RAPPOR (Erlingsson, Pihur, Korolova 2014), as the vector approximation uses it. A bit less
    1/(s + 1), divided by (s − 1)/(s + 1), is unbiased.
    """
    return classes * root / (root - 1) ** 2


def natural_unary(classes: int, ratio: Fraction) -> Fraction:
    """Optimised unary encoding (Wang et al. 2017): the own bit set with 1/2, others with 1/(E + 1).

    A bit less q, divided by 1/2 − q, is unbiased.
    """
    return _two_levels(classes, Fraction(1, 2), 1 / (ratio + 1))


def natural_hadamard(classes: int, ratio: Fraction) -> Fraction:
    """Hadamard response (Acharya, Sun, Zhang 2019): half of the outputs for each class.

    The own half is drawn with E/(E + 1), that of another class with 1/2.
    """
    return _two_levels(classes, ratio / (ratio + 1), Fraction(1, 2))


def least_bit_flips(classes: int, root: Fraction) -> float:
    """Of the least-variance estimate from k bits, each kept with s/(s + 1)."""
    return _of_sets(classes, float(root / (root + 1)), float(1 / (root + 1)), root * root)


def least_unary(classes: int, ratio: Fraction) -> float:
    """Of the least-variance estimate from optimised unary encoding."""
    return _of_sets(classes, 0.5, float(1 / (ratio + 1)), ratio)


def least_hadamard(classes: int, ratio: Fraction) -> tuple[float, int]:
    """Hadamard response with its best number of blocks, and that number.

    The paper takes about e^ε/2 blocks of outputs; here every power of two up to 2E is tried.
    """
    blocks, found = 1, []
    while blocks <= min(2 * ratio, classes):
        found.append((least_of_sets(hadamard_sets(classes, blocks), ratio), blocks))
        blocks *= 2
    return min(found)


def hadamard_sets(classes: int, blocks: int) -> np.ndarray:
    """[k, K] whether an output is in the set of a class: half of one of ``blocks`` blocks.

    Classes go to the blocks in turn. In a block each has its own row of a Hadamard matrix (that of
    Sylvester, of the least size that has enough), other than the first one, which is constant.
    """
    rows = -(-classes // blocks)
    size = 1 << rows.bit_length()  # the least power of two above the rows
    i = np.arange(size)
    parity = np.array([[int(a & b).bit_count() % 2 for b in i] for a in i])
    sets = np.zeros((classes, blocks, size), dtype=bool)
    x = np.arange(classes)
    sets[x, x % blocks] = parity[x // blocks + 1] == 0
    return sets.reshape(classes, -1)


def least_of_sets(sets: np.ndarray, ratio: Fraction) -> float:
    """Of the least-variance estimate, if an output [k, outputs] weighs E where set, and else 1."""
    table = np.where(sets, float(ratio), 1.0)
    return least_noise_of(table / table.sum(axis=1, keepdims=True))


def least_noise_of(table: np.ndarray) -> float:
    """Of the least-variance estimate from any probabilities [k, outputs]."""
    information = table / table.mean(axis=0) @ table.T
    return float(np.trace(np.linalg.inv(information)) - 1)


def _two_levels(classes: int, own: Fraction, other: Fraction) -> Fraction:
    """Of (1[c ∈ Z] − q)/(p − q), if the own class is in the output with p, any other with q."""
    return (own * (1 - own) + (classes - 1) * other * (1 - other)) / (own - other) ** 2


def _of_sets(classes: int, own: float, other: float, ratio: Fraction) -> float:
    """Bits as a set of random size m: given m, one that holds the class weighs E, another 1.

    All permutations of the classes are alike, so P D⁻¹ Pᵀ has the eigenvalue k once, and k − 1
    times c, to which a set of m adds, by its probability, k·m(k − m)(E − 1)²/(mE + k − m)²/(k − 1).
    """
    k, e = classes, float(ratio)
    m = np.arange(k + 1)
    size = own * binom.pmf(m - 1, k - 1, other) + (1 - own) * binom.pmf(m, k - 1, other)
    information = size @ (k * m * (k - m) * (e - 1) ** 2 / (m * e + k - m) ** 2)
    return float((k - 1) ** 2 / information + 1 / k - 1)
