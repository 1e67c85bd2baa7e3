"""Which mechanisms to compare for a spec, and with which options."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from labeldp_compile.errors import InputError
from labeldp_compile.spec import Spec
from labeldp_compile.spec.mechanism import Laplace, Mechanism, OptimalUnbiased, Staircase
from labeldp_compile.spec.title import mechanism_title
from labeldp_compile.spec.validity import MECHANISMS, check_validity

# Where the loss is not squared, unbiased outputs come from a grid, by a linear program whose time
# grows with the squares of both numbers: these keep it to seconds.
GRID_LABELS = 100
GRID_OUTPUTS = 101
_WITH_NUMBER = ("rr_top_k",)  # has no default: compared only where it is asked for
_MECHANISM: TypeAdapter[Mechanism] = TypeAdapter(Annotated[Mechanism, Field(discriminator="kind")])
_FRONTIER_EXPONENTS = range(8, -2, -1)  # penalties 10^e; the loss and squared bias share a unit


@dataclass(frozen=True)
class Candidates:
    """The mechanisms to measure, and those that cannot be: (title, reason)."""

    chosen: list[Mechanism]
    left_out: list[tuple[str, str]]


def find_candidates(spec: Spec, asked: Sequence[str] | None) -> Candidates:
    """The mechanisms that apply to the spec's domain and loss; the spec's own is among them.

    ``asked`` are kinds (``rr_top_k:K`` with its k), or None for all. Options are the spec's own
    where it names the kind. Raises InputError for an unknown kind.
    """
    kinds = [_kind(text) for text in asked] if asked is not None else _all_kinds(spec)
    options = [mechanism for kind, k in kinds for mechanism in _variants(spec, kind, k)]
    chosen: list[Mechanism] = []
    left_out = []
    for mechanism in _distinct(options):
        problem = check_validity(spec.with_mechanism(mechanism))
        if problem is None:
            chosen.append(mechanism)
        else:
            left_out.append((mechanism_title(mechanism), problem[1]))
    return Candidates(chosen, left_out)


def frontier_candidates(spec: Spec) -> list[Mechanism]:
    """From unbiased to RR-on-Bins by falling penalties on bias; InputError if it has no meaning."""
    if spec.loss != "squared" or spec.label.domain.kind == "categorical":
        raise InputError("--bias-frontier is for numbers with loss: squared")
    penalties = [*(Decimal(10) ** e for e in _FRONTIER_EXPONENTS), Decimal(0)]
    budgets = [None, *({"penalty": penalty} for penalty in penalties)]
    return [_named("optimal_unbiased", bias=budget) for budget in budgets]


def _all_kinds(spec: Spec) -> list[tuple[str, int | None]]:
    named = spec.named_mechanism.kind
    return [(kind, None) for kind in MECHANISMS if kind == named or kind not in _WITH_NUMBER]


def _kind(text: str) -> tuple[str, int | None]:
    kind, _, k = text.strip().partition(":")
    if kind not in MECHANISMS:
        close = difflib.get_close_matches(kind, MECHANISMS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"expected {', '.join(MECHANISMS)}"
        raise InputError(f"--mechanisms: {kind!r} is no mechanism; {hint}")
    if k and (kind != "rr_top_k" or not k.isascii() or not k.isdigit() or int(k) < 1):
        raise InputError(f"--mechanisms: {text!r}: only rr_top_k takes a number, as in rr_top_k:5")
    return kind, int(k) if k else None


def _variants(spec: Spec, kind: str, k: int | None) -> list[Mechanism]:
    own = [spec.named_mechanism] if spec.named_mechanism.kind == kind else []
    if kind == "rr_top_k":
        if k is None and not own:
            raise InputError("--mechanisms: rr_top_k needs a k, as in rr_top_k:5")
        return own if k is None else [_named("rr_top_k", k=k)]
    if kind == "optimal_unbiased":
        return [*_unbiased(spec), *own]
    if kind in ("laplace", "staircase"):
        return _noise(kind, own)
    return own or [_named(kind)]


def _unbiased(spec: Spec) -> list[Mechanism]:
    """Exact outputs, or a grid of them where the loss is not squared."""
    if spec.loss == "squared":
        return [_named("optimal_unbiased")]
    own = spec.named_mechanism
    given = isinstance(own, OptimalUnbiased) and own.outputs != "exact"
    if given or spec.domain.size > GRID_LABELS:
        return [] if given else [_named("optimal_unbiased")]
    outputs = {"grid": min(2 * spec.domain.size + 1, GRID_OUTPUTS)}
    return [_named("optimal_unbiased", outputs=outputs)]


def _noise(kind: str, own: Sequence[Mechanism]) -> list[Mechanism]:
    """Clipped and unclipped, on the spec's own lattice if it names one."""
    lattice = next((m.lattice for m in own if isinstance(m, Laplace | Staircase)), None)
    return [_named(kind, clip=clip, lattice=lattice) for clip in (False, True)]


def _distinct(mechanisms: Iterable[Mechanism]) -> list[Mechanism]:
    return list({mechanism_title(mechanism): mechanism for mechanism in mechanisms}.values())


def _named(kind: str, **options: Any) -> Mechanism:
    return _MECHANISM.validate_python({"kind": kind, **options})
