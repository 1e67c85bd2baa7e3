"""The release (``release.npz``): a noisy integer statistic, and everything that proves its ε and δ.

It can be published. Anyone who has the features can verify it and fit models, which spends nothing.
"""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
from jaxtyping import Float32, Int64
from pydantic import Field, model_validator

from labeldp_trainer.discrete_gaussian.noise import ProvedNoise
from labeldp_trainer.errors import DAMAGE, TrainerError
from labeldp_trainer.one_release.rows import (
    DIGEST,
    STEPS,
    UNIT,
    ReleaseText,
    Users,
    Weights,
    squared_sensitivity,
)
from labeldp_trainer.run.folder import read_arrays

FILE = "release.npz"
_ARRAYS = ("statistic", "columns", "metric")
_MOST_BYTES = 1 << 31
_MOST_FACTS = 1 << 24
_LEAST_FLOOR = 1e-9  # no zero row is divided by less
DECIMAL = r"^[0-9]{1,4}(\.[0-9]{1,30})?(e-?[0-9]{1,3})?$"  # as Python writes floats
_LATTICE = {"unit": UNIT, "label_steps": STEPS}
T = TypeVar("T")
Real = Annotated[float, Field(gt=-1e300, lt=1e300)]
Whole = Annotated[int, Field(gt=0, lt=1 << 200)]


class Facts(ReleaseText):
    """All of a release but its arrays, in the order of its JSON.

    Attributes:
        classes: of the columns; None for numbers.
        label_range: whose ends are ±STEPS; None for classes.
        epsilon: as written in the config.
        delta: as written in the config.
        sigma: of the discrete Gaussian noise, in lattice steps.
        longest: squared length of the longest row, or a bound for the rows of a user in all.
        squared_sensitivity: of the statistic, under a replaced label (or all of a user's), in
            squared steps.
        floor, scale: of the weights.
        rows: n.
        users: None if each label is protected on its own.
        rows_sha256: of the integer rows, in any order.
        expected_error: expected squared error of the coefficients, before any label was seen.
        gap: by how much at most another shape of the noise would be better.
        label: the column that it is of.
    """

    format_version: Literal["1.0"] = "1.0"
    classes: tuple[int | str, ...] | None
    label_range: tuple[Real, Real] | None
    epsilon: str = Field(pattern=DECIMAL)
    delta: str = Field(pattern=DECIMAL)
    noise: Literal["discrete Gaussian"] = "discrete Gaussian"
    sigma: Whole
    longest: Whole
    squared_sensitivity: Whole
    lattice: dict[str, int] = Field(default_factory=lambda: dict(_LATTICE))
    floor: Real = Field(ge=_LEAST_FLOOR)
    scale: Real = Field(gt=0, le=UNIT)
    rows: Whole
    users: Users | None
    rows_sha256: str = Field(pattern=DIGEST)
    expected_error: Real = Field(ge=0)
    gap: Real = Field(ge=0)
    label: str

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        require_labels(self.classes, self.label_range)
        require_promise(self.epsilon, self.delta)
        moved = squared_sensitivity(self.longest, self.rows, classes=self.classes is not None)
        require(self.squared_sensitivity == moved and self.lattice == _LATTICE)
        return self

    def text(self) -> bytes:
        """As JSON: the same bytes for the same release."""
        return json.dumps(self.model_dump(), ensure_ascii=False, allow_nan=False).encode()


@dataclass(frozen=True)
class Release:
    """A noisy statistic Σ q ⊗ t(y) + noise.

    Attributes:
        statistic: [d, k] in lattice steps; k classes, or 1 for numbers.
        columns: [d] of the weights.
        metric: [d] of the weights.
        facts: what is stated of it.
    """

    statistic: Int64[np.ndarray, "d k"]
    columns: Int64[np.ndarray, " d"]
    metric: Float32[np.ndarray, " d"]
    facts: Facts

    @cached_property
    def weights(self) -> Weights:
        """From vectors to rows q."""
        facts = self.facts
        return Weights(self.columns, self.metric, facts.floor, facts.scale)

    @property
    def noise(self) -> ProvedNoise:
        """That of the statistic."""
        facts = self.facts
        return ProvedNoise(facts.squared_sensitivity, facts.sigma, self.statistic.size)

    def to_bytes(self) -> bytes:
        """The contents of ``release.npz``; the same for the same release."""
        file = io.BytesIO()
        np.savez(
            file,
            statistic=self.statistic,
            columns=self.columns,
            metric=self.metric,
            facts=np.frombuffer(self.facts.text(), np.uint8),
        )
        return file.getvalue()


def read_release(path: Path) -> Release:
    """Read a file that somebody else may have written. Raises TrainerError.

    Every fact is checked: the text must be the one that this release would be written with, so that
    it can hold no unknown or repeated key, no other number and no other noise.
    """
    return read_archive(path, "release", _read)


def read_archive(
    path: Path, name: str, read: Callable[[dict[str, Any], bytes], tuple[T | None, str]]
) -> T:
    """The result of ``read`` for the arrays of an archive and the text of its facts.

    It also gives the format, and None for one that this version does not know; it may raise an
    error of ``DAMAGE``. Raises TrainerError, which calls the file by this name.
    """
    try:
        arrays = arrays_of_archive(path)
        found, version = read(arrays, arrays.pop("facts").tobytes())
    except FileNotFoundError:
        raise TrainerError(f"{path}: does not exist") from None
    except DAMAGE:
        raise TrainerError(f"{path}: is not a {name}, or is damaged") from None
    if found is None:
        raise TrainerError(f"{path}: has format {version[:20]!a}; upgrade labeldp-trainer")
    return found


def arrays_of_archive(path: Path) -> dict[str, Any]:
    """The arrays of an archive with facts. Raises an error of ``DAMAGE``."""
    require(path.stat().st_size <= _MOST_BYTES)
    found = read_arrays(path)
    facts = found["facts"]
    require(facts.dtype == np.uint8 and facts.size <= _MOST_FACTS)
    return found


def _read(arrays: dict[str, Any], text: bytes) -> tuple[Release | None, str]:
    require(sorted(arrays) == sorted(_ARRAYS))
    version = json.loads(text)["format_version"]
    require(type(version) is str)
    return _parse(arrays, text) if version == "1.0" else None, version


def _parse(arrays: dict[str, Any], text: bytes) -> Release:
    facts = Facts.model_validate_json(text)
    require(facts.text() == text)
    statistic, columns, metric = arrays["statistic"], arrays["columns"], arrays["metric"]
    require(
        statistic.dtype == np.int64
        and columns.dtype == np.int64
        and metric.dtype == np.float32
        and statistic.shape == (len(columns), 1 if facts.classes is None else len(facts.classes))
        and metric.shape == columns.shape
        and len(columns) > 0
        and (columns >= 0).all()
        and (np.diff(columns) > 0).all()
        and np.isfinite(metric).all()
        and (metric > 0).all()
    )
    return Release(statistic, columns, metric, facts)


def require_labels(classes: tuple[int | str, ...] | None, ends: tuple[float, float] | None) -> None:
    """Raise ValueError unless there are several classes, or a range."""
    require((classes is None) != (ends is None))
    require(classes is None or len(set(classes)) == len(classes) > 1)
    require(ends is None or ends[0] < ends[1])


def require_promise(epsilon: str, delta: str) -> None:
    """Raise ValueError unless these are ε and δ that a release may have."""
    require(0 < Fraction(epsilon) < 100 and 0 < Fraction(delta) < 1)


def require(holds: Any) -> None:
    """Raise ValueError unless it holds."""
    if not holds:
        raise ValueError("damaged")
