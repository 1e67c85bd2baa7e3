"""The exact shape of a certificate: which fields there are, and of which JSON type.

A field that the format does not know could claim anything beside the proved ones, so there must be
none.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

Shape = Any  # a type, a tuple of types, or a mapping from keys to shapes

NUMBER = (float, int)
RATIONAL = re.compile(r"-?[0-9]{1,1000}(/[0-9]{1,1000})?")
DECIMAL = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,3})?")

CERTIFICATE: Shape = {
    "format_version": str,
    "name": str,
    "mechanism": str,
    "auto": (str, type(None)),
    "form": str,
    "labels": int,
    "outputs": int,
    "label": {"column": str, "domain": dict},
    "privacy": {
        "adjacency": str,
        "epsilon_label": float,
        "epsilon_label_bound": float,
        "epsilon_prior": float,
        "epsilon_total": float,
    },
    "utility": {
        "loss": str,
        "noisy_label_loss": float,
        "largest_bias": (float, type(None)),
        "rms_bias": (float, type(None)),
        "biases": (list, type(None)),
        "output_rounding": float,
        "loss_lower_bound": (float, type(None)),
        "certified_gap": (float, type(None)),
    },
    "optimality": (dict, type(None)),
    "prior": dict,
    "exact": {
        "epsilon_label": str,
        "epsilon_label_bound": str,
        "epsilon_prior": str,
        "epsilon_total": str,
        "realised_ratio": str,
        "noisy_label_loss": (str, type(None)),
        "largest_bias": (str, type(None)),
        "loss_lower_bound": (str, type(None)),
    },
    "digests": {"spec": str, "tables": str},
    "tools": dict,
    "insecure": (str, type(None)),
    "fields": {"proved": list, "declared": list},
}
COMPOSITION: Shape = {
    "labels_per_user": int,
    "epsilon_pure": str,
    "epsilon_prior": str,
    "pair": str,
    "epsilon_at_delta": list,
}
PRIOR = {
    "kind": str,
    "weights": list,
    "rows": int,
    "labels": int,
    "mechanism": str,
    "l1_sensitivity": int,
    "scale": float,
    "post_processing": str,
    "split": str,
}
PRIOR_KEYS = {
    "private": set(PRIOR),
    "public": {"kind", "weights"},
    "uniform": {"kind", "weights"},
}


def shape_error(certificate: Any) -> str | None:
    """Where the certificate differs from the shape of its format, or None."""
    wrong = _differs(certificate, _with_optional(certificate), "certificate")
    if wrong:
        return wrong
    for row in (
        certificate["composition"]["epsilon_at_delta"] if "composition" in certificate else []
    ):
        wrong = _differs(row, {"delta": str, "epsilon": str}, "composition.epsilon_at_delta")
        if wrong:
            return wrong
    optimality = certificate["optimality"]
    wrong = None if optimality is None else _differs(optimality, OPTIMALITY, "optimality")
    if wrong:
        return wrong
    prior = certificate["prior"]
    keys = PRIOR_KEYS.get(prior.get("kind"))
    if keys is None or set(prior) != keys:
        return "prior"
    return _differs(prior, {key: PRIOR[key] for key in keys}, "prior") or next(
        (f"tools.{key}" for key, value in certificate["tools"].items() if type(value) is not str),
        None,
    )


OPTIMALITY: Shape = {"over": str, "amount": str, "alpha": list, "beta": list}


def rational(text: str) -> Fraction:
    """A rational number "p/q" of bounded length; ValueError for anything else."""
    if not RATIONAL.fullmatch(text):
        raise ValueError("not a rational number")
    number = Fraction(text)
    if str(number) != text:
        raise ValueError("not a rational number in lowest terms")
    return number


def decimal(text: Any) -> Fraction:
    """A decimal number of bounded length and exponent; ValueError for anything else."""
    if not isinstance(text, str) or not DECIMAL.fullmatch(text):
        raise ValueError("not a decimal number")
    return Fraction(text)


def _with_optional(certificate: Any) -> Shape:
    """The shape that a certificate must have: only a spec with labels_per_user asks for more."""
    if isinstance(certificate, dict) and "composition" in certificate:
        return {**CERTIFICATE, "composition": COMPOSITION}
    return CERTIFICATE


def _differs(value: Any, shape: Shape, where: str) -> str | None:
    if isinstance(shape, dict):
        if not isinstance(value, dict) or set(value) != set(shape):
            return where
        found = (_differs(value[key], inner, f"{where}.{key}") for key, inner in shape.items())
        return next((wrong for wrong in found if wrong), None)
    allowed = shape if isinstance(shape, tuple) else (shape,)
    return None if type(value) in allowed else where
