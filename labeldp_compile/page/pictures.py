"""Matplotlib figures as SVG elements that follow the colour scheme of a page.

Figures are drawn in the colours of ``document.LIGHT``, and each becomes the CSS variable with its
name.
"""

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from labeldp_verify.printable import printable
from markupsafe import Markup, escape
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from labeldp_compile.page.document import LIGHT, plain

INK, GRID = LIGHT["ink"], LIGHT["grid"]
_FAR_APART = 4  # the largest number over the smallest
_MOST_TICKS = 5  # of the powers of ten: 100,000,000 needs room
_IN_A_TAG = "(?=[^<>]*>)"  # and not in a text, in which these characters are escaped
_STYLE = re.compile(r'style="[^"]*"' + _IN_A_TAG)
_COLOUR = re.compile("|".join(LIGHT.values()))
_VARIABLES = {colour: f"var(--{name})" for name, colour in LIGHT.items()}
# Matplotlib uses the same numbered ids in every figure, but an id may occur in a page only once.
_NUMBERED_ID = re.compile(r' id="[A-Za-z0-9.]+_\d+"' + _IN_A_TAG)


@contextmanager
def picture_settings() -> Iterator[None]:
    """Settings for drawing: user settings have no effect, and text is shown unchanged.

    A dollar sign starts no formula, and a character that the font lacks causes no warning.
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
                "font.size": 11.5,
            }
        )
        yield


def inline_svg(figure: Figure, name: str, label: str) -> Markup:
    """An SVG element, the same for the same figure; ``name`` makes its ids unique in a page.

    ``label`` describes the picture in words. Call this inside ``picture_settings``.
    """
    text = _svg(figure, name)
    text = _NUMBERED_ID.sub("", text[text.index("<svg") :])
    text = _STYLE.sub(
        lambda style: _COLOUR.sub(lambda colour: _VARIABLES[colour[0]], style[0]), text
    )
    text = text.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)
    return Markup(text)  # noqa: S704  # matplotlib escapes every text that it writes


def _svg(figure: Figure, name: str) -> str:
    buffer = io.StringIO()
    mpl.rcParams["svg.hashsalt"] = name
    figure.set_canvas(FigureCanvasSVG(figure))
    figure.savefig(buffer, format="svg", dpi=72, metadata={"Date": None}, transparent=True)
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", buffer.getvalue(), flags=re.DOTALL)
    return "\n".join(map(printable, text.split("\n")))


def tidy(axes: Any, *, grid: str | None = "both", **line: Any) -> None:
    """Ink for text, a light grid (``both``, ``x``, ``y`` or None), and two spines.

    ``line`` are further properties of the grid lines.
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


def scale(axes: Any, which: str, numbers: Sequence[float]) -> None:
    """The axis ``which`` (x or y): logarithmic if the numbers are > 0 and far apart."""
    if not (numbers and 0 < _FAR_APART * min(numbers) < max(numbers)):
        return
    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    subs = (1, 2, 5) if max(numbers) < 100 * min(numbers) else (1,)
    axis.set_major_locator(LogLocator(10, subs=subs, numticks=_MOST_TICKS))
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(lambda number, _: plain(number, 3))
