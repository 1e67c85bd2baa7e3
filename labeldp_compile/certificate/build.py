"""From a randomizer and its provenance to the certificate's JSON.

The names are fixed (docs/artifact-format.md): other tools rely on them. Numbers are JSON numbers
for reading; what they stand for exactly is under ``exact`` as "p/q".
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from labeldp_compile.artifact import FORMAT_VERSION, tables_digest
from labeldp_compile.artifact.certificate_fields import ADJACENCY, DECLARED, PROVED
from labeldp_compile.randomizer import CategoricalDomain, Domain, WindowRandomizer
from labeldp_compile.randomizer.exp_bound import exp_lower, log_bound
from labeldp_compile.randomizer.privacy import realised_ratio
from labeldp_compile.randomizer.utility import Loss, biases, noisy_label_loss


@dataclass(frozen=True)
class Provenance:
    """What the file cannot prove about itself.

    Attributes:
        name: of the spec.
        mechanism: kind, as in the spec.
        column: of the label.
        epsilon_label: ε₂, the budget of one randomized label (exact).
        epsilon_prior: ε₁, spent on the prior by the compile (exact).
        prior: what ε₁ was spent on, JSON; holds the integer ``weights`` [k].
        spec_digest: SHA-256 of the spec's bytes.
        tools: versions that took part.
        insecure: why the artifact must not be used, or None.
    """

    name: str
    mechanism: str
    column: str
    epsilon_label: Fraction
    epsilon_prior: Fraction
    prior: dict[str, Any]
    spec_digest: str
    tools: dict[str, str]
    insecure: str | None = None


def build_certificate(
    domain: Domain, randomizer: WindowRandomizer, loss: Loss, provenance: Provenance
) -> dict[str, Any]:
    """The certificate of a window randomizer.

    Raises ValueError if the integers are not ε₂-DP: nothing uncertified is ever written.
    """
    ratio = realised_ratio(randomizer)
    if ratio > exp_lower(provenance.epsilon_label):
        raise ValueError("the integers are not ε-DP for the declared ε")
    bound = log_bound(ratio)
    total = provenance.epsilon_label + provenance.epsilon_prior
    weights = provenance.prior["weights"]
    low, high = noisy_label_loss(randomizer, domain.labels(), weights, loss)
    bias = _largest_bias(domain, randomizer)
    return {
        "format_version": FORMAT_VERSION,
        "name": provenance.name,
        "mechanism": provenance.mechanism,
        "form": "window",
        "labels": domain.size,
        "outputs": len(randomizer.values),
        "label": {"column": provenance.column, "domain": domain.to_json()},
        "privacy": {
            "adjacency": ADJACENCY,
            "epsilon_label": float(provenance.epsilon_label),
            "epsilon_label_bound": float(bound),
            "epsilon_prior": float(provenance.epsilon_prior),
            "epsilon_total": float(total),
        },
        "utility": {
            "loss": loss,
            "noisy_label_loss": _common_float(low, high),
            "largest_bias": None if bias is None else float(bias),
            "loss_lower_bound": None,
            "certified_gap": None,
        },
        "prior": provenance.prior,
        "exact": {
            "epsilon_label": str(provenance.epsilon_label),
            "epsilon_label_bound": str(Fraction(bound)),
            "epsilon_prior": str(provenance.epsilon_prior),
            "epsilon_total": str(total),
            "realised_ratio": str(ratio),
            "noisy_label_loss": str(low) if low == high else None,
            "largest_bias": None if bias is None else str(bias),
        },
        "digests": {
            "spec": provenance.spec_digest,
            "tables": tables_digest(domain, randomizer),
        },
        "tools": provenance.tools,
        "insecure": provenance.insecure,
        "fields": {"proved": list(PROVED), "declared": list(DECLARED)},
    }


def _largest_bias(domain: Domain, randomizer: WindowRandomizer) -> Fraction | None:
    """max |E[output | y] − y| over the labels, or None for categories."""
    if isinstance(domain, CategoricalDomain):
        return None
    return max(abs(bias) for bias in biases(randomizer, domain.labels()))


def _common_float(low: Fraction, high: Fraction) -> float:
    """The float64 nearest to every number in [low, high]."""
    if float(low) != float(high):
        raise ValueError("the loss is not known to float64 precision")
    return float(low)
