"""The mechanisms to compare for a spec, and the figures of one at one ε, compiled and verified."""

import difflib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from labeldp_verify.analysis import analyse
from labeldp_verify.forms import CategoricalDomain, JointDomain, are_numbers
from labeldp_verify.usefulness.estimates import is_unbiased
from labeldp_verify.usefulness.figures import ROWS
from labeldp_verify.usefulness.shortcomings import ONE_OUTPUT, Shortcoming

from labeldp_compile.build.assembly import Compiled, assemble
from labeldp_compile.errors import InputError
from labeldp_compile.mechanisms import BY_DEFAULT, KINDS, all_mechanisms, mechanism_class
from labeldp_compile.mechanisms.mechanism import Mechanism
from labeldp_compile.prior.priors import Prior
from labeldp_compile.solve.losses import LOSSES
from labeldp_compile.spec import Spec
from labeldp_compile.spec.load import check_validity
from labeldp_compile.spec.model import Goal

_UNRANKED = float("inf")
_DIGITS = 7  # of figures that are compared
_ROWS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)


@dataclass(frozen=True)
class Candidates:
    """The mechanisms to measure, and those that do not fit: (title, reason)."""

    chosen: list[Mechanism]
    left_out: list[tuple[str, str]]


def find_candidates(spec: Spec, asked: Sequence[str] | None) -> Candidates:
    """The mechanisms that fit the spec's domain and loss, including the spec's own.

    ``asked`` are kinds (``rr_top_k:K`` with its k), or None for all. If the spec names a kind, its
    options are used. Raises InputError for an unknown kind, and for a spec with groups.
    """
    if spec.groups:
        raise InputError(f"{spec.name}: sweep compares tables for all rows; leave out groups")
    kinds = [_kind(text) for text in asked] if asked is not None else _all_kinds(spec)
    options = {m.title: m for asked_for in kinds for m in _variants(spec, *asked_for)}
    chosen: list[Mechanism] = []
    left_out = []
    for mechanism in options.values():
        misfits = check_validity(spec.with_mechanism(mechanism))
        if misfits:
            left_out.append((mechanism.title, misfits[0][1]))
        else:
            chosen.append(mechanism)
    return Candidates(chosen, left_out)


def frontier_candidates(spec: Spec) -> list[Mechanism]:
    """From unbiased to RR-on-Bins by falling penalties on bias.

    Raises InputError if the spec has no such frontier.
    """
    if LOSSES[spec.loss].degree != 2 or isinstance(spec.domain, CategoricalDomain):
        raise InputError("--bias-frontier needs labels that are numbers, and loss: squared")
    return [point for mechanism in all_mechanisms() for point in mechanism.frontier()]


def _all_kinds(spec: Spec) -> list[tuple[str, str]]:
    named = spec.named_mechanism.kind
    joint = isinstance(spec.domain, JointDomain)
    return [
        (kind, "")
        for kind in KINDS
        if kind == named or (kind in BY_DEFAULT and not (joint and not mechanism_class(kind).joins))
    ]


def _kind(text: str) -> tuple[str, str]:
    """The kind, and the text after a colon."""
    kind, _, number = text.strip().partition(":")
    if kind not in KINDS:
        close = difflib.get_close_matches(kind, KINDS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"expected {', '.join(KINDS)}"
        raise InputError(f"--mechanisms: {kind!r} is not a mechanism; {hint}")
    is_number = number.isascii() and number.isdigit() and int(number) > 0
    if number and not (is_number and "k" in mechanism_class(kind).model_fields):
        raise InputError(
            f"--mechanisms: {text!r}: only rr_top_k takes a number, such as rr_top_k:5"
        )
    return kind, number


def _variants(spec: Spec, kind: str, number: str) -> Iterable[Mechanism]:
    wanted = mechanism_class(kind)
    if number:
        return [wanted.named(k=int(number))]
    named = spec.named_mechanism
    mine = named if isinstance(named, wanted) and named.kind == kind else None
    return wanted.compared(mine, spec.domain.size, spec.loss)


@dataclass(frozen=True)
class Point:
    """The figures from the certificate of one artifact, with its size and the time it took.

    Attributes:
        mechanism: title.
        epsilon: the total, for a label that is counted for the prior and randomized.
        epsilon_label: ε₂ of the label.
        epsilon_label_bound: the largest ε that the integers realize.
        loss: the noisy label loss.
        largest_bias, rms_bias: of E[output | label] − label, for real labels at the points of the
            grid; None for categories.
        bias_in_range: the largest bias for all labels in the range.
        variance: the mean of Var[output | label] under the prior; None for categories.
        noise_variance: per row, of a mean (numbers) or a share (categories, their mean) that is
            estimated from private labels, under the prior; None if there is no estimate, or if it
            was too much work.
        margin_all_labels, margin_under_prior: the largest 95% margin of error of a mean, or of the
            least certain share, over 1,000 rows: for all labels in the range, and for labels that
            are distributed like the prior.
        margins: (rows, margin of error for all labels in the range); empty if there is no estimate.
        unbiased: whether the largest bias is only rounding.
        shortcomings: why private labels are not useful, the worst first.
        outputs: number of outputs.
        bytes: of the artifact.
        seconds: solving, certifying and verifying.
    """

    mechanism: str
    epsilon: float
    epsilon_label: float
    epsilon_label_bound: float
    loss: float
    largest_bias: float | None
    rms_bias: float | None
    bias_in_range: float | None
    variance: float | None
    noise_variance: float | None
    margin_all_labels: float | None
    margin_under_prior: float | None
    margins: tuple[tuple[int, float], ...]
    unbiased: bool
    shortcomings: tuple[Shortcoming, ...]
    outputs: int
    bytes: int
    seconds: float

    def figure(self, goal: Goal) -> float | None:
        """The goal's figure, which tables show first; smaller is better; None if not known."""
        return self.loss if goal == "labels" else self.margin_under_prior

    def is_degenerate(self, goal: Goal) -> bool:
        """Whether private labels are useless for the goal."""
        return are_degenerate(self.shortcomings, goal)

    def rank(self, spec: Spec) -> tuple[bool, bool, float, float]:
        """Sort key for the points of one ε, from the best to the degenerate ones.

        Mechanisms that differ only by the rounding of their integers are equal.
        """
        figure = self.figure(spec.goal)
        known = _UNRANKED if figure is None else rounded(figure)
        return self.is_degenerate(spec.goal), self.is_biased(spec), known, rounded(self.loss)

    def is_biased(self, spec: Spec) -> bool:
        """Whether a mean or a model is wrong if it takes private labels for true ones.

        Classes have no bias: their shares are estimated from private labels.
        """
        is_mean = spec.goal == "training" and not spec.has_classes
        return is_mean and self.largest_bias is not None and not self.unbiased


def are_degenerate(shortcomings: Iterable[Shortcoming], goal: Goal) -> bool:
    """Whether private labels with these shortcomings are useless for the goal."""
    return any(
        s.kind == ONE_OUTPUT or (goal == "training" and s.for_training_only) for s in shortcomings
    )


@dataclass(frozen=True)
class Missing:
    """A point that cannot be compiled, and why."""

    mechanism: str
    epsilon: float
    reason: str


def compile_with(
    spec: Spec, mechanism: Mechanism, prior: Prior, spec_digest: str, insecure: str | None = None
) -> Compiled:
    """Compile the spec with another mechanism and the prior's ε₂.

    This spends nothing. Raises InputError with the reason if there is no such artifact.
    """
    try:
        mechanism.require_feasible(spec.domain, spec.loss, prior.epsilon_label)
        return assemble(spec.with_mechanism(mechanism), prior, spec_digest, insecure=insecure)
    except (InputError, ValueError) as error:
        raise InputError(str(error).removeprefix(f"{spec.name}: ")) from None


def measure(
    spec: Spec, mechanism: Mechanism, prior: Prior, spec_digest: str, insecure: str | None = None
) -> Point | Missing:
    """The figures of the artifact with another mechanism, or why there is none."""
    title, epsilon = mechanism.title, float(prior.epsilon_prior + prior.epsilon_label)
    begin = time.perf_counter()
    try:
        artifact = compile_with(spec, mechanism, prior, spec_digest, insecure)
    except InputError as error:
        return Missing(title, epsilon, str(error))
    seconds = time.perf_counter() - begin
    privacy, utility = artifact.certificate.privacy, artifact.certificate.utility
    bias = utility.largest_bias
    domain, variance = spec.domain, None
    if are_numbers(domain, artifact.randomizer):
        variances = analyse(artifact.randomizer).variances()
        variance = float(variances.weighted(prior.weights) / sum(prior.weights))
    table = artifact.only
    return Point(
        mechanism=title,
        epsilon=epsilon,
        epsilon_label=privacy.epsilon_label,
        epsilon_label_bound=privacy.epsilon_label_bound,
        loss=utility.noisy_label_loss,
        largest_bias=bias,
        rms_bias=utility.rms_bias,
        bias_in_range=table.bias_in_range,
        variance=variance,
        noise_variance=table.usefulness.variance,
        margin_all_labels=table.usefulness.margin(ROWS),
        margin_under_prior=table.usefulness.margin_under_prior(ROWS),
        margins=tuple((n, m) for n in _ROWS if (m := table.usefulness.margin(n)) is not None),
        unbiased=is_unbiased(domain, bias),
        shortcomings=tuple(table.shortcomings),
        outputs=artifact.certificate.outputs,
        bytes=len(artifact.model),
        seconds=seconds,
    )


def rounded(number: float) -> float:
    """A number for comparisons that the rounding of integers must not decide."""
    return float(f"{number:.{_DIGITS}g}")
