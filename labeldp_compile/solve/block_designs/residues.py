"""Translates of sets of residues in finite fields: nearly every density.

*Unions of cyclotomic classes*: for e | q − 1, let T be the union of j of the e cosets of the e-th
powers in GF(q)*, with or without zero, and K its size. A nonzero difference that occurs N times in
T occurs N times, g-fold, in g·T, so the e sets g^i·T have every nonzero difference
e·K(K − 1)/(q − 1) times: their translates are a pair-balanced design with e·q blocks (Bose 1939;
Wilson 1972).

If (q − 1)/e is odd, −1 is not an e-th power but in the class e/2. Differences come in pairs ±, so
half of the sets are enough. For e = 2 these are the squares for q = 3 mod 4 (Paley 1933). The
fourth powers alone are enough for q = 4x² + 1, and with zero for q = 4x² + 9, x odd (Chowla 1944,
Lehmer 1953).

*Twin prime powers* q, q + 2: one set in GF(q) × GF(q + 2). It holds (x, y) where both are squares
or both are not, and all (x, 0): (v − 1)/2 of v = q(q + 2) elements, with every nonzero difference
(v − 3)/4 times (Stanton and Sprott 1958).
"""

from collections.abc import Iterator
from math import isqrt

import numpy as np

from labeldp_compile.solve.block_designs.design import Blocks, Candidate, Ints
from labeldp_compile.solve.block_designs.finite_field import field, prime_powers


def cyclotomic(classes: int, max_blocks: int, max_points: int) -> Iterator[Candidate]:
    """Designs of at most half density on k … ``max_points`` points."""
    for order in prime_powers(max(classes, 3), max_points):
        for e in _divisors(order - 1):
            sets = e // 2 if e % 2 == 0 and (order - 1) // e % 2 else e
            if sets * order > max_blocks:
                break
            for j in range(1, e // 2 + 1):
                for zero in (False, True):
                    if 1 < j * (order - 1) // e + zero <= order // 2:
                        yield _translates(order, e, j, zero, sets)


def quartic(classes: int, max_points: int) -> Iterator[Candidate]:
    """Designs from one set of fourth powers, modulo primes from k to ``max_points``."""
    for x in range(1, isqrt(max_points // 4) + 1, 2):
        for zero in (False, True):
            prime = 4 * x * x + (9 if zero else 1)
            if classes <= prime <= max_points and prime > 5 and is_prime(prime):
                yield _translates(prime, 4, 1, zero, 1)


def is_prime(n: int) -> bool:
    """Whether n is prime, for small n."""
    return n > 1 and all(n % i for i in range(2, isqrt(n) + 1))


def _divisors(n: int) -> list[int]:
    return [e for e in range(2, n + 1) if n % e == 0]


def _translates(order: int, e: int, j: int, zero: bool, sets: int) -> Candidate:
    def build(classes: int) -> Blocks:
        numbers = field(order)
        apart = numbers.subtract(np.arange(classes)[None, :], np.arange(order)[:, None])
        coset = np.where(apart == 0, -1, numbers.logs[apart] % e)
        shifted = [np.where(coset < 0, zero, (coset - i) % e < j) for i in range(sets)]
        return np.concatenate(shifted)

    size = j * (order - 1) // e + zero
    pairs, rest = divmod(sets * size * (size - 1), order - 1)
    assert not rest
    name = _name(order, e, j) + (" and zero" if zero else "")
    return Candidate(name, order, sets * order, sets * size, pairs, build)


def _name(order: int, e: int, j: int) -> str:
    if j == 1 and e in (2, 4):
        powers = "quadratic residues" if e == 2 else "fourth powers"
        return f"{powers} mod {order}" if is_prime(order) else f"{powers} of GF({order})"
    return f"{j} of {e} cosets in GF({order})"


def twin_primes(classes: int, max_points: int) -> Iterator[Candidate]:
    """Designs from twin prime powers with k … ``max_points`` points."""
    powers = prime_powers(3, isqrt(max_points) + 2)
    for q in powers:
        points = q * (q + 2)
        if q % 2 and q + 2 in powers and classes <= points <= max_points:
            yield _twins(q)


def _twins(q: int) -> Candidate:
    points = q * (q + 2)

    def build(classes: int) -> Blocks:
        x, y = np.divmod(np.arange(points), q + 2)
        first, second = field(q), field(q + 2)
        one = _quadratic(first.logs, first.subtract(x[None, :classes], x[:, None]))
        other = _quadratic(second.logs, second.subtract(y[None, :classes], y[:, None]))
        return np.asarray((other == 0) | (one * other > 0))

    name = f"twin prime powers {q} and {q + 2}"
    return Candidate(name, points, points, (points - 1) // 2, (points - 3) // 4, build)


def _quadratic(logs: Ints, x: Ints) -> Ints:
    """1 for squares, −1 for non-squares, 0 for zero."""
    return np.where(x == 0, 0, 1 - 2 * (logs[x] % 2))
