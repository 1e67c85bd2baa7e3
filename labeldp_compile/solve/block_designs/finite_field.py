"""Finite fields as tables of the powers of a primitive element.

An element of GF(p^n) is an integer below p^n whose digits in base p are the coefficients of a
polynomial, so addition goes digit by digit. Multiplication adds logarithms.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from operator import mul

import numpy as np

from labeldp_compile.solve.block_designs.design import Ints


@dataclass(frozen=True, eq=False)
class Field:
    """GF(q), q = p^n.

    Attributes:
        prime: p.
        degree: n.
        powers: [q − 1] the powers g^0, g^1, … of a primitive element.
        logs: [q] i for the element g^i; −1 for zero.
    """

    prime: int
    degree: int
    powers: Ints
    logs: Ints

    @property
    def order(self) -> int:
        """The number of elements q."""
        return len(self.logs)

    def add(self, x: Ints, y: Ints) -> Ints:
        """The sum, elementwise."""
        return self._digitwise(x, y, 1)

    def subtract(self, x: Ints, y: Ints) -> Ints:
        """The difference, elementwise."""
        return self._digitwise(x, y, -1)

    def multiply(self, x: Ints, y: Ints) -> Ints:
        """The product, elementwise."""
        product = self.powers[(self.logs[x] + self.logs[y]) % (self.order - 1)]
        return np.where((x == 0) | (y == 0), 0, product)

    def _digitwise(self, x: Ints, y: Ints, sign: int) -> Ints:
        x, y = np.asarray(x), np.asarray(y)
        total, unit = np.zeros(np.broadcast_shapes(x.shape, y.shape), dtype=np.int64), 1
        for _ in range(self.degree):
            total += (x // unit + sign * (y // unit)) % self.prime * unit
            unit *= self.prime
        return total


@lru_cache(maxsize=64)
def field(order: int) -> Field:
    """GF(q). Raises ValueError if ``order`` is not a prime power.

    x is a primitive element of GF(p)[x]/(x^n + f) if and only if its first q − 1 powers differ.
    They are then all nonzero elements, and each has an inverse. The first such f is used.
    """
    found = _prime_powers(max(order, 1).bit_length()).get(order)
    if found is None:
        raise ValueError("the order of a finite field must be a power of a prime")
    prime, degree = found
    for low in count(1):
        powers = _powers(prime, degree, low)
        if powers is not None:
            logs = np.full(order, -1)
            logs[powers] = np.arange(order - 1)
            return Field(prime, degree, np.array(powers), logs)
    raise AssertionError


def _powers(prime: int, degree: int, low: int) -> list[int] | None:
    """The powers of x modulo x^n + f, f with the digits ``low``; None if they are too few."""
    units = [prime**i for i in range(degree)]
    f = [low // unit % prime for unit in units]
    digits, powers = [1, *[0] * (degree - 1)], []
    for _ in range(prime**degree - 1):
        powers.append(sum(map(mul, digits, units)))
        top = digits[-1]
        digits = [(d - top * c) % prime for d, c in zip([0, *digits[:-1]], f, strict=True)]
    return None if 0 in powers or len(set(powers)) < len(powers) else powers


def prime_powers(low: int, high: int) -> list[int]:
    """The prime powers from ``low`` to ``high``, in increasing order."""
    return [q for q in _prime_powers(max(high, 1).bit_length()) if low <= q <= high]


@lru_cache(maxsize=32)
def _prime_powers(bits: int) -> dict[int, tuple[int, int]]:
    """{p^n: (p, n)} below 2^bits, in increasing order."""
    size = 1 << bits
    prime = np.ones(size, dtype=bool)
    prime[:2] = False
    for i in range(2, int(size**0.5) + 1):
        if prime[i]:
            prime[i * i :: i] = False
    found = {}
    for p in np.flatnonzero(prime).tolist():
        q, n = p, 1
        while q < size:
            found[q] = (p, n)
            q, n = q * p, n + 1
    return dict(sorted(found.items()))
