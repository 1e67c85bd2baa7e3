"""Subset selection: a private label is a set of classes (Ye and Barg 2018; Wang et al. 2019).

With all sets of the best size, no ε-DP mechanism has less noise in the shares of the classes
(Theorem 15 of docs/privacy.md). If there are too many such sets, a block design replaces them
(Park, Nam and Lee 2023). At a large ε the best sets are single classes, which is randomized
response and is compiled as such.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import ClassVar, Literal

import numpy as np
from labeldp_verify.analysis import exp_lower
from labeldp_verify.forms import TABLE_WORD_BITS as WORD_BITS
from labeldp_verify.forms import ClassSets, Domain, TableRandomizer, check_table, output_values
from labeldp_verify.graph import MAX_ENTRIES
from numpy.typing import NDArray

from labeldp_compile.mechanisms.mechanism import (
    Mechanism,
    Problem,
    Solved,
    TableLayout,
    response_layout,
    table_layout,
)
from labeldp_compile.rounding.windows import randomized_response
from labeldp_compile.solve.block_designs import (
    BlockDesign,
    Blocks,
    Candidate,
    affine_spaces,
    cyclotomic,
    lines,
    projective_spaces,
    quartic,
    relative,
    twin_primes,
)

MAX_CLASSES = 1024  # a table has room for as many sets, and for twice as many


class SubsetSelection(Mechanism):
    """A set of classes for each label: the least noise in the shares that ε-DP allows."""

    kind: Literal["subset_selection"]
    form: ClassVar[Literal["window", "additive", "table"]] = "table"
    method: ClassVar[str] = "the best of a catalogue of block designs"
    seconds_a_label: ClassVar[float] = 4e-3
    answers = "sets"
    joins = True

    def require_feasible(self, domain: Domain, loss: str, epsilon: Fraction) -> None:
        """Raise ValueError if the table of sets would be too large; this reads no label."""
        if domain.size > MAX_CLASSES:
            raise ValueError(
                f"subset_selection takes at most {MAX_CLASSES:,} classes, but there are "
                f"{domain.size:,}; use mechanism: {{kind: randomized_response}}, or join rare "
                "classes"
            )

    def build(self, problem: Problem) -> Solved:
        """The sets with the least noise for uniform classes; the prior is not used."""
        self.require_feasible(problem.domain, problem.loss, problem.epsilon)
        k, epsilon = problem.domain.size, problem.epsilon
        if _candidate(k, epsilon).is_response:
            values = output_values(problem.domain)
            response = randomized_response(values, range(k), epsilon, problem.word_bits)
            return Solved(response, classes=True)
        blocks = _design(k, epsilon).blocks
        return Solved(subset_selection(blocks, epsilon, problem.word_bits), classes=True)

    def layouts(
        self, domain: Domain, loss: str, epsilon: Fraction, weights: Sequence[int] | None
    ) -> list[TableLayout]:
        """One layout: nothing depends on the prior."""
        k = domain.size
        if _candidate(k, epsilon).is_response:
            return [response_layout(k, k, epsilon)]
        layout = table_layout(k, len(_design(k, epsilon).blocks))
        return [replace(layout, bytes=layout.bytes + layout.outputs * (-(-k // 4) + 3))]


def beats_randomized_response(classes: int, epsilon: Fraction) -> bool:
    """Whether the best sets have more than one class."""
    if classes > MAX_CLASSES:
        return False
    return not _candidate(classes, epsilon).is_response


def most_blocks(classes: int) -> int:
    """The most sets that a table of ``classes`` labels can have."""
    return 1 << (MAX_ENTRIES // classes).bit_length() - 1


@lru_cache(maxsize=8)
def _candidate(classes: int, epsilon: Fraction) -> Candidate:
    return best_candidate(classes, exp_lower(epsilon), most_blocks(classes))


@lru_cache(maxsize=8)
def _design(classes: int, epsilon: Fraction) -> BlockDesign:
    return _candidate(classes, epsilon).design(classes)


# The catalogue of designs, and the choice of one by exact noise.
#
# For few classes it has all sets of d classes: every pair is in C(k − 2, d − 2) of them.


_MORE = Fraction(1, 2000)  # relative noise that is accepted for fewer blocks
_ROUNDING = 1e-9  # far above the rounding of `relative`


def subsets(classes: int, max_blocks: int) -> Iterator[Candidate]:
    """All subsets of one size: at most ``max_blocks`` of at most half of the classes each."""
    for d in range(1, classes // 2 + 1):
        blocks = comb(classes, d)
        if blocks > max_blocks:
            return
        yield _all(classes, d)


def singletons(classes: int) -> Candidate:
    """Each class alone: randomized response."""
    return _all(classes, 1)


def _all(classes: int, size: int) -> Candidate:
    def build(shown: int) -> Blocks:
        members = np.array(list(combinations(range(classes), size)))
        blocks = np.zeros((len(members), classes), dtype=np.bool_)
        np.put_along_axis(blocks, members, True, axis=1)
        return blocks[:, :shown]

    name = "singletons" if size == 1 else f"all {size}-subsets"
    blocks, replication = comb(classes, size), comb(classes - 1, size - 1)
    pairs = comb(classes - 2, size - 2) if size > 1 else 0
    return Candidate(name, classes, blocks, replication, pairs, build, symmetric=True)


def best_candidate(classes: int, ratio: Fraction, max_blocks: int) -> Candidate:
    """The least noisy design on k classes at ``ratio`` E > 1 with at most ``max_blocks`` blocks.

    Among the designs within 1/2000 of the least noise, it is the one with the fewest blocks. Blocks
    with no class or with all classes are removed when it is built. Raises ValueError for fewer than
    two classes, for a ratio of at most 1, and for fewer blocks than classes: a design has at least
    as many blocks as classes (Fisher 1940).
    """
    if classes < 2 or ratio <= 1:
        raise ValueError("a private set needs two or more classes, and a ratio above 1")
    if max_blocks < classes:
        raise ValueError("no design has fewer blocks than classes")
    return _best(classes, ratio, list(catalogue(classes, max_blocks)))


def catalogue(classes: int, max_blocks: int) -> Iterator[Candidate]:
    """Every known design for k classes with at most half density, shortened if it is larger.

    A design on v points that is shortened to k is worse than one on k points by about 1/k − 1/v. So
    the catalogue has no more points than a density needs.
    """
    yield from subsets(classes, max_blocks)
    yield from projective_spaces(classes, max_blocks)
    points = min(max_blocks, 4 * classes + 64)
    yield from twin_primes(classes, points)
    yield from quartic(classes, points)
    yield from cyclotomic(classes, max_blocks, min(points, 2 * classes + 64))
    yield from lines(classes, max_blocks, points)
    yield from affine_spaces(classes, max_blocks, points, _small)


def _small(order: int, max_blocks: int) -> Iterator[Candidate]:
    """Designs for the q values of a linear function."""
    yield singletons(order)
    yield from projective_spaces(order, max_blocks)
    yield from quartic(order, min(max_blocks, 2 * order))
    yield from cyclotomic(order, max_blocks, min(max_blocks, order + order // 2))


def _best(classes: int, ratio: Fraction, candidates: list[Candidate]) -> Candidate:
    """The choice by exact noise; floats only remove designs that are clearly worse."""
    b, r, pairs = (
        np.array([getattr(c, name) for c in candidates], dtype=np.float64)
        for name in ("blocks", "replication", "pairs")
    )
    guess = relative(classes, b, r, pairs, ratio)
    near = np.flatnonzero(guess <= guess.min() * (1 + float(_MORE)) * (1 + _ROUNDING))
    found = {i: candidates[i].noise(classes, ratio) for i in near.tolist()}
    most = min(found.values()) * (1 + _MORE)
    enough = [i for i, v in found.items() if v <= most]
    # Among equal designs, the first, which has the simplest name.
    return candidates[min(enough, key=lambda i: (candidates[i].blocks, found[i], i))]


# Subset selection in exact integers: two counts for each block, with the class inside or outside.
#
# Of the N = 2^B words of a label, each of its r blocks gets hi, and each of the other b − r blocks
# gets lo. With a rational E ≤ e^ε, lo = ⌈N/(r·E + b − r)⌉ and hi = ⌊(N − (b − r)·lo)/r⌋,
#
#     hi ≤ ((r·E + b − r)·lo − (b − r)·lo)/r = E·lo.                                    ∎
#
# Fewer than r words are left over. They go to block 0 for every label, which lowers its ratio. All
# blocks keep the same difference hi − lo, so the estimate of the shares is exactly unbiased.


def subset_selection(
    members: NDArray[np.bool_], epsilon: Fraction, word_bits: int | None = None
) -> TableRandomizer:
    """The ε-DP table that returns a block: e^ε times as often one that contains the label.

    ``members`` [b, k] says which class is in which block; every class is in equally many, and in
    fewer than all. Raises ValueError if the words are too few for b blocks or for this ε.
    """
    bits = WORD_BITS if word_bits is None else word_bits
    words, blocks, own = 1 << bits, len(members), int(members[:, 0].sum())
    ratio = exp_lower(epsilon)
    low = math.ceil(words / (own * ratio + blocks - own))
    high = (words - (blocks - own) * low) // own
    if high <= low:
        raise ValueError(f"{blocks:,} sets do not fit words of {bits} bits at this ε")
    counts = np.where(members.T, np.uint64(high), np.uint64(low))
    counts[:, 0] += np.uint64(words - own * high - (blocks - own) * low)
    randomizer = TableRandomizer(
        word_bits=bits,
        counts=tuple(map(tuple, counts.tolist())),
        values=tuple(range(blocks)),
        sets=ClassSets.of(members),
    )
    check_table(randomizer)
    return randomizer
