"""``labeldp explain``: the page, its pictures, and a summary."""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64
from labeldp_verify.printable import Marked, clipped, printable
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from labeldp_compile.toolkit import (
    DARK,
    INK,
    LIGHT,
    inline_svg,
    page,
    picture_settings,
    plain,
    scale,
    text_table,
    tidy,
)
from labeldp_trainer.interactions.effects import Effect
from labeldp_trainer.outcomes.explained import BAND, Bins, Explained

# The pictures of what a model of interactions learned.

WIDTH = 5.2  # inches, of a figure in a page: its text is 11 px high on a phone
SMALL = 9.5  # points
MOST_BARS, MOST_CATEGORIES = 20, 24
_NAME_COLUMNS = 24
_FEW = 2  # edges: bins are drawn as points, as categories are
_LEVEL_COLUMNS = 44  # longer rows of names are rotated
_FAR = 50  # the largest edge over the smallest: the axis is logarithmic
_MOST_TICKS = 5
_APART = 6  # cells from the name of missing numbers to an edge
_COLOURS = ("accent", "mark", "good")
_SCHEMES = {"light": LIGHT, "dark": DARK}
_BETWEEN = {"light": "#e4e7ea", "dark": "#2b3138"}
"""The colour of 0 in a heat map: a cell without rows has that of the page."""
_DASHED = {"color": LIGHT["soft"], "linewidth": 1.2, "linestyle": "--"}


def importance_figure(explained: Explained) -> Figure:
    """A bar for each of the strongest terms, and a mark at the typical error of its effect."""
    effects, chosen = explained.effects, explained.strongest[:MOST_BARS]
    figure = Figure(figsize=(WIDTH, 0.9 + 0.23 * len(chosen)), layout="constrained")
    axes: Any = figure.subplots()
    places = np.arange(len(chosen))
    axes.barh(places, effects.importance[chosen], color=LIGHT["accent"], height=0.7, alpha=0.5)
    axes.plot(
        effects.error[chosen], places, linestyle="", marker="|", color=LIGHT["mark"], ms=10, mew=1.8
    )
    names = [clipped(explained.name(effects.terms[i]), 2 * _NAME_COLUMNS) for i in chosen]
    axes.set_yticks(places, names)
    axes.set(ylim=(len(chosen) - 0.4, -0.6))
    # long names leave little room: the label may begin below them
    axes.set_xlabel(f"importance, {explained.unit}", loc="right")
    _name_numbers(axes.xaxis, 4)
    tidy(axes, grid="x")
    return figure


def main_figure(explained: Explained, effect: Effect) -> Figure:
    """The effect over the bins of a column, with its bands."""
    bins = explained.bins[effect.term[0]]
    if bins.edges is None or len(bins.edges) <= _FEW:
        return _points(explained, effect, bins)
    return _steps(explained, effect, bins, bins.edges)


def _steps(
    explained: Explained, effect: Effect, bins: Bins, edges: Float64[np.ndarray, " e"]
) -> Figure:
    missing = effect.rows[-1] > 0
    figure = Figure(figsize=(WIDTH, 2.6), layout="constrained")
    parts: Any = figure.subplots(
        1, 1 + missing, width_ratios=[1] if not missing else [9, 1], sharey=True, squeeze=False
    )[0]
    parts[0].set_xlabel(clipped(bins.column, 2 * _NAME_COLUMNS))
    distant = edges[0] > 0 and edges[-1] > _FAR * edges[0]
    ends = _with_ends(edges, ratios=distant)
    for axes in parts:
        axes.axhline(0, **_DASHED)
    drawn = []
    for k, name in enumerate(_COLOURS[: effect.mean.shape[-1]]):
        mean, half = effect.mean[:, k], BAND * effect.deviation[:, k]
        low, high, colour = mean - half, mean + half, LIGHT[name]
        band = {"fill": True, "color": colour, "alpha": 0.22, "linewidth": 0}
        parts[0].stairs(high[:-1], ends, baseline=low[:-1], **band)
        drawn.append(parts[0].stairs(mean[:-1], ends, baseline=None, color=colour, linewidth=2))
        if missing:
            place = [k]
            parts[1].errorbar(place, mean[-1:], half[-1:], fmt="o", color=colour, markersize=4)
    if missing:
        last = len(drawn) - 1
        parts[1].set(xticks=[last / 2], xticklabels=["missing"], xlim=(-1, last + 1))
        tidy(parts[1], grid="y")
    tidy(parts[0])
    parts[0].margins(x=0)
    if distant:
        scale(parts[0], "x", edges.tolist())
    else:
        whole = np.allclose(edges, np.rint(edges), rtol=1e-6)  # they come from float32
        parts[0].xaxis.set_major_locator(MaxNLocator(4 if bins.days else 7, integer=whole))
        parts[0].xaxis.set_major_formatter(lambda number, _: bins.number(number))
    _name_numbers(parts[0].yaxis)
    _name_outputs(explained, effect, parts[0], drawn, parts[0].set_ylabel)
    return figure


def _with_ends(edges: Float64[np.ndarray, " e"], *, ratios: bool) -> Float64[np.ndarray, " e+2"]:
    """With ends of the outer bins, which have none: each is drawn as wide as its neighbour."""
    places = np.log(edges) if ratios else edges
    first, last = 2 * places[0] - places[1], 2 * places[-1] - places[-2]
    ends = np.concatenate([[first], places, [last]])
    return np.asarray(np.exp(ends) if ratios else ends)


def _points(explained: Explained, effect: Effect, bins: Bins) -> Figure:
    """The bins with most rows: categories by their effect, numbers in their order."""
    chosen = shown_bins(effect.rows)
    if bins.edges is None:
        chosen = chosen[np.argsort(-effect.mean[chosen, 0], kind="stable")]
    figure = Figure(figsize=(WIDTH, 0.9 + 0.23 * len(chosen)), layout="constrained")
    axes: Any = figure.subplots()
    axes.axvline(0, **_DASHED)
    drawn, count = [], effect.mean.shape[-1]
    for k, name in enumerate(_COLOURS[:count]):
        places = np.arange(len(chosen)) + 0.22 * (k - (count - 1) / 2)
        mean, half = effect.mean[chosen, k], BAND * effect.deviation[chosen, k]
        style = {"fmt": "o", "color": LIGHT[name], "markersize": 4, "elinewidth": 1.6}
        drawn.append(axes.errorbar(mean, places, xerr=half, **style))
    names = [clipped(bins.names[i], _NAME_COLUMNS) for i in chosen]
    axes.set_yticks(range(len(chosen)), names)
    axes.set(ylim=(len(chosen) - 0.4, -0.6), ylabel=_beside(bins, len(chosen)))
    _name_numbers(axes.xaxis)
    tidy(axes, grid="x")
    _name_outputs(explained, effect, axes, drawn, axes.set_xlabel)
    return figure


def shown_bins(rows: Float64[np.ndarray, " b"]) -> Any:
    """The bins with most rows, in their order; none without rows."""
    most = np.argsort(-rows, kind="stable")[:MOST_CATEGORIES]
    return np.sort(most[rows[most] > 0])


def pair_figure(explained: Explained, effect: Effect) -> Figure:
    """A heat map of what a pair adds to the effects of its columns, in colours of each scheme."""
    both = [explained.bins[c] for c in effect.term]
    names = [0 if bins.edges is not None else len(bins.names) for bins in both]
    turned = names[0] < names[1]  # names of categories are long
    order = (1, 0) if turned else (0, 1)
    down, across = both[order[0]], both[order[1]]
    mean, half, rows = (
        each.transpose(order)
        for each in (effect.mean[..., 0], BAND * effect.deviation[..., 0], effect.rows)
    )
    chosen = np.ix_(_on_axis(down, rows.sum(axis=1)), _on_axis(across, rows.sum(axis=0)))
    mean, half, rows = mean[chosen], half[chosen], rows[chosen]
    high = 1.3 + min(0.17 * max(len(mean), 8), 3.6)
    figure = Figure(figsize=(WIDTH, high), layout="constrained")
    axes, bar = figure.subplots(1, 2, width_ratios=[32, 1])
    most = float(np.abs(mean[rows > 0]).max(initial=0)) or 1.0
    shown = np.ma.masked_where(rows <= 0, mean)
    place = "-".join(map(str, ("pair", *effect.term, "of", *effect.outputs)))  # unique in a page
    for name, scheme in _SCHEMES.items():
        between = [scheme["mark"], _BETWEEN[name], scheme["accent"]]
        colours = LinearSegmentedColormap.from_list(name, between)
        style = {"aspect": "auto", "interpolation": "none", "cmap": colours}
        style |= {"vmin": -most, "vmax": most, "origin": "lower"}
        axes.imshow(shown, gid=f"{place}-in-{name}", **style)
        ramp = np.linspace(-most, most, 128)[:, None]
        bar.imshow(ramp, extent=(0, 1, -most, most), gid=f"{place}-bar-in-{name}", **style)
    unsure = np.argwhere((rows > 0) & (np.abs(mean) <= half))
    axes.plot(unsure[:, 1], unsure[:, 0], linestyle="", marker=".", color=INK, markersize=2)
    for axis, bins, used in ((axes.yaxis, down, chosen[0]), (axes.xaxis, across, chosen[1])):
        _name_bins(axis, bins, used.ravel())
    axes.set_ylabel(_beside(down, max(len(mean), 8)))
    axes.set_xlabel(clipped(across.column, 2 * _NAME_COLUMNS))
    tidy(axes, grid=None)
    tidy(bar, grid=None)
    bar.yaxis.tick_right()
    bar.spines[:].set_visible(False)
    bar.set_xticks([])
    _name_numbers(bar.yaxis)
    what = explained.outputs(effect)[0]
    bar.set_title(
        f"added to {clipped(what, _NAME_COLUMNS)}", loc="right", fontsize=SMALL, color=INK
    )
    return figure


def _beside(bins: Bins, lines: int) -> str:
    """The name of a column, turned, where there is room for that many lines."""
    return clipped(bins.column, min(max(3 * lines, 9), _NAME_COLUMNS))


def _on_axis(bins: Bins, rows: Float64[np.ndarray, " b"]) -> Any:
    """Numbers are all shown, as far as they occur; of categories those with most rows."""
    return shown_bins(rows) if bins.edges is None else np.flatnonzero(rows > 0)


def _name_bins(axis: Any, bins: Bins, used: Any) -> None:
    """Categories and missing numbers by name, numbers by some of the edges between them."""
    if bins.edges is None or len(bins.edges) <= _FEW:
        places = [float(i) for i in range(len(used))]
        names = [bins.names[i] for i in used]
    else:
        inner = list(range(1, int((used <= len(bins.edges)).sum())))
        inner = inner[:: max(-(-len(inner) // (4 if bins.days else _MOST_TICKS)), 1)]
        places = [i - 0.5 for i in inner]
        names = [bins.number(float(bins.edges[used[i] - 1]), 3) for i in inner]
        if used[-1] > len(bins.edges):
            room = sum(place < len(used) - _APART for place in places)
            places, names = [*places[:room], len(used) - 1], [*names[:room], "missing"]
    names = [clipped(name, _NAME_COLUMNS // 2) for name in names]
    axis.set_ticks(places, names)
    turned = axis.axis_name == "x" and sum(len(name) + 2 for name in names) > _LEVEL_COLUMNS
    for tick in axis.get_ticklabels() if turned else ():
        tick.set(rotation=40, ha="right", rotation_mode="anchor")


def _name_numbers(axis: Any, most: int = 6) -> None:
    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(lambda number, _: plain(number, 4))


def _name_outputs(
    explained: Explained, effect: Effect, axes: Any, drawn: list[Any], name_axis: Any
) -> None:
    """The title of the axis of effects; a legend where there are several outputs."""
    names = [clipped(name, _NAME_COLUMNS) for name in explained.outputs(effect)]
    if len(names) == 1:
        name_axis(f"effect on {names[0]}")
        return
    name_axis("effect on probability")
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": len(names)}
    axes.legend(drawn, names, frameon=False, labelcolor=INK, fontsize=SMALL, **place)


# ``labeldp explain``: the page of what a run learned, and a summary of it.

_MOST_TERMS, _STRONGEST = 60, 5


def summary(explained: Explained, path: Path, *, verbose: bool) -> list[str]:
    """At most 15 lines with the strongest terms; all of them if ``verbose``."""
    effects, chosen = explained.effects, explained.strongest
    shown = chosen if verbose else chosen[:_STRONGEST]
    run = explained.run
    rows = [
        [
            explained.name(effects.terms[i]),
            plain(float(effects.importance[i]), 3),
            plain(float(effects.error[i]), 3),
        ]
        for i in shown
    ]
    kind: Any = "warning" if run.epsilon is None else "ok"
    return [
        f"{run.name}: {len(chosen):,} term{'s' * (len(chosen) != 1)}, method {run.method}, "
        f"{effects.rows:,} rows, label {explained.label}",
        f"importance {explained.unit}, as the standard deviation of what a term adds (estimated):",
        *(f"  {line}" for line in text_table(["term", "importance", "typical error"], rows)),
        Marked(f"{explained.promise} {explained.publishing}", kind),
        str(path),
    ]


def explained_page(explained: Explained) -> str:
    """The page, which needs nothing else."""
    with picture_settings():
        title = "Importance of the strongest terms"
        importance = inline_svg(importance_figure(explained), "importance", title)
        mains = [_main(explained, effect, i) for i, effect in enumerate(explained.mains, 1)]
        pairs = [_pair(explained, effect, i) for i, effect in enumerate(explained.pairs, 1)]
    effects, order = explained.effects, explained.strongest
    numbers = [
        (explained.name(effects.terms[i]), float(effects.importance[i]), float(effects.error[i]))
        for i in order[:_MOST_TERMS]
    ]
    return page(
        "explained.html",
        f"What {clipped(str(explained.run.name), 80)} learned",
        folder=Path(__file__).parent,
        explained=explained,
        secret=explained.run.epsilon is None,
        importance=importance,
        bars=min(len(order), MOST_BARS),
        terms=numbers,
        left_out=max(len(order) - _MOST_TERMS, 0),
        mains=mains,
        pairs=pairs,
        most_categories=MOST_CATEGORIES,
    )


def _svg(explained: Explained, effect: Effect, figure: Figure, name: str) -> str:
    return inline_svg(figure, name, printable(f"Effect of {explained.name(effect.term)}"))


def _main(explained: Explained, effect: Effect, number: int) -> dict[str, Any]:
    bins = explained.bins[effect.term[0]]
    there = [i for i in range(len(bins.names)) if effect.rows[i] > 0]
    shown = len(there) if bins.edges is not None else len(shown_bins(effect.rows))
    lines = [
        (
            bins.names[i],
            float(effect.rows[i]),
            [
                (float(mean), BAND * float(deviation))
                for mean, deviation in zip(effect.mean[i], effect.deviation[i], strict=True)
            ],
        )
        for i in there
    ]
    return {
        "name": explained.name(effect.term),
        "svg": _svg(explained, effect, main_figure(explained, effect), f"effect-{number}"),
        "header": [f"effect on {name}" for name in explained.outputs(effect)],
        "lines": lines,
        "shown": shown,
        "hidden": len(there) - shown,
    }


def _pair(explained: Explained, effect: Effect, number: int) -> dict[str, Any]:
    there = effect.mean[effect.rows > 0]
    return {
        "name": explained.name(effect.term),
        "svg": _svg(explained, effect, pair_figure(explained, effect), f"pair-{number}"),
        "header": explained.outputs(effect),
        "least": float(np.min(there)),
        "most": float(np.max(there)),
    }
