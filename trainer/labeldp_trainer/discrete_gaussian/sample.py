"""Discrete Gaussian noise whose scale is a power of two, many numbers at a time.

Algorithm D of Karney (*Sampling exactly from the normal distribution*, ACM TOMS 42, 2016) for
centre 0 and σ = 2^m: with k ≥ 0 drawn with probability ∝ e^(−k²/2), j uniform in 0 … 2^m − 1, x =
j/2^m and a random sign, the number ±(k·2^m + j) is accepted with probability e^(−x(2k + x)/2), so
that it is returned with probability ∝ e^(−(k + x)²/2). Only integers are drawn and compared: no
exponential is computed while sampling, and no float takes part.

What is returned is within a total variation of 2^-120 a number of the discrete Gaussian (Theorem 13
e), if the words are uniform.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Int64, UInt64
from labeldp_verify.analysis.bounds import exp_bounds

from labeldp_trainer.discrete_gaussian.words import Words

DISTANCE = Fraction(1, 1 << 120)
"""Bounds the total variation between a returned number and the discrete Gaussian."""
MOST_EXPONENT = 58  # k·2^m + j stays below 2^62
_LARGEST = 14  # values of k; larger ones have a probability below 2^-140
_WORD = 64
_TRIES = 1.45  # candidates for a number: 1.40 on average


def discrete_gaussian(words: Words, count: int, exponent: int) -> Int64[np.ndarray, " n"]:
    """Return independent numbers with Pr[y] ∝ e^(−y²/2σ²), σ = 2^``exponent``.

    Raises ValueError if the exponent is not between 1 and 58.
    """
    if not 1 <= exponent <= MOST_EXPONENT:
        raise ValueError(f"the exponent must be between 1 and {MOST_EXPONENT}; it is {exponent}")
    found: list[Int64[np.ndarray, " c"]] = []
    missing = count
    while missing > 0:
        accepted = _accepted(words, math.ceil(_TRIES * missing) + 8, exponent)[:missing]
        found.append(accepted)
        missing -= accepted.size
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _accepted(words: Words, candidates: int, exponent: int) -> Int64[np.ndarray, " c"]:
    """The accepted ones of so many candidates."""
    k = _whole_parts(words, candidates)
    # x·2^64; real numbers below are words with further bits that are drawn when they matter
    x = words.draw(candidates) >> np.uint64(_WORD - exponent) << np.uint64(_WORD - exponent)
    negative = words.draw(-(-candidates // _WORD)).view(np.uint8)
    negative = np.unpackbits(negative)[:candidates].astype(bool)
    accepted = ~(negative & (k == 0) & (x == 0))  # zero has one sign
    # e^(−x(2k + x)/2) is e^(−x(2k + x)/(2k + 2)), k + 1 times.
    waiting = np.flatnonzero(accepted)
    trials = 0
    while waiting.size:
        passed = _trial(words, x[waiting], k[waiting])
        accepted[waiting[~passed]] = False
        trials += 1
        waiting = waiting[passed]
        waiting = waiting[k[waiting] >= trials]
    size = (k << exponent) + (x >> np.uint64(_WORD - exponent)).astype(np.int64)
    return np.where(negative, -size, size)[accepted]


def _whole_parts(words: Words, count: int) -> Int64[np.ndarray, " c"]:
    """Independent k with probability ∝ e^(−k²/2), of 128 bits."""
    high, low = _cumulative()
    drawn = words.draw(count)
    k = np.searchsorted(high, drawn, side="right").astype(np.int64)
    # A word that equals the upper half of a bound is decided by the lower half.
    for i in np.flatnonzero(np.isin(drawn, high)):
        first = int(np.searchsorted(high, drawn[i], side="left"))
        k[i] = first + np.searchsorted(low[first : k[i]], words.draw(1)[0], side="right")
    return k


@functools.cache
def _cumulative() -> tuple[UInt64[np.ndarray, " k"], UInt64[np.ndarray, " k"]]:
    """Upper and lower halves of ⌊2^128·Pr[K ≤ k]⌋ for all k but the last."""
    weights = [exp_bounds(Fraction(-k * k, 2))[0] for k in range(_LARGEST)]
    total, below, bounds = sum(weights, Fraction(0)), Fraction(0), []
    for weight in weights[:-1]:
        below += weight
        bounds.append(math.floor(below / total * (1 << 128)))
    high = np.array([bound >> _WORD for bound in bounds], np.uint64)
    low = np.array([bound & (1 << _WORD) - 1 for bound in bounds], np.uint64)
    return high, low


def _trial(
    words: Words, x: UInt64[np.ndarray, " c"], k: Int64[np.ndarray, " c"]
) -> Bool[np.ndarray, " c"]:
    """True with probability e^(−x(2k + x)/(2k + 2)), by comparisons alone (Algorithms B and C).

    The real numbers x > z_1 > z_2 > … fall n times, each time together with an event of probability
    (2k + x)/(2k + 2), before something fails: n is even with that probability (von Neumann 1951).
    """
    even = np.ones(x.size, bool)
    at, least, exact = np.arange(x.size), x, True
    while at.size:
        z = words.draw(at.size)
        falls = z < least
        if not exact:  # x has no further bits: z = x is not below it
            tied = np.flatnonzero(z == least)
            falls[tied] = words.draw(tied.size) < words.draw(tied.size)
        at, least, exact = at[falls], z[falls], False
        kept = _rare(words, x[at], k[at])
        at, least = at[kept], least[kept]
        even[at] ^= True
    return even


def _rare(
    words: Words, x: UInt64[np.ndarray, " c"], k: Int64[np.ndarray, " c"]
) -> Bool[np.ndarray, " c"]:
    """True with probability (2k + x)/(2k + 2)."""
    sides = (2 * k + 2).astype(np.uint64)
    side = _uniform(words, sides)
    true = side < sides - np.uint64(2)
    half = np.flatnonzero(side == sides - np.uint64(2))
    true[half] = words.draw(half.size) < x[half]
    return true


def _uniform(words: Words, bounds: UInt64[np.ndarray, " c"]) -> UInt64[np.ndarray, " c"]:
    """Uniform integers below each bound: words beyond its largest multiple are drawn again."""
    drawn = words.draw(bounds.size)
    most = np.uint64(2**64 - 1)
    last = most - (most % bounds + np.uint64(1)) % bounds  # the largest word that is used
    over = np.flatnonzero(drawn > last)
    while over.size:
        drawn = drawn.copy()
        drawn[over] = words.draw(over.size)
        over = over[drawn[over] > last[over]]
    return drawn % bounds
