"""The lookup tables that a mechanism will have, or several between which they will lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from labeldp_verify.artifact.alias_table import column_bits
from labeldp_verify.artifact.bucket_grid import COMFORTABLE_ENTRIES, table_bytes
from labeldp_verify.forms import Domain, WindowRandomizer

from labeldp_compile.mechanisms.additive_noise import label_lattice
from labeldp_compile.mechanisms.rr_top_k import best_k
from labeldp_compile.rounding.randomized_response import randomized_response
from labeldp_compile.rounding.rr_top_k import rr_top_k
from labeldp_compile.spec.mechanism import (
    Exponential,
    Laplace,
    Mechanism,
    OptimalUnbiased,
    RRonBins,
    RRTopK,
    RRWithPrior,
    Staircase,
)

_ENTRY = 8  # bytes
_REACH_BITS = 60  # unclipped noise ends where so many bits of the word are used up


@dataclass(frozen=True)
class Layout:
    """Number of outputs, bytes of the tables, and the exact form that they belong to."""

    outputs: int
    bytes: int
    form: str = "window"


def layouts(
    mechanism: Mechanism,
    domain: Domain,
    loss: str,
    epsilon: Fraction,
    weights: Sequence[int] | None,
) -> list[Layout]:
    """The layouts that are possible; ``weights`` are the prior's, if they are known."""
    k = domain.size
    if isinstance(mechanism, Laplace | Staircase):
        return [_noise(domain, mechanism, float(epsilon))]
    if isinstance(mechanism, Exponential):
        return [Layout(k, _ENTRY * (k << column_bits(k)) + _ENTRY * k, "table")]
    if isinstance(mechanism, RRTopK | RRWithPrior):
        if isinstance(mechanism, RRTopK):
            kept = [mechanism.k]
        elif weights is not None:
            kept = [best_k(weights, epsilon)]
        else:
            kept = sorted({*(1 << e for e in range(k.bit_length())), k})
        return [_top_k(k, m, epsilon) for m in kept]
    if isinstance(mechanism, RRonBins):
        return [_response(k, m, epsilon) for m in _bins(k, loss, float(epsilon))]
    if isinstance(mechanism, OptimalUnbiased):
        return _unbiased(mechanism, k)
    return [_response(k, k, epsilon)]


def _bins(k: int, loss: str, epsilon: float) -> list[int]:
    """RR-on-Bins: about e^(ε/2) bins for the absolute loss, e^(ε/3) for the others, if at all."""
    many = math.exp(min(epsilon / (2 if loss == "absolute" else 3), 30))
    return sorted({min(k, 2), min(k, math.ceil(1.3 * many) + 1)})


def _response(labels: int, outputs: int, epsilon: Fraction) -> Layout:
    """Randomized response over so many outputs, laid out as it will be."""
    rows = [y * outputs // labels for y in range(labels)]
    return _window(randomized_response(range(outputs), rows, epsilon))


def _top_k(labels: int, kept: int, epsilon: Fraction) -> Layout:
    return _window(rr_top_k(range(labels), range(kept), epsilon))


def _window(randomizer: WindowRandomizer) -> Layout:
    tables = table_bytes(randomizer)
    if tables is None:
        raise ValueError("the lookup tables would be too large; use fewer labels")
    return Layout(randomizer.outputs, tables)


def _unbiased(mechanism: OptimalUnbiased, k: int) -> list[Layout]:
    """From even outputs to as rare ones as the compiler allows: the rarest decides the grid."""
    most, fewest = 2 * k, max(k // 2, 1)
    if mechanism.outputs != "exact":
        most, fewest = mechanism.outputs.grid or len(mechanism.outputs.values or []), 2
    elif mechanism.bias is not None:
        fewest = 1
    least = k + 5 * most  # two segments an output, and a grid of even ones
    return [
        Layout(min(fewest, most), _ENTRY * least),
        Layout(most, _ENTRY * (k + 2 * most + COMFORTABLE_ENTRIES)),
    ]


def _noise(domain: Domain, mechanism: Laplace | Staircase, epsilon: float) -> Layout:
    period = label_lattice(domain, mechanism.lattice).period
    reach = 1 if mechanism.clip else max(math.ceil(_REACH_BITS * math.log(2) / epsilon), 2)
    tables = (1 << column_bits(2 * reach + 2)) + (2 << column_bits(period))
    return Layout((2 * reach - 1) * period + 1, _ENTRY * tables, "additive")
