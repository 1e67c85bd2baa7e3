"""What noise on integers costs beside the continuous noise that accounting is about (Theorem 7 i).

Let R be N(0, s²) rounded to the nearest integer, and G the discrete Gaussian of scale s. G ≤
e^(1/8s²)·R everywhere, and R ≤ e^(t²/24s²)·G up to t scales from zero: so n numbers of one in the
place of the other raise ε by n·(1/8 + t²/24)/s², and δ by next to nothing.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from labeldp_verify.analysis import exp_upper, log_bounds

from labeldp_trainer.discrete_gaussian.sample import DISTANCE

_BEYOND = 10  # tails have at most e^−9.5 of δ
_TAIL = Fraction(1, 10_000)
_NORMALISER = Fraction(1, 1 << 1000)  # of log(N/I), which is below 10^−30000


class RoundingCost(NamedTuple):
    """What of ε and δ is left for the steps with continuous noise.

    Attributes:
        epsilon: ε₀ < ε.
        delta: δ₀ < δ.
    """

    epsilon: Fraction
    delta: Fraction


def left_for_steps(
    scale: int, numbers: int, epsilon: Fraction, delta: Fraction
) -> RoundingCost | None:
    """(ε₀, δ₀) such that n numbers of discrete noise of a scale s ≥ 64 give (ε, δ) wherever as many
    of continuous noise, rounded, give (ε₀, δ₀); None if that would take 1% of ε or half of δ.
    """
    reach = math.ceil(
        2 * (log_bounds(Fraction(numbers))[1] + epsilon + log_bounds(1 / delta)[1] + _BEYOND)
    )  # t²
    square = scale * scale
    if reach > square:
        return None
    below = Fraction(numbers, 8 * square)
    above = numbers * (Fraction(reach, 24 * square) + _NORMALISER)
    sampled = (1 + exp_upper(epsilon)) * numbers * DISTANCE
    left = (delta - sampled) * (1 - below) - _TAIL * delta
    if below + above > epsilon / 100 or left < delta / 2:
        return None
    return RoundingCost(epsilon - below - above, left)
