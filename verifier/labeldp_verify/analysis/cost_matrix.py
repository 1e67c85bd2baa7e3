"""A loss of one's own for labels that need not be numbers: the cost of each output for each label.

Outputs are labels, too. So the bound by dual values (``lower_bound.py`` has its proof) takes F at k
places instead of the whole real line: a randomizer that answers with anything else has no costs.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any

import numpy as np

from labeldp_verify.analysis.analysis import Analysis, Labels, Losses, Rows
from labeldp_verify.analysis.exact_loss import ExactLoss
from labeldp_verify.analysis.lower_bound import Duals
from labeldp_verify.analysis.probabilities import exact_rows
from labeldp_verify.budget import charge
from labeldp_verify.forms import AdditiveRandomizer
from labeldp_verify.forms.exact_numbers import ExactNumbers, Whole, dot, whole
from labeldp_verify.strict import canonical_json

MAX_COST_LABELS = 1_000  # of which a file holds a million costs
MAX_COST, MAX_COST_UNIT = 10**12, 10**12
_PAIR = 2e-6  # seconds


def require_few_labels(k: int) -> None:
    """Raise ValueError, in words for a spec, if there are too few or too many for costs."""
    if not 2 <= k <= MAX_COST_LABELS:
        raise ValueError(
            f"costs are for 2 to {MAX_COST_LABELS:,} labels, and there are {k:,}: join labels, or "
            "use loss: zero_one"
        )


@dataclass(frozen=True)
class Costs:
    """Costs of labels [k]: ``rows[y][o]``/``unit`` of output o for label y, in lowest terms.

    These are the fields of a certificate, too. ``rows`` [k][k] are whole numbers from 0 on.
    """

    labels: list[Any]
    unit: int
    rows: list[Any]


class CostMatrix(str):
    """The name of such a loss, ``matrix(DIGEST)``, which has its costs with it."""

    costs: Costs

    def __new__(cls, costs: Costs) -> CostMatrix:
        """Raises ValueError, in words for a spec, unless it is a loss."""
        k, numbers = len(costs.labels), []
        require_few_labels(k)
        if {*map(type, costs.labels)} not in ({str}, {int}) or len({*costs.labels}) != k:
            raise ValueError("labels must be different, and all text or all integers")
        if len(costs.rows) == k and all(type(r) is list and len(r) == k for r in costs.rows):
            numbers = [cost for row in costs.rows for cost in row]
        if not numbers or not all(type(n) is int for n in (costs.unit, *numbers)):
            raise ValueError("there must be one whole number for each pair of labels")
        if not 1 <= costs.unit <= MAX_COST_UNIT or gcd(costs.unit, *numbers) != 1:
            raise ValueError("costs must be in lowest terms, with at most 12 decimals")
        if min(numbers) < 0 or max(numbers) > MAX_COST * costs.unit:
            raise ValueError("costs must be at least 0, and at most 10^12")
        if all(row == costs.rows[0] for row in costs.rows):
            raise ValueError("all labels have the same costs, so the label makes no difference")
        digest = hashlib.sha256(canonical_json(vars(costs)).encode()).hexdigest()
        name = super().__new__(cls, f"matrix({digest[:32]})")
        name.costs = costs
        return name

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Of a copy."""
        return (self.costs,)

    @property
    def record(self) -> ExactLoss:
        """The record of this loss."""
        each = len(self.costs.labels) * _PAIR
        return ExactLoss(
            self, self._expected, each, self._holds, each, needs_numbers=False, of_columns=False
        )

    @cached_property
    def _whole(self) -> Whole:
        """[k, k] the whole numbers."""
        return np.array(self.costs.rows, dtype=object)

    def _expected(self, analysis: Analysis[Any], rows: Rows, labels: Labels) -> Losses:
        """Σ Pr[o | y]·cost, over the outputs. Raises ValueError if one of them is no label."""
        r, costs = analysis.randomizer, self._whole
        place = {label: i for i, label in enumerate(self.costs.labels)}
        values = () if isinstance(r, AdditiveRandomizer) else r.values
        if not values or not all(value in place for value in values):
            raise ValueError("an output is no label, so it has no cost")
        outputs = [place[value] for value in values]
        pairs = len(rows) * len(outputs)
        charge(f"the costs of {pairs:,} pairs of label and output", seconds=pairs * _PAIR)
        counts = zip(labels, exact_rows(r, rows.tolist()), strict=True)
        found = [dot(count, costs[place[label], outputs]) for label, count in counts]
        return (ExactNumbers(whole(found), self.costs.unit * r.words),) * 2

    def _holds(self, duals: Duals) -> bool:
        """Whether F ≥ 0 at every label, with h_y(o) = p_y·cost − α_y."""
        weights, total = whole(duals.weights) * duals.alpha.unit, sum(duals.weights)
        one, extra = duals.growth.denominator, duals.growth.numerator
        level = duals.alpha.numerators * (total * self.costs.unit)
        charge(f"a bound for {len(level):,} labels", seconds=len(level) ** 2 * _PAIR)
        for column in self._whole.T:
            h = weights * column - level
            if one * h.sum() + extra * np.minimum(h, 0).sum() < 0:
                return False
        return True
