"""The table of a sweep: which columns, and how a number is written."""

from __future__ import annotations

from labeldp_compile.tools.sweep.measure import Point
from labeldp_compile.tools.sweep.sweep import Sweep

BEST, UNBIASED = "◄", "0"
FRONTIER_HEADER = ["budget of bias", "noisy label loss", "rms bias", "largest bias"]


def header(sweep: Sweep) -> list[str]:
    """The columns; categories have no bias and no variance."""
    moments = ["largest bias", "rms bias", "variance"] if _numeric(sweep) else []
    return [
        "mechanism",
        "noisy label loss",
        *moments,
        "outputs",
        "ε of a label ≤",
        "bytes",
        "seconds",
    ]


def cells(sweep: Sweep, point: Point) -> list[str]:
    """One row, in the order of ``header``; the bias of an unbiased mechanism is 0."""
    moments = []
    if _numeric(sweep):
        assert point.largest_bias is not None and point.rms_bias is not None
        biases = (point.largest_bias, point.rms_bias)
        moments = [UNBIASED if point.unbiased else f"{bias:.4g}" for bias in biases]
        moments.append(f"{point.variance:.6g}")
    return [
        point.mechanism,
        f"{point.loss:.6g}",
        *moments,
        f"{point.outputs:,}",
        f"{point.epsilon_label_bound:.6f}",
        f"{point.bytes:,}",
        f"{point.seconds:.2f}",
    ]


def groups(sweep: Sweep) -> list[tuple[float, list[Point]]]:
    """The points of each ε, least loss first."""
    return [
        (
            epsilon,
            sorted((p for p in sweep.points if p.epsilon == epsilon), key=lambda p: p.loss),
        )
        for epsilon in sweep.epsilons()
    ]


def missing_by_reason(sweep: Sweep) -> list[tuple[float, str, list[str]]]:
    """(ε, reason, mechanisms) of the points that cannot be compiled."""
    together: dict[tuple[float, str], list[str]] = {}
    for point in sweep.missing:
        together.setdefault((point.epsilon, point.reason), []).append(point.mechanism)
    return [(epsilon, reason, names) for (epsilon, reason), names in together.items()]


def frontier_cells(point: Point) -> list[str]:
    """One row of the frontier's table, in the order of ``FRONTIER_HEADER``."""
    assert point.rms_bias is not None and point.largest_bias is not None
    biases = (point.rms_bias, point.largest_bias)
    return [
        point.mechanism.partition(", ")[2] or "unbiased",
        f"{point.loss:.6g}",
        *(UNBIASED if point.unbiased else f"{bias:.4g}" for bias in biases),
    ]


def frontier_title(line: list[Point]) -> str:
    """What the rows of one frontier are."""
    return f"From unbiased to RR-on-Bins at ε = {line[0].epsilon:g}"


def _numeric(sweep: Sweep) -> bool:
    return any(point.variance is not None for point in sweep.points)
