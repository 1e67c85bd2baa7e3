"""The mechanisms to compare for a spec, and their options."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from labeldp_verify.forms import CategoricalDomain, JointDomain

from labeldp_compile.errors import InputError
from labeldp_compile.mechanisms import BY_DEFAULT, KINDS, all_mechanisms, mechanism_class
from labeldp_compile.mechanisms.mechanism import Mechanism
from labeldp_compile.spec import Spec
from labeldp_compile.spec.validity import check_validity


@dataclass(frozen=True)
class Candidates:
    """The mechanisms to measure, and those that do not fit: (title, reason)."""

    chosen: list[Mechanism]
    left_out: list[tuple[str, str]]


def find_candidates(spec: Spec, asked: Sequence[str] | None) -> Candidates:
    """The mechanisms that fit the spec's domain and loss, including the spec's own.

    ``asked`` are kinds (``rr_top_k:K`` with its k), or None for all. If the spec names a kind, its
    options are used. Raises InputError for an unknown kind.
    """
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
    if spec.loss != "squared" or isinstance(spec.domain, CategoricalDomain):
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
    own = spec.named_mechanism
    mine = own if isinstance(own, wanted) and own.kind == kind else None
    return wanted.compared(mine, spec.domain.size, spec.loss)
