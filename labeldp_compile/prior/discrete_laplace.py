"""The private histogram: exact discrete Laplace noise on integer counts.

Substituting one label moves one unit from one count to another, so the L1 sensitivity is 2; the
number of rows is public. Noise of scale 2/ε₁ makes the histogram ε₁-DP (Algorithm 4 of the
RR-on-Bins paper, 2023, with discrete noise).

The noise has P(x) proportional to e^(−|x|/s) on the integers, for a rational s. No floats are used.
It is the difference of two geometric numbers with P(g) = (1 − q)·q^g and q = e^(−1/s). The binary
digits of a geometric number are independent, because q^g is the product of q^(2^i) over the digits
i that are 1. Digit i is 1 with probability 1/(1 + e^(2^i/s)). The part above m digits is again a
geometric number, with q^(2^m) instead of q.

An event of probability p happens if a uniform number in [0, 1) is below p. The first 64 bits of
both are compared, and more bits if these are equal. The bits of p come from correctly rounded
decimal arithmetic, with as many digits as needed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
from labeldp_runtime.entropy import random_bytes, random_words
from numpy.typing import NDArray

L1_SENSITIVITY = 2
_WORD = 64  # bits
_LENGTH = 64  # scales; beyond them a digit is 1 with probability at most e^-64

# The first bits of a probability below 1, as an integer: ⌊p·2^bits⌋.
Chance = Callable[[int], int]


@dataclass(frozen=True)
class NoisyHistogram:
    """Counts [k] after noise (some may be negative), and the scale of the noise."""

    counts: list[int]
    scale: float


Levels = tuple[NoisyHistogram, NoisyHistogram]
"""Noisy counts of all rows, and of all tables one after the other."""


def noisy_histogram(counts: NDArray[np.int64], epsilon: Fraction) -> NoisyHistogram:
    """An ``epsilon``-DP histogram of counts [k] under substitution of one label.

    The scale is the smallest float64 that is at least 2/ε. The noise uses the exact rational value
    of this float, so it spends at most ε.
    """
    least = L1_SENSITIVITY / epsilon
    scale = float(least)
    if Fraction(scale) < least:
        scale = math.nextafter(scale, math.inf)
    noise = discrete_laplace(len(counts), Fraction(scale))
    return NoisyHistogram([a + b for a, b in zip(counts.tolist(), noise, strict=True)], scale)


def seeded_histogram(counts: NDArray[np.int64], epsilon: Fraction, seed: int) -> NoisyHistogram:
    """Discrete Laplace noise from a seeded generator: for tests, and INSECURE.

    A discrete Laplace number is the difference of two geometric ones.
    """
    scale = float(L1_SENSITIVITY / epsilon)
    generator = np.random.default_rng(seed)
    success = -math.expm1(-1 / scale)
    first, second = generator.geometric(success, size=(2, len(counts)))
    return NoisyHistogram([int(c) for c in counts + first - second], scale)


def cell_of_label(labels: int, cells: int) -> NDArray[np.int64]:
    """[labels] the cell of each label: neighbours; the sizes of cells differ by at most 1."""
    return np.arange(labels, dtype=np.int64) * cells // labels


def coarse(counts: NDArray[np.int64], cells: int) -> NDArray[np.int64]:
    """[cells] counts of cells, from counts of labels: one label still changes two of them by 1."""
    joined = np.zeros(cells, dtype=np.int64)
    np.add.at(joined, cell_of_label(len(counts), cells), counts)
    return joined


def discrete_laplace(count: int, scale: Fraction) -> list[int]:
    """Independent numbers of a scale > 0, from new secret random bits."""
    first, second = _geometric(count, scale), _geometric(count, scale)
    return [a - b for a, b in zip(first, second, strict=True)]


def _happens(count: int, chance: Chance) -> NDArray[np.bool_]:
    """[count] whether each of ``count`` independent events of one probability happens."""
    words, floor = random_words(count), chance(_WORD)
    found: NDArray[np.bool_] = words < floor
    for place in np.flatnonzero(words == floor):
        found[place] = _settled(chance)
    return found


def _exponential(x: Fraction) -> Chance:
    """The probability e^(−x), for x > 0."""
    return lambda bits: _floor(bits, x, lambda power: 1 / power)


def _geometric(count: int, scale: Fraction) -> list[int]:
    """Numbers g ≥ 0 with probabilities in proportion to e^(−g/scale)."""
    digits = int(_LENGTH * scale).bit_length()
    ones = np.empty((count, digits), dtype=np.bool_)
    for i in range(digits):
        ones[:, i] = _happens(count, _digit(2**i / scale))
    lines = np.packbits(ones, axis=1, bitorder="little")
    numbers = [int.from_bytes(line.tobytes(), "little") for line in lines]
    above, places = _exponential(2**digits / scale), np.arange(count)
    while len(places := places[_happens(len(places), above)]):
        for place in places.tolist():
            numbers[place] += 2**digits
    return numbers


def _digit(x: Fraction) -> Chance:
    """The probability 1/(1 + e^x), for x > 0."""
    return lambda bits: _floor(bits, x, lambda power: 1 / (1 + power))


def _settled(chance: Chance) -> bool:
    """Whether an event happens if its first 64 bits are equal to those of its probability."""
    bits = _WORD
    while True:
        bits += _WORD
        word, expected = int.from_bytes(random_bytes(8), "little"), chance(bits) % (1 << _WORD)
        if word != expected:
            return word < expected


def _floor(bits: int, x: Fraction, falling: Callable[[Fraction], Fraction]) -> int:
    """⌊2^bits·f(e^x)⌋ for a rational x > 0 and a decreasing function f.

    It ends, because neither e^x nor f(e^x) is rational.
    """
    digits = bits // 3 + 10
    while True:
        low, high = (int(falling(bound) * 2**bits) for bound in _exp_bounds(x, digits))
        if low == high:
            return low
        digits *= 2


def _exp_bounds(x: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Rationals above and below e^x with this many digits: ``decimal`` rounds e^x correctly."""
    context = Context(prec=digits, Emin=-999_999, Emax=999_999)
    quotient = context.divide(Decimal(x.numerator), Decimal(x.denominator))
    high = context.next_plus(context.next_plus(quotient).exp(context))
    low = context.next_minus(context.next_minus(quotient).exp(context))
    return Fraction(high), Fraction(low)


NOISE = "discrete Laplace"


def variance(scale: float) -> float:
    """The variance of the noise of this scale: 2q/(1 − q)² with q = e^(−1/scale)."""
    return 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2


def deviation(scale: float) -> float:
    """The standard deviation of the noise: the root of its variance."""
    return math.sqrt(2 * math.exp(-1 / scale)) / -math.expm1(-1 / scale)
