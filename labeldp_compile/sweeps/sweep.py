"""A sweep: all its points, and its JSON document."""

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any

from labeldp_verify.reading.numerals import read_decimal

from labeldp_compile.errors import InputError
from labeldp_compile.ledger.prior_account import account_of
from labeldp_compile.mechanisms.mechanism import Mechanism
from labeldp_compile.observer import QUIET, Observer, time_left
from labeldp_compile.pipeline import INSECURE
from labeldp_compile.prior import estimate_prior
from labeldp_compile.prior.split import PriorPlan
from labeldp_compile.spec import Spec, load_spec
from labeldp_compile.spec.model import MIN_EPSILON
from labeldp_compile.sweeps.candidates import find_candidates, frontier_candidates
from labeldp_compile.sweeps.measure import Missing, Point, measure

FORMAT_VERSION = "1.0"
DEFAULT_EPSILONS = ("0.1", "0.5", "1", "2", "4", "8")
MAX_EPSILON = 60


@dataclass(frozen=True)
class Sweep:
    """The results of a sweep.

    Attributes:
        spec: all points share its domain, loss and prior.
        spent: ε₁ of the prior, which all points share.
        taken: the kind of that prior: uniform if a private one is not worth its ε.
        points: in the order of ε, then of mechanisms.
        missing: points that cannot be compiled.
        frontier: a list for each ε, from unbiased to RR-on-Bins; empty if not asked for.
        left_out: (title, reason) of mechanisms that do not fit the domain or the loss.
        insecure: a note if the numbers come from a test seed, or None.
        of_person: ε of a person by that of a label, if the spec's unit is a person.
    """

    spec: Spec
    spent: Fraction
    taken: str
    points: list[Point]
    missing: list[Missing]
    frontier: list[list[Point]]
    left_out: list[tuple[str, str]]
    insecure: str | None = None
    of_person: Mapping[float, float] = field(default_factory=dict)

    def in_words(self, epsilon: float) -> str:
        """ε of a label, and beside it that of a person."""
        label = f"ε = {epsilon:g}"
        if epsilon not in self.of_person:
            return label
        labels = self.spec.privacy.labels_of_unit
        return f"{label} per label, {self.of_person[epsilon]:g} per person ({labels:,} labels)"

    def best(self, epsilon: float) -> Point | None:
        """The best point for the spec's goal at this ε; the first if several are equal.

        None if there is no point, or if all are degenerate, or biased where means count.
        """
        goal = self.spec.goal
        here = [p for p in self.points if p.epsilon == epsilon and p.figure(goal) is not None]
        useful = (p for p in here if not any(p.rank(self.spec)[:2]))
        return min(useful, key=lambda point: point.rank(self.spec), default=None)

    @property
    def prior_in_words(self) -> str:
        """The kind of the spec's prior, and the kind that was used if that is another."""
        kind = self.spec.prior.kind
        return kind if self.taken == kind else f"{kind}, treated as {self.taken}: nothing is spent"

    def epsilons(self) -> list[float]:
        """Every ε of the sweep, increasing."""
        return sorted({p.epsilon for p in self.points} | {p.epsilon for p in self.missing})

    def mechanisms(self) -> list[str]:
        """Titles of the mechanisms with a point, in the order of the sweep."""
        return list(dict.fromkeys(point.mechanism for point in self.points))

    def to_json(self) -> dict[str, Any]:
        """``{format_version, name, …, points, missing, …}``, keys in this order."""
        return {
            "format_version": FORMAT_VERSION,
            "name": self.spec.name,
            "labels": self.spec.domain.size,
            "loss": self.spec.loss,
            "goal": self.spec.goal,
            "prior": self.spec.prior.kind,
            "prior_taken": self.taken,
            "epsilon_prior_spent": float(self.spent),
            "person": self._person(),
            "insecure": self.insecure,
            "points": [
                {
                    **asdict(point),
                    "epsilon_person": self.of_person.get(point.epsilon),
                    "degenerate": point.is_degenerate(self.spec.goal),
                    "best": point is self.best(point.epsilon),
                }
                for point in self.points
            ],
            "missing": [asdict(point) for point in self.missing],
            "left_out": [
                {"mechanism": mechanism, "reason": reason} for mechanism, reason in self.left_out
            ],
            "bias_frontier": [[asdict(point) for point in line] for line in self.frontier],
        }

    def _person(self) -> dict[str, Any] | None:
        person = self.spec.privacy.person
        if person is None:
            return None
        spent = float(person.labels * self.spent)
        return {
            "column": person.column,
            "labels_per_person": person.labels,
            "epsilon_prior_spent": spent,
        }


def exact_epsilons(numbers: Iterable[float | str | Decimal | Fraction]) -> list[Fraction]:
    """Exact values of ε, read as decimals, increasing and distinct. Raises InputError."""
    totals = set()
    for number in numbers:
        try:
            exact = number if isinstance(number, Fraction) else read_decimal(str(number))
        except ValueError:
            raise InputError(f"expected numbers, got {number!r}") from None
        if not MIN_EPSILON <= exact <= MAX_EPSILON:
            raise InputError(f"ε = {number} is outside {MIN_EPSILON} … {MAX_EPSILON}")
        totals.add(Fraction(exact))
    if not totals:
        raise InputError("expected at least one ε, got none")
    return sorted(totals)


def sweep_spec(
    path: Path,
    epsilons: Sequence[Fraction] | None = None,
    mechanisms: Sequence[str] | None = None,
    *,
    bias_frontier: bool = False,
    spend_prior: bool = False,
    test_seed: int | None = None,
    observer: Observer = QUIET,
) -> Sweep:
    """Measure every mechanism at every ε, by default from 0.1 to 8 and at the spec's own.

    The ``epsilons`` are of the spec's unit: with ``unit: person`` each label has its part of them.

    ``bias_frontier`` adds the frontier at the spec's ε, or at the ``epsilons`` if there are any.
    All points share the prior, at the ε₁ that the spec declares. A private prior is estimated once,
    and only with ``spend_prior``. One that the ledger recalls spends nothing; a new one is left in
    the ledger for ``compile``. The observer gets a step before each point. Raises InputError for
    what the user can fix.
    """
    spec, source = load_spec(path)
    totals = epsilons
    if totals is None:
        totals = exact_epsilons([*DEFAULT_EPSILONS, spec.privacy.epsilon])
    unit, candidates = spec.privacy, find_candidates(spec, mechanisms)
    if not candidates.chosen:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in candidates.left_out)
        raise InputError(f"there is nothing to compare: {reasons}")
    line = [(epsilon, mechanism) for epsilon in totals for mechanism in candidates.chosen]
    asked = list(line)
    if bias_frontier:
        along = totals if epsilons else [Fraction(spec.privacy.epsilon)]
        asked += [(epsilon, point) for epsilon in along for point in frontier_candidates(spec)]
    digest = hashlib.sha256(source).hexdigest()
    insecure = None if test_seed is None else INSECURE

    def spending(plan: PriorPlan, _: int | None) -> None:
        if not plan.epsilon_prior:
            return
        cost = f"ε₁ = {float(unit.labels_of_unit * plan.epsilon_prior):g}"
        if not spend_prior:
            once = "once: compile reuses it" if spec.privacy.ledger else "in addition to compile"
            raise InputError(
                f"{spec.name}: the prior is private, and estimating it spends {cost} {once}. Say "
                "--spend-prior to estimate it once for all points, or use a prior that spends "
                "nothing: prior: {kind: uniform} or {kind: public}"
            )
        if unit.of_label(totals[-1]) <= plan.epsilon_prior:
            raise InputError(
                f"the prior alone spends {cost}, which leaves nothing for a label at any point: "
                "give a larger --epsilon"
            )
        observer.say(f"spending {cost} on the prior, once for all points")

    prior = estimate_prior(
        spec,
        path.parent,
        test_seed=test_seed,
        observer=Observer(rows=observer.rows, spending=spending),
        account=account_of(spec, path.parent, digest, "sweep", observer),
    )

    def at(number: int, epsilon: Fraction, mechanism: Mechanism) -> Point | Missing:
        title = mechanism.title
        wait = time_left(began, number - 1, len(asked) - number + 1)
        observer.step(f"{number} of {len(asked)}: ε = {float(epsilon):g}, {title}; {wait}")
        label = unit.of_label(epsilon)
        left = label - prior.epsilon_prior
        if left <= 0:
            spent = float(prior.epsilon_prior)
            reason = f"ε₁ = {spent:g} of the prior leaves nothing for a label"
            return Missing(title, float(label), reason)
        return measure(spec, mechanism, replace(prior, epsilon_label=left), digest, insecure)

    began = time.monotonic()
    found = [at(number, *pair) for number, pair in enumerate(asked, 1)]
    biased = [point for point in found[len(line) :] if isinstance(point, Point)]
    return Sweep(
        spec=spec,
        spent=prior.epsilon_prior,
        taken=prior.statement["kind"],
        points=[point for point in found[: len(line)] if isinstance(point, Point)],
        missing=[point for point in found if isinstance(point, Missing)],
        frontier=[list(points) for _, points in groupby(biased, key=lambda point: point.epsilon)],
        left_out=candidates.left_out,
        insecure=insecure,
        of_person={}
        if unit.person is None
        else {float(unit.of_label(epsilon)): float(epsilon) for epsilon in totals},
    )
