"""How useful private labels will be, before the prior is known: computed for a uniform one."""

from __future__ import annotations

from dataclasses import dataclass

from labeldp_verify.artifact import assess
from labeldp_verify.reading.figures import Usefulness
from labeldp_verify.reading.shortcomings import Shortcoming

from labeldp_compile.errors import InputError
from labeldp_compile.planning.budget import EpsilonBudget
from labeldp_compile.planning.forecast import Forecast
from labeldp_compile.spec import Spec
from labeldp_compile.tables import problem_of

MAX_SECONDS = 3.0  # of a solve that a plan waits for
MAX_LABELS = 1_000


@dataclass(frozen=True)
class ExpectedUse:
    """The figures and their prior: ``uniform``, or that of the spec if it needs no data."""

    prior: str
    figures: Usefulness
    shortcomings: list[Shortcoming]


def expected_use(spec: Spec, budget: EpsilonBudget, forecast: Forecast) -> ExpectedUse | None:
    """What compile will find, as far as it can be known; None if the solve takes too long."""
    domain = spec.domain
    if forecast.seconds.least > MAX_SECONDS or domain.size > MAX_LABELS:
        return None
    known = spec.known_weights
    weights = [1] * domain.size if known is None else list(known)
    problem = problem_of(spec, domain, weights, budget.label, budget.rows)
    try:
        randomizer = spec.named_mechanism.build(problem).randomizer
    except (ValueError, ArithmeticError, InputError):
        return None  # this prior is not the one that compile will have
    figures, found = assess(domain, randomizer, weights, budget.label, classes=spec.has_classes)
    return ExpectedUse("uniform" if known is None else spec.prior.kind, figures, found)
