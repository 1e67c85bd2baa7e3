"""Discrete Gaussian noise on an integer statistic, from fresh secret randomness."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64, UInt64
from labeldp_runtime.entropy import random_words

from labeldp_trainer.discrete_gaussian.sample import discrete_gaussian

_EXACT = 40  # bits: the scale is a float64 that is the integer itself


class _Fresh:
    """Words that nobody has seen and that are never drawn again."""

    def draw(self, count: int) -> UInt64[np.ndarray, " n"]:
        words: UInt64[np.ndarray, " n"] = random_words(count)
        return words


def with_float(sigma: int) -> int:
    """The least integer from σ upwards that a float64 holds exactly, to 40 bits."""
    shift = max(sigma.bit_length() - _EXACT, 0)
    return -(-sigma >> shift) << shift


def noisy(statistic: Int64[np.ndarray, "d k"], sigma: int) -> Int64[np.ndarray, "d k"]:
    """The statistic plus independent discrete Gaussian noise of scale σ, from secure randomness.

    Sums beyond int64 are its ends.
    """
    if int(float(sigma)) != sigma:
        raise ValueError("σ is no float64")
    ends = np.iinfo(np.int64)
    noise = discrete_gaussian(_Fresh(), statistic.size, sigma).tolist()
    sums = [value + more for value, more in zip(statistic.ravel().tolist(), noise, strict=True)]
    held = [min(max(total, ends.min), ends.max) for total in sums]
    return np.array(held, np.int64).reshape(statistic.shape)
