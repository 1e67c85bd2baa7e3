"""Does the certificate agree with a spec? Read here as plain texts, not as the compiler does."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import labeldp_verify
from labeldp_verify import DEFAULT_BUDGET, Budget, Report, SpecCheck, read_artifact
from labeldp_verify.checks import short
from labeldp_verify.claims import Certificate, GroupsClaims, Prior
from labeldp_verify.console.limits import Limits
from labeldp_verify.reading.numerals import read_decimal

from labeldp_compile.column_names import is_among
from labeldp_compile.errors import InputError
from labeldp_compile.yaml_tree import MAX_BYTES, Listed, Mapped, Node, YamlError, read_tree

if TYPE_CHECKING:
    from labeldp_verify.signature import Signed

_SHOWN = 100


def check_file(
    path: Path,
    spec: Path | None = None,
    signed: Signed | None = None,
    budget: Budget = DEFAULT_BUDGET,
    limits: Limits | None = None,
) -> Report:
    """The report on an artifact and, with a spec, on whether it was made from that.

    Raises InputError if the file or the spec cannot be read, and TooLargeError, one of them, if
    checking it would exceed the budget.
    """
    agreement = None if spec is None else spec_check(read_artifact(spec))
    return labeldp_verify.check_file(path, agreement, signed, budget, limits)


def spec_check(spec: bytes) -> SpecCheck:
    """What ``labeldp_verify`` asks of a certificate for this spec."""
    return lambda certificate: spec_disagreements(spec, certificate)


def spec_disagreements(spec: bytes, certificate: Certificate) -> list[str]:
    """What in the certificate does not fit the spec, in plain words; empty if all fits.

    Raises InputError if the spec is not YAML, or more of it than a spec may have.
    """
    stated = _stated(spec)
    found = []
    if hashlib.sha256(spec).hexdigest() != certificate.digests.spec:
        found.append("compiled from another spec, or another text of it (its digest differs)")
    prior, exact = certificate.prior, certificate.exact
    wanted = {
        "name": certificate.name,
        "loss": certificate.utility.loss,
        "mechanism.kind": "auto" if certificate.auto else certificate.mechanism,
        "prior.kind": "private" if _is_unpaid(stated, certificate) else prior.kind,
    }
    for key, value in wanted.items():
        in_spec = _get(stated, *key.split("."))
        if in_spec != value:
            found.append(f"{key}: the spec says {_shown(in_spec)}, the certificate {_shown(value)}")
    goal = _get(stated, "goal") or _get(stated, "mechanism", "goal") or "training"
    if certificate.goal not in (None, goal):
        found.append(f"goal: the spec says {_shown(goal)}, the certificate {certificate.goal}")
    numbers: dict[str, Any] = {"privacy.epsilon": exact.epsilon_total}
    split = _get(stated, "privacy", "split")
    if isinstance(split, dict):
        for part in ("prior", "label"):
            numbers[f"privacy.split.{part}"] = getattr(exact, f"epsilon_{part}")
    if _get(stated, "privacy", "labels_per_user") is not None or certificate.composition:
        composition = certificate.composition
        numbers["privacy.labels_per_user"] = composition and composition.labels_per_user
    for key, value in numbers.items():
        text = _get(stated, *key.split("."))
        if not _same_number(text, value):
            found.append(f"{key}: the spec says {_shown(text)}, the certificate {_shown(value)}")
    if prior.kind != "private" and exact.epsilon_prior != "0":
        found.append(f"the prior is {prior.kind}, but ε was spent on it")
    found += _label(_get(stated, "label"), certificate) + _weights(stated, prior)
    groups = _get(stated, "groups")
    return found + _groups(groups, certificate.groups) + _assign(groups, certificate.label_columns)


def _is_unpaid(stated: Any, certificate: Certificate) -> bool:
    """Whether a uniform prior stands for a private one, as ``split: auto`` may decide."""
    is_auto = _get(stated, "privacy", "split") in (None, "auto")
    is_private = _get(stated, "prior", "kind") == "private"
    free = certificate.prior.kind == "uniform" and certificate.exact.epsilon_prior == "0"
    return is_auto and is_private and free


def _label(in_spec: Any, certificate: Certificate) -> list[str]:
    """The label, or each column of a joint one, must be the same."""
    domain = certificate.label.domain
    if certificate.joint is None:
        return _column(in_spec, "label", certificate.label.column, domain)
    listed, claimed = _get(in_spec, "columns"), certificate.joint.columns
    if not isinstance(listed, list) or len(listed) != len(claimed):
        return ["label.columns: the spec and the certificate have not as many"]
    found = []
    for i, (own, column, part) in enumerate(zip(listed, claimed, domain["columns"], strict=True)):
        where = f"label.columns.{i}"
        found += _column(own, where, column.name, part)
        if _get(own, "loss") != column.loss:
            found.append(f"{where}.loss: the spec says {_shown(_get(own, 'loss'))}")
        weight = _get(own, "weight") or "1"
        if column.weight is not None and not _same_number(weight, Fraction(column.weight)):
            found.append(f"{where}.weight: the spec says {_shown(weight)}")
    return found


def _column(in_spec: Any, where: str, name: str | None, domain: dict[str, Any]) -> list[str]:
    """One column of the label, and its domain."""
    wanted = {
        "column": name,
        "domain.kind": domain["kind"],
        "domain.values": [str(v) for v in domain["values"]] if "values" in domain else None,
    }
    numbers = {f"domain.{key}": domain.get(key) for key in ("min", "max", "points")}
    found = []
    for key, value in {**wanted, **numbers}.items():
        text = _get(in_spec, *key.split("."))
        if text != value if key in wanted else not _same_number(text, value):
            shown = f"the spec says {_shown(text)}, the certificate {_shown(value)}"
            found.append(f"{where}.{key}: {shown}")
    rounding = _get(in_spec, "domain", "rounding")
    if rounding is not None and rounding != domain.get("rounding"):
        found.append(f"{where}.domain.rounding: the spec says {_shown(rounding)}")
    return found + _out_of_domain(in_spec, where, domain)


def _out_of_domain(label: Any, where: str, domain: dict[str, Any]) -> list[str]:
    in_spec = _get(label, "out_of_domain") or "clamp"
    in_file = domain["out_of_domain"]
    if isinstance(in_spec, dict) and isinstance(in_file, dict):
        one, other = in_spec.get("default"), in_file["default"]
        same = one == other or (not isinstance(other, str) and _same_number(one, other))
    else:
        same = in_spec == in_file
    if same:
        return []
    return [f"{where}.out_of_domain: the spec says {_shown(in_spec)}, the file {_shown(in_file)}"]


def _groups(in_spec: Any, in_file: GroupsClaims | None) -> list[str]:
    """The columns must be the same, with the same values or bands, if no file assigns groups."""
    if in_spec is None or in_file is None:
        return [] if in_spec is in_file else ["groups: in the spec or the file, but not in both"]
    columns = _get(in_spec, "columns") or [in_spec]
    if not isinstance(columns, list) or len(columns) != len(in_file.columns):
        return ["groups: the spec and the certificate have not as many columns"]
    found = []
    for one, claimed in zip(columns, in_file.columns, strict=True):
        name = _get(one, "column")
        if name != claimed.name:
            found.append(f"groups: the spec says {_shown(name)}, the certificate {claimed.name}")
        if _get(in_spec, "assign") is not None:
            continue
        values, bands = _get(one, "values"), _get(one, "bands")
        stated = claimed.values and [str(value) for value in claimed.values]
        if values != stated or not _same_numbers(bands, claimed.bands):
            found.append(f"groups: the values or bands of {_shown(name)} differ")
    return found


def _assign(in_spec: Any, labels: list[str]) -> list[str]:
    """The file that assigns groups must name no column of the label."""
    keys = ("key", "group")
    named = [_get(in_spec, "assign", key) for key in keys]
    return [
        f"groups.assign.{key}: {_shown(name)} is the label, which cannot be its own group"
        for key, name in zip(keys, named, strict=True)
        if isinstance(name, str) and is_among(name, labels)
    ]


def _same_numbers(texts: Any, numbers: list[Any] | None) -> bool:
    if not isinstance(texts, list) or numbers is None:
        return texts is None and numbers is None
    pairs = zip(texts, numbers, strict=False)
    return len(texts) == len(numbers) and all(_same_number(t, n) for t, n in pairs)


def _weights(stated: Any, prior: Prior) -> list[str]:
    """Public weights must be in the same proportion."""
    in_spec, in_file = _get(stated, "prior", "weights"), prior.weights
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
        return Fraction(read_decimal(text))
    except ValueError:
        return None


def _stated(spec: bytes) -> dict[str, Any]:
    if len(spec) > MAX_BYTES:
        raise InputError(f"a spec has at most {MAX_BYTES:,} bytes")
    try:
        stated = _texts(read_tree(spec.decode()))
    except UnicodeDecodeError as error:
        raise InputError("the spec is not UTF-8 text") from error
    except YamlError as error:
        raise InputError(f"the spec, line {error.line}: {error}") from error
    if not isinstance(stated, dict):
        raise InputError("the spec is not a mapping")
    return stated


def _texts(node: Node) -> Any:
    """Every scalar as its text, so that no number is rounded."""
    if isinstance(node, Listed):
        return [_texts(item) for item in node.items]
    if isinstance(node, Mapped):
        return {key.text: _texts(value) for key, value in node.items}
    return node.text


def _shown(value: Any) -> str:
    """As it was written, if it is short."""
    if value is None:
        return "nothing"
    return value if isinstance(value, str) and len(value) <= _SHOWN else short(value)


def _get(mapping: Any, *keys: str) -> Any:
    for key in keys:
        mapping = mapping.get(key) if isinstance(mapping, dict) else None
    return mapping
