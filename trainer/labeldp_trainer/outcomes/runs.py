"""Compares training runs, read from their folders, without JAX, and prints tables of them.

Run folders are untrusted: a folder that cannot be read is reported as damaged, and the others are
not affected.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from labeldp_verify.errors import readable
from labeldp_verify.printable import Marked, at_most
from pydantic import BaseModel, ConfigDict, TypeAdapter

from labeldp_compile.toolkit import page, plain, text_table
from labeldp_trainer.config import LoadedConfig, NoMethod, Privatized
from labeldp_trainer.config.data import Approximate, IdxFiles
from labeldp_trainer.errors import DAMAGE, InputError
from labeldp_trainer.methods.statement import Statement, spent
from labeldp_trainer.randomize import exact
from labeldp_trainer.run import RunFolder
from labeldp_trainer.run.folder import BESIDE, CONSTANTS, REPORTED, read_json, read_lines

if TYPE_CHECKING:  # training imports JAX, which code that reads run folders does not need
    from labeldp_trainer.training import Result

FORMAT_VERSION = "1.0"
NONE = "–"
_MOST_COUNT = 1 << 63
_numbers = TypeAdapter(
    dict[str, float | None], config=ConfigDict(strict=True, allow_inf_nan=False)
).validate_python
_texts = TypeAdapter(list[str], config=ConfigDict(strict=True)).validate_python
_ROUNDED = 1 - Fraction(1, 10**12)  # the parts of ε are rounded to floats, and so is their sum
_SIGNS = ("run.json", "privacy.json", "result.json", "params.npz")


class _Stated(BaseModel):
    """The words of a statement, and the numbers behind ε."""

    model_config = ConfigDict(strict=True)

    adjacency: str = ""
    mechanism: str = ""
    details: dict[str, Any]
    released: list[str] = []
    secret: list[str] = []
    not_covered: list[str] = []
    limits: list[str] = []
    statement: str = ""


@dataclass(frozen=True)
class Run:
    """The facts of a run folder.

    Attributes:
        folder: as it was named, or found.
        status: ``damaged`` if it cannot be read; ``unfinished`` if it has no result yet.
        reason: why it is not ``done``.
        label: the label column.
        protects: whose labels the promise is about; None without privacy.
        metric: the one of ``test`` by which runs are compared.
        test: metrics on the test set.
        rows_tested: rows of the test set, if there is one.
        constant: the same metrics of the best constant prediction.
        no_privacy: the metric of the best run of the same model without privacy on the same data.
        same_data: equal for runs whose metrics can be compared.
        epochs: how many were done.
        seconds: of training, if they were recorded.
        doubts: why its private labels may be true ones.
    """

    folder: str
    status: Literal["done", "unfinished", "damaged"]
    reason: str | None = None
    name: str | None = None
    method: str | None = None
    representation: str | None = None
    model: str | None = None
    label: str | None = None
    loss: str | None = None
    epsilon: float | None = None
    delta: float | None = None
    protects: str | None = None
    metric: str = "loss"
    test: Mapping[str, float | None] | None = None
    rows_tested: int | None = None
    constant: Mapping[str, float | None] | None = None
    no_privacy: float | None = None
    same_data: str = ""
    epochs: int | None = None
    seconds: float | None = None
    doubts: tuple[str, ...] = ()

    @property
    def value(self) -> float | None:
        """The test metric."""
        return (self.test or {}).get(self.metric)

    @property
    def baseline(self) -> float | None:
        """The metric of the best constant."""
        return (self.constant or {}).get(self.metric)

    @property
    def compared(self) -> list[tuple[str, float | None, float | None]]:
        """The metrics that are shown: name, of the model, and of the best constant."""
        names = {self.metric: self.metric, **BESIDE.get(self.metric, {})}
        tested, constant = self.test or {}, self.constant or {}
        metrics = [(words, tested.get(name), constant.get(name)) for name, words in names.items()]
        return [each for each in metrics if each[1:] != (None, None)]

    @property
    def alike(self) -> tuple[str, str | None, str | None]:
        """Equal for runs of the same model on the same data."""
        return self.same_data, self.model, self.representation

    def rank(self) -> float:
        """Smaller is better; a run without a test metric is the last."""
        if self.value is None:
            return math.inf
        return -self.value if self.metric == "accuracy" else self.value


def find_runs(paths: Sequence[Path]) -> list[Run]:
    """The runs in folders: each is a run folder, or holds some. Raises InputError if not."""
    folders: dict[Path, Path] = {}
    for path in paths:
        for folder in _run_folders(path):
            folders.setdefault(folder.resolve(), folder)
    runs = [_read(folder) for folder in folders.values()]
    plain = (run for run in runs if run.method == "none" and run.status == "done")
    best = {run.alike: run.value for run in sorted(plain, key=Run.rank, reverse=True)}
    return [replace(run, no_privacy=best.get(run.alike)) for run in runs]


def to_json(runs: Sequence[Run]) -> dict[str, Any]:
    """``{format_version, runs}``."""
    return {"format_version": FORMAT_VERSION, "runs": [asdict(run) for run in runs]}


def require_whole(path: Path) -> None:
    """Raise InputError if the run in a folder is damaged, or promises less than its config says."""
    run = _read(path)
    if run.status == "damaged":
        raise InputError(str(run.reason))


def comparable(runs: Sequence[Run]) -> list[list[Run]]:
    """The finished runs on the same data, best first; those with the most runs first."""
    by_data: dict[str, list[Run]] = {}
    for run in runs:
        if run.status == "done":
            by_data.setdefault(run.same_data, []).append(run)
    each = [sorted(alike, key=Run.rank) for alike in by_data.values()]
    return sorted(each, key=len, reverse=True)


def _run_folders(path: Path) -> list[Path]:
    if not path.is_dir():
        raise InputError(f"{path}: there is no such folder")
    if _is_run(path):
        return [path]
    with readable(path):
        inside = sorted(child for child in path.iterdir() if not child.name.startswith("."))
    folders = [child for child in inside if child.is_dir() and _is_run(child)]
    if not folders:
        raise InputError(
            f"{path}: is not a run folder and contains none; labeldp train creates them"
        )
    return folders


def _is_run(path: Path) -> bool:
    return any((path / sign).is_file() for sign in _SIGNS)


def _read(path: Path) -> Run:
    try:
        return _whole(path)
    except InputError as error:
        reason = str(error)
    except DAMAGE:
        reason = f"{path}: a file is missing or damaged"
    return Run(str(path), "damaged", reason)


def _whole(path: Path) -> Run:
    folder = RunFolder(path)
    facts, loaded = folder.facts(), folder.config()
    config = loaded.config
    promise = read_json(path / "privacy.json")
    _Stated.model_validate(promise)
    epsilon, delta = _promised(loaded, promise)
    lines = read_lines(path / "metrics.jsonl")
    run = Run(
        str(path),
        "unfinished",
        f"{path}: is not finished; resume it with labeldp train --resume",
        name=config.name,
        method=config.method.kind,
        representation=None if config.representation is None else config.representation.kind,
        model=loaded.config.model_kind,
        label=config.data.label,
        loss=config.loss,
        epsilon=epsilon,
        delta=delta,
        protects=None if epsilon is None else _unit(loaded),
        metric=REPORTED[config.loss],
        epochs=len(lines),
        seconds=_seconds(path),
        doubts=tuple(_texts(promise["details"].get("doubts") or [])),
    )
    if not folder.result.exists():
        return run
    result = read_json(folder.result)
    test = {key[5:]: value for key, value in result.items() if key.startswith("test_")}
    test |= result.get("test") or {}
    constant = _numbers((result.get("baselines") or {}).get("constant") or {})
    epochs, tested = result.get("epochs"), result.get("rows_tested")
    same = [facts.get("features_sha256"), run.label, run.loss, sorted(constant.items())]
    return replace(
        run,
        status="done",
        reason=None,
        test=_numbers(test),
        rows_tested=_count(tested) or None,
        constant=constant,
        epochs=_count(epochs),
        same_data=hashlib.sha256(json.dumps(same).encode()).hexdigest(),
    )


def _count(number: Any) -> int | None:
    """A number of rows or epochs, None for what is none: the integers of JSON have no end."""
    return number if type(number) is int and 0 <= number < _MOST_COUNT else None


def _unit(loaded: LoadedConfig) -> str:
    """Whose labels are protected together."""
    return "label" if loaded.config.examples_per_user is None else "user"


def _promised(
    loaded: LoadedConfig, promise: Mapping[str, Any]
) -> tuple[float | None, float | None]:
    """ε and δ of a statement, after checking that they are at least those of the config, or for
    private labels those of its own details, and about the labels that the config protects together.

    Raises ValueError, KeyError or TypeError.
    """
    method = loaded.config.method
    numbers = _numbers({name: promise[name] for name in ("epsilon", "delta")})
    epsilon, delta = numbers["epsilon"], numbers["delta"]
    if promise["method"] != method.kind or (epsilon is None) != isinstance(method, NoMethod):
        raise ValueError("a statement on another method")
    if epsilon is None:
        return None, None
    details, most = promise["details"], loaded.config.examples_per_user
    unit = _unit(loaded)
    stated = details.get("unit", unit), details.get("max_examples_per_user", most)
    if stated != (unit, most):
        raise ValueError("other labels than in the config")
    spent = [exact(getattr(method, name, 0)) for name in ("epsilon", "epsilon_prior")]
    if isinstance(method, Privatized):  # the config has no ε, and the statement has it twice
        parts = (exact(details.get(name, 0)) for name in ("epsilon_label", "epsilon_prior"))
        spent = [part * _ROUNDED for part in parts]
        if min(spent) < 0:
            raise ValueError("a part of ε below 0")
    least, least_delta = sum(spent, Fraction()), getattr(method, "delta", 0.0)
    if not isinstance(method, Approximate):  # where ε is that of each label
        least *= most or 1
    if delta is None or epsilon < float(least) or delta < least_delta:
        raise ValueError("a smaller ε or δ than in the config")
    return epsilon, delta


def _seconds(path: Path) -> float | None:
    """Of all stages. None if a line has none: times of secret batches are not recorded."""
    files = [path / "metrics.jsonl", *sorted(path.glob("stages/*/metrics.jsonl"))]
    lines = [_numbers({"": line.get("seconds")}) for file in files for line in read_lines(file)]
    known = [line[""] for line in lines if line[""] is not None]
    return math.fsum(known) if known and len(known) == len(lines) else None


# The table of runs, as text and as a page: its columns and its numbers.

_CONFIDENCE = 0.95
_BEFORE = ["run", "method", "representation", "model", "ε", "δ", "protects"]
_NO_PRIVACY = "no privacy"
_ADDS_UP = ". ε is that of one run, and every run that draws noise spends it again"
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
    note = f"Metrics are estimates from {of}, one training run each. No ε covers test labels"
    if len(alike) > 1:
        note += ". Picking the best of several runs overstates it"
    note += _ADDS_UP * noisy
    if rows is None or alike[0].metric != "accuracy":
        return f"{note}. No interval available"
    margin = at_most(math.sqrt(math.log(2 / (1 - _CONFIDENCE)) / (2 * rows)), 2)
    return f"{note}. Margin of error of an accuracy: at most ±{margin} (95%, Hoeffding)"


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
        "one user": _shortened(statement),
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


def _shortened(statement: Statement) -> str:
    """By how much users cost more noise than labels."""
    found = statement.details.get("most_shortened_user")
    if found is None:
        return ""
    factor, rows = at_most(found["factor"], 3), found["rows"]
    return (
        f"rows became up to {factor} times shorter, as if the noise were {factor} times larger "
        f"(proved, for a user with {rows:,} rows; adding up lengths gives up to {rows:,})"
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
