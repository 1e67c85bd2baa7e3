"""Targets for private labels and limits on ε: their numbers, checked, and in words."""

import math
from bisect import bisect_right
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from labeldp_verify.analysis import exp_upper
from labeldp_verify.reading.figures import ROWS, Usefulness
from labeldp_verify.reading.numerals import read_decimal

from labeldp_compile.errors import InputError
from labeldp_compile.spec import Spec
from labeldp_compile.spec.model import PrivatePrior
from labeldp_compile.sweeps.ladder import LAST, epsilon_at

Amount = float | str | Decimal | Fraction
MAX_ROWS = 10**15
TARGETS = {
    name.replace("_", "-"): name
    for name in ("mean_error", "share_error", "label_error", "max_belief")
}
"""Attributes of ``Asked`` by the names that people write."""


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
        """What is measured.

        ``mean_error`` (numbers) and ``share_error`` (the least certain category) are the 95% margin
        of error for all labels in the range. ``label_error`` is the error of one private label
        under the prior: root mean square (numbers), or Pr[private label ≠ true label].
        """
        if self.rows is None:
            return "label_error"
        return "share_error" if self.categories else "mean_error"

    def figure(self, found: Usefulness, label_error: float) -> float | None:
        """The figure of a randomizer; None if there is no estimate."""
        return label_error if self.rows is None else found.margin(self.rows)

    @property
    def name(self) -> str:
        """What is measured, as the heading of a column."""
        if self.rows is not None:
            return f"± of a {'share' if self.categories else 'mean'} of {self.rows:,}"
        return "changed labels" if self.categories else "error of a label"

    def in_words(self) -> str:
        """The whole demand."""
        if self.rows is not None:
            what = "shares" if self.categories else "a mean"
            what = f"{what} over {self.rows:,} rows with a 95% margin of error"
            return f"{what} of at most ±{self.most:g}, for all labels in the range"
        under = "assuming that prior"
        if self.categories:
            what = "a private label other than the true one with probability"
            return f"{what} at most {self.most:g}, {under}"
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
        return f"an observer who was {before} sure of a label becomes at most {after} sure"


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


@dataclass(frozen=True)
class Asked:
    """What is asked, as it was typed; None for what is not asked.

    Attributes:
        mean_error, share_error: 95% margin of error of a mean (numbers), or of each share.
        label_error: error of one private label.
        rows: of the mean or the shares; by default those that a private prior states.
        max_belief: ``B@S``, or the two numbers.
    """

    mean_error: Amount | None = None
    share_error: Amount | None = None
    label_error: Amount | None = None
    rows: int | None = None
    max_belief: str | tuple[Amount, Amount] | None = None


def read_wanted(spec: Spec, asked: Asked) -> Wanted:
    """What is asked, as numbers. Raises InputError if it has no meaning for the spec."""
    label_error, rows, max_belief = asked.label_error, asked.rows, asked.max_belief
    categories = spec.has_classes
    wrong, right = ("mean_error", "share_error") if categories else ("share_error", "mean_error")
    if getattr(asked, wrong) is not None:
        kind = "numbers, but with categories or loss: zero_one labels are classes"
        if not categories:
            kind = "classes: categories, or labels with loss: zero_one"
        raise InputError(
            f"{_written(wrong)} is for {kind}; for {spec.name}, use {_written(right)} or "
            "label-error"
        )
    estimated: Amount | None = getattr(asked, right)
    if estimated is None and label_error is None and max_belief is None:
        raise InputError(
            f"give at least one target: {_written(right)}=E and rows, label-error=E, or "
            "max-belief=BELIEF@SHARE"
        )
    if rows is not None and not 1 <= rows <= MAX_ROWS:
        raise InputError(f"--rows: expected 1 … {MAX_ROWS:,}, got {rows:,}")
    if rows is not None and estimated is None and label_error is not None:
        raise InputError(f"--rows needs {_written(right)}: a single label has no rows")
    if rows is None and isinstance(spec.prior, PrivatePrior):
        rows = spec.prior.rows
    targets = []
    if estimated is not None:
        if rows is None:
            raise InputError(f"{_written(right)} needs --rows N, the number of rows")
        most = _amount(estimated, _written(right), below=1 if categories else None)
        targets.append(Demand(float(most), rows, categories))
    if label_error is not None:
        most = _amount(label_error, "label-error", below=1 if categories else None)
        targets.append(Demand(float(most), None, categories))
    belief = None if max_belief is None else _read_belief(max_belief)
    shown = (Demand(math.inf, number, categories) for number in (rows or ROWS, None))
    return Wanted(tuple(targets), belief, tuple(targets or shown))


def _read_belief(text: str | tuple[Amount, Amount]) -> Belief:
    parts = text.split("@") if isinstance(text, str) else list(text)
    if len(parts) != 2:
        raise InputError(f"max-belief: expected BELIEF@SHARE, as in 0.2@0.01, got {text!r}")
    most, share = (Fraction(_amount(part, "max-belief", below=1)) for part in parts)
    if most <= share:
        raise InputError(
            f"max-belief: the belief before is {float(share):g} already; give more than "
            f"{float(share):g} before the @"
        )
    return Belief(most, share)


def _amount(given: Amount, option: str, *, below: int | None) -> Decimal | Fraction:
    """A number above 0, and below a limit if there is one."""
    limit = "above 0" if below is None else f"between 0 and {below}"
    try:
        number = given if isinstance(given, Fraction) else read_decimal(str(given))
    except ValueError:
        raise InputError(f"{option}: expected a number {limit}, got {given!r}") from None
    if not 0 < number < (below or Decimal("1e300")) or float(number) == 0:
        raise InputError(f"{option}: expected a number {limit}, got {given!s}")
    return number


def _written(kind: str) -> str:
    return kind.replace("_", "-")
