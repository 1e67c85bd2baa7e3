"""The figures of what private labels are good for: the records, their JSON, and their words.

``usefulness.py`` computes them, and says what they are about.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from labeldp_verify.printable import at_least, at_most, percent_at_most, probability
from labeldp_verify.usefulness.noise import Noise

ROWS = 1_000  # whose mean is spoken of, besides all n
_SPREADS = (4, 10)  # parts of the range: standard deviations of labels that are given as examples
_EXAMPLES = (0.1, 0.01)  # shares of a class that are
_GUESS = 0.1  # whose belief stands in the summary
_NOISE, BELIEF = "noise per label", "belief in a label"
PRIORS = {"private": "the noisy prior", "public": "the public prior", "uniform": "a uniform prior"}
Shown = tuple[Callable[[float], str], Callable[[float], str], Callable[[float], str]]


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
        """The margin for labels that are distributed as the prior says."""
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
        """All lines for people; n rows, if they are known, and the kind of the prior."""
        return [f"  {name:<17} {text}" for name, text in self.figures(rows, prior, verbose=True)]

    def figures(self, rows: int | None, prior: str, *, verbose: bool) -> list[tuple[str, str]]:
        """(name, in words) of each line for people; the name is empty where a line goes on.

        The figures that need no prior hold for all labels in the range.
        """
        lines, assumed = [], f"assuming {PRIORS[prior]}"
        for name, measured, spread, shown in self._of_one_label():
            mean = shown[1](spread.mean)
            if spread.least == spread.most:
                lines.append((name, f"{measured} {mean}"))
            else:
                ends = f"{shown[0](spread.least)} to {shown[2](spread.most)}"
                lines.append((name, f"{measured} {ends}"))
                lines += [("", f"{mean} on average, {assumed}")] * verbose
            if verbose and spread is self.distance:
                lines.append(("", f"{_short(self.constant)} for the best constant, {assumed}"))
        if self.noise is not None:
            lines += self._margins(self.noise.margin, "at most", rows, verbose=verbose)
        if self.noise is not None and verbose:
            of_all, under = (
                [_up(margin(n)) for n in reversed(_row_counts(rows))]
                for margin in (self.noise.margin, self.noise.margin_under_prior)
            )
            narrower = f"; {' and '.join(f'±{one}' for one in under)} {assumed}"
            lines.append(("", "for all labels in the range" + narrower * (of_all != under)))
        if verbose and self.more_labels is not None:
            lines += _more(self.more_labels, self._measure)
        return [*lines, *self._belief(verbose=verbose)]

    def estimates(self, rows: int | None, *, verbose: bool) -> list[tuple[str, str]]:
        """``figures`` of a randomizer that the prior may still change: only the belief is a bound.

        The others are averages over labels that are spread evenly.
        """
        lines = []
        for name, measured, spread, shown in self._of_one_label():
            lines.append((name, f"{measured} about {shown[1](spread.mean)}"))
        if self.noise is not None:
            margin = self.noise.margin_under_prior
            lines += self._margins(margin, "about", rows, verbose=verbose)
        condition = "if labels are spread evenly (estimated)"
        lines = [(name, f"{text}, {condition}") for name, text in lines]
        return [*lines, *self._belief(verbose=verbose)]

    def _of_one_label(self) -> Iterator[tuple[str, str, Spread, Shown]]:
        """(name, measure, its values, how to show the least, mean and most) of a private label."""
        if self.unbiased and self.deviation is not None:
            yield _NOISE, "standard deviation", self.deviation, (_down, _short, _up)
        elif self.distance is not None:
            yield _NOISE, "root mean square error", self.distance, (_down, _short, _up)
        if self.kept is not None:
            what = "is the true one" if self.set_sizes is None else _holds(self.set_sizes)
            yield "one private label", f"{what} with probability", self.kept, (probability,) * 3

    def _margins(
        self, margin: Callable[[int], float], bound: str, rows: int | None, *, verbose: bool
    ) -> list[tuple[str, str]]:
        """The margin over n rows if n is known, and then over 1,000."""
        counts = _row_counts(rows)[::-1]
        texts = [f"of {n:,} rows: {bound} ±{_up(margin(n))} (95%)" for n in counts]
        return [(self._measure, texts[0]), *(("", text) for text in texts[1:] if verbose)]

    @property
    def _measure(self) -> str:
        return "a share" if self.deviation is None else "a mean"

    def _belief(self, *, verbose: bool) -> list[tuple[str, str]]:
        told = [one for one in self.belief if verbose or one[0] == _GUESS]
        return [(BELIEF * (one is told[0]), belief_in_words(*one)) for one in told]


def _row_counts(rows: int | None) -> list[int]:
    return [ROWS] if rows is None or rows == ROWS else [ROWS, rows]


def belief_in_words(before: float, after: float, digits: int = 2) -> str:
    """The most that an observer can believe in a label, who believed in it ``before``."""
    most = percent_at_most(after, digits)
    return f"a guess that was {before:.0%} likely can rise to {most} at most"


def _more(more: MoreLabels, what: str) -> list[tuple[str, str]]:
    """A row that holds for all labels, then examples."""
    rows = [("any labels", f"at least {_down(more.at_least)}")]
    for spread, least, most in more.examples:
        times = " to ".join(dict.fromkeys((_short(least), _short(most))))
        of = f"a share of {_percent(spread)}" if what == "a share" else f"sd {_short(spread)}"
        rows.append((of, times))
    title = f"private labels that estimate {what} as well as one true label"
    return [("more labels", title), *(("", f"  {of:<15} {times}") for of, times in rows)]


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
