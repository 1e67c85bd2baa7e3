"""The table of a sweep: which columns, and how a number is written."""

from __future__ import annotations

from labeldp_verify.reading.shortcomings import relevant
from labeldp_verify.reading.usefulness import PRIORS, ROWS
from labeldp_verify.rounded import at_most, up_to

from labeldp_compile.tools.sweep.measure import Point
from labeldp_compile.tools.sweep.sweep import Sweep

BEST, UNBIASED = "◄", "0"
# Of the shortcomings, by their kind: at the end of a row there is no room for a sentence.
_IN_SHORT = {
    "one_output": "says nothing of the label",
    "never_an_output": "some labels never come out",
    "unused_epsilon": "uses less than half of ε",
    "like_a_constant": "hardly better than a constant",
    "told_apart_from_none": "cannot tell some labels apart",
    "not_estimable": "off on average, beyond repair",
}
FRONTIER_HEADER = ["budget of bias", "noisy label loss", "rms bias", "largest bias"]


def header(sweep: Sweep) -> list[str]:
    """The columns, the goal's figure first; categories have no bias."""
    moments = ["largest bias", "rms bias"] if _numeric(sweep) else []
    return [
        "mechanism",
        *_by_goal(sweep, error_column(sweep), "noisy label loss"),
        *(["by group", "groups that gain"] if sweep.spec.groups else []),
        *moments,
        "outputs",
        "ε of a label ≤",
        "bytes",
        "seconds",
    ]


def error_column(sweep: Sweep) -> str:
    """What ``Point.margin_under_prior`` is, in a few words."""
    of = "share" if sweep.spec.has_classes else "mean"
    return f"± of a {of} of {ROWS:,}"


def cells(sweep: Sweep, point: Point) -> list[str]:
    """One row, in the order of ``header``; the bias of an unbiased mechanism is 0."""
    moments = []
    if _numeric(sweep):
        biases = (point.bias_in_range, point.rms_bias)
        moments = [_bias(bias, unbiased=point.unbiased) for bias in biases]
    error = point.margin_under_prior
    return [
        point.mechanism,
        *_by_goal(sweep, "–" if error is None else at_most(error, 4), f"{point.loss:.6g}"),
        *_of_groups(point),
        *moments,
        f"{point.outputs:,}",
        up_to(point.epsilon_label_bound),
        f"{point.bytes:,}",
        f"{point.seconds:.2f}",
    ]


def _bias(bias: float | None, *, unbiased: bool) -> str:
    """Sets of numbers have none."""
    if bias is None:
        return "–"
    return UNBIASED if unbiased else at_most(bias, 4)


def _of_groups(point: Point) -> list[str]:
    """The loss with a table for each group, and how many of those are worth it."""
    found = point.groups
    if found is None:
        return []
    if found.loss is None:
        return ["–", "–"]
    return [f"{found.loss:.6g}", f"{found.pay:,} of {found.tables:,}"]


def remark(sweep: Sweep, point: Point) -> str:
    """In a few words what keeps a point from being useful for the goal, or nothing."""
    kinds = [found.kind for found in relevant(point.shortcomings, sweep.spec.goal)]
    if "not_estimable" in kinds:  # because some labels are alike, as the document says
        kinds = [kind for kind in kinds if kind != "told_apart_from_none"]
    return "; ".join(_IN_SHORT[kind] for kind in kinds)


def notes(sweep: Sweep) -> list[str]:
    """What the table's columns and marks mean."""
    what = "share" if sweep.spec.has_classes else "mean"
    error = {
        "mean": "where outputs have a bias, labeldp estimate undoes it",
        "share": "of the least certain category, as labeldp estimate has them",
    }[what]
    assumed = PRIORS[sweep.taken]
    best = {
        "training": f"least noise in an estimated {what}",
        "labels": "least noisy label loss",
    }[sweep.spec.goal]
    bias = "; bias 0: nothing but rounding to whole counts" if _numeric(sweep) else ""
    groups = [
        "by group: the noisy label loss with a table for each group, at the same ε of a label; a "
        "group gains if its own table loses at least 1 % less than the one table for all"
    ]
    return [
        f"{BEST} {best} (goal: {sweep.spec.goal}){bias}",
        f"±: 95% margin of error, at most, assuming {assumed} (--json also has that for all "
        f"labels); {error}",
        f"noisy label loss, rms bias and {BEST}: assuming {assumed}",
        *(groups if sweep.spec.groups else []),
    ]


def by_epsilon(sweep: Sweep) -> list[tuple[float, list[Point]]]:
    """The points of each ε, the best for the goal first, degenerate ones last."""
    goal = sweep.spec.goal
    return [
        (
            epsilon,
            sorted((p for p in sweep.points if p.epsilon == epsilon), key=lambda p: p.rank(goal)),
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
    assert point.rms_bias is not None and point.bias_in_range is not None
    biases = (point.rms_bias, point.bias_in_range)
    return [
        point.mechanism.partition(", ")[2] or "unbiased",
        f"{point.loss:.6g}",
        *(_bias(bias, unbiased=point.unbiased) for bias in biases),
    ]


def frontier_title(line: list[Point]) -> str:
    """What the rows of one frontier are."""
    return f"From unbiased to RR-on-Bins at ε = {line[0].epsilon:g}"


def _by_goal(sweep: Sweep, error: str, loss: str) -> tuple[str, str]:
    """The two figures, that of the goal first."""
    return (error, loss) if sweep.spec.goal == "training" else (loss, error)


def _numeric(sweep: Sweep) -> bool:
    return any(point.variance is not None for point in sweep.points)
