"""The picture of an evaluation: predicted against observed means, with their intervals."""

from collections.abc import Mapping, Sequence
from typing import Any

from labeldp_verify.printable import clipped, printable
from matplotlib.figure import Figure

from labeldp_compile.page.document import LIGHT
from labeldp_compile.page.pictures import INK, picture_settings, svg_text, tidy
from labeldp_compile.tools.evaluate.evaluate import Evaluation

MOST_MODELS = 5  # each has a colour and a shape of its own
_NAME_COLUMNS, _TITLE_COLUMNS = 40, 60
_STYLES = (("accent", "o"), ("mark", "s"), ("good", "^"), ("bad", "D"), ("soft", "v"))
_APART = 0.006  # of the axis, so that intervals of models do not hide one another


def calibration_svg(found: Evaluation) -> str:
    """Calibration curves of the first models, as the text of an SVG file."""
    with picture_settings():
        return svg_text(_figure(found.artifact, found.rows, found.calibration))


def _figure(name: str, rows: int, curves: Mapping[str, Sequence[Any]]) -> Figure:
    figure = Figure(figsize=(7.2, 5.6), layout="constrained")
    axes = figure.subplots()
    shown = dict(list(curves.items())[:MOST_MODELS])
    places = [one.predicted for bins in shown.values() for one in bins]
    ends = min(places), max(places)
    axes.plot(ends, ends, color=INK, lw=1, ls="--", label="perfectly calibrated")
    apart = _APART * (ends[1] - ends[0])
    for number, (model, bins) in enumerate(shown.items()):
        colour, marker = _STYLES[number]
        x = [one.predicted + apart * (number - (len(shown) - 1) / 2) for one in bins]
        y = [one.observed for one in bins]
        reach = [
            [one.observed - one.low for one in bins],
            [one.high - one.observed for one in bins],
        ]
        style: dict[str, Any] = {
            "fmt": f"{marker}-",
            "color": LIGHT[colour],
            "ms": 4,
            "lw": 1,
            "capsize": 2,
        }
        axes.errorbar(x, y, yerr=reach, label=clipped(model, _NAME_COLUMNS), **style)
    if len(shown) < len(curves):
        axes.plot([], [], " ", label=f"{len(curves) - len(shown):,} more models are not drawn")
    axes.set(
        xlabel="mean prediction of a bin", ylabel="estimated mean of true labels, 95% interval"
    )
    title = f"{clipped(name, _TITLE_COLUMNS)}: calibration on {rows:,} private labels"
    axes.set_title(printable(title), loc="left", color=INK)
    axes.legend(frameon=False)
    tidy(axes)
    return figure
