"""What private labels are good for: post-processing of what a file proves, in floating point.

With π the certificate's prior, P [k, m] the table Pr[output | label] and n rows:

    numbers      an unbiased randomizer's outputs have the labels' mean, with the noise variance
                 V = Σ π_y·Var[output | y] a row; the outputs of others first take the weights v of
                 least variance with P·v = y, if there are any (``analysis/inversion.py``)
    classes      (categories, and integers under the 0-1 loss) the share of class c is estimated by
                 weights W with P·W = I; its noise variance a row is V_c = Σ_o (πP)_o·W[o, c]² − π_c

What is said of n rows is said of the true labels of these rows, in 95 of 100 cases: ±1.96·√(V/n).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.analysis import analyse
from labeldp_verify.analysis.inversion import least_variance_inverse
from labeldp_verify.analysis.probabilities import entries, indices_of, matrix, rows
from labeldp_verify.analysis.sets import share_variances
from labeldp_verify.forms import CategoricalDomain, Domain, Randomizer, are_numbers, sets_of
from labeldp_verify.forms.exact_numbers import ExactNumbers

Floats = NDArray[np.float64]
ROWS = 1_000  # whose mean is spoken of, besides all n
SHARES = (0.01, 0.1, 0.5)  # prior shares of a label that somebody is suspected to have
MAX_LABELS, MAX_ENTRIES = 1_000, 8_000_000  # of a table that is inverted
_SAMPLE = 2_049  # labels whose own probability is looked at, of more, and as many likely ones
_NORMAL = 1.959964  # 95 % of a standard normal lie within ±
_UNBIASED = 1e-9  # of the range of the labels: what rounding to whole counts can do


@dataclass(frozen=True)
class Spread:
    """The least, the mean (under the prior) and the most of something over the labels."""

    least: float
    mean: float
    most: float


@dataclass(frozen=True)
class Usefulness:
    """Floats for people and gates; None where a figure does not exist or was too much work.

    Attributes:
        deviation: standard deviation of one private label (numbers).
        distance: root mean square of how far one private label is from the true one (numbers).
        constant: the same of the best constant under the prior, which says nothing (numbers).
        kept: Pr[private label = true label] (categories), or that a set holds it.
        set_sizes: labels in a private set, the fewest and the most; None where it is one label.
        unbiased: whether private labels are right on average as they are (numbers).
        estimable: whether weights exist that make them so; None if that was too much work.
        variance: noise of a row in an estimated mean (numbers) or share (categories: the mean
            over categories).
        worst_variance: of the category whose share is the least certain (categories).
        worth: private labels that say as much of a mean, or of the shares, as one true label.
        belief: (share of a label before, the most an observer can believe in it after).
    """

    deviation: Spread | None
    kept: Spread | None
    unbiased: bool | None
    estimable: bool | None
    variance: float | None
    worst_variance: float | None
    worth: float | None
    belief: tuple[tuple[float, float], ...]
    set_sizes: tuple[int, int] | None = None
    distance: Spread | None = None
    constant: float | None = None

    def error(self, rows: int) -> float | None:
        """± of an estimated mean, or of the least certain share, of so many rows."""
        variance = self.worst_variance if self.deviation is None else self.variance
        return None if variance is None else half_width(variance, rows)

    @property
    def distances(self) -> tuple[float, float] | None:
        """From the true label, of a private one and of the best constant, where there is a bias."""
        if self.unbiased or self.distance is None or self.constant is None:
            return None
        return self.distance.mean, self.constant

    def to_json(self, rows: int | None) -> dict[str, Any]:
        """The fields by their names, and ``errors``: ``[{rows, error}]`` for 1,000 rows and n."""
        facts = asdict(self)
        facts["belief"] = [{"before": before, "after": after} for before, after in self.belief]
        facts["errors"] = [{"rows": n, "error": self.error(n)} for n in _row_counts(rows)]
        return facts

    def in_words(self, rows: int | None) -> list[str]:
        """Lines for people; n rows, if they are known."""
        return [f"  {name:<17} {text}" for name, text in self.figures(rows)]

    def figures(self, rows: int | None) -> list[tuple[str, str]]:
        """(what, in words) of each line for people."""
        lines = []
        if self.unbiased and self.deviation is not None:
            lines.append(("one private label", f"sd {_span(self.deviation)} around the true one"))
        elif self.distance is not None:
            off = f"off by {_span(self.distance)}, a constant by {_short(self.constant)}"
            lines.append(("one private label", f"{off} (root mean square)"))
        if self.kept is not None:
            what = "is the true one" if self.set_sizes is None else _holds(self.set_sizes)
            lines.append(("one private label", f"{what} with probability {_span(self.kept)}"))
        what = "a mean" if self.deviation is not None else "a share"
        if self.variance is not None:
            first, *others = [(f"{n:,}", _short(self.error(n))) for n in _row_counts(rows)]
            more = "".join(f", of {n} to ±{error}" for n, error in others)
            lines.append((what, f"of {first[0]} rows is right to ±{first[1]}{more} (95 %)"))
        if self.worth is not None:
            lines.append(
                ("worth", f"{_short(self.worth)} private labels say as much as one true label")
            )
        rises = ", ".join(f"{before:.0%} to {_percent(after)}" for before, after in self.belief)
        lines.append(("belief in a label", f"can rise from {rises}"))
        return lines


def half_width(variance: float, rows: int) -> float:
    """± of a mean of so many rows in 95 of 100 cases, where a row has this variance."""
    return _NORMAL * math.sqrt(variance / rows)


def most_belief(ratio: float, share: float) -> float:
    """What Bayes makes of a label's share at most, where outputs are ``ratio`` as likely."""
    return ratio * share / (1 + (ratio - 1) * share)


def is_unbiased(domain: Domain, largest_bias: float | None) -> bool:
    """Whether the largest bias is nothing but rounding to whole counts; categories have none."""
    if isinstance(domain, CategoricalDomain) or largest_bias is None:
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
        largest_bias: max |E[output | y] − y|; None for categories.
        classes: whether labels that are numbers stand for classes, as under the 0-1 loss.
    """
    prior = _prior(weights)
    belief = tuple((share, most_belief(float(ratio), share)) for share in SHARES)
    if classes or not are_numbers(domain, randomizer):
        return _of_categories(domain, randomizer, weights, prior, belief)
    return _of_numbers(domain, randomizer, prior, belief, is_unbiased(domain, largest_bias))


def _of_numbers(
    domain: Domain,
    randomizer: Randomizer,
    prior: Floats,
    belief: tuple[tuple[float, float], ...],
    unbiased: bool,
) -> Usefulness:
    variances, squares, spread = _squares(domain, randomizer, prior)
    variance, estimable = (
        (float(prior @ variances), True)
        if unbiased
        else _weighted_mean(randomizer, prior, domain.exact_labels())
    )
    worth = None if variance is None or not spread else 1 + variance / spread
    return Usefulness(
        _roots(variances, prior),
        None,
        unbiased,
        estimable,
        variance,
        None,
        worth,
        belief,
        distance=_roots(squares, prior),
        constant=math.sqrt(spread),
    )


def distances(
    domain: Domain, randomizer: Randomizer, weights: Sequence[int]
) -> tuple[float, float]:
    """``Usefulness.distances`` of a randomizer of numbers, alone; ``weights`` as there."""
    prior = _prior(weights)
    _, squares, spread = _squares(domain, randomizer, prior)
    return math.sqrt(prior @ squares), math.sqrt(spread)


def _prior(weights: Sequence[int]) -> Floats:
    total = sum(weights)
    return np.array([weight / total for weight in weights])


def _squares(domain: Domain, randomizer: Randomizer, prior: Floats) -> tuple[Floats, Floats, float]:
    """[k] variances and mean squared distances of private labels; the best constant's."""
    labels, analysis = domain.exact_labels(), analyse(randomizer)
    assert isinstance(labels, ExactNumbers)
    y, variances = np.array(labels.floats()), np.array(analysis.variances().floats())
    squares = variances + (np.array(analysis.means().floats()) - y) ** 2
    return variances, squares, float(prior @ (y - prior @ y) ** 2)


def _roots(squares: Floats, prior: Floats) -> Spread:
    return Spread(*(math.sqrt(s) for s in (squares.min(), float(prior @ squares), squares.max())))


def _weighted_mean(
    randomizer: Randomizer, prior: Floats, labels: Sequence[Any]
) -> tuple[float | None, bool | None]:
    """The noise variance of a row in an estimated mean, and whether there is such an estimate."""
    if _is_too_large(randomizer, len(labels)):
        return None, None
    table = matrix(randomizer, range(len(labels)))
    inverse = least_variance_inverse(table)
    if inverse is None:
        return None, False
    y = np.array([float(label) for label in labels])
    values = inverse @ (y - y.mean())
    return max(float(prior @ table @ values**2 - prior @ (y - y.mean()) ** 2), 0.0), True


def _of_categories(
    domain: Domain,
    randomizer: Randomizer,
    weights: Sequence[int],
    prior: Floats,
    belief: tuple[tuple[float, float], ...],
) -> Usefulness:
    likely = np.argsort(-prior, kind="stable")[:_SAMPLE].tolist()
    shown, sets = sorted({*sample(domain.size, _SAMPLE), *likely}), sets_of(randomizer)
    probabilities = kept_probabilities(domain, randomizer, shown)
    classes = None if sets is None else (min(sets.sizes), max(sets.sizes))
    if len(shown) == domain.size:
        average = float(prior @ probabilities)
    else:
        changed, _ = analyse(randomizer).expected_loss(domain.exact_labels(), weights, "zero_one")
        average = float(1 - changed)
    kept = Spread(float(probabilities.min()), average, float(probabilities.max()))
    if sets is not None:
        noise = share_variances(randomizer, prior)
    elif _is_too_large(randomizer, domain.size):
        return Usefulness(None, kept, None, None, None, None, None, belief)
    else:
        table = matrix(randomizer, range(domain.size))
        inverse = least_variance_inverse(table)
        if inverse is None:
            return Usefulness(None, kept, None, False, None, None, None, belief)
        noise = np.maximum(prior @ table @ inverse**2 - prior, 0.0)
    true = float((prior * (1 - prior)).sum())
    worth = 1 + float(noise.sum()) / true if true else None
    variance, worst = float(noise.mean()), float(noise.max())
    return Usefulness(None, kept, None, True, variance, worst, worth, belief, classes)


def kept_probabilities(domain: Domain, randomizer: Randomizer, shown: Sequence[int]) -> Floats:
    """[n] Pr[the private label is the true one, or a set with it] for labels of these indices."""
    sets = sets_of(randomizer)
    if sets is not None:
        pairs = zip(rows(randomizer, shown), sets.matrix[shown], strict=True)
        return np.array([float(row[members].sum()) for row, members in pairs])
    labels = domain.labels()
    outputs = indices_of(randomizer, (labels[i] for i in shown))
    same = [(i, index) for i, index in zip(shown, outputs, strict=True) if index is not None]
    unchanged = dict(zip((i for i, _ in same), entries(randomizer, same), strict=True))
    return np.array([unchanged.get(i, 0.0) for i in shown])


def _is_too_large(randomizer: Randomizer, labels: int) -> bool:
    return labels > MAX_LABELS or labels * randomizer.outputs > MAX_ENTRIES


def _row_counts(rows: int | None) -> list[int]:
    return [ROWS] if rows is None or rows == ROWS else [ROWS, rows]


def _span(spread: Spread) -> str:
    least, mean, most = map(_short, (spread.least, spread.mean, spread.most))
    return mean if least == most else f"{least} to {most}, {mean} on average"


def _short(number: float | None) -> str:
    if number is None:
        return "?"
    return f"{number:,.0f}" if number >= 1_000 else f"{number:.3g}"


def _holds(classes: tuple[int, int]) -> str:
    least, most = classes
    return f"is a set of {least if least == most else f'{least} to {most}'}, with the true one"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{100 * share:.2g}%"
