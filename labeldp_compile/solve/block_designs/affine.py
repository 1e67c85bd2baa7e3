"""Designs on the values of linear functions: an affine space over GF(q), and a design on q points.

For each of the m = (q^n − 1)/(q − 1) directions a of GF(q)^n, and each block Z of a design on the
elements of GF(q), take {x : <a, x> in Z}. Two vectors x, y have the same value in the directions
normal to x − y, (q^(n−1) − 1)/(q − 1) of them, and two different values in the q^(n−1) others. So
if the design has b blocks, r with a point and λ with a pair, these are m·b blocks, m·r with a
point, and ((q^(n−1) − 1)/(q − 1))·r + q^(n−1)·λ with a pair. Singletons give the hyperplanes of
AG(n, q).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import isqrt

import numpy as np

from labeldp_compile.solve.block_designs.design import Blocks, Candidate
from labeldp_compile.solve.block_designs.finite_field import field, prime_powers
from labeldp_compile.solve.block_designs.projective import directions, dot, normalised, vectors


def affine_spaces(
    classes: int, max_blocks: int, max_points: int, of: Callable[[int, int], Iterable[Candidate]]
) -> Iterator[Candidate]:
    """Those with n ≥ 2 on k … ``max_points`` points; ``of`` gives the designs on q points."""
    for order in prime_powers(2, isqrt(max_points)):
        dimension = 2
        while order**dimension <= max_points:
            room = max_blocks // directions(order, dimension)
            if order**dimension >= classes and room >= order:
                for values in of(order, room):
                    yield _space(order, dimension, values)
            dimension += 1


def _space(order: int, dimension: int, values: Candidate) -> Candidate:
    normals = directions(order, dimension)
    same = directions(order, dimension - 1)

    def build(classes: int) -> Blocks:
        points = vectors(order, dimension, classes)
        products = dot(field(order), normalised(order, dimension), points)
        blocks = values.build(order)[:, products]
        return np.asarray(blocks.reshape(-1, classes))

    name = f"hyperplanes of AG({dimension}, {order})"
    if values.pairs:
        shortened = f" shortened to {order}" if values.points > order else ""
        name = f"AG({dimension}, {order}) over {values.name}{shortened}"
    return Candidate(
        name,
        order**dimension,
        normals * values.blocks,
        normals * values.replication,
        same * values.replication + order ** (dimension - 1) * values.pairs,
        build,
    )
