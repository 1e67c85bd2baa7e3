"""Computes weights of labels from noisy histograms of all rows and of tables, by post-processing.

A table is that of one or several groups of rows. A table of n rows starts from the pooled release:
its deviation from n times the pooled shares is estimated. Tables differ from each other in few
ways: older people work less in every trade. So the deviations [T, B] of all tables are split into
principal directions. Only directions whose squares are larger than noise alone would make them are
kept. For T tables of B cells of pure noise, the largest eigenvalue is about σ²·(√T + √B)²
(Marchenko and Pastur 1967).

Along each direction, a table keeps the share n²·λ/(n²·λ + σ²) (empirical Bayes), where λ is the
spread of the tables that explains all of them (Paule and Mandel 1982). If tables do not differ, no
direction is kept, and all use the pooled weights unchanged. Directions also reduce the noise of the
pooled release.

A public prior has no noise, but the counts of small tables vary by chance. Each table keeps the
share of its deviations that sampling n labels from all rows does not explain (James and Stein
1961).

The pooled release becomes the nearest histogram with the public number of rows. If negative counts
were only clipped at zero, every rare label would gain weight: half of the noise would remain, and
none of it would cancel. The number of rows n is public, so the Euclidean projection onto {c ≥ 0, Σ
c = n} removes that excess at no cost in privacy (benchmarks/prior.py measures the gain).

If ε₁ was chosen for the least expected loss, noise is as large as counts. Then differences that are
not larger than noise are removed (James and Stein 1961), so that chance does not separate labels
that are alike.
"""

import math
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.prior.discrete_laplace import NoisyHistogram, cell_of_label, variance
from labeldp_compile.prior.split import PriorPlan

FINEST = 10**6  # rows to which weights are rounded at most
_SHRINK_STEPS = 1000
_STEPS = 1000  # of a row: deviations are rounded to them
# Noise makes an eigenvalue at most this factor larger than expected, plus this amount: its tails
# are longer than a Gaussian's, and among few numbers a single large one counts.
_MARGIN, _OUTLIER = 1.1, 10.0
_TIMES = 4  # the share of all that a table may have of a cell
_BISECTIONS = 60

Floats = NDArray[np.float64]


def table_weights(
    plan: PriorPlan,
    pooled: NoisyHistogram,
    tables: NoisyHistogram,
    sizes: Sequence[int],
    rows: int,
    labels: int,
) -> list[list[int]]:
    """Integer weights [T + 1][k] of all tables; the last are those of the pooled prior.

    Args:
        plan: which tables there are.
        pooled: noisy counts of all rows, [k] or ``plan.pooled_cells``.
        tables: noisy counts of all tables in order, T·k or T·``plan.table_cells``
            (``level_counts``). Scale 0 means no noise: a public prior.
        sizes: [T + 1] public rows of each table; the last is not used.
        rows: of all.
        labels: k.
    """
    everywhere = weights_of(pooled, rows, labels, shrunk=plan.shrunk)
    if not plan.tables:
        return [everywhere]
    cells = labels if plan.table_cells is None else plan.table_cells
    of_label = cell_of_label(labels, cells)
    inside = _inside(everywhere, of_label, cells)
    shares = np.bincount(of_label, weights=everywhere, minlength=cells) / sum(everywhere)
    whole = np.array(sizes[: plan.tables], dtype=np.float64)[:, None]
    away = np.array(tables.counts, dtype=np.float64).reshape(plan.tables, cells) - whole * shares
    if tables.scale:
        kept = _directions(away, whole, variance(tables.scale), shares)
    else:
        kept = _beyond_sampling(away, whole, shares)
    found = []
    for size, means, deviations in zip(sizes, whole * shares, kept, strict=False):
        if not deviations.any():
            found.append(everywhere)
            continue
        counts = [round(_STEPS * count) for count in (means + deviations).tolist()]
        masses = project_to_total(counts, _STEPS * size)
        found.append(_spread(masses, inside, of_label.tolist(), size))
    return [*found, everywhere]


def _directions(away: Floats, sizes: Floats, noise: float, shares: Floats) -> Floats:
    """[T, B] deviations along the directions that this variance of noise does not explain."""
    tables = len(away)
    squares = sizes**2
    heard = _heard(squares.mean(), noise, shares)
    away = heard * (away - away.mean(axis=1, keepdims=True))  # they sum to 0 but for noise
    eigenvalues, directions = np.linalg.eigh(away.T @ away)
    cells = np.sort(heard**2)[1:].sum()  # B − 1 if all are heard
    of_noise = noise * (_MARGIN * (math.sqrt(tables) + math.sqrt(cells)) ** 2 + _OUTLIER)
    directions = directions[:, eigenvalues > of_noise]
    along = away @ directions
    noises = noise * (heard**2 @ directions**2)
    spread = squares * _spread_of_tables(along**2, squares, noises)
    return np.asarray((spread / (spread + noises) * along) @ directions.T)


def _heard(squares: float, noise: float, shares: Floats) -> Floats:
    """[B] the share of each cell's deviations that is used: less for cells with few labels.

    A table may have a cell's labels at most ``_TIMES`` times as often as all tables do. If even
    that is less than the noise, a deviation is mostly noise, and wrong weight on a rare label costs
    much.
    """

    def kept(shares: Floats) -> Floats:
        possible = squares * (_TIMES * shares) ** 2
        return possible / (possible + noise)

    return np.minimum(1, kept(shares) / kept(np.full_like(shares, 1 / len(shares))))


def _spread_of_tables(along: Floats, squares: Floats, noises: Floats) -> Floats:
    """[d] λ with Σ c²/(n²·λ + σ²) = T, from c² [T, d] and n² [T, 1], by bisection.

    A table whose noisy size is 0 says nothing of λ.
    """
    least = squares.min(where=squares > 0, initial=np.inf)
    low, high = np.zeros(along.shape[1]), along.sum(axis=0) / least
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        more = (along / (squares * middle + noises)).sum(axis=0) > len(along)
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return low


def _beyond_sampling(away: Floats, sizes: Floats, shares: Floats) -> Floats:
    """[T, B] the share of each table's deviations that chance does not explain."""
    by_chance = sizes * (1 - (shares**2).sum())
    squares = (away**2).sum(axis=1, keepdims=True)
    kept = 1 - np.divide(by_chance, squares, out=np.ones_like(squares), where=squares > 0)
    return np.asarray(np.maximum(kept, 0) * away)


def _inside(
    weights: Sequence[int], of_label: NDArray[np.int64], cells: int
) -> list[tuple[int, int]]:
    """[k] the share of each label in its cell, as (part, whole); equal shares in an empty cell."""
    totals, members = [0] * cells, [0] * cells
    for weight, cell in zip(weights, of_label.tolist(), strict=True):
        totals[cell] += weight
        members[cell] += 1
    return [
        (weight, totals[cell]) if totals[cell] else (1, members[cell])
        for weight, cell in zip(weights, of_label.tolist(), strict=True)
    ]


def _spread(
    masses: Sequence[int], inside: Sequence[tuple[int, int]], of_label: Sequence[int], size: int
) -> list[int]:
    """[k] weights from masses of cells, rounded to a mean of at most the table's rows."""
    unit, whole = len(inside) * min(size, FINEST), sum(masses)
    return [
        (2 * unit * masses[cell] * part + whole * total) // (2 * whole * total)
        for (part, total), cell in zip(inside, of_label, strict=True)
    ]


def project_to_total(counts: Sequence[int], total: int) -> list[int]:
    """Integer weights [k] in proportion to the projection of integer counts [k]; total ≥ 1.

    The projection is max(c − τ, 0) for the τ that makes the sum ``total``. τ = (S_r − total)/r for
    the largest r whose r-th largest count exceeds it, where S_r is the sum of the r largest.
    Multiplied by r, all of this is in integers.
    """
    descending = sorted(counts, reverse=True)
    sums = list(accumulate(descending))
    support = max(
        r for r in range(1, len(counts) + 1) if r * descending[r - 1] > sums[r - 1] - total
    )
    shift = sums[support - 1] - total
    weights = [max(support * count - shift, 0) for count in counts]
    common = math.gcd(*weights)
    return [weight // common for weight in weights]


def shrunk_weights(noisy: NoisyHistogram, total: int, labels: int) -> list[int]:
    """Integer weights [labels] from noisy counts [cells] of ``total`` rows.

    Deviations from even counts are shrunk by the share of their squares that noise explains, and
    projected onto counts >= 0 that sum to the rows; each cell is spread evenly over its labels. The
    weights are rounded to a mean of at most ``total``.
    """
    counts = noisy.counts
    cells = len(counts)
    sizes = np.bincount(cell_of_label(labels, cells), minlength=cells).tolist()
    # In units of 1/labels rows, so that an even share of the rows is an integer.
    even = [total * size for size in sizes]
    away = [labels * count - mean for count, mean in zip(counts, even, strict=True)]
    squares = sum(deviation * deviation for deviation in away)
    noise = (cells - 1) * variance(noisy.scale) * labels**2
    kept = math.floor(_SHRINK_STEPS * max(1 - noise / squares, 0.0)) if squares else 0
    shrunk = [
        _SHRINK_STEPS * mean + kept * deviation for mean, deviation in zip(even, away, strict=True)
    ]
    weights = project_to_total(shrunk, _SHRINK_STEPS * labels * total)
    unit = labels * min(total, FINEST)
    whole = sum(weights)
    spread = [
        (2 * unit * w + size * whole) // (2 * size * whole)
        for w, size in zip(weights, sizes, strict=True)
    ]
    return [spread[cell] for cell in cell_of_label(labels, cells).tolist()]


def weights_of(noisy: NoisyHistogram, total: int, labels: int, *, shrunk: bool) -> list[int]:
    """Integer weights [labels] from noisy counts of ``total`` rows, shrunk towards even or not."""
    return shrunk_weights(noisy, total, labels) if shrunk else project_to_total(noisy.counts, total)
