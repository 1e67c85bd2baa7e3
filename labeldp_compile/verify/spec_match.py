"""Does the certificate agree with a spec? Read here with a plain safe loader, nothing shared."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from fractions import Fraction
from typing import Any

import yaml

from labeldp_compile.errors import InputError


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
    domain = certificate["label"]["domain"]
    wanted = {
        "name": (stated.get("name"), certificate["name"]),
        "loss": (stated.get("loss"), certificate["utility"]["loss"]),
        "mechanism": (_get(stated, "mechanism", "kind"), certificate["mechanism"]),
        "label.column": (_get(stated, "label", "column"), certificate["label"]["column"]),
        "label.domain.kind": (_get(stated, "label", "domain", "kind"), domain["kind"]),
        "prior.kind": (_get(stated, "prior", "kind"), certificate["prior"]["kind"]),
    }
    for key, (in_spec, in_certificate) in wanted.items():
        if in_spec != in_certificate:
            found.append(f"{key}: the spec says {in_spec}, the certificate {in_certificate}")
    numbers = {
        "privacy.epsilon": (_get(stated, "privacy", "epsilon"), "epsilon_total"),
    }
    for key, (text, field) in numbers.items():
        total = Fraction(certificate["exact"][field])
        if text is None or Fraction(Decimal(str(text))) != total:
            found.append(f"{key}: the spec says {text}, the certificate {total}")
    for key in ("min", "max", "points"):
        text = _get(stated, "label", "domain", key)
        if key in domain and (text is None or float(text) != domain[key]):
            found.append(f"label.domain.{key}: the spec says {text}, the file has {domain[key]}")
    return found


def _get(mapping: Any, *keys: str) -> Any:
    for key in keys:
        mapping = mapping.get(key) if isinstance(mapping, dict) else None
    return mapping
