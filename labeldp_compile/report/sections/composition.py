"""What several labels of one person cost together."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from labeldp_compile.inspection import Decoded
from labeldp_compile.report.composition import pure_composition
from labeldp_compile.report.markup import table
from labeldp_compile.report.numbers import data, data_above


def composition(decoded: Decoded) -> list[str]:
    """Pure ε for one to ten labels, and ε at a given δ where the certificate states it."""
    payments = pure_composition(decoded.certificate)
    paid = payments[0].total != payments[0].label
    header = ["labels L of one person", "all L replaced: L · ε of a label"]
    header += ["and counted in the prior, too"] if paid else []
    rows = [
        [
            str(payment.labels),
            data(float(payment.label), 6),
            *([data(float(payment.total), 6)] if paid else []),
        ]
        for payment in payments
    ]
    return [
        "<p>ε protects one label. A person with several labels, or whose label is replaced several "
        "times without a key, pays for each: costs add up, and so does what can be learnt.</p>",
        *table("Pure ε for one person with L labels", header, rows),
        *_at_delta(decoded.certificate.get("composition")),
    ]


def _at_delta(stated: dict[str, Any] | None) -> list[str]:
    if stated is None:
        return [
            "<p>If a small probability δ of more is allowed, many labels cost less. This file does "
            "not say how much: <code>labeldp compose</code> computes it for any number of labels, "
            "and <code>privacy: {labels_per_user: L}</code> in a spec puts it into the file.</p>"
        ]
    labels = f"{stated['labels_per_user']:,}"
    rows = [
        [
            data(float(row["delta"])),
            data_above(Fraction(row["epsilon"]), 6, field=f"composition.epsilon_at_delta.{index}"),
        ]
        for index, row in enumerate(stated["epsilon_at_delta"])
    ]
    return [
        f"<p>The spec declares that one person has up to {labels} labels. {_gain(stated)} The "
        "integers in the file prove every line.</p>",
        *table(f"Proved (ε, δ) for all {labels} labels of one person", ["δ", "ε at δ"], rows),
    ]


def _gain(stated: dict[str, Any]) -> str:
    """What δ buys: with few labels it may be nothing."""
    pure = Fraction(stated["epsilon_pure"])
    if all(Fraction(row["epsilon"]) >= pure for row in stated["epsilon_at_delta"]):
        return (
            "To allow a small probability δ of more buys nothing here: no smaller ε is proved for "
            "all of them together."
        )
    return (
        "If a small probability δ of more is allowed, all of them together cost less than "
        f"{data_above(pure, 6)} where a line says so."
    )
