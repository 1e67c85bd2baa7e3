"""The numbers under the picture of losses stand apart, however far the losses do."""

from itertools import pairwise

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from labeldp_compile.tools.report.comparison import Standing
from labeldp_compile.tools.report.plots import draw_comparison

RANGES = [(1, 5), (3, 350), (66, 9992), (1, 1e6), (20, 2e8), (0.125, 5e11), (1e-13, 1)]


@pytest.mark.parametrize("losses", RANGES, ids=str)
def test_the_numbers_of_the_axis_do_not_overlap(losses):
    figure = Figure(figsize=(5.2, 3), layout="constrained")  # as wide as in the picture
    axes = figure.subplots()
    standings = [Standing("a mechanism", loss, None, False, False) for loss in losses]
    draw_comparison(axes, standings, None, "loss")
    FigureCanvasAgg(figure).draw()
    low, high = axes.get_xlim()
    labels = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    boxes = [label.get_window_extent() for place, label in labels if low <= place <= high]
    assert len(boxes) >= 2
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
