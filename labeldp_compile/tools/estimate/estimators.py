"""What the outputs of one table estimate: shares and mean of the label and of its columns.

A share of a column is the sum of the shares of all combinations with that label. It is estimated by
the sum of their estimators, which is one linear functional with its own interval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from labeldp_verify.analysis import project_to_simplex
from labeldp_verify.artifact import Table
from labeldp_verify.forms import CategoricalDomain, JointDomain

from labeldp_compile.tools.estimate.intervals import ALONE, Confidence, Estimates, Target
from labeldp_compile.tools.estimate.inversion import (
    Inverse,
    LabelClasses,
    NotEstimableError,
    invert,
    label_classes,
)
from labeldp_compile.tools.estimate.linear import LinearEstimators
from labeldp_compile.tools.estimate.private_counts import OutputCounts
from labeldp_compile.tools.estimate.unbiased_mean import UnbiasedMean, values_of

Estimator = LinearEstimators | UnbiasedMean
# mean, histogram or quantiles (Pr[class ≤ j]); of the label (None), or of one column of several
Key = tuple[str, str | None]
HISTOGRAM: Key = ("histogram", None)
QUANTILES: Key = ("quantiles", None)
_UNBIASED = 1e-9  # of the labels' range


@dataclass
class TableEstimators:
    """The estimators of one table.

    Attributes:
        classes: of labels that it distinguishes.
        found: the estimators of the label, and of each column if there are several.
        refused: what it does not support: mean, histogram, quantiles → the reason.
    """

    classes: LabelClasses
    found: dict[Key, Estimator] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table) -> TableEstimators:
        """The estimators that the table supports. Raises NotEstimableError if there are none."""
        self, inverse = cls(label_classes(table)), None
        try:
            inverse = invert(table, self.classes)
        except NotEstimableError as error:
            self.refused = dict.fromkeys(("histogram", "quantiles"), str(error))
        else:
            self.found[HISTOGRAM] = LinearEstimators.shares(inverse)
        self._try("mean", lambda: mean_estimator(table, self.classes, inverse))
        if inverse is not None:
            whole = inverse
            self._try("quantiles", lambda: _cumulative(table, self.classes, whole))
            self._add_columns(table, inverse)
        require_any(self.refused)
        return self

    def __call__(
        self, counts: OutputCounts, target: Target, confidence: Confidence = ALONE
    ) -> dict[Key, Estimates]:
        """The estimates of some rows."""
        shares = np.empty(0)  # a table that cannot be inverted has none
        histogram = self.found.get(HISTOGRAM)
        if isinstance(histogram, LinearEstimators):
            shares = project_to_simplex(histogram.estimate(counts))
        return {key: each(counts, target, shares, confidence) for key, each in self.found.items()}

    def log_chances(self, counts: OutputCounts) -> list[float]:
        """Logs of bounds on the probability of estimates this far outside the possible range."""
        return [each.log_chance(counts) for key, each in self.found.items() if key != QUANTILES]

    def _try(self, what: str, make: Callable[[], Estimator]) -> None:
        try:
            self.found[what, None] = make()
        except NotEstimableError as error:
            self.refused[what] = str(error)

    def _add_columns(self, table: Table, inverse: Inverse) -> None:
        """Add the estimators of each column, unless different combinations have equal outputs."""
        domain = table.domain
        if not isinstance(domain, JointDomain) or not self.classes.are_single:
            return
        columns = zip(
            table.certificate.label_columns,
            domain.parts,
            domain.places_of(np.arange(domain.size)),
            strict=True,
        )
        for name, part, at in columns:
            self.found["histogram", name] = LinearEstimators.shares(inverse, np.eye(part.size)[at])
            if not isinstance(part, CategoricalDomain):
                numbers = np.array([float(y) for y in part.labels()])
                self.found["mean", name] = LinearEstimators.mean(inverse, numbers[at])


def require_any(refused: dict[str, str]) -> None:
    """Raise NotEstimableError if neither means nor histograms can be estimated."""
    if {"mean", "histogram"} <= set(refused):
        raise NotEstimableError(f"no histogram: {refused['histogram']}; no mean: {refused['mean']}")


def mean_estimator(table: Table, classes: LabelClasses, inverse: Inverse | None) -> Estimator:
    """The estimator of the mean of the labels. Raises NotEstimableError."""
    domain = table.domain
    if isinstance(domain, CategoricalDomain):
        raise NotEstimableError(f"{_in_words(domain)} have none")
    bias = table.certificate.utility.largest_bias  # None where outputs are no numbers
    unbiased = bias is not None and bias <= _UNBIASED * float(domain.max - domain.min)
    if unbiased and inverse is None:
        return UnbiasedMean.of(table, classes)
    if not classes.are_single:
        raise NotEstimableError(
            f"the artifact is biased and distinguishes only {classes.count:,} classes of its "
            f"{len(classes.of_label):,} labels: labels of one class have different values but the "
            "same outputs"
        )
    if inverse is None:
        raise NotEstimableError("the artifact is biased, and its table cannot be inverted")
    r = table.randomizer
    outputs = values_of(r)(np.arange(r.outputs)) if unbiased else None
    return LinearEstimators.mean(inverse, np.array([float(y) for y in domain.labels()]), outputs)


def _cumulative(table: Table, classes: LabelClasses, inverse: Inverse) -> LinearEstimators:
    """The estimators of Pr[class ≤ j], j = 0 … c − 2, for quantiles. Raises NotEstimableError."""
    if isinstance(table.domain, CategoricalDomain):
        raise NotEstimableError(f"{_in_words(table.domain)} have none")
    if not classes.are_intervals:
        raise NotEstimableError("labels that no output distinguishes are not neighbours")
    up_to = np.triu(np.ones((classes.count,) * 2))[:, :-1]
    return LinearEstimators.shares(inverse, up_to, each_tail=True)


def _in_words(domain: CategoricalDomain) -> str:
    """What labels without an order are called."""
    if isinstance(domain, JointDomain):
        return "combinations of several columns"
    return "categories"
