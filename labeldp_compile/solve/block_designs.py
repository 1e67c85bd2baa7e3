"""Block designs: every class, and every pair of classes, occurs equally often; finite fields.

Designs are compared by the noise of a private set of classes. A label draws block Z with a
probability proportional to E if its class c is in Z, and to 1 otherwise. If every class is in r of
the b blocks and every pair of classes in λ, the weights of each label add up to D = r·E + b − r.
Its own class is in the drawn block with probability p = r·E/D, and any other class with
q = (λ·E + r − λ)/D. So (1[c ∈ Z] − q)/(p − q) is an unbiased one-hot label. The variances of its k
parts add up to V = (p(1 − p) + (k − 1)·q(1 − q))/(p − q)², the noise.

Ye and Barg (2018) have this with all blocks of one size.

The families are translates of residues, hyperplanes, lines and unitals. Translates of sets of
residues in finite fields have nearly every density.

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

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from itertools import count
from math import isqrt
from operator import mul

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Blocks = NDArray[np.bool_]
Ints = NDArray[np.int64]


def noise(classes: int, blocks: int, replication: int, pairs: int, ratio: Fraction) -> Fraction:
    """The noise V of a design with b ``blocks``, exactly.

    ``ratio`` is E > 1. Raises ValueError if there is no such design, or if its blocks hold no
    information.
    """
    if not 0 <= pairs < replication <= blocks:
        raise ValueError("a design has b blocks, r of them with a class, λ < r ≤ b with a pair")
    n, m = ratio.numerator, ratio.denominator
    weight = replication * n + (blocks - replication) * m  # D·m
    own = replication * n  # p·D·m
    other = pairs * n + (replication - pairs) * m  # q·D·m
    variances = own * (weight - own) + (classes - 1) * other * (weight - other)
    return Fraction(variances, (own - other) ** 2)


def relative(
    classes: int, blocks: Floats, replication: Floats, pairs: Floats, ratio: Fraction
) -> Floats:
    """[n] the noise of n designs times (1 − 1/E)², in floats, to 12 digits.

    All terms except r − λ and b − r are sums of non-negative numbers, and those two are differences
    of integers. So nothing cancels.

    Complements make the product of the last two factors larger, by (r − λ)(b − 2r)(E² − 1) in its
    numerator. So complements never improve a design with 2r ≤ b.
    """
    w = float(1 / ratio)
    apart = replication - pairs  # blocks with the one of two classes and not with the other
    neither = blocks - 2 * replication + pairs
    own = replication * (blocks - replication) * w
    other = (pairs + apart * w) * (apart + neither * w)
    return np.asarray((own + (classes - 1) * other) / apart**2)


@dataclass(frozen=True, eq=False)
class BlockDesign:
    """Blocks that were checked to be pair-balanced; none is empty and none has every class.

    Attributes:
        name: in plain words.
        blocks: [b, k] whether the block holds the class.
        replication: r, the number of blocks with a class, the same for each.
        pairs: λ, the number of blocks with a pair of classes, the same for each.
    """

    name: str
    blocks: Blocks
    replication: int
    pairs: int


@dataclass(frozen=True, eq=False)
class Candidate:
    """The parameters of a design that exists by a theorem; nothing is built yet.

    Attributes:
        name: in plain words.
        points: v, at least the number of classes.
        blocks: b.
        replication: r, at most b/2.
        pairs: λ.
        build: from k ≤ v the blocks [b, k] on the first k points.
        symmetric: whether every permutation of the points permutes the blocks.
    """

    name: str
    points: int
    blocks: int
    replication: int
    pairs: int
    build: Callable[[int], Blocks]
    symmetric: bool = False

    @property
    def is_response(self) -> bool:
        """Whether each block has one class: randomized response."""
        return self.replication == 1

    def noise(self, classes: int, ratio: Fraction) -> Fraction:
        """The noise on k of the points."""
        return noise(classes, self.blocks, self.replication, self.pairs, ratio)

    def design(self, classes: int) -> BlockDesign:
        """The design on the first k points, built and checked.

        Classes are assigned to points in scattered order, so that neighbours on a line or in a
        plane are not neighbouring labels. Otherwise sums of labels (a mean, the labels up to one)
        would be large in a few blocks. With fewer points, r and λ stay the same. Blocks that then
        have no class, or all, say nothing about a label; removing them lowers the noise. Raises
        RuntimeError if the blocks do not have the promised parameters.
        """
        blocks = self.build(classes)
        if blocks.shape != (self.blocks, classes):
            raise RuntimeError(f"{self.name}: the number of blocks is wrong")
        if not self.symmetric:
            blocks = blocks[:, _scattered(classes)]
        _check(self.name, blocks, self.replication, self.pairs)
        sizes = blocks.sum(axis=1)
        full = int((sizes == classes).sum())
        kept = np.ascontiguousarray(blocks[(sizes > 0) & (sizes < classes)])
        name = self.name
        if classes < self.points:
            name = f"{name}, shortened from {self.points}"
        return BlockDesign(name, kept, self.replication - full, self.pairs - full)


def _scattered(count: int) -> list[int]:
    """The numbers 0 … count − 1 in a fixed order that is unrelated to their size."""
    return sorted(range(count), key=lambda i: sha256(str(i).encode()).digest())


def _check(name: str, blocks: Blocks, replication: int, pairs: int) -> None:
    """Raise RuntimeError unless the blocks are balanced; float64 is exact below 2^53."""
    members = blocks.astype(np.float64)
    together = members.T @ members
    expected = np.full_like(together, pairs)
    np.fill_diagonal(expected, replication)
    if not np.array_equal(together, expected):
        raise RuntimeError(f"the blocks of {name} are not balanced")


# Finite fields as tables of the powers of a primitive element.
#
# An element of GF(p^n) is an integer below p^n whose digits in base p are the coefficients of a
# polynomial, so addition goes digit by digit. Multiplication adds logarithms.


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


# Designs from affine and projective spaces over GF(q).
#
# *Hyperplanes of PG(n, q)*: there are as many blocks as points, and about one in q of the points is
# in each. Points and hyperplanes are vectors of GF(q)^(n+1) up to a factor, and a point is on a
# hyperplane if their product is zero. Two points span a line, which is in (q^(n−1) − 1)/(q − 1)
# hyperplanes. By Singer's theorem (1938) they are the translates of one set; this is not used here.
#
# *Values of linear functions*: for each of the m = (q^n − 1)/(q − 1) directions a of GF(q)^n, and
# each block Z of a design on the elements of GF(q), take {x : <a, x> in Z}. Two vectors x, y have
# the same value in the directions normal to x − y, (q^(n−1) − 1)/(q − 1) of them, and two different
# values in the q^(n−1) others. So if the design has b blocks, r with a point and λ with a pair,
# these are m·b blocks, m·r with a point, and ((q^(n−1) − 1)/(q − 1))·r + q^(n−1)·λ with a pair.
# Singletons give the hyperplanes of AG(n, q).
#
# *Lines*: small blocks, with any two points in exactly one. The same holds for unitals, the
# Hermitian curves of PG(2, q²) with q³ + 1 points: blocks are the lines that meet the curve in more
# than one point, each in q + 1 (Bose 1958).


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
