"""The least ε of each mechanism at which all targets are met.

A mechanism is built in integers at a few ε; only the winner gets a certificate. A mechanism that
misses the targets at the least ε found so far cannot win, and is not searched.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from labeldp_verify.analysis import analyse, strays
from labeldp_verify.artifact import assess
from labeldp_verify.forms import Randomizer
from labeldp_verify.reading.usefulness import MAX_LABELS

from labeldp_compile.errors import InputError
from labeldp_compile.mechanisms.mechanism import Mechanism
from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.prior import Prior
from labeldp_compile.spec import Spec
from labeldp_compile.sweeps.ladder import LAST, epsilon_at, first_root, step_near
from labeldp_compile.sweeps.measure import are_degenerate, compile_with, rounded
from labeldp_compile.sweeps.targets import Demand
from labeldp_compile.tables import problem_of

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


class Bench:
    """Builds mechanisms for the labels, loss and prior of a spec, and computes their figures."""

    def __init__(
        self, spec: Spec, prior: Prior, targets: Sequence[Demand], observer: Observer = QUIET
    ) -> None:
        """``targets`` are the figures to compute."""
        self.spec, self.prior, self.targets, self.observer = spec, prior, tuple(targets), observer

    def try_at(self, mechanism: Mechanism, epsilon: Fraction) -> Trial:
        """The figures of a mechanism at an ε; nothing is certified."""
        spec = self.spec.with_mechanism(mechanism)
        needs_inverse = any(target.rows is not None for target in self.targets)
        if needs_inverse and spec.domain.size > MAX_LABELS and not mechanism.is_unbiased:
            problem = f"no figure for more than {MAX_LABELS:,} labels"
            return Trial(mechanism, epsilon, problem=problem)
        self.observer.step(f"{mechanism.title} at ε = {float(epsilon):g}")
        weights, rows = self.prior.weights, self.prior.rows
        asked = problem_of(spec, spec.domain, weights, epsilon, rows, observer=self.observer)
        try:
            mechanism.require_feasible(spec.domain, spec.loss, epsilon)
            randomizer = mechanism.build(asked).randomizer
        except (InputError, ValueError) as error:
            return Trial(mechanism, epsilon, problem=str(error))
        return self._judge(mechanism, randomizer, epsilon)

    def compile_at(self, mechanism: Mechanism, epsilon: Fraction) -> Trial:
        """The figures of the file that ``compile`` would write, verified."""
        prior = replace(self.prior, epsilon_label=epsilon, epsilon_prior=Fraction(0))
        try:
            artifact = compile_with(self.spec, mechanism, prior, "0" * 64)
        except InputError as error:
            return Trial(mechanism, epsilon, problem=str(error))
        return self._judge(mechanism, artifact.randomizer, epsilon)

    def _judge(self, mechanism: Mechanism, randomizer: Randomizer, epsilon: Fraction) -> Trial:
        spec, weights, analysis = self.spec, self.prior.weights, analyse(randomizer)
        labels, astray = spec.domain.labels(), strays(spec.domain)
        found, known = assess(spec.domain, randomizer, weights, epsilon, classes=spec.has_classes)
        error = analysis.expected_loss(labels, weights, "zero_one", astray)[0]
        label_error = float(error) if found.distance is None else found.distance.mean
        merit = found.variance
        if spec.goal == "labels":
            merit = float(analysis.expected_loss(labels, weights, spec.loss, astray)[0])
        return Trial(
            mechanism,
            epsilon,
            figures=tuple(target.figure(found, label_error) for target in self.targets),
            merit=merit,
            outputs=randomizer.outputs,
            unbiased=found.unbiased,
            problem=known[0].text if are_degenerate(known, spec.goal) else None,
        )


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
    best, found = LAST + 1, []
    for mechanism in order:
        last = max(best - 1, 0)
        known = {step: t.excess(targets) for step, t in trials[mechanism.title].items()}
        step = first_root(partial(excess, mechanism), last, known)
        if step is None or step >= best:
            found.append(trial(mechanism, last))
            continue
        compiled = bench.compile_at(mechanism, epsilon_at(step))
        will_do = compiled.excess(targets) <= 0
        best = step if will_do else best
        found.append(replace(compiled, will_do=will_do))
    return sorted(found, key=lambda t: (not t.will_do, t.epsilon or 0, t.excess(targets)))


def rank(bench: Bench, mechanisms: Sequence[Mechanism], epsilon: Fraction) -> list[Trial]:
    """All mechanisms at one ε, the best for the goal first; those that cannot be used last."""

    def merit(trial: Trial) -> tuple[bool, float]:
        return not trial.will_do, math.inf if trial.merit is None else rounded(trial.merit)

    trials = (bench.try_at(mechanism, epsilon) for mechanism in mechanisms)
    usable = (replace(t, will_do=t.problem is None and t.merit is not None) for t in trials)
    return sorted(usable, key=merit)
