"""The heat map of Pr[output | label]."""

from __future__ import annotations

from labeldp_verify.forms import CategoricalDomain

from labeldp_compile.inspection import Decoded
from labeldp_compile.page.svg import inline_svg
from labeldp_compile.report.heat_map import SHOWN_NOISE, heat_map
from labeldp_compile.report.markup import figure, name
from labeldp_compile.report.numbers import data
from labeldp_compile.report.plots.matrix import matrix_figure


def matrix(decoded: Decoded) -> list[str]:
    """The picture, and how to read it."""
    heat, certificate = heat_map(decoded), decoded.certificate
    svg = inline_svg(
        matrix_figure(decoded, heat),
        "matrix",
        "Heat map: how probable each output is, for each true label",
    )
    notes = [
        "Read upwards: a column is one true label, and shows how its outputs are spread. Colours "
        "follow the square root of the probability; blank means that no output lies there."
    ]
    if not isinstance(decoded.domain, CategoricalDomain):
        first, last = map(name, heat.outputs)
        count = data(certificate["outputs"], 9)
        shown = f", of which those from {first} to {last} are shown," if heat.tails else ""
        range_ = "" if heat.tails else f", from {first} to {last}"
        cells = "each in a cell of its own"
        if heat.cell_height is not None:
            cells = f"and a cell adds up those within {data(heat.cell_height, 4)}"
        notes.append(
            f"Both axes are real: the {count} outputs{shown} stand where they lie{range_}, "
            f"{cells}. On the dashed line the output is the label."
        )
    if heat.tails:
        notes.append(
            f"The far tails are not shown: each label’s noise stays inside with probability "
            f"{SHOWN_NOISE:.1%} or more."
        )
    if len(heat.labels) < decoded.domain.size:
        notes.append(f"{len(heat.labels)} of {data(decoded.domain.size, 9)} labels, evenly spaced.")
    return figure(svg, " ".join(notes))
