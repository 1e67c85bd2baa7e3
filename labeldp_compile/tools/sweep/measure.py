"""One point of a sweep: a mechanism at an ε, compiled for real."""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction

from labeldp_verify.analysis import analyse
from labeldp_verify.forms import CategoricalDomain

from labeldp_compile.errors import InputError
from labeldp_compile.mechanisms.mechanism import Mechanism
from labeldp_compile.pipeline import assemble
from labeldp_compile.prior import Prior
from labeldp_compile.spec import Spec
from labeldp_compile.tools.inspection import is_unbiased


@dataclass(frozen=True)
class Point:
    """What the certificate of one artifact states, with its size and the time it took.

    Attributes:
        mechanism: title.
        epsilon: in total, for a label in both parts.
        epsilon_label: ε₂ of the label.
        epsilon_label_bound: what the integers realise at most.
        loss: the noisy label loss.
        largest_bias, rms_bias: of E[output | label] − label; None for categories.
        variance: the mean of Var[output | label] under the prior; None for categories.
        unbiased: whether the largest bias is nothing but rounding.
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
    variance: float | None
    unbiased: bool
    outputs: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Missing:
    """A point that cannot be compiled, and why."""

    mechanism: str
    epsilon: float
    reason: str


def measure(
    spec: Spec,
    mechanism: Mechanism,
    prior: Prior,
    spec_digest: str,
    insecure: str | None = None,
) -> Point | Missing:
    """Compile the spec with another mechanism and the prior's ε₂; spends nothing."""
    named = spec.with_mechanism(mechanism)
    title, epsilon = mechanism.title, float(prior.epsilon_prior + prior.epsilon_label)
    begin = time.perf_counter()
    try:
        mechanism.require_feasible(named.domain, spec.loss, prior.epsilon_label)
        artifact = assemble(named, prior, spec_digest, insecure=insecure)
    except (InputError, ValueError) as error:
        return Missing(title, epsilon, str(error).removeprefix(f"{spec.name}: "))
    seconds = time.perf_counter() - begin
    privacy, utility = artifact.certificate.privacy, artifact.certificate.utility
    bias = utility.largest_bias
    domain, variance = named.domain, None
    if not isinstance(domain, CategoricalDomain):
        variance = float(_mean(analyse(artifact.randomizer).variances(), prior.weights))
    return Point(
        mechanism=title,
        epsilon=epsilon,
        epsilon_label=privacy.epsilon_label,
        epsilon_label_bound=privacy.epsilon_label_bound,
        loss=utility.noisy_label_loss,
        largest_bias=bias,
        rms_bias=utility.rms_bias,
        variance=variance,
        unbiased=is_unbiased(domain, bias),
        outputs=artifact.certificate.outputs,
        bytes=len(artifact.model),
        seconds=seconds,
    )


def _mean(numbers: list[Fraction], weights: list[int]) -> Fraction:
    """Under the prior."""
    total = sum((w * x for w, x in zip(weights, numbers, strict=True) if w), Fraction(0))
    return total / sum(weights)
