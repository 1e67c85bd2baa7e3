"""Discrete Laplace noise on one-hot labels, in exact integers (ALIBI, Malek et al. 2021).

A one-hot label has L1 sensitivity 2, so Laplace noise of scale 2/ε on each entry is ε-DP. Here one
unit is S lattice steps and the noise is discrete Laplace, Pr[n] ∝ e^(−ε·|n|/(2S)). What the noise
does outside the two possible entries says nothing more: for every x, |x − S| − |x| = S − 2·x̂ with
x̂ = clamp(x, 0, S), and the posterior depends on these differences only. So x̂ is drawn directly: one
word an entry, from weights w(0) … w(S) for the entry 0, and w(S) … w(0) for the entry 1.

Whatever the weights are, w(o)/w(S − o) ≤ r ≤ e^(ε/2) for all o makes one entry (ε/2)-DP; a
substituted label changes two entries (Theorem 10 in docs/privacy.md).
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
from labeldp_runtime.entropy import random_words
from numpy.typing import NDArray

from labeldp_trainer.randomize.ratio import exp_lower

STEPS = 128  # S; even, and a noisy entry fits uint8
WORD_BITS = 62
_PRECISE = Context(prec=60)
_CHUNK = 1 << 22  # words that are drawn together


class NoisyOneHot:
    """The ε-DP randomizer of one-hot labels.

    Attributes:
        weights: [S + 1] positive integers w with the sum 2^B.
    """

    def __init__(self, epsilon: Fraction, steps: int = STEPS, word_bits: int = WORD_BITS) -> None:
        """Raises ValueError if words of ``word_bits`` are too short; tests take short ones."""
        self.weights = _weights(epsilon, steps, 1 << word_bits)
        self._shift = np.uint64(64 - word_bits)
        ends = np.cumsum(np.array(self.weights, np.uint64), dtype=np.uint64)[:-1]
        flipped = np.cumsum(np.array(self.weights[::-1], np.uint64), dtype=np.uint64)[:-1]
        self._ends = ends, flipped

    def entries(self, ones: NDArray[np.bool_], words: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """Noisy entries 0 … S for exact ones of any shape, and as many uniform words."""
        u = words >> self._shift
        zero, one = (np.searchsorted(ends, u, side="right") for ends in self._ends)
        return np.where(ones, one, zero).astype(np.uint8)

    def randomize(self, labels: NDArray[np.int32], classes: int) -> NDArray[np.uint8]:
        """[n, K] noisy one-hot labels for true classes [n], with fresh secure words."""
        step = max(_CHUNK // classes, 1)
        parts = [np.empty((0, classes), np.uint8)]
        for start in range(0, len(labels), step):
            ones = labels[start : start + step, None] == np.arange(classes)[None, :]
            parts.append(self.entries(ones, random_words(*ones.shape)))
        return np.concatenate(parts)


def _weights(epsilon: Fraction, steps: int, words: int) -> tuple[int, ...]:
    """The clamped noise of an entry 0 in whole counts; what rounding leaves goes to the middle.

    The middle is as likely for an entry 1, so it may take any weight.
    """
    if steps % 2 or not 2 <= steps <= 254:
        raise ValueError("the lattice has an even number of steps, 2 … 254")
    half, ratio = steps // 2, exp_lower(epsilon / 2)
    step = -Decimal(epsilon.numerator) / _PRECISE.multiply(
        Decimal(epsilon.denominator), Decimal(2 * steps)
    )
    decay = step.exp(_PRECISE)  # α: Pr[n] = α^|n|·(1 − α)/(1 + α)
    unit = Fraction(words) / (1 + Fraction(decay))
    weights = [0] * (steps + 1)
    for o in range(half):
        inside = 1 - Fraction(decay) if o else Fraction(1)  # the ends hold whole tails
        small = math.ceil(unit * Fraction(_PRECISE.power(decay, steps - o)) * inside)
        large = math.floor(unit * Fraction(_PRECISE.power(decay, o)) * inside)
        weights[o] = max(min(large, math.floor(ratio * small)), small)
        weights[steps - o] = small
    weights[half] = words - sum(weights)
    if weights[half] < 1:
        raise ValueError(f"words are too short for noise at ε = {float(epsilon):g}")
    return tuple(weights)


def ratio_of(weights: tuple[int, ...]) -> Fraction:
    """The exact largest w(o)/w(S − o)."""
    return max(Fraction(a, b) for a, b in zip(weights, weights[::-1], strict=True))
