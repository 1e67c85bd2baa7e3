"""The axis of labels, which all pictures but one share."""

from __future__ import annotations

from typing import Any

from labeldp_verify.forms import CategoricalDomain
from labeldp_verify.printable import clipped, width
from matplotlib.ticker import MaxNLocator

from labeldp_compile.inspection import Decoded
from labeldp_compile.report.numbers import plain

MAX_NAMES = 24
NAME_COLUMNS = 16
_LEVEL_COLUMNS = 72  # beyond, names are turned


def round_steps(most: int, *, integer: bool = False) -> MaxNLocator:
    """At most so many ticks, at steps that people count in."""
    return MaxNLocator(most, integer=integer, steps=[1, 2, 2.5, 5, 10])


def name_numbers(axis: Any, most: int, *, integer: bool = False) -> None:
    """Ticks at round numbers, written as everywhere on the page."""
    axis.set_major_locator(round_steps(most, integer=integer))
    axis.set_major_formatter(lambda number, _: plain(number, 7))


def label_positions(decoded: Decoded, labels: list[int]) -> list[float]:
    """Where the labels of these indices stand: at their values, categories at their places."""
    domain = decoded.domain
    if isinstance(domain, CategoricalDomain):
        return [float(index) for index in labels]
    step = (domain.max - domain.min) / (domain.size - 1)
    return [domain.min + index * step for index in labels]


def bin_edges(decoded: Decoded, starts: list[int]) -> list[float]:
    """The edges of bins that begin at these label indices, half a step to the left of them."""
    first, second = label_positions(decoded, [0, 1])
    half = (second - first) / 2
    return [first + (2 * start - 1) * half for start in starts]


def name_label_axis(axes: Any, decoded: Decoded) -> None:
    """The ticks and the title of the horizontal axis."""
    column = clipped(decoded.certificate["label"]["column"], 40)
    domain = decoded.domain
    if isinstance(domain, CategoricalDomain):
        place = "" if domain.size <= MAX_NAMES else ", by place in the spec"
        axes.set_xlabel(f"true label: {column}{place}")
        name_categories(axes.xaxis, [str(value) for value in domain.values])
        return
    axes.set_xlabel(f"true label: {column}")
    wide = max(abs(domain.min), abs(domain.max)) >= 10_000
    name_numbers(axes.xaxis, 7 if wide else 12, integer=domain.kind == "integer")


def percentages(share: float, _: float = 0) -> str:
    """A tick of an axis of probabilities."""
    return f"{100 * share:.4g} %"


def name_categories(axis: Any, names: list[str]) -> None:
    """Each category by its name, or places in their order where there are too many."""
    if len(names) > MAX_NAMES:
        axis.set_major_locator(round_steps(8, integer=True))
        return
    shown = [clipped(name, NAME_COLUMNS) for name in names]
    turned = axis.axis_name == "x" and sum(width(name) + 2 for name in shown) > _LEVEL_COLUMNS
    axis.set_ticks(range(len(names)), shown)
    for tick in axis.get_ticklabels() if turned else ():
        tick.set(rotation=40, ha="right", rotation_mode="anchor")
