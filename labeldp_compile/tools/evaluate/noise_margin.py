"""How far discrete Laplace noise, or the difference of two such numbers, can be from 0."""

import math
from bisect import bisect_left
from fractions import Fraction

_CHANCE = 0.05 * (1 - 1e-9)  # rounding of float64 does not make an interval too short


def noise_margin(scale: Fraction, terms: int) -> int:
    """The least t ≥ 0 that the noise exceeds, on either side, with a probability of at most 5%.

    ``terms`` is 1, or 2 for the difference of two independent numbers of this scale.
    """
    high = 1
    while chance_beyond(high, scale, terms) > _CHANCE:
        high *= 2
    return bisect_left(range(high), -_CHANCE, key=lambda t: -chance_beyond(t, scale, terms))


def chance_beyond(t: int, scale: Fraction, terms: int) -> float:
    """Pr[|X| > t] for a whole t ≥ 0, in float64.

    X has P(x) = (1 − q)/(1 + q)·q^|x| with q = e^(−1/scale). The difference of two has
    P(d) = ((1 − q)/(1 + q))²·q^|d|·(|d| + c) with c = (1 + q²)/(1 − q²). Both are summed over
    d ≥ T = t + 1, and doubled.
    """
    step = float(1 / scale)
    q, rest = math.exp(-step), -math.expm1(-step)  # rest is 1 − q
    beyond = t + 1
    tail = math.exp(-step * beyond)
    if terms == 1:
        return 2 * tail / (1 + q)
    c = (1 + q * q) / (rest * (1 + q))
    return 2 * tail * ((beyond + c) * rest + q) / (1 + q) ** 2
