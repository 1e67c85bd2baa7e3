"""A sweep: every mechanism at several ε, as a table and as a JSON document."""

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any

from labeldp_verify.printable import at_most, up_to
from labeldp_verify.strict import read_decimal
from labeldp_verify.usefulness.figures import PRIORS, ROWS
from labeldp_verify.usefulness.shortcomings import relevant

from labeldp_compile.build.pipeline import INSECURE
from labeldp_compile.errors import InputError
from labeldp_compile.ledger.prior_account import account_of
from labeldp_compile.mechanisms.mechanism import Mechanism
from labeldp_compile.observer import QUIET, Observer, time_left
from labeldp_compile.page.document import plain
from labeldp_compile.prior.obtain import estimate_prior
from labeldp_compile.prior.plan import PriorPlan
from labeldp_compile.spec import Spec, load_spec
from labeldp_compile.spec.model import MIN_EPSILON
from labeldp_compile.sweeps.points import (
    Missing,
    Point,
    find_candidates,
    frontier_candidates,
    measure,
)

FORMAT_VERSION = "1.0"
DEFAULT_EPSILONS = ("0.1", "0.5", "1", "2", "4", "8")
MAX_EPSILON = 60
BEST, UNBIASED = "◄", "0"
FRONTIER_HEADER = ["bias budget", "noisy label loss", "rms bias", "largest bias"]
# Shortcomings by their kind: the end of a row has no room for a sentence.
_IN_SHORT = {
    "one_output": "the same output for every label",
    "never_an_output": "some labels are never an output",
    "unused_epsilon": "uses less than half of ε",
    "like_a_constant": "hardly better than a constant",
    "told_apart_from_none": "cannot tell some labels apart",
    "not_estimable": "biased, and no estimate can undo it",
    "biased": "biased",
}


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

    def by_epsilon(self) -> list[tuple[float, list[Point]]]:
        """The points of each ε: the best for the goal first, biased and degenerate ones last."""
        ordered = sorted(self.points, key=lambda point: point.rank(self.spec))
        return [(e, [p for p in ordered if p.epsilon == e]) for e in self.epsilons()]

    def missing_by_reason(self) -> list[tuple[float, str, list[str]]]:
        """(ε, reason, mechanisms) for the points that cannot be compiled."""
        together: dict[tuple[float, str], list[str]] = {}
        for point in self.missing:
            together.setdefault((point.epsilon, point.reason), []).append(point.mechanism)
        return [(epsilon, reason, names) for (epsilon, reason), names in together.items()]

    @property
    def estimated(self) -> str:
        """The estimate that the margin of error is of: a share (classes) or a mean (numbers)."""
        return "share" if self.spec.has_classes else "mean"

    @property
    def error_column(self) -> str:
        """The heading of ``Point.margin_under_prior``."""
        return f"± of a {self.estimated} of {ROWS:,}"

    @property
    def columns(self) -> dict[str, Callable[[Point], str]]:
        """The columns of the table and how to write a cell; the goal's figure comes first.

        Categories have no bias. The bias of an unbiased mechanism is shown as 0.
        """
        figures: list[tuple[str, Callable[[Point], str]]] = [
            (self.error_column, lambda p: _at_most(p.margin_under_prior)),
            ("noisy label loss", lambda p: plain(p.loss, 6)),
        ]
        if self.spec.goal == "labels":
            figures.reverse()
        if self._numeric:
            figures += [
                ("largest bias", lambda p: _bias(p, p.bias_in_range)),
                ("rms bias", lambda p: _bias(p, p.rms_bias)),
            ]
        return {
            "mechanism": lambda p: p.mechanism,
            **dict(figures),
            "outputs": lambda p: f"{p.outputs:,}",
            "ε of a label ≤": lambda p: up_to(p.epsilon_label_bound),
            "bytes": lambda p: f"{p.bytes:,}",
            "seconds": lambda p: f"{p.seconds:.2f}",
        }

    def cells(self, point: Point) -> list[str]:
        """One row of the table."""
        return [show(point) for show in self.columns.values()]

    def remark(self, point: Point) -> str:
        """Why a point is not useful for the goal, in a few words; empty if it is useful."""
        kinds = [shortcoming.kind for shortcoming in relevant(point.shortcomings, self.spec.goal)]
        if "not_estimable" in kinds:  # that some labels look alike is the reason
            kinds = [kind for kind in kinds if kind != "told_apart_from_none"]
        elif point.is_biased(self.spec):
            kinds = ["biased", *kinds]
        return "; ".join(_IN_SHORT[kind] for kind in kinds)

    def notes(self) -> list[str]:
        """The meaning of the table's columns and marks."""
        is_share, assumed = self.estimated == "share", PRIORS[self.taken]
        of_which = "the least certain category" if is_share else "the mean"
        best = "least noisy label loss"
        if self.spec.goal == "training":
            best = "smallest ±" + ("" if is_share else " of an unbiased mechanism")
        lines = [
            f"{BEST} marks the {best} (goal: {self.spec.goal})",
            f"±: 95% margin of error of {of_which} as labeldp estimate computes it, at most, "
            f"assuming {assumed}; --json also has it for all labels",
            f"noisy label loss, rms bias and {BEST}: assuming {assumed}",
        ]
        if self._numeric:
            lines.append("a bias of 0 means unbiased up to the rounding of probabilities")
        return lines

    @property
    def _numeric(self) -> bool:
        return any(point.variance is not None for point in self.points)

    def to_json(self) -> dict[str, Any]:
        """``{format_version, name, …, points, missing, …}``, keys in this order."""
        spec, person = self.spec, self.spec.privacy.person
        return {
            "format_version": FORMAT_VERSION,
            "name": spec.name,
            "labels": spec.domain.size,
            "loss": spec.loss,
            "goal": spec.goal,
            "prior": spec.prior.kind,
            "prior_taken": self.taken,
            "epsilon_prior_spent": float(self.spent),
            "person": person
            and {
                "column": person.column,
                "labels_per_person": person.labels,
                "epsilon_prior_spent": float(person.labels * self.spent),
            },
            "insecure": self.insecure,
            "points": [
                {
                    **asdict(point),
                    "epsilon_person": self.of_person.get(point.epsilon),
                    "degenerate": point.is_degenerate(spec.goal),
                    "best": point is self.best(point.epsilon),
                }
                for point in self.points
            ],
            "missing": [asdict(point) for point in self.missing],
            "left_out": [{"mechanism": m, "reason": reason} for m, reason in self.left_out],
            "bias_frontier": [[asdict(point) for point in line] for line in self.frontier],
        }


def frontier_table(line: list[Point]) -> tuple[str, list[list[str]]]:
    """The title and the rows of one frontier, under ``FRONTIER_HEADER``."""
    rows = [
        [
            point.mechanism.partition(", ")[2] or "unbiased",
            plain(point.loss, 6),
            _bias(point, point.rms_bias),
            _bias(point, point.bias_in_range),
        ]
        for point in line
    ]
    return f"From unbiased to RR-on-Bins at ε = {line[0].epsilon:g}", rows


def _at_most(number: float | None) -> str:
    return "–" if number is None else at_most(number, 4)


def _bias(point: Point, bias: float | None) -> str:
    """A bias of None means that outputs are not numbers."""
    return UNBIASED if point.unbiased and bias is not None else _at_most(bias)


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
    unit, candidates = spec.privacy, find_candidates(spec, mechanisms)
    if not candidates.chosen:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in candidates.left_out)
        raise InputError(f"there is nothing to compare: {reasons}")
    totals = epsilons or exact_epsilons([*DEFAULT_EPSILONS, unit.epsilon])
    asked = [(epsilon, mechanism) for epsilon in totals for mechanism in candidates.chosen]
    compared = len(asked)
    if bias_frontier:
        along = totals if epsilons else [Fraction(unit.epsilon)]
        asked += [(epsilon, point) for epsilon in along for point in frontier_candidates(spec)]
    digest = hashlib.sha256(source).hexdigest()
    insecure = None if test_seed is None else INSECURE

    def spending(plan: PriorPlan, _: int | None) -> None:
        if not plan.epsilon_prior:
            return
        cost = f"ε₁ = {float(unit.labels_of_unit * plan.epsilon_prior):g}"
        if not spend_prior:
            once = "once: compile reuses it" if unit.ledger else "in addition to compile"
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
    measured = [at(number, *pair) for number, pair in enumerate(asked, 1)]
    biased = [point for point in measured[compared:] if isinstance(point, Point)]
    return Sweep(
        spec=spec,
        spent=prior.epsilon_prior,
        taken=prior.statement["kind"],
        points=[point for point in measured[:compared] if isinstance(point, Point)],
        missing=[point for point in measured if isinstance(point, Missing)],
        frontier=[list(points) for _, points in groupby(biased, key=lambda point: point.epsilon)],
        left_out=candidates.left_out,
        insecure=insecure,
        of_person={}
        if unit.person is None
        else {float(unit.of_label(epsilon)): float(epsilon) for epsilon in totals},
    )
