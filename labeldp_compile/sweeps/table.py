"""The tables of a sweep: their columns, and how a number is written."""

from collections.abc import Callable

from labeldp_verify.reading.figures import PRIORS, ROWS
from labeldp_verify.reading.shortcomings import relevant
from labeldp_verify.rounded import at_most, up_to

from labeldp_compile.sweeps.measure import Point
from labeldp_compile.sweeps.sweep import Sweep
from labeldp_compile.tools.page.numbers import plain

BEST, UNBIASED = "◄", "0"
# Shortcomings by their kind: the end of a row has no room for a sentence.
_IN_SHORT = {
    "one_output": "the same output for every label",
    "never_an_output": "some labels are never an output",
    "unused_epsilon": "uses less than half of ε",
    "like_a_constant": "hardly better than a constant",
    "told_apart_from_none": "cannot tell some labels apart",
    "not_estimable": "biased, and no estimate can undo it",
    "biased": "biased",
}
FRONTIER_HEADER = ["bias budget", "noisy label loss", "rms bias", "largest bias"]


def columns(sweep: Sweep) -> list[tuple[str, Callable[[Point], str]]]:
    """The columns of the table and how to write a cell; the goal's figure comes first.

    Categories have no bias. The bias of an unbiased mechanism is shown as 0.
    """
    figures: list[tuple[str, Callable[[Point], str]]] = [
        (error_column(sweep), lambda p: _at_most(p.margin_under_prior)),
        ("noisy label loss", lambda p: plain(p.loss, 6)),
    ]
    if sweep.spec.goal == "labels":
        figures.reverse()
    if sweep.spec.groups:  # the loss with a table for each group, and how many groups gain
        figures += [("by group", _loss_by_table), ("groups that gain", _tables_that_gain)]
    if _numeric(sweep):
        figures += [
            ("largest bias", lambda p: _bias(p, p.bias_in_range)),
            ("rms bias", lambda p: _bias(p, p.rms_bias)),
        ]
    return [
        ("mechanism", lambda p: p.mechanism),
        *figures,
        ("outputs", lambda p: f"{p.outputs:,}"),
        ("ε of a label ≤", lambda p: up_to(p.epsilon_label_bound)),
        ("bytes", lambda p: f"{p.bytes:,}"),
        ("seconds", lambda p: f"{p.seconds:.2f}"),
    ]


def header(sweep: Sweep) -> list[str]:
    """The names of the columns."""
    return [name for name, _ in columns(sweep)]


def cells(sweep: Sweep, point: Point) -> list[str]:
    """One row."""
    return [show(point) for _, show in columns(sweep)]


def error_column(sweep: Sweep) -> str:
    """The heading of ``Point.margin_under_prior``."""
    return f"± of a {what_is_estimated(sweep)} of {ROWS:,}"


def what_is_estimated(sweep: Sweep) -> str:
    """What the margin of error is about: a share (classes) or a mean (numbers)."""
    return "share" if sweep.spec.has_classes else "mean"


def _at_most(number: float | None) -> str:
    return "–" if number is None else at_most(number, 4)


def _bias(point: Point, bias: float | None) -> str:
    """A bias of None means that outputs are not numbers."""
    return UNBIASED if point.unbiased and bias is not None else _at_most(bias)


def _loss_by_table(point: Point) -> str:
    found = point.groups
    return "–" if found is None or found.loss is None else plain(found.loss, 6)


def _tables_that_gain(point: Point) -> str:
    found = point.groups
    return "–" if found is None or found.pay is None else f"{found.pay:,} of {found.tables:,}"


def remark(sweep: Sweep, point: Point) -> str:
    """Why a point is not useful for the goal, in a few words; empty if it is useful."""
    kinds = [found.kind for found in relevant(point.shortcomings, sweep.spec.goal)]
    if "not_estimable" in kinds:  # that some labels look alike is the reason
        kinds = [kind for kind in kinds if kind != "told_apart_from_none"]
    elif point.is_biased(sweep.spec):
        kinds = ["biased", *kinds]
    return "; ".join(_IN_SHORT[kind] for kind in kinds)


def notes(sweep: Sweep) -> list[str]:
    """What the table's columns and marks mean."""
    what, assumed = what_is_estimated(sweep), PRIORS[sweep.taken]
    of_which = "the least certain category" if what == "share" else "the mean"
    best = "least noisy label loss"
    if sweep.spec.goal == "training":
        best = "smallest ±" + ("" if what == "share" else " of an unbiased mechanism")
    lines = [
        f"{BEST} marks the {best} (goal: {sweep.spec.goal})",
        f"±: 95% margin of error of {of_which} as labeldp estimate computes it, at most, assuming "
        f"{assumed}; --json also has it for all labels",
        f"noisy label loss, rms bias and {BEST}: assuming {assumed}",
    ]
    if _numeric(sweep):
        lines.append("a bias of 0: only the rounding of probabilities to whole counts is left")
    if sweep.spec.groups:
        lines.append(
            "by group: the noisy label loss with a table for each group, at the same ε of a label; "
            "a group gains if its own table loses at least 1% less than one table for all"
        )
    return lines


def by_epsilon(sweep: Sweep) -> list[tuple[float, list[Point]]]:
    """The points of each ε: the best for the goal first, biased and degenerate ones last."""
    ordered = sorted(sweep.points, key=lambda point: point.rank(sweep.spec))
    return [(epsilon, [p for p in ordered if p.epsilon == epsilon]) for epsilon in sweep.epsilons()]


def missing_by_reason(sweep: Sweep) -> list[tuple[float, str, list[str]]]:
    """(ε, reason, mechanisms) for the points that cannot be compiled."""
    together: dict[tuple[float, str], list[str]] = {}
    for point in sweep.missing:
        together.setdefault((point.epsilon, point.reason), []).append(point.mechanism)
    return [(epsilon, reason, names) for (epsilon, reason), names in together.items()]


def frontier_cells(point: Point) -> list[str]:
    """One row of the frontier's table, in the order of ``FRONTIER_HEADER``."""
    return [
        point.mechanism.partition(", ")[2] or "unbiased",
        plain(point.loss, 6),
        _bias(point, point.rms_bias),
        _bias(point, point.bias_in_range),
    ]


def frontier_title(line: list[Point]) -> str:
    """The heading of one frontier."""
    return f"From unbiased to RR-on-Bins at ε = {line[0].epsilon:g}"


def _numeric(sweep: Sweep) -> bool:
    return any(point.variance is not None for point in sweep.points)
