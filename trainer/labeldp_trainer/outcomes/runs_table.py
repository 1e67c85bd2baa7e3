"""The table of runs, as text and as a page: its columns and its numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labeldp_verify.console.colour import Marked
from labeldp_verify.rounded import at_most

from labeldp_compile.toolkit import page, plain, text_table
from labeldp_trainer.outcomes.runs import NONE, Run, comparable
from labeldp_trainer.run.metrics import BESIDE

_CONFIDENCE = 0.95
_BEFORE = ["run", "method", "representation", "model", "ε", "δ", "protects"]
_NO_PRIVACY = "no privacy"
_ADDS_UP = "; ε is that of one run, and every run that draws noise spends it again"
_WORDS = {"run", "method", "representation", "model", "protects"}


@dataclass(frozen=True)
class RunsTable:
    """Runs on the same data, and a row for the best constant prediction.

    Attributes:
        title: what is compared, and the best constant.
        header: names of the columns; a column that is empty for all runs is left out.
        rows: cells, the best run first.
        baseline: the index of the row for the constant, if there is one.
        note: how reliable the metrics are.
        doubts: lines on runs whose private labels may be true ones.
    """

    title: str
    header: list[str]
    rows: list[list[str]]
    baseline: int | None
    note: str
    doubts: list[str]

    @property
    def left(self) -> tuple[int, ...]:
        """The indices of columns of words."""
        return tuple(i for i, name in enumerate(self.header) if name in _WORDS)


def tables(runs: Sequence[Run]) -> list[RunsTable]:
    """One for each data set."""
    return [_table(alike) for alike in comparable(runs)]


def unfinished(runs: Sequence[Run]) -> list[str]:
    """A line for each run that is not done."""
    return [f"{run.status}: {run.reason}" for run in runs if run.status != "done"]


def runs_text(runs: Sequence[Run]) -> list[str]:
    """Lines for a terminal: the table of the most runs first, unfinished runs last."""
    lines = unfinished(runs)
    for table in reversed(tables(runs)):
        between = [""] if lines else []
        cells = text_table(table.header, table.rows, left=table.left)
        doubts = [Marked(line, "failed") for line in table.doubts]
        lines = [table.title, *cells, table.note, *doubts, *between, *lines]
    return lines


def runs_page(runs: Sequence[Run]) -> str:
    """One HTML page that loads no other file."""
    return page(
        "runs.html",
        "Training runs",
        folder=Path(__file__).parent,
        tables=tables(runs),
        others=unfinished(runs),
    )


def _table(alike: Sequence[Run]) -> RunsTable:
    first = alike[0]
    constant = f"predict the {_CONSTANT.get(first.metric, 'best constant')}"
    beside = BESIDE.get(first.metric, {})
    rows = [_cells(run, list(beside)) for run in alike]
    place = None
    if first.baseline is not None:
        ranks = [run.rank() for run in alike]
        mine = -first.baseline if first.metric == "accuracy" else first.baseline
        place = sum(rank <= mine for rank in ranks)
        blank = [NONE] * (len(_BEFORE) - 1)
        numbers = [shown((first.constant or {}).get(name)) for name in (first.metric, *beside)]
        rows.insert(place, [constant, *blank, *numbers, NONE, NONE, NONE])
    title = f"{first.label}: not compared: no run has a test set"
    if _are_tested(alike):
        title = (
            f"{first.label}: test {first.metric}, best first; {constant}: {shown(first.baseline)}"
        )
    header = [*_BEFORE, f"test {first.metric}", *beside.values(), _NO_PRIVACY, "epochs", "seconds"]
    used = [i for i, column in enumerate(zip(*rows, strict=True)) if set(column) != {NONE}]
    kept = [[row[i] for i in used] for row in (header, *rows)]
    doubts = [f"{run.folder}: labels {'; '.join(run.doubts)}" for run in alike if run.doubts]
    return RunsTable(title, kept[0], kept[1:], place, _note(alike), doubts)


def _note(alike: Sequence[Run]) -> str:
    """How reliable the metrics are. Accuracies lie in 0 … 1, so Hoeffding's bound holds."""
    noisy = sum(run.epsilon is not None for run in alike) > 1
    if not _are_tested(alike):
        return f"no test set, so no metrics{_ADDS_UP * noisy}"
    known = {run.rows_tested for run in alike} - {None}
    rows = min((run.rows_tested for run in alike if run.rows_tested), default=None)
    of = "the test rows" if rows is None or len(known) > 1 else f"{rows:,} test rows"
    note = f"metrics are estimates from {of}, one training run each; no ε covers test labels"
    if len(alike) > 1:
        note += "; the best of several runs looks better than it is"
    note += _ADDS_UP * noisy
    if rows is None or alike[0].metric != "accuracy":
        return f"{note}; no confidence interval is known"
    margin = at_most(math.sqrt(math.log(2 / (1 - _CONFIDENCE)) / (2 * rows)), 2)
    return f"{note}; an accuracy has a 95% margin of error of at most ±{margin} (Hoeffding)"


def _are_tested(alike: Sequence[Run]) -> bool:
    return any(run.test for run in alike)


_CONSTANT = {"accuracy": "majority", "mse": "mean", "mae": "median", "loss": "mean"}


def _cells(run: Run, beside: Sequence[str]) -> list[str]:
    words = (run.folder, run.method, run.representation, run.model)
    return [
        *(word or NONE for word in words),
        *(all_digits(value) for value in (run.epsilon, run.delta)),
        run.protects or NONE,
        shown(run.value),
        *(shown((run.test or {}).get(name)) for name in beside),
        NONE if run.epsilon is None else shown(run.no_privacy),
        NONE if run.epochs is None else f"{run.epochs:,}",
        NONE if run.seconds is None else f"{run.seconds:,.1f}",
    ]


def shown(value: float | None) -> str:
    """A metric in a few digits."""
    return NONE if value is None else plain(value)


def all_digits(value: float | None) -> str:
    """ε or δ with all its digits."""
    return NONE if value is None else repr(value).removesuffix(".0")
