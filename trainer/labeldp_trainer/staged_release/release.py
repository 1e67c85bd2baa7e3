"""The release of all stages (``release.npz``): every design and every noisy answer, as integers.

It can be published. Anyone who has the features can verify it, replay what followed from each
answer, and fit models, which spends nothing.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from labeldp_trainer.discrete_gaussian.noise import ProvedNoise
from labeldp_trainer.interactions.columns import MOST_VALUE, BinnedColumn
from labeldp_trainer.interactions.questions import LabelQuestion, Offset, RowWeights
from labeldp_trainer.interactions.terms import MOST_COLUMNS, MOST_WEIGHT, Term, Terms
from labeldp_trainer.one_release.release import (
    DECIMAL,
    FILE,
    Real,
    Whole,
    read_archive,
    require,
    require_labels,
    require_promise,
)
from labeldp_trainer.one_release.rows import (
    DIGEST,
    STEPS,
    UNIT,
    ReleaseText,
    Users,
    squared_sensitivity,
)
from labeldp_trainer.staged_release.plan import COUNT, KINDS, MOST_SUMS, Kind, histogram_sensitivity
from labeldp_trainer.staged_release.scale import LabelScale

_LATTICE = {"unit": UNIT, "label_steps": STEPS, "count": COUNT}
_MOST_TERMS = 1 << 13
_Terms = tuple[Term, ...]
_OF_NUMBERS = frozenset({"clip", "offset_terms", "unit", "base", "start", "power"})
_OF_SUMS = _OF_NUMBERS | {"longest", "terms", "shift", "floor", "rows_sha256"}
_STATED: dict[tuple[Kind, bool], frozenset[str]] = {
    ("labels", True): frozenset(),
    ("labels", False): frozenset(),
    ("sizes", False): frozenset(),
    ("residuals", False): frozenset(),
    ("sums", True): _OF_SUMS - _OF_NUMBERS,
    ("sums", False): _OF_SUMS,
}
"""The facts that parts of releases of classes, and of numbers, state."""

__all__ = ["FILE", "PartFacts", "ReleaseInStages", "ReleasePart", "StagedFacts", "read_staged"]


class PartFacts(ReleaseText):
    """The stated facts of a part beside its arrays.

    Attributes:
        kind: of the part.
        sigma: scale of the noise, in lattice steps.
        squared_sensitivity: in squared lattice steps.
        longest: squared length of the longest row (of a user's rows in all); None of a histogram.
        terms: of the rows.
        shift, floor: of the rows.
        clip: of residuals, in units of labels; None of classes.
        offset_terms, unit, base: of what labels are compared with; None of classes.
        start, power: of the scale of labels; None of classes.
        rows_sha256: of the integer rows, in any order.
        previous_sha256: of everything before this part.
    """

    kind: Kind
    sigma: Whole
    squared_sensitivity: Whole
    longest: Whole | None = None
    terms: _Terms | None = None
    shift: int | None = Field(default=None, ge=0, le=64)
    floor: Real | None = Field(default=None, ge=1)
    clip: Real | None = Field(default=None, gt=0)
    offset_terms: _Terms | None = None
    unit: Real | None = Field(default=None, ge=0)
    base: Real | None = None
    start: Real | None = Field(default=None, ge=0)
    power: Real | None = Field(default=None, ge=0, le=1)
    rows_sha256: str | None = Field(default=None, pattern=DIGEST)
    previous_sha256: str = Field(pattern=DIGEST)

    @property
    def stated(self) -> frozenset[str]:
        """The facts that some kinds of parts state, and this one does."""
        return frozenset(name for name in _OF_SUMS if getattr(self, name) is not None)


class StagedFacts(ReleaseText):
    """All of a release but its arrays, in the order of its JSON."""

    kind: Literal["staged_release"] = "staged_release"
    format_version: Literal["1.0"] = "1.0"
    classes: tuple[int | str, ...] | None
    label_range: tuple[Real, Real] | None
    epsilon: str = Field(pattern=DECIMAL)
    delta: str = Field(pattern=DECIMAL)
    noise: Literal["discrete Gaussian"] = "discrete Gaussian"
    lattice: dict[str, int] = Field(default_factory=lambda: dict(_LATTICE))
    label: str
    rows: int = Field(gt=0, lt=(1 << 63) // COUNT)
    users: Users | None
    features_sha256: str = Field(pattern=DIGEST)
    in_pairs: tuple[int, ...]
    parts: tuple[PartFacts, ...] = ()

    @property
    def most_rows(self) -> int:
        """Of a user; 1 if a label is on its own."""
        return 1 if self.users is None else self.users.most_rows

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        classes = self.classes
        require_labels(classes, self.label_range)
        require_promise(self.epsilon, self.delta)
        require(self.lattice == _LATTICE)
        planned = KINDS[classes is not None]
        require(len(self.parts) <= len(planned))
        for part, (kind, _) in zip(self.parts, planned, strict=False):
            require(part.kind == kind and part.stated == _STATED[kind, classes is not None])
            if part.longest is None:
                moved = histogram_sensitivity(self.most_rows)
            else:
                moved = squared_sensitivity(part.longest, self.rows, classes=classes is not None)
            require(part.squared_sensitivity == moved)
        return self

    def text(self) -> bytes:
        """As JSON: the same bytes for the same release."""
        return json.dumps(self.model_dump(), ensure_ascii=False, allow_nan=False).encode()


@dataclass(frozen=True)
class ReleasePart:
    """A noisy answer, and the design that it is of.

    Attributes:
        facts: what is stated of it.
        answer: noisy, in lattice steps: counts [b], or sums [m, K].
        weights: [w, m] of the rows of sums.
        offset: [w] weights of what labels are compared with.
    """

    facts: PartFacts
    answer: NDArray[np.int64]
    weights: NDArray[np.int32] | None = None
    offset: NDArray[np.int32] | None = None

    @property
    def noise(self) -> ProvedNoise:
        """That of the answer."""
        facts = self.facts
        return ProvedNoise(facts.squared_sensitivity, facts.sigma, self.answer.size)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """By name."""
        found = {"answer": self.answer, "weights": self.weights, "offset": self.offset}
        return {name: array for name, array in found.items() if array is not None}

    def scale(self, low: float) -> LabelScale:
        """That of sums of numbers."""
        assert self.facts.start is not None and self.facts.power is not None
        return LabelScale(low, self.facts.start, self.facts.power)

    def question(self, label_range: tuple[float, float] | None) -> LabelQuestion:
        """The summed quantity."""
        facts, offset = self.facts, None
        assert facts.terms is not None and self.weights is not None
        assert facts.shift is not None and facts.floor is not None
        if label_range is not None:
            ends = self.scale(label_range[0]).ends(label_range)
            assert facts.offset_terms is not None and self.offset is not None
            assert facts.unit is not None and facts.base is not None
            offset = Offset(facts.offset_terms, self.offset, facts.unit, facts.base, ends)
        rows = RowWeights(self.weights, facts.shift, facts.floor)
        return LabelQuestion(facts.terms, rows, offset, 1.0 if facts.clip is None else facts.clip)


@dataclass(frozen=True)
class ReleaseInStages:
    """The released parts.

    Attributes:
        facts: what is stated.
        columns: how columns of the table become bins and basis functions.
        parts: in the order in which they were drawn.
    """

    facts: StagedFacts
    columns: tuple[BinnedColumn, ...]
    parts: tuple[ReleasePart, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all parts have been drawn."""
        return len(self.parts) == len(KINDS[self.facts.classes is not None])

    @property
    def sha256(self) -> str:
        """Of all that is there, which names every number of it."""
        total = hashlib.sha256(self.facts.text())
        for name, array in sorted(self._arrays().items()):
            head = f"{name}:{array.dtype.str}:{array.shape};"
            total.update(head.encode() + np.ascontiguousarray(array).tobytes())
        return total.hexdigest()

    def with_part(self, part: ReleasePart) -> ReleaseInStages:
        """This and one more."""
        facts = self.facts.model_copy(update={"parts": (*self.facts.parts, part.facts)})
        return ReleaseInStages(facts, self.columns, (*self.parts, part))

    def to_bytes(self) -> bytes:
        """The contents of ``release.npz``; the same for the same release."""
        file = io.BytesIO()
        facts = np.frombuffer(self.facts.text(), np.uint8)
        np.savez(file, facts=facts, **self._arrays())  # type: ignore[arg-type]
        return file.getvalue()

    def _arrays(self) -> dict[str, NDArray[Any]]:
        found: dict[str, NDArray[Any]] = {}
        for j, column in enumerate(self.columns):
            found[f"columns.{j}.values"] = column.values
            if column.edges is not None:
                found[f"columns.{j}.edges"] = column.edges
            if column.bins is not None:
                found[f"columns.{j}.bins"] = column.bins
        for i, part in enumerate(self.parts):
            found |= {f"parts.{i}.{name}": array for name, array in part.arrays.items()}
        return found


def read_staged(path: Path) -> ReleaseInStages:
    """Read a file that somebody else may have written. Raises TrainerError."""
    return read_archive(path, "staged release", _read)


def _read(arrays: dict[str, NDArray[Any]], text: bytes) -> tuple[ReleaseInStages | None, str]:
    stated = json.loads(text)
    known, version = stated["kind"] == "staged_release", str(stated["format_version"])
    return _parse(arrays, text) if known and version == "1.0" else None, version


def _parse(arrays: dict[str, NDArray[Any]], text: bytes) -> ReleaseInStages:
    facts = StagedFacts.model_validate_json(text)
    require(facts.text() == text)
    columns = []
    for j, in_pairs in enumerate(facts.in_pairs):
        values = arrays.pop(f"columns.{j}.values")
        edges = arrays.pop(f"columns.{j}.edges", None)
        bins = arrays.pop(f"columns.{j}.bins", None)
        columns.append(_column(edges, bins, values, in_pairs))
    parts = []
    for i, stated in enumerate(facts.parts):
        own = {
            name: arrays.pop(f"parts.{i}.{name}")
            for name in ("answer", "weights", "offset")
            if f"parts.{i}.{name}" in arrays
        }
        parts.append(_part(stated, own, columns, facts))
    require(not arrays)
    return ReleaseInStages(facts, tuple(columns), tuple(parts))


def _column(edges: Any, bins: Any, values: NDArray[Any], in_pairs: int) -> BinnedColumn:
    require(values.dtype == np.int32 and values.ndim == 2 and (np.abs(values) <= MOST_VALUE).all())
    require((edges is None) != (bins is None) and 0 <= in_pairs <= values.shape[1])
    if edges is not None:
        require(edges.dtype == np.float32 and edges.ndim == 1 and np.isfinite(edges).all())
        require((np.diff(edges) > 0).all() and len(values) == len(edges) + 2)
    else:
        require(bins.dtype == np.int32 and bins.ndim == 1 and len(bins) > 0)
        require(((bins >= 0) & (bins < len(values))).all())
    return BinnedColumn(edges, bins, values, in_pairs)


def _part(
    stated: PartFacts,
    own: Mapping[str, NDArray[Any]],
    columns: list[BinnedColumn],
    facts: StagedFacts,
) -> ReleasePart:
    answer = own["answer"]
    require(answer.dtype == np.int64 and answer.size > 0)
    if stated.kind != "sums":
        require(set(own) == {"answer"} and answer.ndim == 1)
        return ReleasePart(stated, answer)
    weights, numbers = own["weights"], facts.classes is None
    require(set(own) == {"answer", "weights", *(("offset",) if numbers else ())})
    outputs = 1 if facts.classes is None else len(facts.classes)
    require(weights.dtype == np.int32 and answer.shape == (weights.shape[1], outputs))
    require(len(answer) <= MOST_SUMS)  # all rows times all sums are computed, part by part
    assert stated.terms is not None
    _require_whole(weights, stated.terms, columns)
    if numbers:
        assert stated.offset_terms is not None
        require(own["offset"].ndim == 1)
        _require_whole(own["offset"], stated.offset_terms, columns)
    return ReleasePart(stated, answer, weights, own.get("offset"))


def _require_whole(
    weights: NDArray[Any], terms: tuple[Term, ...], columns: list[BinnedColumn]
) -> None:
    """Weights fit their terms, so that what is summed up with them is exact."""
    require(len(terms) <= _MOST_TERMS and len({term.columns for term in terms}) == len(terms))
    for term in terms:
        require(1 <= term.size <= 3 and list(term.columns) == sorted(set(term.columns)))
        require(all(0 <= c < len(columns) and columns[c].rank for c in term.columns))
    width = Terms(columns, np.zeros((0, len(columns)), np.int32), terms).width
    require(width <= MOST_COLUMNS and len(weights) == width and weights.dtype == np.int32)
    require((np.abs(weights.astype(np.int64)) <= MOST_WEIGHT).all())
