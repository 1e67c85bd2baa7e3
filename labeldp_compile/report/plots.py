"""The pictures of a report, which share their axes.

They show the prior, the moments, a posterior, and the heat map of Pr[output | label].
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from labeldp_verify.analysis import Floats, columns, likely_outputs, value
from labeldp_verify.artifact import Table
from labeldp_verify.forms import CategoricalDomain, GridDomain, Output, are_numbers, sets_of
from labeldp_verify.printable import clipped, width
from labeldp_verify.usefulness.estimates import sample
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from labeldp_compile.page.document import LIGHT, plain
from labeldp_compile.page.pictures import INK, tidy
from labeldp_compile.report.facts import HeatMap, LabelFacts

MAX_OUTPUTS, MAX_BINS = 101, 120
_SHOWN_NOISE = 0.99
_ALMOST = math.nextafter(1, 0)  # of a belief that is not certain, though the nearest float is


@dataclass(frozen=True)
class Seen:
    """The beliefs of an observer of one output.

    Attributes:
        value: the output.
        probability: of the output, under the prior.
        ratio: the largest Pr[output | label] over the smallest: the factor by which the odds
            between two labels can change.
        belief: [bins] the mean posterior probability of the labels in each.
        likeliest: index of the label with the largest posterior; ``before`` and ``after`` are its
            probabilities.
        risen: first, last and number of the indices of labels that became likelier.
    """

    value: Output
    probability: float
    ratio: float
    belief: Floats
    likeliest: int
    before: float
    after: float
    risen: tuple[int, int, int]


@dataclass(frozen=True)
class Posteriors:
    """Several outputs, in their order, on bins of neighbouring labels.

    Attributes:
        starts: [bins + 1] first label index of each bin, and k.
        prior: [bins] the mean prior probability of the labels in each bin.
        seen: the outputs.
    """

    starts: list[int]
    prior: Floats
    seen: list[Seen]


def prior_of(decoded: Table) -> Floats:
    """[k] the certificate's weights as probabilities."""
    weights = decoded.certificate.prior.weights
    total = sum(weights)
    return np.array([weight / total for weight in weights])


def posteriors(decoded: Table) -> Posteriors:
    """Posteriors of at most ``MAX_OUTPUTS`` outputs, evenly spaced among the likely ones."""
    r, prior = decoded.randomizer, prior_of(decoded)
    # The last bin may be smaller, so bins are shown by the mean of their labels.
    k = decoded.domain.size
    starts = [*range(0, k, -(-k // MAX_BINS)), k]
    first, last = likely_outputs(r, _SHOWN_NOISE)
    seen = []
    outputs = [first + i for i in sample(last - first + 1, MAX_OUTPUTS)]
    for output, likelihood in zip(outputs, columns(r, outputs), strict=True):
        together = prior * likelihood
        total = float(together.sum())
        belief = together / total
        best = int(belief.argmax())
        risen = np.flatnonzero(likelihood > total * (1 + 1e-9))
        span = (int(risen[0]), int(risen[-1]), len(risen)) if len(risen) else (0, 0, 0)
        seen.append(
            Seen(
                value=value(r, output),
                probability=total,
                ratio=float(likelihood.max() / likelihood.min()),
                belief=_means(belief, starts),
                likeliest=best,
                before=float(prior[best]),
                after=min(float(belief[best]), 1.0 if (together > 0).sum() == 1 else _ALMOST),
                risen=span,
            )
        )
    return Posteriors(starts, _means(prior, starts), seen)


def most_telling(posteriors: Posteriors) -> int:
    """The index of the output that raises the probability of a label most."""
    gains = [one.after - one.before for one in posteriors.seen]
    return gains.index(max(gains))


def _means(numbers: Floats, starts: list[int]) -> Floats:
    return np.add.reduceat(numbers, starts[:-1]) / np.diff(starts)


WIDTH = 5.2  # inches, of a figure in a page: its text is 11 px high on a phone
SMALL = 10.5  # points, of legends: 10 px high on a phone
_MAX_NAMES = 24
_NAME_COLUMNS = 16
_LEVEL_COLUMNS = 72  # longer rows of names are rotated
_MARKED = 60  # up to this many labels are also drawn as points


def prior_figure(decoded: Table, starts: list[int], prior: Floats) -> Figure:
    """The mean share of a label in bins of neighbouring labels."""
    figure = Figure(figsize=(WIDTH, 2.3), layout="constrained")
    axes: Any = figure.subplots()
    edges = bin_edges(decoded, starts)
    axes.stairs(prior, edges, fill=True, color=LIGHT["accent"], alpha=0.85, linewidth=0)
    _name_share_axes(axes, decoded, starts, "share")
    return figure


def moments_figure(decoded: Table, facts: Sequence[LabelFacts], *, with_bias: bool) -> Figure:
    """The mean of the output ± sd, and below it the bias, if there is any."""
    figure = Figure(figsize=(WIDTH, 4.4 if with_bias else 2.9), layout="constrained")
    ratios = [5, 3] if with_bias else [1]
    axes = figure.subplots(len(ratios), 1, squeeze=False, height_ratios=ratios)[:, 0]
    labels = [float(row.label) for row in facts]
    means = np.array([row.mean or 0.0 for row in facts])
    spreads = np.array([row.deviation or 0.0 for row in facts])
    accent, dashed = LIGHT["accent"], {"color": LIGHT["soft"], "linewidth": 1.2, "linestyle": "--"}
    band = {"color": accent, "alpha": 0.22, "linewidth": 0, "label": "mean ± sd"}
    axes[0].fill_between(labels, means - spreads, means + spreads, **band)
    axes[0].plot(labels, labels, label="output = label", **dashed)
    axes[0].plot(labels, means, color=accent, linewidth=2, label="mean output", **_marks(facts))
    _name_number_axes(axes[0], decoded, "output", 8)
    place = {"loc": "outside upper center", "ncols": 3, "columnspacing": 1}
    figure.legend(frameon=False, labelcolor=INK, fontsize=SMALL, **place)
    if with_bias:
        biases = [row.bias or 0.0 for row in facts]
        axes[1].axhline(0, **dashed)
        axes[1].plot(labels, biases, color=LIGHT["mark"], linewidth=2, **_marks(facts))
        _name_number_axes(axes[1], decoded, "bias: mean output − label", 5)
    return figure


def _marks(facts: Sequence[LabelFacts]) -> dict[str, Any]:
    return {"marker": "o", "markersize": 3.2} if len(facts) <= _MARKED else {}


def posterior_figure(decoded: Table, posteriors: Posteriors, shown: int) -> Figure:
    """The prior, and the posterior of the output ``shown``."""
    figure = Figure(figsize=(WIDTH, 2.7), layout="constrained")
    axes: Any = figure.subplots()
    belief, edges = posteriors.seen[shown].belief, bin_edges(decoded, posteriors.starts)
    after = {"color": LIGHT["accent"], "alpha": 0.55, "linewidth": 0}
    axes.stairs(belief, edges, fill=True, label="after the output was seen", **after)
    axes.stairs(posteriors.prior, edges, color=INK, linewidth=1.4, label="before: the prior")
    axes.set_ylim(0, 1.02 * max(float(belief.max()), float(posteriors.prior.max())))
    _name_share_axes(axes, decoded, posteriors.starts, "probability")
    place = {"loc": "outside upper center", "ncols": 2, "columnspacing": 1}
    figure.legend(frameon=False, labelcolor=INK, fontsize=SMALL, **place)
    return figure


def _round_steps(most: int, *, integer: bool = False) -> MaxNLocator:
    """At most ``most`` ticks, at round steps."""
    return MaxNLocator(most, integer=integer, steps=[1, 2, 2.5, 5, 10])


def name_numbers(axis: Any, most: int, *, integer: bool = False) -> None:
    """Ticks at round numbers, written as in the rest of the page."""
    axis.set_major_locator(_round_steps(most, integer=integer))
    axis.set_major_formatter(lambda number, _: plain(number, 7))


def bin_edges(decoded: Table, starts: list[int]) -> list[float]:
    """The edges of bins that begin at these label indices, half a step to the left of them.

    Labels are placed at their values, categories at their indices.
    """
    domain, first, step = decoded.domain, 0.0, 1.0
    if isinstance(domain, GridDomain):  # halfway to the neighbours
        at, last = np.array(domain.values), domain.size
        whole = [2 * at[0] - at[1], *at, 2 * at[-1] - at[-2]]
        return [float(whole[min(i, last)] + whole[min(i, last) + 1]) / 2 for i in starts]
    if not isinstance(domain, CategoricalDomain):
        first, step = domain.min, (domain.max - domain.min) / (domain.size - 1)
    return [first + (2 * start - 1) * step / 2 for start in starts]


def name_label_axis(axes: Any, decoded: Table) -> None:
    """The ticks and the title of the horizontal axis."""
    column = clipped(", ".join(decoded.certificate.label_columns), 40)
    domain = decoded.domain
    if isinstance(domain, CategoricalDomain):
        place = "" if domain.size <= _MAX_NAMES else ", by place in the spec"
        axes.set_xlabel(f"true label: {column}{place}")
        name_categories(axes.xaxis, [str(value) for value in domain.values])
        return
    axes.set_xlabel(f"true label: {column}")
    wide = max(abs(domain.min), abs(domain.max)) >= 10_000
    name_numbers(axes.xaxis, 7 if wide else 12, integer=domain.kind == "integer")


def _name_share_axes(axes: Any, decoded: Table, starts: list[int], what: str) -> None:
    """Labels on the horizontal axis, the mean probability of a label on the vertical one."""
    name_label_axis(axes, decoded)
    axes.set_ylabel(what if starts[1] - starts[0] == 1 else f"mean {what} of a label")
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.4g}%")
    axes.margins(x=0.01)
    tidy(axes, grid="y")


def _name_number_axes(axes: Any, decoded: Table, what: str, most: int) -> None:
    """Labels on the horizontal axis, a number with at most ``most`` ticks on the vertical one."""
    name_label_axis(axes, decoded)
    axes.set_ylabel(what)
    name_numbers(axes.yaxis, most)
    axes.margins(x=0.01)
    tidy(axes)


def name_categories(axis: Any, names: list[str]) -> None:
    """Each category by its name, or by its index if there are too many."""
    if len(names) > _MAX_NAMES:
        axis.set_major_locator(_round_steps(8, integer=True))
        return
    shown = [clipped(name, _NAME_COLUMNS) for name in names]
    turned = axis.axis_name == "x" and sum(width(name) + 2 for name in shown) > _LEVEL_COLUMNS
    axis.set_ticks(range(len(names)), shown)
    for tick in axis.get_ticklabels() if turned else ():
        tick.set(rotation=40, ha="right", rotation_mode="anchor")


# From rare to common. A page hides the one that does not belong to the colour scheme.
SCHEMES = {
    "light": ("#dce8f5", "#6da3dc", "#1f5fa8", "#0a1f45"),
    "dark": ("#21374f", "#2f6fb0", "#6fb3f7", "#f2f8ff"),
}
_POWER = 0.5  # colours follow the square root, so that small probabilities differ from zero
_APART = 0.11  # of the scale, between two ticks


def matrix_figure(decoded: Table, heat: HeatMap) -> Figure:
    """The heat map as a figure of its own, in both colour schemes at once."""
    figure = Figure(figsize=(WIDTH, 3.7), layout="constrained")
    axes, scale = figure.subplots(1, 2, width_ratios=[32, 1])
    most = float(heat.shares.max())
    # Cells without outputs are transparent.
    shares = np.ma.masked_less_equal(heat.shares, 0.0)
    label_axis = bin_edges(decoded, [0, decoded.domain.size])
    extent = (*label_axis, *heat.output_axis)
    ramp = np.linspace(0, 1, 128)[:, None]
    for name, ramp_colours in SCHEMES.items():
        colours = LinearSegmentedColormap.from_list(name, ramp_colours)
        norm = PowerNorm(_POWER, 0, most)
        style = {"origin": "lower", "aspect": "auto", "interpolation": "none", "cmap": colours}
        axes.imshow(shares, extent=extent, norm=norm, gid=f"matrix-in-{name}", **style)
        scale.imshow(ramp, extent=(0, 1, 0, 1), gid=f"scale-in-{name}", **style)
    name_label_axis(axes, decoded)
    _name_outputs(axes, decoded)
    tidy(axes, grid=None)
    tidy(scale, grid=None)
    scale.yaxis.tick_right()
    scale.spines[:].set_visible(False)
    ticks = _round_numbers(most)
    scale.set_xticks([])
    scale.set_yticks([(p / most) ** _POWER for p in ticks], [plain(p, 2) for p in ticks])
    what = "probability of the output" if heat.cell_height is None else "probability in a cell"
    scale.set_title(what, loc="right", fontsize=SMALL, color=INK)
    if are_numbers(decoded.domain, decoded.randomizer):
        ends = (max(label_axis[0], heat.output_axis[0]), min(label_axis[1], heat.output_axis[1]))
        axes.plot(ends, ends, color=LIGHT["soft"], linewidth=1, linestyle=(0, (4, 4)))
        axes.set(xlim=label_axis, ylim=heat.output_axis)
    return figure


def _round_numbers(most: float) -> list[float]:
    """0 and a few of 1, 2 and 5 times powers of ten, not too close to each other on the scale."""
    highest, chosen = math.floor(math.log10(most)), [0.0]
    for power in range(highest - 3, highest + 1):
        for number in (digit * 10.0**power for digit in (1, 2, 5)):
            apart = (number / most) ** _POWER - (chosen[-1] / most) ** _POWER
            if number <= most * 1.0001 and apart >= _APART:
                chosen.append(number)
    return chosen


def _name_outputs(axes: Any, decoded: Table) -> None:
    if not are_numbers(decoded.domain, decoded.randomizer):
        values = getattr(decoded.randomizer, "values", ())
        sets = sets_of(decoded.randomizer)
        axes.set_ylabel("output" if sets is None else "output: the number of a set of labels")
        name_categories(axes.yaxis, [clipped(str(value), 40) for value in values])
        return
    axes.set_ylabel("output (replaces the label)")
    name_numbers(axes.yaxis, 10)
