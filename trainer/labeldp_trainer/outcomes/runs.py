"""Compares training runs, read from their folders, without JAX.

Run folders are untrusted: a folder that cannot be read is reported as damaged, and the others are
not affected.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from labeldp_verify.errors import readable
from pydantic import BaseModel, ConfigDict, TypeAdapter

from labeldp_trainer.config import LoadedConfig, NoMethod, Privatized
from labeldp_trainer.config.data import Approximate
from labeldp_trainer.errors import DAMAGE, InputError
from labeldp_trainer.randomize import exact
from labeldp_trainer.run import RunFolder
from labeldp_trainer.run.folder import BESIDE, REPORTED, read_json, read_lines

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
        found = [(words, tested.get(name), constant.get(name)) for name, words in names.items()]
        return [each for each in found if each[1:] != (None, None)]

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
    found: dict[str, list[Run]] = {}
    for run in runs:
        if run.status == "done":
            found.setdefault(run.same_data, []).append(run)
    each = [sorted(alike, key=Run.rank) for alike in found.values()]
    return sorted(each, key=len, reverse=True)


def _run_folders(path: Path) -> list[Path]:
    if not path.is_dir():
        raise InputError(f"{path}: there is no such folder")
    if _is_run(path):
        return [path]
    with readable(path):
        inside = sorted(child for child in path.iterdir() if not child.name.startswith("."))
    found = [child for child in inside if child.is_dir() and _is_run(child)]
    if not found:
        raise InputError(
            f"{path}: is not a run folder and contains none; labeldp train creates them"
        )
    return found


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


def _count(found: Any) -> int | None:
    """A number of rows or epochs, None for what is none: the integers of JSON have no end."""
    return found if type(found) is int and 0 <= found < _MOST_COUNT else None


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
    found = _numbers({name: promise[name] for name in ("epsilon", "delta")})
    epsilon, delta = found["epsilon"], found["delta"]
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
