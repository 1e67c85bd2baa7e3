"""The heat map of Pr[output | label]."""

from __future__ import annotations

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
    if heat.bin_width is not None:
        first, last = map(name, heat.outputs)
        count, height = data(certificate["outputs"], 9), data(heat.bin_width, 4)
        shown = f", of which those from {first} to {last} are shown," if heat.tails else ""
        range_ = "" if heat.tails else f", from {first} to {last}"
        notes.append(
            f"Both axes are real: the {count} outputs{shown} stand where they lie{range_}, and a "
            f"cell adds up those within {height}. On the dashed line the output is the label."
        )
    if heat.tails:
        notes.append(
            f"The far tails are not shown: each label’s noise stays inside with probability "
            f"{SHOWN_NOISE:.1%} or more."
        )
    if len(heat.labels) < decoded.domain.size:
        notes.append(f"{len(heat.labels)} of {data(decoded.domain.size, 9)} labels, evenly spaced.")
    return figure(svg, " ".join(notes))
