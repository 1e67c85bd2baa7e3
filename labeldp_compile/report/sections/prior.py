"""The prior that the randomizer was made for, and what it cost."""

from __future__ import annotations

from typing import Any

from labeldp_compile.inspection import Decoded
from labeldp_compile.page.svg import inline_svg
from labeldp_compile.report.markup import figure, text
from labeldp_compile.report.numbers import data
from labeldp_compile.report.plots.prior import prior_figure
from labeldp_compile.report.posterior import Posteriors


def prior(decoded: Decoded, posteriors: Posteriors) -> list[str]:
    """Where the prior comes from, and its picture."""
    svg = inline_svg(
        prior_figure(decoded, posteriors.starts, posteriors.prior),
        "prior",
        "The share of each label under the prior of the certificate",
    )
    weights = decoded.certificate["prior"]["weights"]
    never = sum(1 for weight in weights if not weight)
    caption = "The share of each label, as the certificate states it."
    if len(posteriors.prior) < len(weights):
        each = data(posteriors.starts[1], 9)
        caption += f" A bar is the mean of {each} neighbouring labels."
    if never:
        caption += (
            f" {data(never, 9)} of {data(len(weights), 9)} labels have a share of 0; "
            "they may be rare, and are protected all the same."
        )
    return [f"<p>{_origin(decoded.certificate)}</p>", *figure(svg, caption)]


def _origin(certificate: dict[str, Any]) -> str:
    stated = certificate["prior"]
    if stated["kind"] == "uniform":
        return "All labels are taken as equally likely; no data were looked at, nothing was spent."
    if stated["kind"] == "public":
        return "The prior is declared to be public; nothing was spent on it."
    spent = data(certificate["privacy"]["epsilon_prior"], field="privacy.epsilon_prior")
    return (
        f"A noisy histogram of the label over {data(stated['rows'], 9)} rows (declared): "
        f"{text(stated['mechanism'])} of scale {data(stated['scale'])} on each count, which costs "
        f"ε₁ = {spent} once; then {text(stated['post_processing'])}. The bars include that noise. "
        "Privacy does not depend on how good the prior is; the loss does."
    )
