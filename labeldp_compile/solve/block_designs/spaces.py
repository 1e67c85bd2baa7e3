"""Designs from affine and projective spaces over GF(q).

*Hyperplanes of PG(n, q)*: there are as many blocks as points, and about one in q of the points is
in each. Points and hyperplanes are vectors of GF(q)^(n+1) up to a factor, and a point is on a
hyperplane if their product is zero. Two points span a line, which is in (q^(n−1) − 1)/(q − 1)
hyperplanes. By Singer's theorem (1938) they are the translates of one set; this is not used here.

*Values of linear functions*: for each of the m = (q^n − 1)/(q − 1) directions a of GF(q)^n, and
each block Z of a design on the elements of GF(q), take {x : <a, x> in Z}. Two vectors x, y have the
same value in the directions normal to x − y, (q^(n−1) − 1)/(q − 1) of them, and two different
values in the q^(n−1) others. So if the design has b blocks, r with a point and λ with a pair, these
are m·b blocks, m·r with a point, and ((q^(n−1) − 1)/(q − 1))·r + q^(n−1)·λ with a pair. Singletons
give the hyperplanes of AG(n, q).

*Lines*: small blocks, with any two points in exactly one. The same holds for unitals, the Hermitian
curves of PG(2, q²) with q³ + 1 points: blocks are the lines that meet the curve in more than one
point, each in q + 1 (Bose 1958).
"""

from collections.abc import Callable, Iterable, Iterator
from math import isqrt

import numpy as np

from labeldp_compile.solve.block_designs.design import Blocks, Candidate, Ints
from labeldp_compile.solve.block_designs.finite_field import Field, field, prime_powers


def projective_spaces(classes: int, max_blocks: int) -> Iterator[Candidate]:
    """Hyperplanes of PG(n, q), n ≥ 2, with at least ``classes``, at most ``max_blocks`` points."""
    for order in prime_powers(2, isqrt(max_blocks)):
        dimension = 2
        while (points := directions(order, dimension + 1)) <= max_blocks:
            if points >= classes:
                yield _projective_space(order, dimension)
            dimension += 1


def directions(order: int, length: int) -> int:
    """The number of vectors of GF(q)^length up to a factor, without zero."""
    return sum(order**i for i in range(length))


def normalised(order: int, length: int) -> Ints:
    """[m, length] vectors, one for each direction: the first entry that is not zero is 1."""
    # After a first 1 at the place of the unit q^i, the i lower digits are free.
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


def _projective_space(order: int, dimension: int) -> Candidate:
    def build(classes: int) -> Blocks:
        hyperplanes = normalised(order, dimension + 1)
        return np.asarray(dot(field(order), hyperplanes, hyperplanes[:classes]) == 0)

    points, lower = directions(order, dimension + 1), directions(order, dimension)
    pairs = directions(order, dimension - 1)
    name = f"hyperplanes of PG({dimension}, {order})"
    return Candidate(name, points, points, lower, pairs, build)


def affine_spaces(
    classes: int, max_blocks: int, max_points: int, of: Callable[[int, int], Iterable[Candidate]]
) -> Iterator[Candidate]:
    """Values of linear functions, n ≥ 2, on k … ``max_points`` points; ``of``: designs on q."""
    for order in prime_powers(2, isqrt(max_points)):
        dimension = 2
        while order**dimension <= max_points:
            room = max_blocks // directions(order, dimension)
            if order**dimension >= classes and room >= order:
                for values in of(order, room):
                    yield _affine_space(order, dimension, values)
            dimension += 1


def _affine_space(order: int, dimension: int, values: Candidate) -> Candidate:
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


def lines(classes: int, max_blocks: int, max_points: int) -> Iterator[Candidate]:
    """Designs of lines on k … ``max_points`` points; the lines of a plane are its hyperplanes."""
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
    """Lines by direction; points that differ by a multiple of it are on one line."""
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
