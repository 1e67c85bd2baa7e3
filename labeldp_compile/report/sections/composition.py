"""What several labels of one person cost together."""

from __future__ import annotations

from labeldp_compile.inspection import Decoded
from labeldp_compile.report.composition import pure_composition
from labeldp_compile.report.markup import table
from labeldp_compile.report.numbers import data


def composition(decoded: Decoded) -> list[str]:
    """Pure ε for one to ten labels."""
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
    ]
