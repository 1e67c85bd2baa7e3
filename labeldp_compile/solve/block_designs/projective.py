"""The hyperplanes of a projective space: as many blocks as points, about one in q of them in each.

Points and hyperplanes of PG(n, q) are vectors of GF(q)^(n+1) up to a factor, and a point is on a
hyperplane where their product is zero. Two points span a line, which is in all but a factor of
(q^(n−1) − 1)/(q − 1) hyperplanes. That they are the translates of one set is Singer's theorem
(1938); nothing here needs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

import numpy as np

from labeldp_compile.solve.block_designs.design import Blocks, Candidate, Ints
from labeldp_compile.solve.block_designs.finite_field import Field, field, prime_powers


def projective_spaces(classes: int, max_blocks: int) -> Iterator[Candidate]:
    """Those with n ≥ 2, k or more points, and at most so many."""
    for order in prime_powers(2, isqrt(max_blocks)):
        dimension = 2
        while (points := directions(order, dimension + 1)) <= max_blocks:
            if points >= classes:
                yield _space(order, dimension)
            dimension += 1


def directions(order: int, length: int) -> int:
    """The number of vectors of GF(q)^length up to a factor, without zero."""
    return sum(order**i for i in range(length))


def normalised(order: int, length: int) -> Ints:
    """[m, length] vectors, one for each direction: the first entry that is not zero is 1."""
    # Behind a first 1 in the place of the unit q^i, the i lower digits are free.
    units = (order**i for i in range(length))
    return np.concatenate([_digits(unit + np.arange(unit), order, length) for unit in units])


def dot(numbers: Field, x: Ints, y: Ints) -> Ints:
    """[m, k] products in GF(q) of vectors [m, l] and [k, l]."""
    if numbers.degree == 1:
        return np.asarray(x @ y.T % numbers.prime)
    total = np.zeros((len(x), len(y)), dtype=np.int64)
    for i in range(x.shape[1]):
        total = numbers.add(total, numbers.multiply(x[:, i, None], y[None, :, i]))
    return total


def vectors(order: int, length: int, count: int) -> Ints:
    """[count, length] the first vectors of GF(q)^length."""
    return _digits(np.arange(count), order, length)


def _digits(x: Ints, order: int, length: int) -> Ints:
    return np.asarray(x[:, None] // order ** np.arange(length)[::-1] % order)


def _space(order: int, dimension: int) -> Candidate:
    def build(classes: int) -> Blocks:
        hyperplanes = normalised(order, dimension + 1)
        return np.asarray(dot(field(order), hyperplanes, hyperplanes[:classes]) == 0)

    points, lower = directions(order, dimension + 1), directions(order, dimension)
    pairs = directions(order, dimension - 1)
    name = f"hyperplanes of PG({dimension}, {order})"
    return Candidate(name, points, points, lower, pairs, build)
