"""A sweep as one HTML page that needs nothing else: no script, no request."""

from __future__ import annotations

from labeldp_compile.tools.page.document import page
from labeldp_compile.tools.sweep.plot import sweep_svg
from labeldp_compile.tools.sweep.sweep import Sweep
from labeldp_compile.tools.sweep.table import (
    FRONTIER_HEADER,
    cells,
    frontier_cells,
    frontier_title,
    groups,
    header,
    missing_by_reason,
)


def sweep_page(sweep: Sweep) -> str:
    """The page: the picture, the table, and what could not be compiled."""
    return page(
        "sweep/sweep.html",
        f"{sweep.spec.name}: mechanisms compared",
        sweep=sweep,
        svg=sweep_svg(sweep),
        header=header(sweep),
        groups=[
            (epsilon, [(cells(sweep, p), p is sweep.best(epsilon)) for p in points])
            for epsilon, points in groups(sweep)
            if points
        ],
        frontier_header=FRONTIER_HEADER,
        frontiers=[(frontier_title(line), map(frontier_cells, line)) for line in sweep.frontier],
        missing=missing_by_reason(sweep),
    )
