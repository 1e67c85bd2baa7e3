"""What private labels are good for: post-processing of what a file proves, in floating point.

With π the certificate's prior, P [k, m] the table Pr[output | label] and n rows:

    numbers      an unbiased randomizer's outputs have the labels' mean, with the noise variance
                 V = Σ π_y·Var[output | y] a row; the outputs of others first take the weights v of
                 least variance with P·v = y, if there are any (``analysis/inversion.py``)
    classes      (categories, and integers under the 0-1 loss) the share of class c is estimated by
                 weights W with P·W = I; its noise variance a row is V_c = Σ_o (πP)_o·W[o, c]² − π_c

Margins for n rows are 95% bounds of the error about the true labels of these rows (``margins``).
Figures that depend on how labels are distributed are given for all distributions, from the least to
the most noise of a label, or name the prior that they assume. All figures are for labels in the
range: others are clamped, or become the default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.analysis import analyse
from labeldp_verify.analysis.inversion import least_variance_inverse
from labeldp_verify.analysis.probabilities import matrix, rows
from labeldp_verify.analysis.range_bias import grid_step, rounds_to_nearest
from labeldp_verify.forms import CategoricalDomain, Domain, Randomizer, are_numbers, sets_of
from labeldp_verify.forms.exact_numbers import ExactNumbers
from labeldp_verify.reading.margins import Noise
from labeldp_verify.reading.row_noise import (
    most_between,
    noise_of_levels,
    noise_of_outputs,
    noise_of_shares,
    noise_of_weights,
    rounding_step,
)
from labeldp_verify.rounded import at_least, at_most, percent_at_most

Floats = NDArray[np.float64]
ROWS = 1_000  # whose mean is spoken of, besides all n
SHARES = (0.01, 0.1, 0.5)  # shares of a label that an observer may believe in before
MAX_LABELS, MAX_ENTRIES = 1_000, 8_000_000  # of a table that is inverted
_SPREADS = (4, 10)  # parts of the range: standard deviations of labels that are given as examples
_EXAMPLES = (0.1, 0.01)  # shares of a class that are
PRIORS = {
    "private": "the noisy prior",
    "public": "the public prior",
    "uniform": "a uniform prior",
}
_UNBIASED = 1e-9  # of the range of the labels: what rounding to whole counts can do


@dataclass(frozen=True)
class Spread:
    """The least, the mean (under the prior) and the most of something over the labels."""

    least: float
    mean: float
    most: float


@dataclass(frozen=True)
class MoreLabels:
    """How many private labels replace one true label in an estimated mean or share.

    That is 1 + (noise of a row)/(variance of the true labels), which nobody knows.

    Attributes:
        at_least: for all labels: their variance is at most ((max − min)/2)², a share's at most ¼.
        examples: (standard deviation of the true labels, or share of a class, least, most).
    """

    at_least: float
    examples: tuple[tuple[float, float, float], ...]

    @classmethod
    def of_mean(cls, noise: Noise, width: float) -> MoreLabels:
        """Of the mean of numbers in a range of this width."""
        spreads = [width / part for part in _SPREADS]
        examples = ((s, 1 + noise.least / s**2, 1 + noise.most / s**2) for s in spreads)
        return cls(1 + noise.least / (width / 2) ** 2, tuple(examples))

    @classmethod
    def of_shares(cls, own: tuple[float, float], others: tuple[float, float]) -> MoreLabels:
        """Of a share p, whose noise is p·own + (1 − p)·others; each the least and the most."""
        examples = []
        for p in _EXAMPLES:
            least, most = (
                1 + (p * inside + (1 - p) * outside) / (p * (1 - p))
                for inside, outside in zip(own, others, strict=True)
            )
            examples.append((p, least, most))
        least = (math.sqrt(own[0]) + math.sqrt(others[0])) ** 2  # over all p
        return cls(1 + least, tuple(examples))


@dataclass(frozen=True, kw_only=True)
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
            over categories), under the prior.
        noise: of a row in a mean (numbers), or in the least certain share (categories).
        more_labels: what they cost; None where they stay wrong by the rounding to a grid.
        belief: (share of a label before, the most an observer can believe in it after).
    """

    deviation: Spread | None = None
    kept: Spread | None = None
    unbiased: bool | None = None
    estimable: bool | None = None
    variance: float | None = None
    noise: Noise | None = None
    more_labels: MoreLabels | None = None
    belief: tuple[tuple[float, float], ...] = ()
    set_sizes: tuple[int, int] | None = None
    distance: Spread | None = None
    constant: float | None = None

    def margin(self, rows: int) -> float | None:
        """± of an estimated mean, or of the least certain share, for all labels in the range."""
        return None if self.noise is None else self.noise.margin(rows)

    def margin_under_prior(self, rows: int) -> float | None:
        """The same for labels that are distributed as the prior says."""
        return None if self.noise is None else self.noise.margin_under_prior(rows)

    @property
    def distances(self) -> tuple[float, float] | None:
        """From the true label, of a private one and of the best constant, where there is a bias."""
        if self.unbiased or self.distance is None or self.constant is None:
            return None
        return self.distance.mean, self.constant

    def to_json(self, rows: int | None, prior: str) -> dict[str, Any]:
        """The fields by their names, the kind of the ``prior``, and ``margins``: ``[{rows,
        all_labels, under_prior}]`` for 1,000 rows and n.
        """
        facts = asdict(self)
        del facts["noise"]
        facts["prior"] = prior
        facts["belief"] = [{"before": before, "after": after} for before, after in self.belief]
        if self.more_labels is not None:
            of = "share" if self.deviation is None else "deviation"
            facts["more_labels"] = {
                "at_least": self.more_labels.at_least,
                "examples": [
                    {of: spread, "least": least, "most": most}
                    for spread, least, most in self.more_labels.examples
                ],
            }
        facts["margins"] = [
            {"rows": n, "all_labels": self.margin(n), "under_prior": self.margin_under_prior(n)}
            for n in _row_counts(rows)
        ]
        return facts

    def in_words(self, rows: int | None, prior: str) -> list[str]:
        """Lines for people; n rows, if they are known, and the kind of the prior."""
        return [f"  {name:<17} {text}" for name, text in self.figures(rows, prior)]

    def figures(self, rows: int | None, prior: str) -> list[tuple[str, str]]:
        """(what, in words) of each line for people."""
        lines, assumed = [], f"assuming {PRIORS[prior]}"
        if self.unbiased and self.deviation is not None:
            sd = _span(self.deviation, " around the true one", assumed)
            lines.append(("one private label", f"sd {sd}"))
        elif self.distance is not None:
            off = _span(self.distance, " (root mean square)", assumed)
            constant = f"{assumed} the best constant is off by {_short(self.constant)}"
            lines.append(("one private label", f"off by {off}; {constant}"))
        if self.kept is not None:
            what = "is the true one" if self.set_sizes is None else _holds(self.set_sizes)
            kept = _span(self.kept, "", assumed)
            lines.append(("one private label", f"{what} with probability {kept}"))
        if self.noise is not None:
            what = "a share" if self.deviation is None else "a mean"
            lines.append((what, _margins(self.noise, _row_counts(rows), assumed)))
        if self.more_labels is not None:
            what = "share" if self.deviation is None else "mean"
            lines.append(("more labels", _more(self.more_labels, what)))
        beliefs = [(f"{before:.0%}", percent_at_most(after)) for before, after in self.belief]
        lines.append(("belief in a label", belief_in_words(beliefs)))
        return lines


def most_belief(ratio: float, share: float) -> float:
    """What Bayes makes of a label's share at most, where outputs are ``ratio`` as likely."""
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
    domain: Domain,
    randomizer: Randomizer,
    prior: Floats,
    largest_bias: float | None,
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


def _of_categories(
    domain: Domain,
    randomizer: Randomizer,
    prior: Floats,
) -> Usefulness:
    sets, each = sets_of(randomizer), kept_probabilities(domain, randomizer, range(domain.size))
    kept = Spread(float(each.min()), float(prior @ each), float(each.max()))
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
        return np.array([float(row[members].sum()) for row, members in pairs])
    at = np.array(shown, dtype=np.intp)
    labels = [domain.listed[i] for i in shown]
    changed, _ = analyse(randomizer).losses(at, labels, "zero_one")
    return np.array(ExactNumbers(changed.unit - changed.numerators, changed.unit).floats())


def inverse_of(domain: Domain, randomizer: Randomizer) -> tuple[Floats, Floats | None] | None:
    """P [k, m], and weights W with P·W = I, if there are any; None if the table is too large."""
    k = domain.size
    if k > MAX_LABELS or k * randomizer.outputs > MAX_ENTRIES:
        return None
    table = matrix(randomizer, range(k))
    return table, least_variance_inverse(table)


def _row_counts(rows: int | None) -> list[int]:
    return [ROWS] if rows is None or rows == ROWS else [ROWS, rows]


def belief_in_words(beliefs: Sequence[tuple[str, str]]) -> str:
    """What an observer can believe at most, for each (before, after)."""
    before, after = (f"{', '.join(side[:-1])} or {side[-1]}" for side in zip(*beliefs, strict=True))
    return f"an observer who was {before} sure of a label can become at most {after} sure"


def _span(spread: Spread, of: str, assumed: str) -> str:
    least, mean, most = map(_short, (spread.least, spread.mean, spread.most))
    if least == most:
        return f"{mean}{of}"
    return f"{least} to {most}{of}, {mean} on average {assumed}"


def _margins(noise: Noise, counts: Sequence[int], assumed: str) -> str:
    """Of all labels first; under the prior where that makes a difference."""
    first, *others = counts
    found = [_up(noise.margin(n)) for n in counts]
    more = "".join(f", over {n:,} rows ±{m}" for n, m in zip(others, found[1:], strict=True))
    text = f"over {first:,} rows has a 95% margin of error of at most ±{found[0]}{more}"
    text += ", for all labels in the range"
    narrower = [_up(noise.margin_under_prior(n)) for n in counts]
    if narrower == found:
        return text
    return f"{text} ({', '.join(f'±{m}' for m in narrower)} {assumed})"


def _more(more: MoreLabels, what: str) -> str:
    """What holds for all labels first, then examples."""
    need = f"estimating a {what} needs at least {_down(more.at_least)} times as many private labels"
    examples = []
    for spread, least, most in more.examples:
        times = " to ".join(dict.fromkeys((_short(least), _short(most))))
        examples.append(f"{times} if {_percent(spread) if what == 'share' else _short(spread)}")
    of = "a share" if what == "share" else "the sd of those"
    first, second = examples
    return f"{need} as true ones: {first.replace(' if', f' times if {of} is')}, {second}"


def _short(number: float | None) -> str:
    if number is None:
        return "?"
    return f"{number:,.0f}" if number >= 1_000 else f"{number:.3g}"


def _up(number: float) -> str:
    """Three digits, not below the number."""
    return _large(number, math.ceil) or at_most(number, 3)


def _down(number: float) -> str:
    """Three digits, not above the number."""
    return _large(number, math.floor) or at_least(number, 3)


def _large(number: float, whole: Callable[[float], int]) -> str | None:
    """A number of at least 1,000 in full."""
    if not math.isfinite(number):
        return "∞"
    return f"{whole(number):,}" if number >= 1_000 else None


def _holds(classes: tuple[int, int]) -> str:
    least, most = classes
    return f"is a set of {least if least == most else f'{least} to {most}'}, with the true one"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{100 * share:.2g}%"
