"""From targets to the smallest ε that meets them, a mechanism, and lines for the spec."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from labeldp_verify.reading.usefulness import most_belief

from labeldp_compile.errors import InputError
from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.prior import estimate_prior
from labeldp_compile.spec import Spec, load_spec
from labeldp_compile.spec.model import PrivatePrior, UniformPrior
from labeldp_compile.sweeps.candidates import Candidates, find_candidates
from labeldp_compile.sweeps.ladder import LAST, epsilon_at, step_near
from labeldp_compile.sweeps.search import Bench, Trial, rank, search
from labeldp_compile.sweeps.targets import Asked, Demand, UnreachedError, Wanted, read_wanted

FORMAT_VERSION = "1.0"
SHARES = (0.01, 0.1)  # how sure an observer is before, in the printed beliefs


@dataclass(frozen=True)
class Choice:
    """The answer.

    Attributes:
        spec: the spec; a private prior is replaced by a uniform one.
        assumed_uniform: whether the prior was private, so that no label was read.
        without_groups: whether groups were left out, which need a prior from data.
        wanted: what was asked.
        epsilon: ε of a label, in four significant digits.
        missed_at: the next smaller ε, which misses a target; None at the end of the range, and if
            only a belief was given.
        standings: all mechanisms, the chosen one first.
        left_out: (title, reason) of the mechanisms that do not fit the labels or the loss.
    """

    spec: Spec
    assumed_uniform: bool
    without_groups: bool
    wanted: Wanted
    epsilon: Fraction
    missed_at: Fraction | None
    standings: list[Trial]
    left_out: list[tuple[str, str]]

    @property
    def chosen(self) -> Trial:
        """The mechanism with the smallest ε, or the best one at the largest ε."""
        return self.standings[0]

    def figures_of(self, trial: Trial) -> list[tuple[Demand, float | None]]:
        """The figures of a mechanism, each with the target that it belongs to."""
        columns = self.wanted.columns
        figures = trial.figures or (None,) * len(columns)
        return list(zip(columns, figures, strict=True))

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
        lines = ["privacy:", f"  epsilon: {_decimal(self.of_unit)}"]
        if person is not None:
            column = json.dumps(person.column, ensure_ascii=False)
            lines += ["  unit: person", f"  person_column: {column}"]
            lines.append(f"  labels_per_person: {person.labels}")
        if self.assumed_uniform:  # which has no part in a split
            lines += ["  split: auto", "prior: {kind: uniform}"]
        if self.without_groups:
            lines.append("# leave out groups, which need a prior from data")
        options = self.chosen.mechanism.model_dump(exclude_defaults=True, exclude_none=True)
        return [*lines, f"mechanism: {_flow(options)}"]

    def to_json(self) -> dict[str, Any]:
        """``{format_version, name, …, epsilon, mechanism, candidates, …}``, keys in this order."""
        wanted = self.wanted
        return {
            "format_version": FORMAT_VERSION,
            "name": self.spec.name,
            "labels": self.spec.domain.size,
            "loss": self.spec.loss,
            "goal": self.spec.goal,
            "prior": "uniform" if self.assumed_uniform else self.spec.prior.kind,
            "prior_is_private": self.assumed_uniform,
            "targets": [{"kind": t.kind, "most": t.most, "rows": t.rows} for t in wanted.targets],
            "max_belief": None
            if wanted.belief is None
            else {name: float(value) for name, value in asdict(wanted.belief).items()},
            "epsilon": float(self.epsilon),
            "person": self._person(),
            "missed_at": None if self.missed_at is None else float(self.missed_at),
            "mechanism": self.chosen.mechanism.title,
            "candidates": [self._candidate(standing) for standing in self.standings],
            "left_out": [
                {"mechanism": mechanism, "reason": reason} for mechanism, reason in self.left_out
            ],
            "privacy": {
                "odds_ratio": math.exp(self.epsilon),
                "belief": [{"before": before, "after": after} for before, after in self.beliefs],
            },
            "spec": "\n".join(self.spec_lines()) + "\n",
        }

    def _person(self) -> dict[str, Any] | None:
        person = self.spec.privacy.person
        if person is None:
            return None
        return {
            "column": person.column,
            "labels_per_person": person.labels,
            "epsilon": float(self.of_unit),
        }

    def _candidate(self, trial: Trial) -> dict[str, Any]:
        return {
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


def choose_spec(path: Path, asked: Asked, observer: Observer = QUIET) -> Choice:
    """Find the smallest ε and the mechanism that meet all targets, for the labels of a spec.

    No private label is read: a private prior is treated as uniform. The data of a public prior are
    read. Raises InputError for targets that have no meaning for the spec, and UnreachedError if no
    ε ≤ 20 reaches them.
    """
    loaded, _ = load_spec(path)
    wanted = read_wanted(loaded, asked)
    spec = _without_labels(loaded)
    candidates = _fitting(spec)
    prior = estimate_prior(spec, path.parent, observer=observer)
    bench = Bench(spec, prior, wanted.columns, observer)
    if wanted.targets:
        standings = search(bench, candidates.chosen)
        epsilon = _reached(standings, wanted)
    else:
        assert wanted.belief is not None
        epsilon = epsilon_at(wanted.belief.last_step())
        standings = _confirmed(bench, rank(bench, candidates.chosen, epsilon))
    below = step_near(float(epsilon)) - 1
    return Choice(
        spec=spec,
        assumed_uniform=isinstance(loaded.prior, PrivatePrior),
        without_groups=loaded.groups is not None and spec.groups is None,
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
            f"{spec.name}: all mechanisms for loss: {spec.loss} are biased, which spoils means and "
            "training; write goal: labels, or loss: squared"
        )
    biased = [(one.title, "biased") for one in fitting.chosen if not one.is_unbiased]
    return Candidates(unbiased, [*fitting.left_out, *biased])


def _without_labels(spec: Spec) -> Spec:
    """The same spec, with a uniform prior in place of a private one, and then no groups."""
    if not isinstance(spec.prior, PrivatePrior):
        return spec
    privacy = spec.privacy.model_copy(update={"split": "auto"})
    prior = UniformPrior(kind="uniform")
    return spec.model_copy(update={"prior": prior, "privacy": privacy, "groups": None})


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


def _confirmed(bench: Bench, standings: list[Trial]) -> list[Trial]:
    """The same trials, with one first that compiles and verifies."""
    behind: list[Trial] = []
    for index, trial in enumerate(standings):
        if not trial.will_do:
            break
        compiled = bench.compile_at(trial.mechanism, trial.tried)
        if compiled.problem is None:
            return [trial, *standings[index + 1 :], *behind]
        behind.append(compiled)
    first = (behind or standings)[0]
    raise UnreachedError(
        f"at ε = {float(first.tried):g} no mechanism is useful for the spec's goal "
        f"({first.mechanism.title}: {first.problem or 'its figure is not known'})"
    )


def _decimal(number: Fraction) -> str:
    """A number that ends as a decimal, exactly."""
    exact = Decimal(number.numerator) / Decimal(number.denominator)
    return format(exact.normalize(), "f")


def _flow(value: Any) -> str:
    """Options of a mechanism in YAML's flow style, with decimals as the spec has them."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
