"""The losses with parameters: a record for each family."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

from labeldp_compile.solve.bin_costs import Floats, SidedCosts
from labeldp_compile.solve.convex_costs import ConvexCosts
from labeldp_compile.solve.loss_record import (
    CONVEX_LABELS,
    CONVEX_REPAIR,
    CONVEX_SECONDS,
    MAX_CERTIFIED_LABELS,
    FamilyRecord,
    LossRecord,
)

_LEARN = (
    "rr_on_bins",
    "rr_on_bins has the least noisy label loss of all ε-DP randomizers, with bias (for labels "
    "without bias, on which a model trains as well, say loss: squared)",
)


def _sided(name: str, under: Fraction, over: Fraction) -> LossRecord:
    u, o = float(under), float(over)
    return LossRecord(
        name,
        f"{u:g}·(y − ŷ) below the label, {o:g}·(ŷ − y) above it",
        f"mean of {u:g} · (label − output) below the label, {o:g} · (output − label) above",
        "a smaller mean cost of errors",
        lambda v, y: np.maximum(u * (y - v), o * (v - y)),
        _LEARN,
        slopes=(u, o),
        bins=partial(SidedCosts, under=u, over=o),
        certified=MAX_CERTIFIED_LABELS,
        seconds=2e-5,
    )


def _convex(
    name: str, formula: str, mean: str, less: str, of: Callable[[Floats, Floats | float], Floats]
) -> LossRecord:
    return LossRecord(
        name,
        formula,
        mean,
        less,
        of,
        _LEARN,
        bins=partial(ConvexCosts, of=of),
        certified=CONVEX_LABELS,
        seconds=CONVEX_SECONDS,
        repair=CONVEX_REPAIR,
    )


def _huber(name: str, delta: Fraction) -> LossRecord:
    most = float(delta)

    def of(v: Floats, y: Floats | float) -> Floats:
        d = np.abs(v - y)
        e = np.minimum(d, most)
        return np.asarray(e * (d - 0.5 * e))

    return _convex(
        name,
        f"½(ŷ − y)² up to {most:g}, then in proportion to the distance",
        f"mean of ½ (output − label)² up to {most:g}, then {most:g} · (distance − {most / 2:g})",
        "a smaller mean Huber loss",
        of,
    )


def _power(name: str, power: Fraction) -> LossRecord:
    p = float(power)

    def of(v: Floats, y: Floats | float) -> Floats:
        return np.asarray(np.abs(v - y) ** p / p)

    return _convex(
        name,
        f"|ŷ − y|^{p:g}/{p:g}",
        f"mean of |output − label|^{p:g} / {p:g}",
        "a smaller mean error",
        of,
    )


FAMILY_RECORDS = {
    "quantile": FamilyRecord(
        "{quantile: q} with q·(y − ŷ) below the label and (1 − q)·(ŷ − y) above it",
        lambda name, q: _sided(name, q, 1 - q),
    ),
    "under_over": FamilyRecord(
        "{under: u, over: o} with u·(y − ŷ) below the label and o·(ŷ − y) above it", _sided
    ),
    "huber": FamilyRecord(
        "{huber: δ} with ½(ŷ − y)² up to a distance of δ, and δ·(|ŷ − y| − δ/2) beyond", _huber
    ),
    "power": FamilyRecord("{power: p} with |ŷ − y|^p/p", _power),
}
