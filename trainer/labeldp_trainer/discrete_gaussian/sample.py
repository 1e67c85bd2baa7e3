"""Exact discrete Gaussian noise, many numbers at a time.

Algorithm D of Karney (*Sampling exactly from the normal distribution*, ACM TOMS 42, 2016) for
centre 0 and an integer σ: with k ≥ 0 drawn with probability ∝ e^(−k²/2), j uniform in 0 … σ − 1, x
= j/σ and a random sign, the number ±(k·σ + j) is accepted with probability e^(−x(2k + x)/2). So it
is returned with probability ∝ e^(−(k + x)²/2). Only integers are drawn and compared: no exponential
is computed while sampling, and no float takes part.

If the words are uniform and σ ≥ 64, each returned number is within a total variation of 2^-130 of
the discrete Gaussian (Theorem 13 e).
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from jaxtyping import Bool, Int64, UInt32, UInt64
from labeldp_verify.analysis import exp_bounds

from labeldp_compile.toolkit import random_bytes

DISTANCE = Fraction(1, 1 << 130)
"""Bounds the total variation between a returned number and the discrete Gaussian, for σ ≥ 64."""
MOST_SIGMA = 1 << 58  # k·σ + j stays below 17·2^58, less than 2^63
_LARGEST = 17  # values of k; larger ones have a probability below 2^-200
_BITS = 192  # of the bounds between the values of k
_WORD = 64
_TRIES = 1.45  # candidates per number; on average 1.40 are needed
_AT_ONCE = 1 << 16  # numbers per block, so that a block stays in the cache


Draw = Callable[[int], UInt64[np.ndarray, " n"]]
"""Returns the given number of independent uniform words of 64 bits."""


class _Real(NamedTuple):
    """Uniform numbers in [0, 1): (whole + rest/2^64)/σ, and further bits if these are equal."""

    whole: UInt64[np.ndarray, " c"]
    rest: UInt64[np.ndarray, " c"]

    def of(self, places: np.ndarray) -> _Real:
        return _Real(self.whole[places], self.rest[places])


def discrete_gaussian(draw: Draw, count: int, sigma: int) -> Int64[np.ndarray, " n"]:
    """Return ``count`` independent numbers with Pr[y] ∝ e^(−y²/2σ²).

    Raises ValueError if σ is not between 1 and 2^58.
    """
    if not 1 <= sigma <= MOST_SIGMA:
        raise ValueError(f"σ must be between 1 and {MOST_SIGMA:,}; it is {sigma:,}")
    found = [np.zeros(0, np.int64)]
    missing = count
    while missing > 0:
        candidates = math.ceil(_TRIES * min(missing, _AT_ONCE)) + 8
        accepted = _accepted(draw, candidates, np.uint64(sigma))[:missing]
        found.append(accepted)
        missing -= accepted.size
    return np.concatenate(found)


def _accepted(draw: Draw, candidates: int, sigma: np.uint64) -> Int64[np.ndarray, " c"]:
    """Draw ``candidates`` numbers and return the accepted ones."""
    k = _whole_parts(draw, candidates)
    j = _uniform(draw, candidates, sigma)
    negative = draw(-(-candidates // _WORD)).view(np.uint8)
    negative = np.unpackbits(negative)[:candidates].astype(bool)
    accepted = ~(negative & (k == 0) & (j == 0))  # zero counts with one sign only
    # e^(−x(2k + x)/2) is e^(−x(2k + x)/(2k + 2)), k + 1 times.
    waiting = np.flatnonzero(accepted)
    trials = 0
    while waiting.size:
        passed = _trial(draw, j[waiting], k[waiting], sigma)
        accepted[waiting[~passed]] = False
        trials += 1
        waiting = waiting[passed]
        waiting = waiting[k[waiting] >= trials]
    size = k * np.int64(sigma) + j.astype(np.int64)
    return np.where(negative, -size, size)[accepted]


def _whole_parts(draw: Draw, count: int) -> Int64[np.ndarray, " c"]:
    """Independent k with probability ∝ e^(−k²/2), by bounds of 192 bits."""
    bounds, first_words = _cumulative()
    drawn = draw(count)
    k = np.searchsorted(first_words, drawn, side="right").astype(np.int64)
    # If a word equals the first one of a bound, further words decide.
    for i in np.flatnonzero(np.isin(drawn, first_words)):
        high, low = draw(2).tolist()
        k[i] = bisect_right(bounds, (int(drawn[i]) << 2 * _WORD) + (high << _WORD) + low)
    return k


@functools.cache
def _cumulative() -> tuple[list[int], UInt64[np.ndarray, " k"]]:
    """⌊2^192·Pr[K ≤ k]⌋ for all k but the last, and their first words."""
    weights = [exp_bounds(Fraction(-k * k, 2))[0] for k in range(_LARGEST)]
    total, below, bounds = sum(weights, Fraction(0)), Fraction(0), []
    for weight in weights[:-1]:
        below += weight
        bounds.append(math.floor(below / total * (1 << _BITS)))
    return bounds, np.array([bound >> 2 * _WORD for bound in bounds], np.uint64)


def _trial(
    draw: Draw, j: UInt64[np.ndarray, " c"], k: Int64[np.ndarray, " c"], sigma: np.uint64
) -> Bool[np.ndarray, " c"]:
    """True with probability e^(−x(2k + x)/(2k + 2)), by comparisons alone (Algorithms B and C).

    Draw z_1, z_2, … as long as x > z_1 > z_2 > … and an event of probability (2k + x)/(2k + 2)
    occurs with each. If that holds n times, n is even with the wanted probability (von Neumann
    1951).
    """
    even = np.ones(j.size, bool)
    at, least = np.arange(j.size), _Real(j, np.zeros_like(j))  # x = j/σ, exactly
    while at.size:
        z = _Real(_uniform(draw, at.size, sigma), draw(at.size))
        falls = _below(draw, z, least)
        at, z = at[falls], z.of(falls)
        kept = _rare(draw, j[at], k[at], sigma)
        at, least = at[kept], z.of(kept)
        even[at] ^= True
    return even


def _below(draw: Draw, z: _Real, least: _Real) -> Bool[np.ndarray, " c"]:
    falls: Bool[np.ndarray, " c"] = z.whole < least.whole
    tied = np.flatnonzero(z.whole == least.whole)
    falls[tied] = z.rest[tied] < least.rest[tied]
    # Not for x, which has no further bits: z = x is not below it.
    tied = tied[(z.rest[tied] == least.rest[tied]) & (least.rest[tied] > 0)]
    falls[tied] = draw(tied.size) < draw(tied.size)
    return falls


def _rare(
    draw: Draw, j: UInt64[np.ndarray, " c"], k: Int64[np.ndarray, " c"], sigma: np.uint64
) -> Bool[np.ndarray, " c"]:
    """True with probability (2k + x)/(2k + 2), x = j/σ."""
    sides = (2 * k + 2).astype(np.uint64)
    side = _uniform(draw, sides.size, sides)
    true = side < sides - np.uint64(2)
    half = np.flatnonzero(side == sides - np.uint64(2))
    true[half] = _uniform(draw, half.size, sigma) < j[half]
    return true


def _uniform(
    draw: Draw, count: int, bounds: np.uint64 | UInt64[np.ndarray, " c"]
) -> UInt64[np.ndarray, " c"]:
    """Uniform integers below each bound: words beyond the bound's largest multiple are drawn
    again."""
    drawn = draw(count)
    most = np.uint64(2**_WORD - 1)
    last = most - (most % bounds + np.uint64(1)) % bounds  # the largest word that is used
    over = np.flatnonzero(drawn > last)
    while over.size:
        drawn = drawn.copy()
        drawn[over] = draw(over.size)
        over = over[drawn[over] > (last if last.ndim == 0 else last[over])]
    return drawn % bounds


# Uniform random words from a cryptographic generator under a secret key.
#
# The same key, purpose and number give the same words, so a step that is repeated after a crash
# repeats its noise. The generator is AES-256 in counter mode; each (purpose, number) has separate
# counters.

KEY_BYTES = 32
_MOST_PURPOSE, _MOST_NUMBER = 1 << 8, 1 << 56


def secret_key() -> UInt32[np.ndarray, 8]:
    """Return a fresh key of 256 bits from the operating system. Keep it as secret as the labels."""
    return np.frombuffer(random_bytes(KEY_BYTES), "<u4").astype(np.uint32)


class Words:
    """A stream of independent uniform words.

    Raises ValueError if the key, the purpose (below 2^8) or the number (below 2^56) does not fit.
    """

    def __init__(self, key: UInt32[np.ndarray, 8], purpose: int, number: int) -> None:
        """Start the stream of ``purpose`` and ``number``."""
        if key.shape != (KEY_BYTES // 4,) or key.dtype != np.uint32:
            raise ValueError("a key has eight words of 32 bits, as uint32")
        if not (0 <= purpose < _MOST_PURPOSE and 0 <= number < _MOST_NUMBER):
            raise ValueError("a stream needs a purpose below 2^8 and a number below 2^56")
        # The last 8 bytes count the blocks of this stream.
        start = bytes([purpose]) + number.to_bytes(7, "big") + bytes(8)
        raw = key.astype("<u4").tobytes()
        self._stream = Cipher(algorithms.AES(raw), modes.CTR(start)).encryptor()

    def draw(self, count: int) -> UInt64[np.ndarray, " n"]:
        """Return ``count`` words of 64 bits."""
        return np.frombuffer(self._stream.update(bytes(8 * count)), "<u8")

    def draw32(self, count: int) -> UInt32[np.ndarray, " n"]:
        """Return ``count`` words of 32 bits."""
        return np.frombuffer(self._stream.update(bytes(4 * count)), "<u4")
