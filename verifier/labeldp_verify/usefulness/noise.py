"""The noise of a private label in an estimate, and the 95% margin of error that it gives."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.analysis.grid_labels import bias_in_range, grid_step, rounds_to_nearest
from labeldp_verify.analysis.probabilities import rows
from labeldp_verify.analysis.share_noise import set_weights, share_variances
from labeldp_verify.forms import AdditiveRandomizer, Domain, Randomizer

# ---- The 95% margin of error of an average over n private labels: a bound, not an approximation.
#
# A row's noise Z is its private label (or the weight used instead) minus the true one. The noise of
# different rows is independent, and its distribution given the true label is known exactly: with
# the variance v, E|Z − E Z|³ ≤ K·v and |Z − E Z| ≤ M. For S = Σ (Z − E Z) over n rows
#
#     Bernstein     Pr[|S| ≥ t] ≤ 2·exp(−t²/(2·(n·v + M·t/3)))
#     Chernoff      Pr[|S| ≥ t] ≤ 2·exp(n·ψ(λ) − λ·t), where log E exp(±λ·(Z − E Z)) ≤ ψ(λ) is known
#     Berry-Esseen  Pr[|S| ≥ t] ≤ 2·(1 − Φ(t/√(n·v))) + 2·C·K/√(n·v), C = 0.56 (Shevtsova 2010)
#
# The first two hold for rare outputs as well; the third comes close to the normal distribution's
# 1.96 where n is large. The mean variance v of the rows depends on the unknown labels. The bound
# holds for every v between the least and the largest variance of a label.


CONFIDENCE = 0.95
_MISSES = 1 - CONFIDENCE
_BERRY_ESSEEN = 0.56
_FINER = 1.05  # from one variance that is looked at to the next
_HALVINGS = 40
_ABOVE = 1 + 1e-9  # what sums of float64 may be off


@dataclass(frozen=True)
class Noise:
    """The noise of one row, in units of the label, as far as it is known.

    Attributes:
        least, most: of its variance, over all labels in the range.
        average: its variance if the labels are distributed as the prior says; at most that.
        third: K, the largest ratio of E|Z − E Z|³ to the variance.
        reach: M, the largest |Z − E Z|.
        bias: the largest |E Z|.
        tail: (λ, ψ(λ)) for several λ > 0, or nothing.
    """

    least: float
    average: float
    most: float
    third: float
    reach: float
    bias: float = 0.0
    tail: tuple[tuple[float, float], ...] = ()

    def margin(self, rows: int) -> float:
        """The 95% margin of error of an average over ``rows`` private labels.

        Holds for all labels in the range.
        """
        return self._bound(self.least, self.most, rows)

    def margin_under_prior(self, rows: int) -> float:
        """The noise if the labels of the rows are distributed as the prior says."""
        return self._bound(self.average, self.average, rows)

    def _bound(self, least: float, most: float, rows: int) -> float:
        """The least t/n that the inequalities allow, plus the bias."""
        if most <= 0:
            return self.bias
        high = self._chernoff(most, rows)
        low = math.sqrt(rows * most)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (
                (low, middle) if self._is_rare(middle, least, most, rows) else (middle, high)
            )
        return high / rows * _ABOVE + self.bias

    def _chernoff(self, variance: float, rows: int) -> float:
        """The sum that is passed once in 20 times at most, by Bernstein or by Chernoff."""
        budget = math.log(2 / _MISSES)
        jump = budget * self.reach / 3
        bernstein = jump + math.sqrt(jump**2 + 2 * budget * rows * variance)
        return min([bernstein, *((rows * psi + budget) / rate for rate, psi in self.tail)])

    def _is_rare(self, t: float, least: float, most: float, rows: int) -> bool:
        """Whether Pr[|S| ≥ t] ≤ 5% for every variance between the two."""
        above = most
        while True:
            if self._chernoff(above, rows) <= t:  # and so for every smaller variance
                return True
            below = max(above / _FINER, least)
            if below <= 0:
                return False
            normal = math.erfc(t / math.sqrt(2 * rows * above))
            off = 2 * _BERRY_ESSEEN * self.third / math.sqrt(rows * below)
            if normal + off > _MISSES:
                return False
            if below == least:
                return True
            above = below


# ---- The noise of one private label in an estimated mean or share, from a verified table.
#
# What ``margins`` needs to know of it, for every label in the range. Real labels that lie between
# two grid points are randomized with the row of one of them: rounded at random this adds noise, at
# most ¼ step² of variance; rounded to the nearest it adds a bias (``analysis/grid_labels.py``).


Floats = NDArray[np.float64]
Tail = tuple[tuple[float, float], ...]
_ENTRIES = 1_000_000  # of a table that is gone through for third moments
_MOST_EXPONENT = 600.0  # that float64 holds
_RATES = np.geomspace(1e-6, 3.0, 96)  # λ of a Chernoff bound, in units of 1/√variance


def rounding_step(domain: Domain) -> float:
    """The step of a grid to which labels are rounded at random, or 0."""
    return 0.0 if rounds_to_nearest(domain) else float(grid_step(domain))


def most_between(squares: Floats, bends: Floats) -> float:
    """The most of a quantity of labels, those that are rounded at random between points included.

    With probability w a label takes the upper row: (1 − w)·s_j + w·s_{j+1} + w·(1 − w)·bend_j for
    ``squares`` s [k] at the points and ``bends`` [k − 1] between them, which may be negative.
    """
    most = float(squares.max())
    if not bends.any():
        return most
    low, rise = squares[:-1], np.diff(squares)
    up = np.where(bends > 0, 0.5 + rise / np.where(bends > 0, 2 * bends, 1.0), 0.0)
    up = np.clip(up, 0.0, 1.0)
    return max(most, float((low + up * rise + up * (1 - up) * bends).max()))


def noise_of_outputs(
    domain: Domain, randomizer: Randomizer, prior: Floats, variances: Floats, bias: float
) -> Noise:
    """Of the mean of private labels as they are; they are right on average but for ``bias``.

    Args:
        prior: [k] shares.
        variances: [k] of the outputs.
        bias: max |E[output | y] − y| over the grid points.
    """
    labels = np.array(domain.listed, dtype=np.float64)
    tail: Tail = ()
    if isinstance(randomizer, AdditiveRandomizer):
        third, reach, tail = _of_lattice(randomizer, float(variances.max()), bias)
        thirds = np.full(len(labels), third)
    else:
        values = np.array([float(value) for value in randomizer.values])
        reach = max(float(values.max() - labels[0]), float(labels[-1] - values.min()))
        thirds = reach * variances
        if len(labels) * len(values) <= _ENTRIES:
            each = zip(rows(randomizer, range(len(labels))), labels, strict=True)
            thirds = np.array([row @ np.abs(values - y) ** 3 for row, y in each])
    return _noise(domain, prior, variances, thirds, reach, bias, tail)


def noise_of_weights(domain: Domain, table: Floats, prior: Floats, weights: Floats) -> Noise:
    """Of the mean of ``weights`` [m], one for each output, with P·weights = labels for P [k, m]."""
    labels = np.array(domain.listed, dtype=np.float64)
    means = table @ weights
    variances = np.maximum(table @ weights**2 - means**2, 0.0)
    thirds = np.array([row @ np.abs(weights - m) ** 3 for row, m in zip(table, means, strict=True)])
    reach = max(weights.max() - means.min(), means.max() - weights.min())
    bias = float(np.abs(means - labels).max())
    return _noise(domain, prior, variances, thirds, float(reach), bias)


def _noise(
    domain: Domain,
    prior: Floats,
    variances: Floats,
    thirds: Floats,
    reach: float,
    bias: float,
    tail: Tail = (),
) -> Noise:
    """With what rounding adds; ``thirds`` [k] are E|Z|³ at the grid points, or more."""
    step = rounding_step(domain)
    rounded = (np.cbrt(thirds) + step + bias) ** 3  # Minkowski
    least = variances
    if step and len(variances) > 1:  # a label has the rows of two neighbours
        rounded = np.maximum(rounded[:-1], rounded[1:])
        least = np.minimum(variances[:-1], variances[1:])
    ratios = np.full(len(least), math.inf)
    np.divide(rounded, least, out=ratios, where=least > 0)
    reach += step + bias
    most = most_between(variances, np.full(len(variances) - 1, step**2))
    return Noise(
        least=float(variances.min()),
        average=min(float(prior @ variances) + step**2 / 4, most),
        most=most,
        third=min(float(ratios.max(initial=0.0)), reach),
        reach=reach,
        bias=float(bias_in_range(domain, Fraction(bias))),
        tail=tuple((rate, psi + (rate * step) ** 2 / 8) for rate, psi in tail),  # Hoeffding
    )


def _of_lattice(r: AdditiveRandomizer, variance: float, bias: float) -> tuple[float, float, Tail]:
    """E|Z|³, the most noise, and (λ, ψ(λ)), each of all labels at most.

    Of the noise N = b·D + i before outputs are clamped, its folded tails in their places. Clamped
    noise Z lies between 0 and N, so that |Z|³ ≤ |N|³ and exp(x) − 1 − x is no more at x = λ·Z than
    at λ·N; and E Z is a bias, which is counted apart.
    """
    blocks = np.array([weight / r.words for weight in r.blocks])
    starts = np.arange(-r.reach - 1, r.reach + 1).astype(np.float64)  # in periods
    inside = np.arange(r.period) / r.period
    scale = r.period * r.unit
    sides = []
    for side, shape in enumerate(r.shapes):
        chosen = starts >= 0 if side else starts < 0
        inner = np.array([weight / r.words for weight in shape])
        sides.append((blocks[chosen], starts[chosen], inner, 1.0 if side else -1.0))
    third = 0.0
    for weight, start, inner, sign in sides:
        moments = [math.comb(3, p) * sign**p * float(inner @ inside**p) for p in range(4)]
        third += float(weight @ sum(m * (sign * start) ** (3 - p) for p, m in enumerate(moments)))
    tail = []
    for rate in (_RATES / math.sqrt(variance)).tolist() if variance > 0 else []:
        step = rate * scale
        if step * (r.reach + 1) > _MOST_EXPONENT:
            break
        convex = 0.0  # E (exp(x) − 1 − x), the larger of both signs
        for direction in (step, -step):
            total = 0.0
            for weight, start, inner, _ in sides:
                ahead = np.expm1(direction * start)
                grown = float(inner @ np.expm1(direction * inside))
                linear = direction * (start + float(inner @ inside))
                total += float(weight @ (ahead + grown + ahead * grown - linear))
            convex = max(convex, total)
        tail.append((rate, math.log1p(convex) + rate * bias))
    return third * scale**3, (r.reach + 1) * scale, tuple(tail)


@dataclass(frozen=True)
class ShareNoise:
    """The noise of one row in estimated shares.

    Attributes:
        worst: of the least certain share.
        average: variance under the prior, the mean over all shares.
        own, others: the least and the most variance of a share where the row has its label, and
            where it has any other.
    """

    worst: Noise
    average: float
    own: tuple[float, float]
    others: tuple[float, float]


def noise_of_levels(randomizer: Randomizer, prior: Floats) -> ShareNoise:
    """Of outputs that hold several classes, by their levels."""
    own = share_variances(randomizer, np.ones(len(prior)))
    others = share_variances(randomizer, np.zeros(len(prior)))
    under_prior = share_variances(randomizer, prior)
    return _of_shares(own, others, under_prior, set_weights(randomizer), 0.0)


def noise_of_shares(table: Floats, weights: Floats, prior: Floats) -> ShareNoise:
    """For weights [m, k] with P·weights = I of a table P [k, m]."""
    same = np.eye(len(table), dtype=bool)
    variances = np.maximum(table @ weights**2 - same, 0.0)  # [label, class]
    others = variances[~same] if len(table) > 1 else variances
    bias = float(np.abs(table @ weights - same).max())
    return _of_shares(np.diag(variances), others, prior @ variances, weights, bias)


def _of_shares(
    own: Floats, others: Floats, under_prior: Floats, weights: Floats, bias: float
) -> ShareNoise:
    reach = float(max(np.abs(weights).max(), np.abs(weights - 1.0).max())) + bias
    noise = Noise(
        least=float(min(own.min(), others.min())),
        average=float(under_prior.max()),
        most=float(max(own.max(), others.max())),
        third=reach,
        reach=reach,
        bias=bias,
    )
    ends = [(float(part.min()), float(part.max())) for part in (own, others)]
    return ShareNoise(noise, float(under_prior.mean()), ends[0], ends[1])
