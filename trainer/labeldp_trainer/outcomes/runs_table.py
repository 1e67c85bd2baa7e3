"""The tables of ``labeldp runs``, and the summary that ``labeldp train`` prints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labeldp_verify.printable import Marked, at_most

from labeldp_compile.toolkit import page, plain, text_table
from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.data import IdxFiles
from labeldp_trainer.methods.statement import Statement, spent
from labeldp_trainer.outcomes.runs import NONE, Run, comparable
from labeldp_trainer.run.folder import BESIDE, CONSTANTS, REPORTED

if TYPE_CHECKING:  # training imports JAX, which code that reads run folders does not need
    from labeldp_trainer.training import Result

# The table of runs, as text and as a page: its columns and its numbers.

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


# What ``labeldp train`` prints at the end: a summary of at most 15 lines, the verdict last.

_MOST_NOTES = 5
_COLUMNS = 15


def summary(loaded: LoadedConfig, result: Result) -> list[str]:
    """The method, its privacy, its test metric, and notes that a person must know."""
    statement = result.statement
    facts = {
        "privacy": _privacy(statement),
        "beyond ε": _excess(statement),
        "public": _public(statement),
        f"test {REPORTED[loaded.config.loss]}": _metric(loaded, result),
        "keep secret": "; ".join(statement.secret),
        "not covered": "; ".join((*statement.not_covered, *statement.limits)),
        "not proved": " ".join(statement.declared),
        "next run": statement.again,
        "folder": f"{result.folder} (privacy.txt holds the whole statement; --verbose prints it)",
    }
    lines = [f"  {name:{_COLUMNS}}{text}" for name, text in facts.items() if text]
    return [_trained(loaded, result), *lines]


def warnings(result: Result) -> list[Marked]:
    """The notes of a run; the first ones if there are many."""
    notes = list(result.notes)
    if len(notes) > _MOST_NOTES:
        more = len(notes) - _MOST_NOTES + 1
        notes = [*notes[: _MOST_NOTES - 1], f"{more:,} more notes are in result.json"]
    return [Marked(f"note: {note}", "warning") for note in notes]


def verdict(statement: Statement) -> Marked:
    """One short sentence."""
    if statement.epsilon is None:
        return Marked("trained without privacy: keep the model and its metrics secret", "warning")
    doubts = statement.details.get("doubts") or []
    ending = f" ({'; '.join(doubts)})" if doubts else ""
    verdict = f"trained with label privacy: {_of(statement)}{ending}"
    return Marked(verdict, "warning" if doubts else "ok")


def all_metrics(result: Result) -> str:
    """Every number of the result in one line."""
    return ", ".join(
        f"{name.replace('_', ' ')} {value:.6g}"
        for name, value in result.metrics.items()
        if isinstance(value, int | float)
    )


def _trained(loaded: LoadedConfig, result: Result) -> str:
    config, train = loaded.config, loaded.config.data.train
    kind, epochs = loaded.config.model_kind or "linear", result.metrics.get("epochs")
    parts = [
        f"model {kind}",
        f"loss {config.loss}",
        f"method {config.method.kind}",
        *([f"{epochs:,} epoch{'s' * (epochs != 1)}"] if epochs else []),
        f"{result.rows:,} rows of {train.images if isinstance(train, IdxFiles) else train}",
    ]
    return f"{config.name}: {', '.join(parts)}"


def _of(statement: Statement) -> str:
    assert statement.epsilon is not None
    return spent(statement.epsilon, statement.delta)


def _privacy(statement: Statement) -> str:
    if statement.epsilon is None:
        return f"none: {statement.mechanism}"
    most = statement.details.get("max_examples_per_user")
    if most is None:
        whose = "for each label; a person with several labels spends ε for each of them"
    else:
        whose = f"for all labels of a user together; at most {most:,} rows of each user are used"
    return f"{_of(statement)} {whose}"


def _excess(statement: Statement) -> str:
    """How likely outcomes are that say more than ε allows."""
    excess = statement.details.get("loss_above_epsilon")
    if excess is None:
        return ""
    return (
        f"outcomes that say more have a probability of at most {at_most(excess['at_most'], 3)} "
        f"(proved), which is not δ"
    )


def _public(statement: Statement) -> str:
    if statement.epsilon is None:
        return ""
    owners = statement.details.get("unit") == "user"
    return f"the features,{' who owns which row,' * owners} and the number of rows"


def _metric(loaded: LoadedConfig, result: Result) -> str:
    loss = loaded.config.loss
    if result.test is None:
        return "unknown: the config names no test data"
    model, constant, first = result.test.model, result.test.constant, REPORTED[loss]
    beside = "".join(
        f"; {words} {shown(model[name])}, {shown(constant.get(name))} by a constant"
        for name, words in BESIDE.get(first, {}).items()
        if name in model
    )
    return (
        f"{shown(model.get(first))}; always predicting {CONSTANTS[loss]} gives "
        f"{shown(constant.get(first))}{beside} (estimates from {result.test.rows:,} test rows)"
    )
