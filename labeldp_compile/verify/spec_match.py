"""Does the certificate agree with a spec? Read here with a plain safe loader, nothing shared."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from fractions import Fraction
from typing import Any

import yaml

from labeldp_compile.errors import InputError

MAX_EXPONENT = 1000


class _TextLoader(yaml.SafeLoader):
    """A safe loader that keeps every scalar as text, so that no number is rounded."""


_TextLoader.yaml_implicit_resolvers = {}


def spec_disagreements(spec: bytes, certificate: dict[str, Any]) -> list[str]:
    """What in the certificate does not fit the spec, in plain words; empty if all fits.

    Raises InputError if the spec is not YAML.
    """
    try:
        stated = yaml.load(spec, Loader=_TextLoader)  # noqa: S506  # a subclass of SafeLoader
    except yaml.YAMLError as error:
        raise InputError("the spec is not valid YAML") from error
    if not isinstance(stated, dict):
        raise InputError("the spec is not a mapping")
    found = []
    if hashlib.sha256(spec).hexdigest() != certificate["digests"]["spec"]:
        found.append("the certificate names another spec (its digest differs)")
    label, prior = certificate["label"], certificate["prior"]
    domain, exact = label["domain"], certificate["exact"]
    wanted = {
        "name": certificate["name"],
        "loss": certificate["utility"]["loss"],
        "mechanism.kind": "auto" if certificate["auto"] else certificate["mechanism"],
        "label.column": label["column"],
        "label.domain.kind": domain["kind"],
        "label.domain.values": [str(v) for v in domain["values"]] if "values" in domain else None,
        "prior.kind": prior["kind"],
    }
    for key, value in wanted.items():
        in_spec = _get(stated, *key.split("."))
        if in_spec != value:
            found.append(f"{key}: the spec says {in_spec}, the certificate {value}")
    numbers = {
        "privacy.epsilon": exact["epsilon_total"],
        **{f"label.domain.{key}": domain.get(key) for key in ("min", "max", "points")},
    }
    split = _get(stated, "privacy", "split")
    if isinstance(split, dict):
        for part in ("prior", "label"):
            numbers[f"privacy.split.{part}"] = exact[f"epsilon_{part}"]
    if _get(stated, "privacy", "labels_per_user") is not None or "composition" in certificate:
        numbers["privacy.labels_per_user"] = certificate.get("composition", {}).get(
            "labels_per_user"
        )
    for key, value in numbers.items():
        text = _get(stated, *key.split("."))
        if not _same_number(text, value):
            found.append(f"{key}: the spec says {text}, the certificate {value}")
    if prior["kind"] != "private" and exact["epsilon_prior"] != "0":
        found.append(f"the prior is {prior['kind']}, but ε was spent on it")
    rounding = _get(stated, "label", "domain", "rounding")
    if rounding is not None and rounding != domain.get("rounding"):
        found.append(f"label.domain.rounding: the spec says {rounding}")
    return found + _out_of_domain(stated, domain) + _weights(stated, prior)


def _out_of_domain(stated: Any, domain: dict[str, Any]) -> list[str]:
    in_spec = _get(stated, "label", "out_of_domain") or "clamp"
    in_file = domain["out_of_domain"]
    if isinstance(in_spec, dict) and isinstance(in_file, dict):
        one, other = in_spec.get("default"), in_file["default"]
        same = one == other or _same_number(one, other)
    else:
        same = in_spec == in_file
    return [] if same else [f"label.out_of_domain: the spec says {in_spec}, the file {in_file}"]


def _weights(stated: Any, prior: dict[str, Any]) -> list[str]:
    """Public weights must be in the same proportion."""
    in_spec, in_file = _get(stated, "prior", "weights"), prior["weights"]
    if in_spec is None:
        return []
    exact = [_number(text) for text in in_spec] if isinstance(in_spec, list) else []
    if len(exact) == len(in_file) and None not in exact:
        one, other = sum(w for w in exact if w is not None), sum(in_file)
        if all(w is not None and w * other == n * one for w, n in zip(exact, in_file, strict=True)):
            return []
    return ["prior.weights: the spec and the certificate differ"]


def _same_number(text: Any, value: Any) -> bool:
    """Whether a scalar of the spec is this number, as the compiler reads it (float64 if float)."""
    if text is None or value is None:
        return text is value
    number = _number(text)
    if number is None:
        return False
    return float(number) == value if isinstance(value, float) else number == Fraction(value)


def _number(text: Any) -> Fraction | None:
    try:
        decimal = Decimal(str(text))
    except ArithmeticError:
        return None
    if not decimal.is_finite() or abs(decimal.adjusted()) > MAX_EXPONENT:
        return None
    return Fraction(decimal)


def _get(mapping: Any, *keys: str) -> Any:
    for key in keys:
        mapping = mapping.get(key) if isinstance(mapping, dict) else None
    return mapping
