"""How much a private label reveals about the classes, and the most that any ε-DP label can.

The measure is the noise of shares: the total variance Σ_c Var[ê_c | y] of an unbiased estimate ê of
the one-hot label from one private label, averaged over the k classes. Both sides are exact; the
bound is Theorem 15 of docs/privacy.md.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.forms import Randomizer, TableRandomizer, WindowRandomizer, sets_of
from labeldp_verify.forms.randomizers import Segment

Words = NDArray[np.uint64]
Floats = NDArray[np.float64]
_LARGEST_WEIGHT = 1e6  # beyond it, no number of rows that exists brings the noise down
_RESIDUAL = 1e-6


def share_noise(randomizer: Randomizer) -> Fraction:
    """The noise of the estimate ê_c = (1[c ∈ Z] − a_c)/s of a private label Z.

    Pr[c ∈ Z | y] is a_c for every y ≠ c, and a_c + s for y = c. This makes the estimate unbiased.
    Raises ValueError unless it holds exactly.
    """
    lows, rise = _levels(randomizer)
    k, words = len(lows), randomizer.words
    inside = sum((low + rise) * (words - low - rise) for low in lows)
    outside = sum(low * (words - low) for low in lows)
    return Fraction(inside + (k - 1) * outside, k * rise * rise)


def set_weights(randomizer: Randomizer) -> NDArray[np.float64]:
    """[m, k] the estimate ê of the one-hot label from each private label: P·ê = I.

    Raises ValueError where ``share_noise`` does. Of blocks that differ in size it is not quite the
    estimate of least variance, but counts hits, which are binomial.
    """
    lows, rise = _levels(randomizer)
    sets = sets_of(randomizer)
    member = np.eye(len(lows), dtype=bool) if sets is None else sets.matrix.T
    missed = np.array([-low / rise for low in lows])
    hit = np.array([(randomizer.words - low) / rise for low in lows])
    return np.where(member, hit, missed)


def share_variances(randomizer: Randomizer, prior: NDArray[np.float64]) -> NDArray[np.float64]:
    """[k] Σ_y prior[y]·Var[ê_c | y] of each class c, whose sum under a uniform prior is the noise.

    ``prior`` [k] sums to one. Raises ValueError where ``share_noise`` does.
    """
    lows, rise = _levels(randomizer)
    words = randomizer.words
    outside = np.array([low * (words - low) / rise**2 for low in lows])
    inside = np.array([(low + rise) * (words - low - rise) / rise**2 for low in lows])
    return prior * inside + (1 - prior) * outside


def least_share_noise(classes: int, ratio: Fraction) -> Fraction:
    """No label of k ≥ 2 classes has less noise if no output is more than ``ratio`` > 1 as likely.

    This holds for any outputs. Subset selection with the best block size d reaches it (Ye and Barg
    2018). Theorem 15 of docs/privacy.md.
    """
    if classes < 2 or ratio <= 1:
        raise ValueError("shares are of two or more classes, and need a ratio above 1")
    ideal = classes / (ratio + 1)
    sizes = {min(max(int(ideal) + step, 1), classes - 1) for step in (0, 1)}
    return min(noise_of_subsets(classes, size, ratio) for size in sizes)


def noise_of_subsets(classes: int, size: int, ratio: Fraction) -> Fraction:
    """The noise of subset selection with all blocks of d classes."""
    outside = classes - size
    spread = size * outside * (ratio - 1) ** 2 / (size * ratio + outside) ** 2
    information = classes * spread / (classes - 1)
    return (classes - 1) * (1 / information - Fraction(1, classes))


def _levels(randomizer: Randomizer) -> tuple[list[int], int]:
    """a·2^B [k] and s·2^B."""
    if isinstance(randomizer, WindowRandomizer):
        return _of_singletons(randomizer)
    if isinstance(randomizer, TableRandomizer):
        return _of_blocks(randomizer)
    raise ValueError("noise is added to numbers, not to classes")


def _of_singletons(randomizer: WindowRandomizer) -> tuple[list[int], int]:
    """The words of each class under any other, and how many more it has under itself."""
    r = randomizer
    own = tuple(Segment(r.window, i) for i in range(r.outputs))
    if r.extra != own or r.offsets != tuple(i * r.window for i in range(r.outputs)):
        raise ValueError("it is not a randomized response over the classes")
    return list(r.base), r.window


def _of_blocks(randomizer: TableRandomizer) -> tuple[list[int], int]:
    """_levels of membership: sums over the blocks of a class, which are its own or not.

    Every output o has two levels, low_o and low_o + δ for the classes inside, every class is in r
    blocks and every pair of classes in λ: so a_c·2^B = Σ_{o ∋ c} low_o + δ·λ and s·2^B = δ·(r − λ).
    """
    sets = randomizer.sets
    if sets is None:
        raise ValueError("its outputs are not sets")
    counts: Words = np.array(randomizer.counts, dtype=np.uint64)
    lows, tops = counts.min(axis=0), counts.max(axis=0)
    rises = np.unique(tops - lows)
    if len(rises) != 1 or not rises[0]:
        raise ValueError(
            "the factor by which classes in a set are more likely differs between sets"
        )
    if not np.array_equal(counts != lows, sets.matrix):
        raise ValueError("a set is not what the probabilities of its output say")
    if not np.array_equal(np.where(sets.matrix, tops, lows), counts):
        raise ValueError("an output has more than two levels")
    member = sets.matrix.astype(np.float64)
    together = member @ member.T  # whole numbers far below 2^53: exact in any order
    k = len(together)
    blocks, pairs = together[0, 0], together[0, -1]
    balanced = np.full((k, k), pairs)
    np.fill_diagonal(balanced, blocks)
    if blocks <= pairs or not np.array_equal(together, balanced):
        raise ValueError("some classes, or pairs of classes, are in more sets than others")
    level, rise = [int(low) for low in lows], int(rises[0])
    shared = rise * int(pairs)
    own = [sum(level[o] for o in np.flatnonzero(row)) + shared for row in sets.matrix]
    return own, rise * int(blocks - pairs)


def least_variance_inverse(table: Floats) -> Floats | None:
    """W [m, c] with P·W = I for P [c, m], of least variance under uniform classes: D⁻¹Pᵀ(PD⁻¹Pᵀ)⁻¹.

    P is the table Pr[output | class], and D has the mean probabilities of the outputs on its
    diagonal. A private label o stands for the row W[o]: its expectation under class y is the y-th
    unit vector. None if there is no W, or only one that is too large to be useful.
    """
    scaled = table / np.maximum(table.mean(axis=0), np.finfo(float).tiny)
    try:
        weights: Floats = np.linalg.solve(scaled @ table.T, scaled).T
    except np.linalg.LinAlgError:
        return None
    residual = np.abs(table @ weights - np.eye(len(table))).max()
    useful = residual <= _RESIDUAL and np.abs(weights).max() <= _LARGEST_WEIGHT
    return weights if useful else None
