"""What is released: a noisy integer statistic, and all that proves what it costs (``release.npz``).

It can be published. Whoever has the features can verify it and fit models to it, at no cost.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from jaxtyping import Int64
from pydantic import BaseModel, ConfigDict, Field

from labeldp_trainer.config.base import MOST_EXAMPLES
from labeldp_trainer.discrete_gaussian.delta import delta
from labeldp_trainer.errors import TrainerError
from labeldp_trainer.one_release.lattice import STEPS, UNIT, Weights, squared_sensitivity
from labeldp_trainer.run.folder import DAMAGE

FILE = "release.npz"
FORMAT_VERSION = "1.0"
_ARRAYS = ("statistic", "columns", "metric", "facts")
_MOST_BYTES = 1 << 31
_MOST_FACTS = 1 << 24
_LEAST_FLOOR = 1e-9  # no zero row is divided by less
_DECIMAL = r"^[0-9]{1,4}(\.[0-9]{1,30})?(e-?[0-9]{1,3})?$"  # as Python writes floats
_DIGEST = r"^[0-9a-f]{64}$"
_Real = Annotated[float, Field(gt=-1e300, lt=1e300)]
_Whole = Annotated[int, Field(gt=0, lt=1 << 200)]


@dataclass(frozen=True)
class Release:
    """A noisy statistic Σ q ⊗ t(y) + noise.

    Attributes:
        statistic: [d, k] in lattice steps; k classes, or 1 for numbers.
        weights: from vectors to rows q.
        classes: of the columns; None for numbers.
        label_range: whose ends are ±STEPS; None for classes.
        epsilon: as written in the config.
        delta: as written in the config.
        sigma: of the discrete Gaussian noise, in lattice steps.
        longest: squared length of the longest row, or of a user's rows in all.
        rows: n.
        users: None, or {"column", "max_examples_per_user", "sha256"}.
        vectors_sha256: of the features as vectors [n, p].
        rows_sha256: of the integer rows.
        expected: expected squared error of the coefficients, before any label was seen.
        gap: by how much at most another shape of the noise would be better.
        label: the column that it is of; None in files of earlier versions.
    """

    statistic: Int64[np.ndarray, "d k"]
    weights: Weights
    classes: tuple[int | str, ...] | None
    label_range: tuple[float, float] | None
    epsilon: str
    delta: str
    sigma: int
    longest: int
    rows: int
    users: dict[str, Any] | None
    vectors_sha256: str
    rows_sha256: str
    expected: float
    gap: float
    label: str | None = None

    @property
    def squared_sensitivity(self) -> int:
        """Of the statistic, under a replaced label (or all of a user's), in squared steps."""
        return squared_sensitivity(self.longest, classes=self.classes is not None)

    def proved_delta(self) -> Fraction:
        """An upper bound of δ at ε, by Theorem 13; 1 if nothing is proved."""
        return delta(
            self.squared_sensitivity, self.sigma, Fraction(self.epsilon), self.statistic.size
        )

    def facts(self) -> bytes:
        """All but the arrays, as JSON: the same bytes for the same release."""
        facts = {
            "format_version": FORMAT_VERSION,
            "classes": None if self.classes is None else list(self.classes),
            "label_range": None if self.label_range is None else list(self.label_range),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "noise": "discrete Gaussian",
            "sigma": self.sigma,
            "longest": self.longest,
            "squared_sensitivity": self.squared_sensitivity,
            "lattice": {"unit": UNIT, "label_steps": STEPS},
            "floor": self.weights.floor,
            "scale": self.weights.scale,
            "rows": self.rows,
            "users": self.users,
            "vectors_sha256": self.vectors_sha256,
            "rows_sha256": self.rows_sha256,
            "expected_error": self.expected,
            "gap": self.gap,
        }
        if self.label is not None:
            facts["label"] = self.label
        return json.dumps(facts, ensure_ascii=False, allow_nan=False).encode()

    def to_bytes(self) -> bytes:
        """The contents of ``release.npz``; the same for the same release."""
        file = io.BytesIO()
        np.savez(
            file,
            statistic=self.statistic,
            columns=self.weights.columns,
            metric=self.weights.metric,
            facts=np.frombuffer(self.facts(), np.uint8),
        )
        return file.getvalue()


class _Strict(BaseModel):
    """What is not stated here is refused as text that this release is not written with."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _Users(_Strict):
    column: str
    max_examples_per_user: int = Field(gt=0, le=MOST_EXAMPLES)
    sha256: str = Field(pattern=_DIGEST)


class _Facts(_Strict):
    classes: list[int | str] | None
    label_range: Annotated[list[_Real], Field(min_length=2, max_length=2)] | None
    epsilon: str = Field(pattern=_DECIMAL)
    delta: str = Field(pattern=_DECIMAL)
    sigma: _Whole
    longest: _Whole
    squared_sensitivity: _Whole
    floor: _Real = Field(ge=_LEAST_FLOOR)
    scale: _Real = Field(gt=0, le=UNIT)
    rows: _Whole
    users: _Users | None
    vectors_sha256: str = Field(pattern=_DIGEST)
    rows_sha256: str = Field(pattern=_DIGEST)
    expected_error: _Real = Field(ge=0)
    gap: _Real = Field(ge=0)
    label: str | None = None


def read_release(path: Path) -> Release:
    """Read a file that somebody else may have written. Raises TrainerError.

    Every fact is checked: the text must be the one that this release would be written with, so that
    no unknown or repeated key, no other number and no other noise can stand there.
    """
    try:
        arrays = _stored(path)
        _require(arrays["facts"].dtype == np.uint8 and arrays["facts"].size <= _MOST_FACTS)
        text = arrays["facts"].tobytes()
        facts = json.loads(text)
        version = facts["format_version"]
        _require(type(version) is str)
        found = _parse(arrays, facts) if version == FORMAT_VERSION else None
        _require(found is None or found.facts() == text)
    except FileNotFoundError:
        raise TrainerError(f"{path}: there is no such file") from None
    except DAMAGE:
        raise TrainerError(f"{path}: is no release, or is damaged") from None
    if found is None:
        raise TrainerError(f"{path}: has format {version[:20]!a}: upgrade labeldp-trainer")
    return found


def _stored(path: Path) -> dict[str, Any]:
    """The arrays of an archive that is not compressed: none takes more memory than the file has."""
    with path.open("rb") as file:
        _require(path.is_file() and path.stat().st_size <= _MOST_BYTES)
        with zipfile.ZipFile(file) as archive:
            _require(sorted(archive.namelist()) == sorted(f"{name}.npy" for name in _ARRAYS))
            found = {}
            for name in _ARRAYS:
                info = archive.getinfo(f"{name}.npy")
                _require(info.compress_type == zipfile.ZIP_STORED)
                _require(info.file_size == info.compress_size <= _MOST_BYTES)
                data = io.BytesIO(archive.read(info))
                found[name] = np.load(data, allow_pickle=False)
                _require(not data.read(1))
    return found


def _parse(arrays: dict[str, Any], stated: Any) -> Release:
    facts = _Facts.model_validate(stated)
    statistic, columns, metric = arrays["statistic"], arrays["columns"], arrays["metric"]
    classes, ends = facts.classes, facts.label_range
    width = 1 if classes is None else len(classes)
    _require(
        statistic.dtype == np.int64
        and columns.dtype == np.int64
        and metric.dtype == np.float32
        and statistic.shape == (len(columns), width)
        and metric.shape == columns.shape
        and len(columns) > 0
        and (columns >= 0).all()
        and (np.diff(columns) > 0).all()
        and np.isfinite(metric).all()
        and (metric > 0).all()
    )
    _require((classes is None) != (ends is None))
    _require(classes is None or len(set(classes)) == width > 1)
    _require(ends is None or ends[0] < ends[1])
    _require(0 < Fraction(facts.epsilon) < 100 and 0 < Fraction(facts.delta) < 1)
    return Release(
        statistic=statistic,
        weights=Weights(columns, metric, facts.floor, facts.scale),
        classes=None if classes is None else tuple(classes),
        label_range=None if ends is None else (ends[0], ends[1]),
        epsilon=facts.epsilon,
        delta=facts.delta,
        sigma=facts.sigma,
        longest=facts.longest,
        rows=facts.rows,
        users=None if facts.users is None else facts.users.model_dump(),
        vectors_sha256=facts.vectors_sha256,
        rows_sha256=facts.rows_sha256,
        expected=facts.expected_error,
        gap=facts.gap,
        label=facts.label,
    )


def _require(holds: Any) -> None:
    if not holds:
        raise ValueError("damaged")
