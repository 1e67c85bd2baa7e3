"""The loss against its certified lower bound, and against the other mechanisms at the same ε."""

from __future__ import annotations

from typing import Any

from labeldp_compile.inspection import Decoded
from labeldp_compile.page.svg import inline_svg
from labeldp_compile.report.comparison import Comparison
from labeldp_compile.report.markup import figure, table, text
from labeldp_compile.report.numbers import data
from labeldp_compile.report.plots.comparison import comparison_figure
from labeldp_compile.report.standing import Standing, standings
from labeldp_compile.report.wording import CLASSES, LOSSES, why_no_bound

_DOTS = (
    " A full dot is unbiased, an open one is not; the two answer different questions, for a bias "
    "does not average out."
)


def comparison(decoded: Decoded, compared: Comparison) -> list[str]:
    """Bound, picture, table, and what was left out."""
    certificate = decoded.certificate
    utility, ranked = certificate["utility"], standings(decoded, compared)
    lines = [f"<p>{_bound(certificate)}</p>"]
    if len(ranked) > 1:
        svg = inline_svg(
            comparison_figure(ranked, drawn_bound(certificate), LOSSES[utility["loss"]]),
            "comparison",
            "The loss of this file and of the other mechanisms; the numbers are in the table",
        )
        numeric = utility["largest_bias"] is not None
        dots = _DOTS if numeric else ""
        line = "" if drawn_bound(certificate) is None else "; dashed: the certified lower bound"
        lines += figure(
            svg,
            f"At the same ε of a label, under the same prior{line}.{dots}",
        )
        lines += _among_unbiased(ranked)
        own = next(i for i, standing in enumerate(ranked) if standing.own)
        header = ["mechanism", "noisy label loss", "times this file’s"]
        header += ["largest bias"] if numeric else []
        rows = [_row(standing, ranked[own].loss, numeric) for standing in ranked]
        lines += table("Noisy label loss, least first", header, rows, best=own)
        lines.append(
            '<p class="soft">Each of the others was compiled and verified for this page, with its '
            "default options.</p>"
        )
    return [*lines, *_left_out(compared)]


def drawn_bound(certificate: dict[str, Any]) -> float | None:
    """The lower bound, if it is one on the loss alone: with a penalty it speaks of a sum."""
    bound: float | None = certificate["utility"]["loss_lower_bound"]
    optimality = certificate["optimality"]
    return None if optimality is None or optimality["over"] == "penalty" else bound


def _bound(certificate: dict[str, Any]) -> str:
    utility = certificate["utility"]
    loss = data(utility["noisy_label_loss"], 7, field="utility.noisy_label_loss")
    if utility["loss_lower_bound"] is None:
        reason = text(why_no_bound(certificate))
        return (
            f"The loss is {loss}. There is no certified lower bound to hold it against: {reason}."
        )
    least = data(utility["loss_lower_bound"], 7, field="utility.loss_lower_bound")
    gap = data(utility["certified_gap"], 2, field="utility.certified_gap")
    over = certificate["optimality"]["over"]
    if over == "penalty":
        return (
            f"The loss is {loss}. The file proves that loss and penalty together are at least "
            f"{least} for every equally private randomizer; here they are within a relative {gap}."
        )
    return (
        f"The loss is {loss}. The file proves that no equally private randomizer {CLASSES[over]} "
        f"gets below {least}: a relative gap of {gap}."
    )


def _row(standing: Standing, own: float, numeric: bool) -> list[str]:
    times = "–" if own <= 0 else data(standing.loss / own, 3)
    cells = [text(standing.title), data(standing.loss, 6), times]
    if numeric:
        assert standing.largest_bias is not None
        cells.append("0 (rounding)" if standing.unbiased else data(standing.largest_bias, 4))
    return cells


def _among_unbiased(ranked: list[Standing]) -> list[str]:
    """Where the file stands among those that are right on average, if it is one of them."""
    unbiased = [standing for standing in ranked if standing.unbiased]
    if len(unbiased) < 2 or not any(standing.own for standing in unbiased):
        return []
    place = next(i for i, standing in enumerate(unbiased) if standing.own)
    least = "the least" if place == 0 else f"the {place + 1}. least"
    return [f"<p>Of the {len(unbiased)} that are unbiased, this file has {least} loss.</p>"]


def _left_out(compared: Comparison) -> list[str]:
    if not compared.left_out:
        return []
    items = [f"<li>{text(title)}: {text(reason)}</li>" for title, reason in compared.left_out]
    return ["<h3>Not compared</h3><ul>", *items, "</ul>"]
