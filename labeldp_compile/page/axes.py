"""The look of axes that all pictures share."""

from __future__ import annotations

from typing import Any

from labeldp_compile.page.palette import LIGHT

INK, GRID = LIGHT["ink"], LIGHT["grid"]


def tidy(axes: Any, *, grid: str | None = "both", **line: Any) -> None:
    """Ink for what is read, a light grid (``both``, ``x``, ``y`` or None), two spines.

    ``line`` are further properties of the grid's lines.
    """
    if grid is not None:
        axes.grid(visible=True, which="major", axis=grid, color=GRID, linewidth=0.7, **line)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)
    axes.tick_params(colors=INK, which="both")
    for text in (axes.xaxis.label, axes.yaxis.label):
        text.set_color(INK)
