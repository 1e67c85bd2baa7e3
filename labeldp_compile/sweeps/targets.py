"""Targets for private labels and limits on ε, and every ε that is tried for them."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from labeldp_verify.analysis import exp_upper
from labeldp_verify.strict import read_decimal
from labeldp_verify.usefulness.figures import ROWS, Usefulness
from scipy.optimize import brentq

from labeldp_compile.errors import InputError
from labeldp_compile.spec import Spec
from labeldp_compile.spec.model import PrivatePrior

MAX_ROWS = 10**15
TARGETS = ("mean-error", "share-error", "label-error", "max-belief")

# The ladder: every ε with four significant digits from 0.01 to 20, so that results need no
# rounding.
_STEPS = 9_000  # 1.000, 1.001, … 9.999
_FEWEST = 1_000
_EXPONENT = -5  # 1000 · 10^-5 is the first
_TURNS = 10  # of Brent's method; bisection needs at most 15 more
_MOST = 50.0  # instead of infinity
LAST = 3 * _STEPS + 1_000


def epsilon_at(step: int) -> Fraction:
    """ε of a step of the ladder, 0 … LAST."""
    decade, within = divmod(step, _STEPS)
    return (_FEWEST + within) * Fraction(10) ** (decade + _EXPONENT)


def step_near(epsilon: float) -> int:
    """The first step whose ε is at least this one, for any number; LAST where none is."""
    # Slightly less, by far less than a step: an ε that became a float must still find its step.
    least = Fraction(min(max(epsilon, 0.0), 100.0)) - Fraction(1, 10**12)
    return min(bisect_left(range(LAST + 1), least, key=epsilon_at), LAST)


def first_root(excess: Callable[[int], float], last: int, known: dict[int, float]) -> int | None:
    """A step in 0 … last at which ``excess`` is ≤ 0 and below which it is > 0.

    It is the first such step if excess falls as ε grows. None if excess is > 0 at ``last``.
    ``known`` are values that need not be computed again; infinity may be among them. Brent's method
    on ln ε comes close, and bisection between the nearest values ends at neighbouring steps.
    """
    values = dict(known)

    def at(step: int) -> float:
        if step not in values:
            values[step] = excess(step)
        return values[step]

    def at_log(log_epsilon: float) -> float:
        return min(at(step_near(math.exp(log_epsilon) * (1 - 1e-12))), _MOST)

    high = min((s for s, value in values.items() if s <= last and value <= 0), default=last)
    if high < 0 or at(high) > 0:
        return None
    low = max((s for s, value in values.items() if s < high and value > 0), default=0)
    if at(low) <= 0:
        return low
    ends = (math.log(epsilon_at(step)) for step in (low, high))
    brentq(at_log, *ends, xtol=1e-4, maxiter=_TURNS, disp=False)
    while high - low > 1:
        high = min(s for s, value in values.items() if s <= high and value <= 0)
        low = max(s for s, value in values.items() if s < high and value > 0)
        at((low + high) // 2)
    return high


class UnreachedError(InputError):
    """The input is right, but no ε reaches the targets."""

    exit_code = 1


@dataclass(frozen=True)
class Demand:
    """A figure that must not be larger than asked.

    Attributes:
        most: the largest figure that meets the demand.
        rows: how many rows the mean or the shares are over; None for single labels.
        categories: whether labels are classes (``Spec.has_classes``).
    """

    most: float
    rows: int | None
    categories: bool

    @property
    def kind(self) -> Literal["mean_error", "share_error", "label_error"]:
        """The name of the figure in the document.

        ``mean_error`` (numbers) and ``share_error`` (the least certain category) are the 95% margin
        of error for all labels in the range. ``label_error`` is the error of one private label
        under the prior: root mean square (numbers), or Pr[private label ≠ true label].
        """
        if self.rows is None:
            return "label_error"
        return "share_error" if self.categories else "mean_error"

    def figure(self, usefulness: Usefulness, label_error: float) -> float | None:
        """The figure of a randomizer; None if there is no estimate."""
        return label_error if self.rows is None else usefulness.margin(self.rows)

    @property
    def name(self) -> str:
        """The heading of the figure's column."""
        if self.rows is not None:
            return f"± of a {'share' if self.categories else 'mean'} of {self.rows:,}"
        return "changed labels" if self.categories else "error of a label"

    def in_words(self) -> str:
        """The whole demand."""
        if self.rows is not None:
            what = f"{'shares' if self.categories else 'a mean'} of {self.rows:,} rows"
            return f"{what} within ±{self.most:g} (95%, for all labels in the range)"
        under = "assuming that prior"
        if self.categories:
            other = "a private label other than the true one with probability"
            return f"{other} at most {self.most:g}, {under}"
        return f"a private label off by at most {self.most:g} (root mean square, {under})"


@dataclass(frozen=True)
class Belief:
    """A limit on how sure an observer can become of a label.

    Attributes:
        most: the largest belief after the private label was seen.
        share: the belief before, for example the label's share.
    """

    most: Fraction
    share: Fraction

    def last_step(self) -> int:
        """The last step of the ladder within the limit, by a bound of e^ε.

        Odds grow by at most e^ε (Bayes). Raises UnreachedError if no step is within the limit.
        """
        most = self.most * (1 - self.share) / (self.share * (1 - self.most))
        steps = range(LAST + 1)
        count = bisect_right(steps, most, key=lambda step: exp_upper(epsilon_at(step)))
        if not count:
            raise UnreachedError(
                f"{self.in_words()}: this needs ε below {float(epsilon_at(0)):g}, and smaller ones "
                "are not tried"
            )
        return count - 1

    def in_words(self) -> str:
        """The whole demand."""
        before, after = (f"{100 * float(p):.6g}%" for p in (self.share, self.most))
        return f"a guess that was {before} likely can rise to {after} at most"


@dataclass(frozen=True)
class Wanted:
    """All targets and limits together.

    Attributes:
        targets: all must be met.
        belief: a limit on ε, or None.
        columns: the figures to compute: those of the targets, or some to show without targets.
    """

    targets: tuple[Demand, ...]
    belief: Belief | None
    columns: tuple[Demand, ...]

    def in_words(self) -> list[str]:
        """Each demand in words."""
        targets = [target.in_words() for target in self.targets]
        return targets if self.belief is None else [*targets, self.belief.in_words()]


def read_wanted(spec: Spec, asked: Mapping[str, Any], rows: int | None) -> Wanted:
    """Targets by their names in ``TARGETS``, numbers as people write them, checked.

    ``rows`` are those of the mean or the shares; by default those that a private prior states.
    ``max-belief`` is ``B@S``, or the two numbers. Raises InputError for what has no meaning for the
    spec.
    """
    classes = spec.has_classes
    wrong, right = ("mean-error", "share-error") if classes else ("share-error", "mean-error")
    if wrong in asked:
        kind = "numbers, but with categories or loss: zero_one labels are classes"
        if not classes:
            kind = "classes: categories, or labels with loss: zero_one"
        raise InputError(f"{wrong} is for {kind}; for {spec.name}, use {right} or label-error")
    if not asked:
        raise InputError(
            f"give at least one target: {right}=E and rows, label-error=E, or "
            "max-belief=BELIEF@SHARE"
        )
    if rows is not None and not 1 <= rows <= MAX_ROWS:
        raise InputError(f"--rows: expected 1 … {MAX_ROWS:,}, got {rows:,}")
    if rows is not None and right not in asked and "label-error" in asked:
        raise InputError(f"--rows needs {right}: a single label has no rows")
    if rows is None and isinstance(spec.prior, PrivatePrior):
        rows = spec.prior.rows
    if right in asked and rows is None:
        raise InputError(f"{right} needs --rows N, the number of rows")
    targets = tuple(
        Demand(float(_amount(asked[name], name, 1 if classes else None)), of_rows, classes)
        for name, of_rows in ((right, rows), ("label-error", None))
        if name in asked
    )
    belief = _read_belief(asked["max-belief"]) if "max-belief" in asked else None
    shown = (Demand(math.inf, number, classes) for number in (rows or ROWS, None))
    return Wanted(targets, belief, targets or tuple(shown))


def _read_belief(text: Any) -> Belief:
    parts = text.split("@") if isinstance(text, str) else list(text)
    if len(parts) != 2:
        raise InputError(f"max-belief: expected BELIEF@SHARE, as in 0.2@0.01, got {text!r}")
    most, share = (Fraction(_amount(part, "max-belief", 1)) for part in parts)
    if most <= share:
        raise InputError(
            f"max-belief: the belief before is {float(share):g} already; give more than "
            f"{float(share):g} before the @"
        )
    return Belief(most, share)


def _amount(given: Any, option: str, below: int | None) -> Decimal | Fraction:
    """A number above 0, and below a limit if there is one."""
    limit = "above 0" if below is None else f"between 0 and {below}"
    try:
        number = given if isinstance(given, Fraction) else read_decimal(str(given))
    except ValueError:
        raise InputError(f"{option}: expected a number {limit}, got {given!r}") from None
    if not 0 < number < (below or Decimal("1e300")) or float(number) == 0:
        raise InputError(f"{option}: expected a number {limit}, got {given!s}")
    return number
