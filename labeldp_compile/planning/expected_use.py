"""How useful private labels will be, said before a private prior is known.

The figures are those of a rehearsal. If the prior cannot change the randomizer, or is stated in the
spec, compile writes exactly this randomizer, so every bound of it holds for the file (``settled``).
Otherwise no bound is known that is worth printing: an unbiased randomizer may have outputs far
beyond its labels, and one that favours likely labels may never answer with a rare one. Then the
figures are estimates, of labels that are spread evenly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from labeldp_verify.artifact import assess, randomizer_bias
from labeldp_verify.forms import (
    AdditiveRandomizer,
    CategoricalDomain,
    Domain,
    Randomizer,
    are_numbers,
)
from labeldp_verify.reading.figures import ROWS, Usefulness
from labeldp_verify.reading.shortcomings import Shortcoming
from labeldp_verify.reading.usefulness import SHARES, most_belief

from labeldp_compile.errors import InputError
from labeldp_compile.planning.budget import EpsilonBudget, is_unpaid
from labeldp_compile.tables import problem_of

if TYPE_CHECKING:
    from labeldp_compile.planning.forecast import Forecast
    from labeldp_compile.spec import Spec

_UNKNOWN = 0.5  # a margin of error of a share that says nothing
MAX_SECONDS = 3.0  # of a solve that a plan waits for
MAX_LABELS = 1_000


@dataclass(frozen=True)
class ExpectedUse:
    """The figures of a rehearsal, and whether they will be those of the compiled file.

    Attributes:
        prior: of the rehearsal: that of the spec if it is stated there, else ``uniform``.
        settled: whether compile writes exactly this randomizer, for every prior that it may count.
        figures, shortcomings: of this randomizer.
        outputs: how many there are; ``span`` has the lowest and the highest, if they are numbers.
        shares: whether shares of labels can be estimated: over 1,000 rows, or all if there are
            more, to less than ±50%; None if the prior decides it.
        bias: upper bound of |E[output | label] − label| in the range, if outputs are numbers.
    """

    prior: str
    settled: bool
    figures: Usefulness
    shortcomings: list[Shortcoming]
    outputs: int
    span: tuple[float, float] | None = None
    bias: float | None = None
    shares: bool | None = None

    def times_wider(self, domain: Domain) -> float | None:
        """How many times as wide as the range of labels the span of the outputs is."""
        if self.span is None or isinstance(domain, CategoricalDomain):
            return None
        low, high = self.span
        return (high - low) / (domain.max - domain.min)

    def lines(self, rows: int | None) -> list[tuple[str, str]]:
        """(name, text) of each line for people."""
        if self.settled:
            return self.figures.figures(rows, self.prior)
        return self.figures.estimates(rows)

    def to_json(self, rows: int | None) -> dict[str, Any]:
        """As ``Usefulness``; null for what is a bound of the rehearsal only."""
        facts = self.figures.to_json(rows, self.prior) | {"settled": self.settled}
        if not self.settled:
            facts["more_labels"] = None
            for key in ("deviation", "distance", "kept"):
                if facts[key] is not None:
                    facts[key] |= {"least": None, "most": None}
            for margin in facts["margins"]:
                margin["all_labels"] = None
        return facts


def expected_use(spec: Spec, budget: EpsilonBudget, forecast: Forecast) -> ExpectedUse | None:
    """The figures of a spec before it is compiled; None if the solve takes too long."""
    domain = spec.domain
    if forecast.seconds.least > MAX_SECONDS or domain.size > MAX_LABELS:
        return None
    known = spec.known_weights
    # Tables of groups share a lookup, so their integers differ from those of one table.
    settled = budget.groups is None and (
        known is not None or is_unpaid(spec, budget) or not spec.named_mechanism.follows_prior
    )
    weights = [1] * domain.size if known is None else list(known)
    problem = problem_of(spec, domain, weights, budget.label, budget.rows)
    try:
        randomizer = spec.named_mechanism.build(problem).randomizer
    except (ValueError, ArithmeticError, InputError):
        return None  # this prior is not the one that compile will have
    figures, shortcomings = assess(
        domain, randomizer, weights, budget.label, classes=spec.has_classes
    )
    if not settled:  # another randomizer may use all of ε
        ratio = math.exp(budget.label)
        belief = tuple((share, most_belief(ratio, share)) for share in SHARES)
        figures = replace(figures, belief=belief)
    span = bias = None
    if are_numbers(domain, randomizer):
        span, bias = _span(randomizer), randomizer_bias(domain, randomizer)
    shares = None
    if settled:
        margin = figures.margin(max(ROWS, budget.rows or 0))
        if not spec.has_classes:
            of_shares, _ = assess(domain, randomizer, weights, budget.label, classes=True)
            margin = of_shares.margin(max(ROWS, budget.rows or 0))
        shares = margin is not None and margin < _UNKNOWN
    prior = "uniform" if known is None else spec.prior.kind
    return ExpectedUse(
        prior, settled, figures, shortcomings, randomizer.outputs, span, bias, shares
    )


def _span(randomizer: Randomizer) -> tuple[float, float]:
    if isinstance(randomizer, AdditiveRandomizer):
        ends = randomizer.low, randomizer.high
        low, high = (end * randomizer.unit + randomizer.origin for end in ends)
        return low, high
    return float(min(randomizer.values)), float(max(randomizer.values))
