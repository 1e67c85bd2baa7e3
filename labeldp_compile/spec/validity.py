"""Which mechanism serves which domain and loss. The table of docs/spec.md is this table."""

from __future__ import annotations

from labeldp_compile.spec.model import (
    CategoricalDomainSpec,
    OptimalUnbiased,
    PublicPrior,
    RealDomainSpec,
    Spec,
    UniformPrior,
)

DOMAINS = ("integer", "real", "categorical")
LOSSES = ("squared", "absolute", "poisson", "zero_one")
MECHANISMS = ("randomized_response", "rr_on_bins", "optimal_unbiased")


def why_invalid(domain: str, loss: str, mechanism: str, lowest: float | None) -> str | None:
    """The reason why a combination cannot be compiled, or None if it can.

    ``lowest`` is the lowest label (None for categories); only the Poisson loss looks at it.
    """
    bins, unbiased = mechanism == "rr_on_bins", mechanism == "optimal_unbiased"
    ordered = bins or unbiased
    reasons = {
        f"{mechanism} needs labels with an order, which categories lack: use randomized_response": (
            domain == "categorical" and ordered
        ),
        f"the {loss} loss needs numbers: categories take loss: zero_one": (
            domain == "categorical" and loss != "zero_one"
        ),
        "the zero_one loss asks whether labels are equal, which real labels never are": (
            domain == "real" and loss == "zero_one"
        ),
        f"{mechanism} needs a loss that grows with the distance: "
        "use randomized_response, or loss: squared or absolute": loss == "zero_one" and ordered,
        "the poisson loss is defined for labels of at least 0": (
            loss == "poisson" and lowest is not None and lowest < 0
        ),
        "the poisson loss is infinite when a positive label is answered with 0, "
        "as randomized_response sometimes does: use rr_on_bins, or a domain without 0": (
            loss == "poisson" and lowest == 0 and mechanism == "randomized_response"
        ),
    }
    return next((reason for reason, applies in reasons.items() if applies), None)


def check_validity(spec: Spec) -> tuple[tuple[str, ...], str] | None:
    """The key and the reason why the spec's parts do not fit together, or None if they do."""
    domain = spec.label.domain
    lowest = None if isinstance(domain, CategoricalDomainSpec) else float(domain.min)
    reason = why_invalid(domain.kind, spec.loss, spec.mechanism.kind, lowest)
    if reason:
        key = ("loss",) if reason.startswith("the ") else ("mechanism", "kind")
        return key, reason
    if isinstance(spec.mechanism, OptimalUnbiased):
        problem = _check_outputs(spec, spec.mechanism)
        if problem:
            return problem
    if isinstance(spec.prior, PublicPrior) and spec.prior.weights is not None:
        given, labels = len(spec.prior.weights), spec.domain.size
        if given != labels:
            return ("prior", "weights"), f"expected {labels} weights, one a label, got {given}"
    split = spec.privacy.split
    if split != "auto":
        free = isinstance(spec.prior, PublicPrior | UniformPrior)
        if free and split.prior != 0:
            reason = f"a {spec.prior.kind} prior costs nothing: give all of ε to the label"
            return ("privacy", "split", "prior"), reason
        if not free and split.prior == 0:
            reason = "a private prior needs a part of ε: use split: auto, or prior: {kind: uniform}"
            return ("privacy", "split", "prior"), reason
    return None


def _check_outputs(spec: Spec, mechanism: OptimalUnbiased) -> tuple[tuple[str, ...], str] | None:
    if mechanism.outputs == "exact" and spec.loss != "squared":
        reason = (
            f"outputs: exact is for the squared loss; with {spec.loss} say outputs: {{grid: n}}"
        )
        return ("mechanism",), reason
    domain = spec.label.domain
    if isinstance(domain, RealDomainSpec) and domain.rounding == "nearest":
        reason = "rounding to the nearest point is biased: leave it out, or say rounding: unbiased"
        return ("label", "domain", "rounding"), reason
    return None
