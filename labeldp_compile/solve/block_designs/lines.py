"""Small blocks, any two points in just one: lines of affine and projective spaces, and unitals.

A unital is a Hermitian curve of PG(2, q²): q³ + 1 points, and the lines that meet it in more than
one, each in q + 1 (Bose 1958).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isqrt

import numpy as np

from labeldp_compile.solve.block_designs.design import Blocks, Candidate
from labeldp_compile.solve.block_designs.finite_field import field, prime_powers
from labeldp_compile.solve.block_designs.projective import directions, dot, normalised, vectors


def lines(classes: int, max_blocks: int, max_points: int) -> Iterator[Candidate]:
    """Those on k … ``max_points`` points; the lines of a plane are its hyperplanes."""
    for candidate in _all(max_points):
        if candidate.points >= classes and candidate.blocks <= max_blocks:
            yield candidate


def _all(max_points: int) -> Iterator[Candidate]:
    for q in prime_powers(2, isqrt(max_points)):
        dimension = 3
        while (points := q**dimension) <= max_points:
            yield _one_line(f"lines of AG({dimension}, {q})", points, q, _affine, q, dimension)
            points = directions(q, dimension + 1)
            if points <= max_points:
                name = f"lines of PG({dimension}, {q})"
                yield _one_line(name, points, q + 1, _projective, q, dimension)
            dimension += 1
        if q**3 < max_points:
            yield _one_line(f"unital of order {q}", q**3 + 1, q + 1, _unital, q, 2)


def _one_line(
    name: str, points: int, size: int, build: Callable[[int, int], Blocks], q: int, dimension: int
) -> Candidate:
    """Any two of v points in one block: each is in (v − 1)/(size − 1) of them."""
    replication, rest = divmod(points - 1, size - 1)
    blocks, more = divmod(points * replication, size)
    assert not rest
    assert not more
    return Candidate(
        name, points, blocks, replication, 1, lambda classes: build(q, dimension)[:, :classes]
    )


def _affine(order: int, dimension: int) -> Blocks:
    """By direction; points that are equal but for a multiple of it are on one line."""
    numbers, points = field(order), vectors(order, dimension, order**dimension)
    places = order ** np.arange(dimension)[::-1]
    found = []
    for direction in normalised(order, dimension):
        lead = int(np.flatnonzero(direction)[0])
        feet = numbers.subtract(points, numbers.multiply(points[:, [lead]], direction[None, :]))
        line = feet @ places
        found.append(np.unique(line)[:, None] == line[None, :])
    return np.concatenate(found)


def _projective(order: int, dimension: int) -> Blocks:
    """The lines at infinity, and the affine ones, each with the point of its direction."""
    if dimension == 1:
        return np.ones((1, order + 1), dtype=np.bool_)
    infinite, affine = _projective(order, dimension - 1), _affine(order, dimension)
    direction = np.repeat(np.eye(infinite.shape[1], dtype=np.bool_), order ** (dimension - 1), 0)
    none = np.zeros((len(infinite), affine.shape[1]), dtype=np.bool_)
    return np.block([[infinite, none], [direction, affine]])


def _unital(order: int, _: int) -> Blocks:
    """The curve x^(q+1) + y^(q+1) + z^(q+1) = 0 and its secants."""
    numbers = field(order * order)
    plane = normalised(order * order, 3)
    norms = np.where(
        plane == 0, 0, numbers.powers[numbers.logs[plane] * (order + 1) % (order * order - 1)]
    )
    sums = numbers.add(numbers.add(norms[:, 0], norms[:, 1]), norms[:, 2])
    meets = dot(numbers, plane, plane[sums == 0]) == 0
    return np.asarray(meets[meets.sum(axis=1) > 1])
