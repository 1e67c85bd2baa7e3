"""Exact discrete Gaussian noise on an integer statistic.

P(x) is in proportion to e^(−x²/(2σ²)) on the integers (Canonne, Kamath and Steinke, The Discrete
Gaussian for Differential Privacy, 2020, Algorithm 3): a discrete Laplace number y of scale t is
accepted with probability e^(−(|y| − σ²/t)²/(2σ²)). No float takes part.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from jaxtyping import Int64
from labeldp_runtime.entropy import random_words

from labeldp_compile.prior.laplace_noise import discrete_laplace

_DRAWN = 1 << 12  # words at a time
_EXACT = 40  # bits: the scale is a float64 that is the integer itself


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
    noise = discrete_gaussian(statistic.size, sigma)
    sums = [value + more for value, more in zip(statistic.ravel().tolist(), noise, strict=True)]
    held = [min(max(total, ends.min), ends.max) for total in sums]
    return np.array(held, np.int64).reshape(statistic.shape)


def discrete_gaussian(count: int, sigma: int) -> list[int]:
    """Independent numbers of scale σ ≥ 1."""
    found: list[int] = []
    words = _words()
    while len(found) < count:
        proposed = discrete_laplace(count - len(found), Fraction(sigma))
        found += [y for y in proposed if _falls((abs(y) - sigma) ** 2, 2 * sigma**2, words)]
    return found


def _falls(part: int, whole: int, words: Iterator[int]) -> bool:
    """True with probability e^(−part/whole) (Algorithm 1)."""
    while part > whole:
        if not _falls(whole, whole, words):
            return False
        part -= whole
    k = 1
    while _happens(part, whole * k, words):
        k += 1
    return k % 2 == 1


def _happens(part: int, whole: int, words: Iterator[int]) -> bool:
    """True with probability part/whole, the bits of which are compared with random ones."""
    while True:
        first, rest = divmod(part << 64, whole)
        word = next(words)
        if word != first:
            return word < first
        part = rest


def _words() -> Iterator[int]:
    """Fresh secret uniform integers of 64 bits, without an end."""
    while True:
        yield from random_words(_DRAWN).tolist()
