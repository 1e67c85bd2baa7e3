"""Block designs: every class, and every pair of classes, occurs equally often; finite fields.

Designs are compared by the noise of a private set of classes. A label draws block Z with a
probability proportional to E if its class c is in Z, and to 1 otherwise. If every class is in r of
the b blocks and every pair of classes in λ, the weights of each label add up to D = r·E + b − r.
Its own class is in the drawn block with probability p = r·E/D, and any other class with
q = (λ·E + r − λ)/D. So (1[c ∈ Z] − q)/(p − q) is an unbiased one-hot label. The variances of its k
parts add up to V = (p(1 − p) + (k − 1)·q(1 − q))/(p − q)², the noise.

Ye and Barg (2018) have this with all blocks of one size.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from itertools import count
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
