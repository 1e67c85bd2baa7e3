"""The labels of a domain as outputs."""

from __future__ import annotations

from labeldp_verify.forms import CategoricalDomain, Domain
from labeldp_verify.forms.window import Output


def label_values(domain: Domain) -> list[Output]:
    """[k] float64 numbers in increasing order, or the categories."""
    if isinstance(domain, CategoricalDomain):
        return list(domain.values)
    return [float(label) for label in domain.labels()]
