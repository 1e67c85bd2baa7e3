"""Matplotlib figures as SVG that follows the colour scheme of its page, or as PNG on white.

Figures are drawn in the colours of ``palette.LIGHT``; in a page each becomes the CSS variable of
its name.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import BinaryIO

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from labeldp_compile.page.palette import LIGHT

_DPI = 150
_STYLE = re.compile(r'style="[^"]*"')
_COLOUR = re.compile("|".join(LIGHT.values()))
_VARIABLES = {colour: f"var(--{name})" for name, colour in LIGHT.items()}
# Matplotlib numbers its groups alike in every figure, but an id may stand in a page only once.
_NUMBERED_ID = re.compile(r' id="[A-Za-z0-9.]+_\d+"')


@contextmanager
def picture_settings() -> Iterator[None]:
    """Draw inside: the same picture whatever the user's settings, and text as it stands.

    A dollar sign is no formula here, and a character that the font lacks is no warning.
    """
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        mpl.rcdefaults()
        mpl.rcParams.update(
            {
                "text.parse_math": False,
                "axes.unicode_minus": True,
                "image.composite_image": False,
                "svg.fonttype": "none",
                "font.size": 9.5,
            }
        )
        yield


def inline_svg(figure: Figure, name: str, label: str) -> str:
    """An SVG element, the same for the same figure; ``name`` keeps its ids apart from others'.

    ``label`` says in words what is to be seen. Call it inside ``picture_settings``.
    """
    buffer = io.StringIO()
    mpl.rcParams["svg.hashsalt"] = name
    figure.set_canvas(FigureCanvasSVG(figure))
    figure.savefig(buffer, format="svg", transparent=True, dpi=72, metadata={"Date": None})
    text = buffer.getvalue()
    text = _NUMBERED_ID.sub("", text[text.index("<svg") :])
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = _STYLE.sub(lambda style: _COLOUR.sub(_variable, style[0]), text)
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)


def save_figure(figure: Figure, file: Path | BinaryIO) -> None:
    """Write the figure as PNG on white; the same bytes for the same figure."""
    figure.set_canvas(FigureCanvasAgg(figure))
    figure.savefig(file, format="png", dpi=_DPI, facecolor="white", metadata={"Software": None})


def _variable(colour: re.Match[str]) -> str:
    return _VARIABLES[colour[0]]
