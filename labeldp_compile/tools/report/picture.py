"""The report as one PNG, in the shape of a slide: what it is, and the four main pictures."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from labeldp_verify.certificate import Certificate
from labeldp_verify.printable import clipped
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from labeldp_compile.tools.inspection import Decoded, label_facts, sample
from labeldp_compile.tools.inspection.heat_map import heat_map
from labeldp_compile.tools.page.numbers import plain, rounded_up
from labeldp_compile.tools.page.palette import LIGHT
from labeldp_compile.tools.page.pictures import INK, LOSSES, picture_settings, save_figure, tidy
from labeldp_compile.tools.report.findings import Findings
from labeldp_compile.tools.report.matrix import draw_matrix
from labeldp_compile.tools.report.page import drawn_bound, shortcomings
from labeldp_compile.tools.report.plots import (
    draw_comparison,
    draw_moments,
    draw_posterior,
    draw_prior,
    label_positions,
    name_label_axis,
)
from labeldp_compile.tools.report.posterior import Posteriors, most_telling, posteriors

if TYPE_CHECKING:
    from labeldp_compile.tools.report.comparison import Comparison

_SIZE = (13.6, 7.65)  # inches, 16:9
_LABELS, _LINE_COLUMNS = 101, 190


def save_picture(
    findings: Findings, file: Path | BinaryIO, compared: Comparison | None = None
) -> None:
    """Write the picture of a file that verified; the caller chooses the name.

    The fourth picture is that of the losses if mechanisms were ``compared``, else what the most
    telling output says of the label.
    """
    assert findings.decoded is not None
    with picture_settings():
        save_figure(_figure(findings, findings.decoded, compared), file)


def _figure(findings: Findings, decoded: Decoded, compared: Comparison | None) -> Figure:
    certificate, beliefs = decoded.certificate, posteriors(decoded)
    layout = ConstrainedLayoutEngine(rect=(0.005, 0.03, 0.99, 0.81), wspace=0.01, hspace=0.05)
    figure = Figure(figsize=_SIZE, layout=layout)
    figure.text(0.02, 0.945, _title(certificate), fontsize=17, fontweight="bold", color=INK)
    figure.text(0.02, 0.91, _line(findings, certificate), fontsize=10, color=LIGHT["soft"])
    worth, colour = _worth(decoded)
    figure.text(0.02, 0.875, worth, fontsize=10, color=colour)
    figure.text(0.02, 0.012, f"sha256 {findings.report.sha256}", fontsize=8, color=LIGHT["soft"])
    halves: Any = figure.subfigures(1, 2, width_ratios=[1, 1])
    left, right = halves
    heat = left.subplots(2, 2, width_ratios=[30, 1], height_ratios=[5, 2])
    draw_matrix(heat[0, 0], heat[0, 1], decoded, heat_map(decoded))
    heat[0, 0].set_title("Pr[output | label]", loc="left", color=INK)
    draw_prior(heat[1, 0], decoded, beliefs.starts, beliefs.prior)
    heat[1, 0].set_title("Prior", loc="left", color=INK)
    heat[1, 1].set_axis_off()
    above, below = right.subplots(2, 1, height_ratios=[1, 1])
    _moments(above, decoded)
    if compared is None:
        _belief(below, decoded, beliefs)
    else:
        _losses(below, certificate, compared)
    return figure


def _losses(axes: Any, certificate: Certificate, compared: Comparison) -> None:
    title = LOSSES[certificate.utility.loss]
    draw_comparison(axes, compared.standings, drawn_bound(certificate), title)
    numeric = certificate.utility.largest_bias is not None
    dots = " (open: biased)" if numeric else ""
    axes.set_title(f"Loss at the same ε and prior{dots}", loc="left", color=INK)


def _belief(axes: Any, decoded: Decoded, beliefs: Posteriors) -> None:
    shown = most_telling(beliefs)
    seen = beliefs.seen[shown]
    draw_posterior(axes, decoded, beliefs, shown, float(seen.belief.max()))
    output = clipped(seen.value, 30) if isinstance(seen.value, str) else plain(seen.value, 6)
    axes.set_title(f"What the most telling output says: {output}", loc="left", color=INK)


def _moments(axes: Any, decoded: Decoded) -> None:
    labels = sample(decoded.domain.size, _LABELS)
    facts = label_facts(decoded.domain, decoded.randomizer, labels)
    if facts[0].mean is not None:
        draw_moments(axes, decoded, facts)
        axes.set_title("Mean ± sd of the output", loc="left", color=INK)
        return
    places, kept = label_positions(decoded, labels), [row.unchanged for row in facts]
    axes.plot(places, kept, "o", color=LIGHT["accent"], clip_on=False)
    name_label_axis(axes, decoded)
    axes.set_ylim(0, 1)
    axes.set_title("Pr[output = label]", loc="left", color=INK)
    tidy(axes, grid="y")


def _title(certificate: Certificate) -> str:
    bound = rounded_up(Fraction(certificate.exact.epsilon_label_bound), 5)
    return f"{clipped(certificate.name, 60)}: ε ≤ {bound} for each label"


def _line(findings: Findings, certificate: Certificate) -> str:
    utility, prior = certificate.utility, certificate.privacy.epsilon_prior
    parts = [
        f"verified, {len(findings.report.checks)} checks",
        certificate.mechanism,
        f"{certificate.labels:,} labels",
        f"{certificate.outputs:,} outputs",
        *([f"prior ε ≥ {plain(prior)}"] if prior else []),
        f"noisy label loss {plain(utility.noisy_label_loss)} ({utility.loss})",
    ]
    if utility.certified_gap is not None:
        parts.append(f"certified gap {plain(utility.certified_gap, 2)}")
    return "  ·  ".join(parts)


def _worth(decoded: Decoded) -> tuple[str, str]:
    """What falls short of being useful, or else what the labels are good for; and its colour."""
    found = [shortcoming.text for shortcoming in shortcomings(decoded)]
    if found:
        return clipped(f"warning: {found[0]}", _LINE_COLUMNS), LIGHT["mind"]
    figures = [f"{what} {words}" for what, words in decoded.figures()]
    return clipped("  ·  ".join(figures[:2]), _LINE_COLUMNS), LIGHT["soft"]
