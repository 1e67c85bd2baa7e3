"""The smallest ε that meets all targets, a mechanism for it, and lines for the spec.

A mechanism is built in integers at a few ε; only the winner gets a certificate. A mechanism that
misses the targets at the least ε found so far cannot win, and is not searched.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from labeldp_verify.analysis import analyse, expected_loss, strays
from labeldp_verify.artifact import assess
from labeldp_verify.usefulness.estimates import MAX_LABELS, most_belief

from labeldp_compile.build.tables import problem_of
from labeldp_compile.errors import InputError
from labeldp_compile.mechanisms.mechanism import Mechanism
from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.prior.obtain import estimate_prior
from labeldp_compile.prior.priors import Prior
from labeldp_compile.spec import Spec, load_spec
from labeldp_compile.spec.model import PrivatePrior, UniformPrior
from labeldp_compile.sweeps.points import (
    Candidates,
    are_degenerate,
    compile_with,
    find_candidates,
    rounded,
)
from labeldp_compile.sweeps.targets import (
    LAST,
    Demand,
    UnreachedError,
    Wanted,
    epsilon_at,
    first_root,
    read_wanted,
    step_near,
)

FORMAT_VERSION = "1.0"
SHARES = (0.01, 0.1)  # how sure an observer is before, in the printed beliefs
_OPENING = step_near(1.0)  # mechanisms are tried in the order of their merit at this step
_ALIKE = 6  # decimals of ln


@dataclass(frozen=True)
class Trial:
    """A mechanism at one ε.

    Attributes:
        mechanism: with its options.
        tried: the ε.
        figures: one for each target, in their order; None where there is no estimate.
        merit: the goal's figure, smaller is better; None if it is not known.
        outputs: their number.
        unbiased: whether private labels are right on average; None for categories.
        problem: why the mechanism cannot be used, or None.
        will_do: whether it may be chosen, with this as its least ε.
    """

    mechanism: Mechanism
    tried: Fraction
    figures: tuple[float | None, ...] = ()
    merit: float | None = None
    outputs: int | None = None
    unbiased: bool | None = None
    problem: str | None = None
    will_do: bool = False

    @property
    def epsilon(self) -> Fraction | None:
        """The least ε at which it meets all targets; None if it cannot win."""
        return self.tried if self.will_do else None

    def excess(self, targets: Sequence[Demand]) -> float:
        """The largest ln(figure/target): ≤ 0 if all targets are met."""
        if self.problem is not None:
            return math.inf
        over = [
            math.inf if figure is None else math.log(max(figure, 1e-300) / target.most)
            for figure, target in zip(self.figures, targets, strict=True)
        ]
        return max(over, default=0.0)


@dataclass(frozen=True)
class Bench:
    """Builds mechanisms for the labels, loss and prior of a spec, and computes their figures."""

    spec: Spec
    prior: Prior
    targets: tuple[Demand, ...]
    observer: Observer

    def try_at(self, mechanism: Mechanism, epsilon: Fraction) -> Trial:
        """The figures of a mechanism at an ε; nothing is certified."""
        spec, prior = self.spec.with_mechanism(mechanism), self.prior
        needs_inverse = any(target.rows is not None for target in self.targets)
        if needs_inverse and spec.domain.size > MAX_LABELS and not mechanism.is_unbiased:
            problem = f"no figure for more than {MAX_LABELS:,} labels"
            return Trial(mechanism, epsilon, problem=problem)
        self.observer.step(f"{mechanism.title} at ε = {float(epsilon):g}")
        asked = problem_of(
            spec, spec.domain, prior.weights, epsilon, prior.rows, observer=self.observer
        )
        try:
            mechanism.require_feasible(spec.domain, spec.loss, epsilon)
            randomizer = mechanism.build(asked).randomizer
        except (InputError, ValueError) as error:
            return Trial(mechanism, epsilon, problem=str(error))
        weights, analysis = prior.weights, analyse(randomizer)
        labels, astray = spec.domain.labels(), strays(spec.domain)
        use, shortcomings = assess(spec.domain, randomizer, weights, epsilon, spec.loss)
        label_error = float(expected_loss(analysis, labels, weights, "zero_one", astray)[0])
        if use.distance is not None:
            label_error = use.distance.mean
        merit = use.variance
        if spec.goal == "labels":
            merit = float(expected_loss(analysis, labels, weights, spec.loss, astray)[0])
        is_useless = are_degenerate(shortcomings, spec.goal)
        return Trial(
            mechanism,
            epsilon,
            figures=tuple(target.figure(use, label_error) for target in self.targets),
            merit=merit,
            outputs=randomizer.outputs,
            unbiased=use.unbiased,
            problem=shortcomings[0].text if is_useless else None,
        )

    def compiled(self, trial: Trial) -> Trial:
        """The trial, after the file was compiled and verified: of the same integers."""
        prior = replace(self.prior, epsilon_label=trial.tried, epsilon_prior=Fraction(0))
        try:
            compile_with(self.spec, trial.mechanism, prior, "0" * 64)
        except InputError as error:
            return Trial(trial.mechanism, trial.tried, problem=str(error))
        return trial


def search(bench: Bench, mechanisms: Sequence[Mechanism]) -> list[Trial]:
    """All mechanisms, the least ε first; the first one has been compiled and verified.

    Those that cannot win come last, with the ε at which they were tried and failed.
    """
    targets = bench.targets
    trials: dict[str, dict[int, Trial]] = {}

    def trial(mechanism: Mechanism, step: int) -> Trial:
        known = trials.setdefault(mechanism.title, {})
        if step not in known:
            known[step] = bench.try_at(mechanism, epsilon_at(step))
        return known[step]

    def excess(mechanism: Mechanism, step: int) -> float:
        return trial(mechanism, step).excess(targets)

    # If mechanisms differ by rounding alone, the first in the list is tried first, and wins.
    order = sorted(mechanisms, key=lambda m: round(excess(m, _OPENING), _ALIKE))
    best, standings = LAST + 1, []
    for mechanism in order:
        last = max(best - 1, 0)
        known = {step: t.excess(targets) for step, t in trials[mechanism.title].items()}
        step = first_root(partial(excess, mechanism), last, known)
        if step is None or step >= best:
            standings.append(trial(mechanism, last))
            continue
        compiled = bench.compiled(trial(mechanism, step))
        will_do = compiled.excess(targets) <= 0
        best = step if will_do else best
        standings.append(replace(compiled, will_do=will_do))
    return sorted(standings, key=lambda t: (not t.will_do, t.epsilon or 0, t.excess(targets)))


def rank(bench: Bench, mechanisms: Sequence[Mechanism], epsilon: Fraction) -> list[Trial]:
    """All mechanisms at one ε, the best for the goal first, which compiles and verifies.

    Those that cannot be used come last. Raises UnreachedError if none can be used.
    """

    def merit(trial: Trial) -> tuple[bool, float]:
        return not trial.will_do, math.inf if trial.merit is None else rounded(trial.merit)

    trials = (bench.try_at(mechanism, epsilon) for mechanism in mechanisms)
    usable = (replace(t, will_do=t.problem is None and t.merit is not None) for t in trials)
    standings = sorted(usable, key=merit)
    behind: list[Trial] = []
    for index, trial in enumerate(standings):
        if not trial.will_do:
            break
        compiled = bench.compiled(trial)
        if compiled.problem is None:
            return [trial, *standings[index + 1 :], *behind]
        behind.append(compiled)
    first = (behind or standings)[0]
    raise UnreachedError(
        f"at ε = {float(first.tried):g} no mechanism is useful for the spec's goal "
        f"({first.mechanism.title}: {first.problem or 'its figure is not known'})"
    )


@dataclass(frozen=True)
class Choice:
    """The answer.

    Attributes:
        spec: the spec; a private prior is replaced by a uniform one.
        assumed_uniform: whether the prior was private, so that no label was read.
        wanted: what was asked.
        epsilon: ε of a label, in four significant digits.
        missed_at: the next smaller ε, which misses a target; None at the end of the range, and if
            only a belief was given.
        standings: all mechanisms, the chosen one first.
        left_out: (title, reason) of the mechanisms that do not fit the labels or the loss.
    """

    spec: Spec
    assumed_uniform: bool
    wanted: Wanted
    epsilon: Fraction
    missed_at: Fraction | None
    standings: list[Trial]
    left_out: list[tuple[str, str]]

    @property
    def chosen(self) -> Trial:
        """The mechanism with the smallest ε, or the best one at the largest ε."""
        return self.standings[0]

    def figures_of(self, trial: Trial) -> Iterator[tuple[Demand, float | None]]:
        """The figures of a mechanism, each with the target that it belongs to."""
        columns = self.wanted.columns
        return zip(columns, trial.figures or (None,) * len(columns), strict=True)

    @property
    def of_unit(self) -> Fraction:
        """ε of the spec: that of a label, or of a person with all labels."""
        return self.spec.privacy.labels_of_unit * self.epsilon

    @property
    def beliefs(self) -> list[tuple[float, float]]:
        """(how sure an observer was of a label, how sure the observer can become at most)."""
        odds = math.exp(self.epsilon)
        return [(share, most_belief(odds, share)) for share in SHARES]

    def spec_lines(self) -> list[str]:
        """The keys of the spec with this ε and mechanism, as YAML."""
        person = self.spec.privacy.person
        lines = ["privacy:", f"  epsilon: {_yaml(_decimal(self.of_unit))}"]
        if person is not None:
            column = json.dumps(person.column, ensure_ascii=False)
            lines += ["  unit: person", f"  person_column: {column}"]
            lines.append(f"  labels_per_person: {person.labels}")
        if self.assumed_uniform:  # which has no part in a split
            lines += ["  split: auto", "prior: {kind: uniform}"]
        options = self.chosen.mechanism.model_dump(exclude_defaults=True, exclude_none=True)
        return [*lines, f"mechanism: {_yaml(options)}"]

    def to_json(self) -> dict[str, Any]:
        """``{format_version, name, …, epsilon, mechanism, candidates, …}``, keys in this order."""
        spec, wanted, person = self.spec, self.wanted, self.spec.privacy.person
        belief = wanted.belief and {k: float(value) for k, value in asdict(wanted.belief).items()}
        return {
            "format_version": FORMAT_VERSION,
            "name": spec.name,
            "labels": spec.domain.size,
            "loss": spec.loss,
            "goal": spec.goal,
            "prior": "uniform" if self.assumed_uniform else spec.prior.kind,
            "prior_is_private": self.assumed_uniform,
            "targets": [{"kind": t.kind, "most": t.most, "rows": t.rows} for t in wanted.targets],
            "max_belief": belief,
            "epsilon": float(self.epsilon),
            "person": person
            and {
                "column": person.column,
                "labels_per_person": person.labels,
                "epsilon": float(self.of_unit),
            },
            "missed_at": None if self.missed_at is None else float(self.missed_at),
            "mechanism": self.chosen.mechanism.title,
            "candidates": [
                {
                    "mechanism": trial.mechanism.title,
                    "epsilon": None if trial.epsilon is None else float(trial.epsilon),
                    "figures_at": float(trial.tried),
                    "figures": [
                        {"kind": column.kind, "rows": column.rows, "value": value}
                        for column, value in self.figures_of(trial)
                    ],
                    "unbiased": trial.unbiased,
                    "outputs": trial.outputs,
                    "problem": trial.problem,
                }
                for trial in self.standings
            ],
            "left_out": [{"mechanism": m, "reason": reason} for m, reason in self.left_out],
            "privacy": {
                "odds_ratio": math.exp(self.epsilon),
                "belief": [{"before": before, "after": after} for before, after in self.beliefs],
            },
            "spec": "\n".join(self.spec_lines()) + "\n",
        }


def choose_spec(
    path: Path, asked: Mapping[str, Any], rows: int | None = None, observer: Observer = QUIET
) -> Choice:
    """Find the smallest ε and the mechanism that meet all targets, for the labels of a spec.

    No private label is read: a private prior is treated as uniform. The data of a public prior are
    read. ``asked`` and ``rows`` are as in ``read_wanted``. Raises InputError for targets that have
    no meaning for the spec, and UnreachedError if no ε ≤ 20 reaches them.
    """
    loaded, _ = load_spec(path)
    wanted, spec = read_wanted(loaded, asked, rows), loaded
    assumed_uniform = isinstance(loaded.prior, PrivatePrior)
    if assumed_uniform:
        privacy = spec.privacy.model_copy(update={"split": "auto"})
        prior_of_no_data = UniformPrior(kind="uniform")
        spec = spec.model_copy(update={"prior": prior_of_no_data, "privacy": privacy})
    candidates = _fitting(spec)
    prior = estimate_prior(spec, path.parent, observer=observer)
    bench = Bench(spec, prior, wanted.columns, observer)
    if wanted.targets:
        standings = search(bench, candidates.chosen)
        epsilon = _reached(standings, wanted)
    else:
        assert wanted.belief is not None
        epsilon = epsilon_at(wanted.belief.last_step())
        standings = rank(bench, candidates.chosen, epsilon)
    below = step_near(float(epsilon)) - 1
    return Choice(
        spec=spec,
        assumed_uniform=assumed_uniform,
        wanted=wanted,
        epsilon=epsilon,
        missed_at=epsilon_at(below) if wanted.targets and below >= 0 else None,
        standings=standings,
        left_out=candidates.left_out,
    )


def _fitting(spec: Spec) -> Candidates:
    """The mechanisms for the spec's goal: a biased one spoils means and training."""
    fitting = find_candidates(spec, None)
    if not fitting.chosen:
        raise InputError(f"{spec.name}: no mechanism fits these labels and this loss")
    if spec.goal == "labels" or spec.has_classes:
        return fitting
    unbiased = [mechanism for mechanism in fitting.chosen if mechanism.is_unbiased]
    if not unbiased:
        raise InputError(
            f"{spec.name}: all mechanisms for loss: {spec.stated_loss} are biased, which spoils "
            "means and training; write goal: labels, or loss: squared"
        )
    biased = [(one.title, "biased") for one in fitting.chosen if not one.is_unbiased]
    return Candidates(unbiased, [*fitting.left_out, *biased])


def _reached(standings: Sequence[Trial], wanted: Wanted) -> Fraction:
    first = standings[0]
    asked = " and ".join(target.in_words() for target in wanted.targets)
    if first.epsilon is None:
        raise UnreachedError(
            f"no ε ≤ {float(epsilon_at(LAST)):g} reaches {asked}: {_nearest(first, wanted)}"
        )
    if wanted.belief is None:
        return first.epsilon
    last = epsilon_at(wanted.belief.last_step())
    if first.epsilon > last:
        raise UnreachedError(
            f"{asked}: this needs ε ≥ {float(first.epsilon):g} ({first.mechanism.title}); "
            f"{wanted.belief.in_words()}: this allows only ε ≤ {float(last):g}"
        )
    return first.epsilon


def _nearest(first: Trial, wanted: Wanted) -> str:
    """How close the best mechanism comes."""
    if first.problem is not None:
        return f"{first.mechanism.title}: {first.problem}"
    figures = [
        f"{target.name}: {'no estimate' if figure is None else f'{figure:.4g}'}"
        for target, figure in zip(wanted.targets, first.figures, strict=True)
    ]
    return f"{first.mechanism.title} comes closest ({', '.join(figures)})"


def _decimal(number: Fraction) -> Decimal:
    """A number that ends as a decimal, exactly."""
    return (Decimal(number.numerator) / Decimal(number.denominator)).normalize()


def _yaml(value: Any) -> str:
    """A value in YAML's flow style, with decimals as the spec has them."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
