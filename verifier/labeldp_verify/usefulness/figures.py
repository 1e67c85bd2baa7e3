"""The figures of what private labels are good for: the records, their JSON, and their words.

``usefulness.py`` computes them, and says what they are about.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from labeldp_verify.printable import at_least, at_most, percent_at_most, probability
from labeldp_verify.usefulness.noise import Noise

ROWS = 1_000  # whose mean is spoken of, besides all n
_SPREADS = (4, 10)  # parts of the range: standard deviations of labels that are given as examples
_EXAMPLES = (0.1, 0.01)  # shares of a class that are
PRIORS = {"private": "the noisy prior", "public": "the public prior", "uniform": "a uniform prior"}


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
            kept = _span(self.kept, "", assumed, probability)
            lines.append(("one private label", f"{what} with probability {kept}"))
        if self.noise is not None:
            lines.append((self._measure, _margins(self.noise, _row_counts(rows), assumed)))
        if self.more_labels is not None:
            lines.append(("more labels", _more(self.more_labels, self._measure)))
        return [*lines, self._belief_line()]

    def estimates(self, rows: int | None) -> list[tuple[str, str]]:
        """``figures`` of a randomizer that the prior may still change: only the belief is a bound.

        The others are averages over labels that are spread evenly.
        """
        lines, counts = [], _row_counts(rows)
        if self.unbiased and self.deviation is not None:
            sd = f"sd about {_short(self.deviation.mean)} around the true one"
            lines.append(("one private label", sd))
        elif self.distance is not None:
            off = f"off by about {_short(self.distance.mean)} (root mean square)"
            lines.append(("one private label", off))
        if self.kept is not None:
            kept = f"is the true one with probability about {probability(self.kept.mean)}"
            lines.append(("one private label", kept))
        if self.noise is not None:
            margins = [_up(self.noise.margin_under_prior(n)) for n in counts]
            lines.append((self._measure, f"{_over(counts, 'about', margins)}"))
        condition = "if labels are spread evenly (estimated)"
        return [*((what, f"{text}, {condition}") for what, text in lines), self._belief_line()]

    @property
    def _measure(self) -> str:
        return "a share" if self.deviation is None else "a mean"

    def _belief_line(self) -> tuple[str, str]:
        beliefs = [(f"{before:.0%}", percent_at_most(after)) for before, after in self.belief]
        return "belief in a label", belief_in_words(beliefs)


def _row_counts(rows: int | None) -> list[int]:
    return [ROWS] if rows is None or rows == ROWS else [ROWS, rows]


def belief_in_words(beliefs: Sequence[tuple[str, str]]) -> str:
    """The most that an observer can believe, for each (before, after)."""
    before, after = (f"{', '.join(side[:-1])} or {side[-1]}" for side in zip(*beliefs, strict=True))
    return f"an observer who was {before} sure of a label can become at most {after} sure"


def _span(
    spread: Spread, of: str, assumed: str, shown: Callable[[float], str] | None = None
) -> str:
    least, mean, most = map(shown or _short, (spread.least, spread.mean, spread.most))
    if least == most:
        return f"{mean}{of}"
    return f"{least} to {most}{of}, {mean} on average {assumed}"


def _margins(noise: Noise, counts: Sequence[int], assumed: str) -> str:
    """Of all labels first; under the prior where that makes a difference."""
    widest = [_up(noise.margin(n)) for n in counts]
    text = f"{_over(counts, 'at most', widest)}, for all labels in the range"
    narrower = [_up(noise.margin_under_prior(n)) for n in counts]
    if narrower == widest:
        return text
    return f"{text} ({', '.join(f'±{m}' for m in narrower)} {assumed})"


def _over(counts: Sequence[int], bound: str, margins: Sequence[str]) -> str:
    """The margins of means or shares over these numbers of rows."""
    first, *others = zip(counts, margins, strict=True)
    more = "".join(f", over {n:,} rows ±{margin}" for n, margin in others)
    return f"over {first[0]:,} rows has a 95% margin of error of {bound} ±{first[1]}{more}"


def _more(more: MoreLabels, what: str) -> str:
    """Figures that hold for all labels first, then examples."""
    need = f"estimating {what} needs at least {_down(more.at_least)} times as many private labels"
    examples = []
    for spread, least, most in more.examples:
        times = " to ".join(dict.fromkeys((_short(least), _short(most))))
        examples.append(f"{times} if {_percent(spread) if what == 'a share' else _short(spread)}")
    of = what if what == "a share" else "the sd of those"
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
