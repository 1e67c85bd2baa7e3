"""How useful private labels will be, before the prior is known: computed for a uniform one."""

from dataclasses import dataclass

from labeldp_verify.artifact import assess
from labeldp_verify.forms import (
    AdditiveRandomizer,
    CategoricalDomain,
    Domain,
    Randomizer,
    are_numbers,
)
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
    """The figures and their prior: ``uniform``, or that of the spec if it needs no data.

    ``span`` has the lowest and the highest output, where outputs are numbers.
    """

    prior: str
    figures: Usefulness
    shortcomings: list[Shortcoming]
    span: tuple[float, float] | None = None

    def times_wider(self, domain: Domain) -> float | None:
        """How many times as wide as the range of labels the span of the outputs is."""
        if self.span is None or isinstance(domain, CategoricalDomain):
            return None
        low, high = self.span
        return (high - low) / (domain.max - domain.min)


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
    prior = "uniform" if known is None else spec.prior.kind
    span = _span(domain, randomizer) if are_numbers(domain, randomizer) else None
    return ExpectedUse(prior, figures, found, span)


def _span(domain: Domain, randomizer: Randomizer) -> tuple[float, float]:
    if isinstance(randomizer, AdditiveRandomizer):
        ends = randomizer.low, randomizer.high
        low, high = (end * randomizer.unit + randomizer.origin for end in ends)
        return low, high
    return float(min(randomizer.values)), float(max(randomizer.values))
