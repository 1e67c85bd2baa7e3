"""The name and size of the noise on a private histogram; imports nothing heavy."""

import math

NOISE = "discrete Laplace"


def variance(scale: float) -> float:
    """The variance of the noise of this scale: 2q/(1 − q)² with q = e^(−1/scale)."""
    return 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2


def deviation(scale: float) -> float:
    """The standard deviation of the noise: the root of its variance."""
    return math.sqrt(2 * math.exp(-1 / scale)) / -math.expm1(-1 / scale)
