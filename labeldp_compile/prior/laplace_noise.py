"""Exact discrete Laplace noise: P(x) in proportion to e^(−|x|/s) on the integers, for a rational s.

No float takes part. The noise is the difference of two geometric numbers, P(g) = (1 − q)·q^g with
q = e^(−1/s). The binary digits of a geometric number are independent, because q^g is the product of
q^(2^i) over the digits i that are 1: digit i is 1 with probability 1/(1 + e^(2^i/s)). What is left
above m digits is a geometric number, too, with q^(2^m) in place of q.

An event of probability p happens where a uniform number in [0, 1) is below p: 64 bits of both are
compared, and more where these are equal. Bits of p come from decimal arithmetic that rounds
correctly, with as many digits as settle them.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
from labeldp_runtime.entropy import random_bytes, random_words
from numpy.typing import NDArray

_WORD = 64  # bits
_LENGTH = 64  # scales, beyond which a digit is 1 at most once in e^64 times

# The first bits of a probability below 1, as an integer: ⌊p·2^bits⌋.
Chance = Callable[[int], int]


def discrete_laplace(count: int, scale: Fraction) -> list[int]:
    """Independent numbers of a scale > 0, from fresh secret randomness."""
    first, second = _geometric(count, scale), _geometric(count, scale)
    return [a - b for a, b in zip(first, second, strict=True)]


def _happens(count: int, chance: Chance) -> NDArray[np.bool_]:
    """[count] whether each of as many independent events of one probability happens."""
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
    """Whether an event happens whose first word is that of its probability."""
    bits = _WORD
    while True:
        bits += _WORD
        word, expected = int.from_bytes(random_bytes(8), "little"), chance(bits) % (1 << _WORD)
        if word != expected:
            return word < expected


def _floor(bits: int, x: Fraction, falling: Callable[[Fraction], Fraction]) -> int:
    """⌊2^bits·f(e^x)⌋ for a rational x > 0 and a function f that falls.

    It ends, because e^x is not rational, nor is f of it.
    """
    digits = bits // 3 + 10
    while True:
        low, high = (int(falling(bound) * 2**bits) for bound in _exp_bounds(x, digits))
        if low == high:
            return low
        digits *= 2


def _exp_bounds(x: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Rationals above and below e^x, with as many digits: ``decimal`` rounds e^x correctly."""
    context = Context(prec=digits, Emin=-999_999, Emax=999_999)
    quotient = context.divide(Decimal(x.numerator), Decimal(x.denominator))
    high = context.next_plus(context.next_plus(quotient).exp(context))
    low = context.next_minus(context.next_minus(quotient).exp(context))
    return Fraction(high), Fraction(low)
