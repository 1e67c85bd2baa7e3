"""What private labels will be good for, before the prior is known: found out for a uniform one."""

from __future__ import annotations

from dataclasses import dataclass

from labeldp_verify.forms import Randomizer
from labeldp_verify.shortcomings import Shortcoming
from labeldp_verify.usefulness import Usefulness
from labeldp_verify.verified import assess

from labeldp_compile.assembly import problem_of
from labeldp_compile.errors import InputError
from labeldp_compile.planning.budget import Budget
from labeldp_compile.planning.forecast import Forecast
from labeldp_compile.sizes import known_weights
from labeldp_compile.spec import Spec

MAX_SECONDS = 3.0  # of a solve that a plan waits for
MAX_LABELS = 1_000


@dataclass(frozen=True)
class ExpectedUse:
    """The figures, and under which prior: ``uniform``, or the spec's own if it needs no data.

    ``randomizer`` is the one that was built for it.
    """

    prior: str
    figures: Usefulness
    shortcomings: list[Shortcoming]
    randomizer: Randomizer


def expected_use(spec: Spec, budget: Budget, forecast: Forecast) -> ExpectedUse | None:
    """What compile will find, as far as that can be told; None where the solve takes too long."""
    domain = spec.domain
    if forecast.seconds.least > MAX_SECONDS or domain.size > MAX_LABELS:
        return None
    known = known_weights(spec)
    weights = [1] * domain.size if known is None else list(known)
    problem = problem_of(spec, domain, weights, budget.label, budget.rows)
    try:
        randomizer = spec.named_mechanism.build(problem).randomizer
    except (ValueError, ArithmeticError, InputError):
        return None  # this prior is not the one that compile will have
    figures, found = assess(domain, randomizer, weights, budget.label, classes=spec.has_classes)
    return ExpectedUse("uniform" if known is None else spec.prior.kind, figures, found, randomizer)
