"""A sweep as one HTML page that needs nothing else: no script, no request."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from labeldp_compile.page.document import html_document
from labeldp_compile.sweep.plot import sweep_svg
from labeldp_compile.sweep.sweep import Sweep
from labeldp_compile.sweep.table import (
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
    title = f"{sweep.spec.name}: mechanisms compared"
    return html_document(
        title,
        [
            f"<h1>{escape(title)}</h1>",
            *_basis(sweep),
            f'<div class="wide">{sweep_svg(sweep)}</div>',
            *_table(sweep),
            *_frontier(sweep),
            *_missing(sweep),
        ],
    )


def _basis(sweep: Sweep) -> list[str]:
    """What the numbers rest on."""
    spec, paid = sweep.spec, ""
    if sweep.spent:
        paid = f" (estimated once for all points, at a cost of ε₁ = {float(sweep.spent):g})"
    lines = [
        f"<p>{spec.domain.size:,} labels, loss: {spec.loss}, prior: {spec.prior.kind}{paid}.</p>",
    ]
    if sweep.insecure is not None:
        return [*lines, f'<p class="warning">{escape(sweep.insecure)}</p>']
    return [*lines, "<p>Each number is from the certificate of a compiled, verified artifact.</p>"]


def _table(sweep: Sweep) -> list[str]:
    names = header(sweep)
    lines = ['<div class="wide"><table>', f"<thead>{_row(names, 'th')}</thead>"]
    for epsilon, points in groups(sweep):
        if not points:
            continue
        title = f'<th scope="rowgroup" colspan="{len(names)}">ε = {epsilon:g}</th>'
        lines.append(f"<tbody><tr>{title}</tr>")
        for point in points:
            best = ' class="best"' if point is sweep.best(epsilon) else ""
            lines.append(_row(cells(sweep, point), "td", best))
        lines.append("</tbody>")
    return [
        *lines,
        "</table></div>",
        "<p>Highlighted: the least noisy label loss at this ε. "
        "A bias of 0 is nothing but rounding to whole counts.</p>",
    ]


def _frontier(sweep: Sweep) -> list[str]:
    lines = []
    for line in sweep.frontier:
        lines += [
            f"<h2>{escape(frontier_title(line))}</h2>",
            f"<table><thead>{_row(FRONTIER_HEADER, 'th')}</thead><tbody>",
            *(_row(frontier_cells(point), "td") for point in line),
            "</tbody></table>",
        ]
    return lines


def _row(texts: Sequence[str], tag: str, attributes: str = "") -> str:
    scope = ' scope="col"' if tag == "th" else ""
    inside = "".join(f"<{tag}{scope}>{escape(text)}</{tag}>" for text in texts)
    return f"<tr{attributes}>{inside}</tr>"


def _missing(sweep: Sweep) -> list[str]:
    lines = [
        f"<li>ε = {epsilon:g}: {escape(', '.join(names))}: {escape(reason)}</li>"
        for epsilon, reason, names in missing_by_reason(sweep)
    ]
    lines += [
        f"<li>{escape(mechanism)}: {escape(reason)}</li>" for mechanism, reason in sweep.left_out
    ]
    return ["<h2>Not compared</h2>", "<ul>", *lines, "</ul>"] if lines else []
