"""Twin prime powers q, q + 2: one set in GF(q) × GF(q + 2), and its translates.

It holds (x, y) where both are squares or both are not, and all (x, 0): (v − 1)/2 of v = q(q + 2)
elements, with every nonzero difference (v − 3)/4 times (Stanton and Sprott 1958).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

import numpy as np

from labeldp_compile.solve.block_designs.design import Blocks, Candidate, Ints
from labeldp_compile.solve.block_designs.finite_field import field, prime_powers


def twin_primes(classes: int, max_points: int) -> Iterator[Candidate]:
    """Those with k … ``max_points`` points."""
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
    """1 for squares, −1 for what is none, 0 for zero."""
    return np.where(x == 0, 0, 1 - 2 * (logs[x] % 2))
