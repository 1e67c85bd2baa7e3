"""Margins of error of estimates from private labels: post-processing of proved integers, in floats.

With π the certificate's prior, P [k, m] the table Pr[output | label] and n rows:

    numbers      an unbiased randomizer's outputs have the labels' mean, with the noise variance
                 V = Σ π_y·Var[output | y] a row; the outputs of others first take the weights v of
                 least variance with P·v = y, if there are any (``least_variance_inverse``)
    classes      (categories, and integers under the 0-1 loss) the share of class c is estimated by
                 weights W with P·W = I; its noise variance a row is V_c = Σ_o (πP)_o·W[o, c]² − π_c

Margins for n rows are 95% bounds of the error about the true labels of these rows (``margins``).
Figures that depend on how labels are distributed are given for all distributions, from the least to
the most noise of a label, or name the prior that they assume. All figures are for labels in the
range: others are clamped, or become the default.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.analysis import analyse, least_variance_inverse
from labeldp_verify.analysis.grid_labels import grid_step, rounds_to_nearest
from labeldp_verify.analysis.probabilities import matrix, rows
from labeldp_verify.forms import CategoricalDomain, Domain, Randomizer, are_numbers, sets_of
from labeldp_verify.forms.exact_numbers import ExactNumbers
from labeldp_verify.usefulness.figures import MoreLabels, Spread, Usefulness
from labeldp_verify.usefulness.noise import (
    Noise,
    most_between,
    noise_of_levels,
    noise_of_outputs,
    noise_of_shares,
    noise_of_weights,
    rounding_step,
)

Floats = NDArray[np.float64]
SHARES = (0.01, 0.1, 0.5)  # shares of a label that an observer may believe in before
MAX_LABELS, MAX_ENTRIES = 1_000, 8_000_000  # of a table that is inverted
_ALMOST = math.nextafter(1, 0)  # of a probability that is not 1, though the nearest float is
_UNBIASED = 1e-9  # of the range of the labels: what rounding to whole counts can do


def most_belief(ratio: float, share: float) -> float:
    """The most that Bayes' rule makes of a label's share, where outputs are ``ratio`` as likely."""
    return ratio * share / (1 + (ratio - 1) * share)


def is_unbiased(domain: Domain, largest_bias: float | None) -> bool:
    """Whether the largest bias is nothing but rounding to whole counts; categories have none.

    ``largest_bias`` is that of grid points; labels between them stay unbiased only if they are
    rounded at random.
    """
    if isinstance(domain, CategoricalDomain) or largest_bias is None or rounds_to_nearest(domain):
        return False
    return largest_bias <= _UNBIASED * float(domain.max - domain.min)


def sample(count: int, most: int) -> list[int]:
    """All of 0 … count − 1, or ``most`` ≥ 2 of them evenly spaced, both ends included."""
    if count <= most:
        return list(range(count))
    return [round(i * (count - 1) / (most - 1)) for i in range(most)]


def usefulness(
    domain: Domain,
    randomizer: Randomizer,
    weights: Sequence[int],
    ratio: Fraction,
    largest_bias: float | None,
    *,
    classes: bool = False,
) -> Usefulness:
    """The figures of a verified randomizer.

    Args:
        weights: [k] integers in proportion to the prior.
        ratio: of Pr[output | label] for any two labels, at most.
        largest_bias: max |E[output | y] − y| over the grid points; None for categories.
        classes: whether labels that are numbers stand for classes, as under the 0-1 loss.
    """
    prior = _prior(weights)
    belief = tuple((share, most_belief(float(ratio), share)) for share in SHARES)
    if classes or not are_numbers(domain, randomizer):
        use = _of_categories(domain, randomizer, prior)
    else:
        use = _of_numbers(domain, randomizer, prior, largest_bias)
    return replace(use, belief=belief)


def _of_numbers(
    domain: Domain, randomizer: Randomizer, prior: Floats, largest_bias: float | None
) -> Usefulness:
    assert not isinstance(domain, CategoricalDomain)
    squares = _squares(domain, randomizer, prior)
    unbiased = is_unbiased(domain, largest_bias)
    if unbiased:
        assert largest_bias is not None
        noise: Noise | None = noise_of_outputs(
            domain, randomizer, prior, squares.variances, largest_bias
        )
        estimable: bool | None = True
    else:
        noise, estimable = _weighted_mean(domain, randomizer, prior)
    more, width = None, float(domain.max) - float(domain.min)
    if noise is not None and width and not rounds_to_nearest(domain):
        more = MoreLabels.of_mean(noise, width)
    return Usefulness(
        deviation=squares.deviation,
        unbiased=unbiased,
        estimable=estimable,
        variance=None if noise is None else noise.average,
        noise=noise,
        more_labels=more,
        distance=squares.distance,
        constant=squares.constant,
    )


def distances(
    domain: Domain, randomizer: Randomizer, weights: Sequence[int]
) -> tuple[float, float]:
    """``Usefulness.distances`` of a randomizer of numbers, alone; ``weights`` as there."""
    found = _squares(domain, randomizer, _prior(weights))
    return found.distance.mean, found.constant


def _prior(weights: Sequence[int]) -> Floats:
    total = sum(weights)
    return np.array([weight / total for weight in weights])


@dataclass(frozen=True)
class _Squares:
    """Of private labels: variances [k] at the points, figures for all labels in the range, and how
    far off the best constant is under the prior (root mean square).
    """

    variances: Floats
    deviation: Spread
    distance: Spread
    constant: float


def _squares(domain: Domain, randomizer: Randomizer, prior: Floats) -> _Squares:
    labels, analysis = domain.labels(), analyse(randomizer)
    assert isinstance(labels, ExactNumbers)
    y, variances = np.array(labels.floats()), np.array(analysis.variances().floats())
    biases = np.array(analysis.means().floats()) - y
    constant = math.sqrt(float(prior @ (y - prior @ y) ** 2))
    step, drift = rounding_step(domain), np.diff(biases)
    spread = (step + drift) ** 2 if step else 0 * drift
    deviation = _between(variances, prior, spread)
    if not rounds_to_nearest(domain):
        distance = _between(variances + biases**2, prior, step * (step + 2 * drift))
        return _Squares(variances, deviation, distance, constant)
    half, off = float(grid_step(domain)) / 2, np.abs(biases)
    nearest = variances + np.maximum(off - half, 0) ** 2
    furthest = variances + (off + half) ** 2
    parts = float(nearest.min()), float(prior @ furthest), float(furthest.max())
    return _Squares(variances, deviation, Spread(*map(math.sqrt, parts)), constant)


def _between(squares: Floats, prior: Floats, bends: Floats) -> Spread:
    """Roots of squares at the grid points, and between points whose labels are rounded at random.

    The mean is at most that, with the most that rounding adds; the least at least.
    """
    most = most_between(squares, bends)
    mean = min(float(prior @ squares) + max(float(bends.max(initial=0.0)), 0.0) / 4, most)
    least = float(squares.min()) + min(float(bends.min(initial=0.0)), 0.0) / 4
    return Spread(*map(math.sqrt, (max(least, 0.0), mean, most)))


def _weighted_mean(
    domain: Domain, randomizer: Randomizer, prior: Floats
) -> tuple[Noise | None, bool | None]:
    """The noise of a row in an estimated mean, and whether there is such an estimate."""
    known = inverse_of(domain, randomizer)
    if known is None:
        return None, None
    table, inverse = known
    if inverse is None:
        return None, False
    y = np.array(domain.listed, dtype=np.float64)
    values = inverse @ (y - y.mean()) + y.mean()
    return noise_of_weights(domain, table, prior, values), True


def _of_categories(domain: Domain, randomizer: Randomizer, prior: Floats) -> Usefulness:
    sets, each = sets_of(randomizer), kept_probabilities(domain, randomizer, range(domain.size))
    most = float(each.max())
    kept = Spread(float(each.min()), min(float(prior @ each), most), most)
    use = Usefulness(kept=kept)
    if sets is not None:
        use = replace(use, set_sizes=(min(sets.sizes), max(sets.sizes)))
        noise = noise_of_levels(randomizer, prior)
    else:
        known = inverse_of(domain, randomizer)
        if known is None:
            return use
        table, inverse = known
        if inverse is None:
            return replace(use, estimable=False)
        noise = noise_of_shares(table, inverse, prior)
    more = MoreLabels.of_shares(noise.own, noise.others) if domain.size > 1 else None
    return replace(use, estimable=True, variance=noise.average, noise=noise.worst, more_labels=more)


def kept_probabilities(domain: Domain, randomizer: Randomizer, shown: Sequence[int]) -> Floats:
    """[n] Pr[the private label is the true one, or a set with it] for labels of these indices."""
    sets = sets_of(randomizer)
    if sets is not None:
        pairs = zip(rows(randomizer, shown), sets.matrix[shown], strict=True)
        sums = [
            1.0 if members.all() else min(float(row[members].sum()), _ALMOST)
            for row, members in pairs
        ]
        return np.array(sums)
    at = np.array(shown, dtype=np.intp)
    labels = [domain.listed[i] for i in shown]
    changed = analyse(randomizer).unequal(at, labels)
    kept = np.array(ExactNumbers(changed.unit - changed.numerators, changed.unit).floats())
    is_sure = np.array([numerator == 0 for numerator in changed.numerators])
    return np.where(is_sure, kept, np.minimum(kept, _ALMOST))


def inverse_of(domain: Domain, randomizer: Randomizer) -> tuple[Floats, Floats | None] | None:
    """P [k, m], and weights W with P·W = I, if there are any; None if the table is too large."""
    k = domain.size
    if k > MAX_LABELS or k * randomizer.outputs > MAX_ENTRIES:
        return None
    table = matrix(randomizer, range(k))
    return table, least_variance_inverse(table)
