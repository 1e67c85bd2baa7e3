"""Learned effects: mean and standard deviation in each bin, and in each cell of pairs.

All of it is computed from a fit, so it is as private as the fit is. The deviations are those of the
posterior of the coefficients. They hold the noise of the answers and the labels' own.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float32, Float64, Int32
from numpy.typing import NDArray

from labeldp_trainer.errors import DAMAGE, RunFolderError
from labeldp_trainer.interactions.columns import BinnedColumn
from labeldp_trainer.interactions.evidence import OutputLevel
from labeldp_trainer.interactions.questions import MeanCurve
from labeldp_trainer.interactions.stages import Fit
from labeldp_trainer.interactions.terms import Terms
from labeldp_trainer.one_release.release import Whole, arrays_of_archive
from labeldp_trainer.one_release.rows import ReleaseText

MOST_MAINS, MOST_PAIRS = 12, 6
"""The strongest ones, whose effects are kept."""
MOST_OUTPUTS = 3  # of an effect
_ROWS_OF_CURVE = 2000  # from which effects on the labels' own scale are computed
_Covariance = Callable[[slice], Float64[np.ndarray, "t t"]]


@dataclass(frozen=True)
class Axis:
    """The bins of a column.

    Attributes:
        edges: [e] of numbers, as in ``BinnedColumn``; None for categories.
        codes: [b] of the category of each bin after the first, which holds all others.
    """

    edges: Float32[np.ndarray, " e"] | None
    codes: Int32[np.ndarray, " b"] | None

    @property
    def bins(self) -> int:
        """How many there are."""
        if self.edges is not None:
            return len(self.edges) + 2
        assert self.codes is not None
        return len(self.codes) + 1


@dataclass(frozen=True)
class Effect:
    """The effect of a column or a pair on some outputs.

    Attributes:
        term: one or two columns.
        outputs: [o] the outputs in which it is strongest.
        mean: [bins …, o] of the effect; 0 on average over the rows.
        deviation: [bins …, o] of the posterior.
        rows: [bins …] shares of the training rows.
    """

    term: tuple[int, ...]
    outputs: tuple[int, ...]
    mean: Float32[np.ndarray, "... o"]
    deviation: Float32[np.ndarray, "... o"]
    rows: Float32[np.ndarray, ...]


@dataclass(frozen=True)
class Effects:
    """The effects that a model of interactions learned.

    Attributes:
        rows: of the training table.
        outputs: K of the model.
        terms: of the model.
        importance: [terms] standard deviation of what each adds over the rows; of several outputs
            the root of the mean square.
        error: [terms] typical standard deviation of the posterior of what it adds.
        axes: the bins of the columns in ``shown``.
        shown: the strongest main effects, and then the strongest pairs.
    """

    rows: int
    outputs: int
    terms: tuple[tuple[int, ...], ...]
    importance: Float32[np.ndarray, " t"]
    error: Float32[np.ndarray, " t"]
    axes: dict[int, Axis]
    shown: tuple[Effect, ...]


def effects_of(fit: Fit) -> Effects:
    """The effects of a fit."""
    terms, outputs = fit.terms, len(fit.base)
    parts = terms.places
    posteriors = _posteriors(fit)
    squares, errors = np.zeros((len(parts), outputs)), np.zeros((len(parts), outputs))
    for number, part in enumerate(parts):
        gram, mean = fit.moments.gram[part, part], fit.found.mean[part]
        squares[number] = np.einsum("wk,wk->k", mean, gram @ mean)
        for shares, covariance in posteriors:
            errors[number] += shares * (gram * covariance(part)).sum()
    own_scale = _OwnScale.of(fit)
    slope = 1.0 if own_scale is None else own_scale.slope
    squares, errors = np.maximum(squares, 0) * slope**2, np.maximum(errors, 0) * slope**2
    order = np.argsort(-squares.mean(axis=1), kind="stable").tolist()
    chosen = [
        number
        for size, most in ((1, MOST_MAINS), (2, MOST_PAIRS))
        for number in [i for i in order if terms.chosen[i].size == size][:most]
    ]
    shown = tuple(
        _effect(fit, number, parts[number], squares, posteriors, own_scale) for number in chosen
    )
    return Effects(
        rows=len(terms.codes),
        outputs=outputs,
        terms=tuple(term.columns for term in terms.chosen),
        importance=np.sqrt(squares.mean(axis=1)).astype(np.float32),
        error=np.sqrt(errors.mean(axis=1)).astype(np.float32),
        axes={c: _axis(terms.columns[c]) for effect in shown for c in effect.term},
        shown=shown,
    )


def _posteriors(fit: Fit) -> list[tuple[Float64[np.ndarray, " k"], _Covariance]]:
    """Covariances of the coefficients of a term, and the factor of each in that of an output."""
    evidence, prior = fit.found.evidence, fit.found.uncertainty.prior

    def of_level(level: OutputLevel) -> _Covariance:
        gain = evidence.gain(prior, level)

        def covariance(part: slice) -> Float64[np.ndarray, "t t"]:
            return np.asarray(np.diag(level.prior * prior[part]) - gain[:, part].T @ gain[:, part])

        return covariance

    squares = np.square(evidence.outputs.back)
    return [(squares[c].sum(axis=0), of_level(level)) for level, c in evidence.outputs.levels()]


def _effect(
    fit: Fit,
    number: int,
    part: slice,
    squares: Float64[np.ndarray, "t k"],
    posteriors: list[tuple[Float64[np.ndarray, " k"], _Covariance]],
    own_scale: _OwnScale | None,
) -> Effect:
    """The effect of a term in each of its bins."""
    terms, term = fit.terms, fit.terms.chosen[number].columns
    shape = terms.shape(term)
    cells = np.zeros((int(np.prod(shape)), len(terms.columns)), np.int32)
    cells[:, term] = np.indices(shape).reshape(len(term), -1).T
    z = Terms(terms.columns, cells, (terms.chosen[number],)).rows(slice(None))[:, 1:]
    z = (z - fit.moments.mean[part]) * fit.moments.scale[part]
    outputs = _outputs(squares[number])
    variances = np.zeros((len(cells), len(outputs)))
    for shares, covariance in posteriors:
        own = shares[list(outputs)]
        if own.any():
            variances += np.einsum("ct,ct->c", z, z @ covariance(part))[:, None] * own
    deviation = np.sqrt(np.maximum(variances, 0))
    flat = terms.cells(term, terms.codes)
    rows = np.bincount(flat, minlength=len(cells)) / len(flat)
    mean = z @ fit.found.mean[part][:, outputs]
    if own_scale is not None:
        mean, deviation = own_scale.effect(mean, deviation, flat, rows)
    return Effect(
        term,
        outputs,
        mean.reshape(*shape, -1).astype(np.float32),
        deviation.reshape(*shape, -1).astype(np.float32),
        rows.reshape(shape).astype(np.float32),
    )


@dataclass(frozen=True)
class _OwnScale:
    """Predictions of some rows on another scale, and the way to mean labels.

    Attributes:
        predicted: [s] of rows at regular distances.
        curve: to the labels' own scale.
        step: between these rows.
    """

    predicted: Float64[np.ndarray, " s"]
    curve: MeanCurve
    step: int

    @classmethod
    def of(cls, fit: Fit) -> _OwnScale | None:
        """None if a fit is on the labels' own scale."""
        if fit.curve is None:
            return None
        weights, base = fit.raw()
        step = -(-len(fit.terms.codes) // _ROWS_OF_CURVE)
        rows = fit.terms.of_rows(slice(None, None, step))
        return cls(rows.weighted(weights[:, 0]) + base[0], fit.curve, step)

    @property
    def slope(self) -> float:
        """Of the curve, at a typical row."""
        slopes = self.curve.slopes
        at = np.clip(np.searchsorted(self.curve.points, self.predicted) - 1, 0, len(slopes) - 1)
        return float(np.sqrt(np.mean(slopes[at] ** 2)))

    def effect(
        self,
        mean: Float64[np.ndarray, "c 1"],
        deviation: Float64[np.ndarray, "c 1"],
        cells: Int32[np.ndarray, " n"],
        shares: Float64[np.ndarray, " c"],
    ) -> tuple[Float64[np.ndarray, "c 1"], Float64[np.ndarray, "c 1"]]:
        """Mean labels of all rows if they were in a cell, less their mean; and the deviations."""
        others = self.predicted - mean[cells[:: self.step], 0]

        def labels(effect: Float64[np.ndarray, "c 1"]) -> Float64[np.ndarray, "c 1"]:
            return self.curve.over(others[None, :] + effect).mean(axis=1, keepdims=True)

        own, up, down = labels(mean), labels(mean + deviation), labels(mean - deviation)
        return own - shares @ own, (up - down) / 2


def _outputs(squares: Float64[np.ndarray, " k"]) -> tuple[int, ...]:
    """The strongest ones. Of two classes the second: what it gains, the first one loses."""
    if len(squares) == 2:
        return (1,)
    return tuple(sorted(np.argsort(-squares, kind="stable")[:MOST_OUTPUTS].tolist()))


def _axis(column: BinnedColumn) -> Axis:
    if column.bins is None:
        return Axis(column.edges, None)
    codes = np.zeros(len(column.values) - 1, np.int32)
    listed = np.flatnonzero(column.bins)
    codes[column.bins[listed] - 1] = listed
    return Axis(None, codes)


# The file ``explained.npz`` of a run folder: what ``labeldp explain`` shows. It has no labels.

FILE = "explained.npz"


class _Shown(ReleaseText):
    term: tuple[int, ...]
    outputs: tuple[int, ...]


class _Facts(ReleaseText):
    """All but the arrays."""

    format_version: Literal["1.0"] = "1.0"
    rows: Whole
    outputs: Whole
    terms: tuple[tuple[int, ...], ...]
    shown: tuple[_Shown, ...]


def to_bytes(effects: Effects) -> bytes:
    """The contents of the file; the same for the same effects."""
    shown = [_Shown(term=effect.term, outputs=effect.outputs) for effect in effects.shown]
    facts = _Facts(
        rows=effects.rows, outputs=effects.outputs, terms=effects.terms, shown=tuple(shown)
    )
    text = json.dumps(facts.model_dump(), allow_nan=False).encode()
    arrays: dict[str, NDArray[Any]] = {
        "facts": np.frombuffer(text, np.uint8),
        "importance": effects.importance,
        "error": effects.error,
    }
    for c, axis in sorted(effects.axes.items()):
        name, bins = ("edges", axis.edges) if axis.codes is None else ("codes", axis.codes)
        assert bins is not None
        arrays[f"columns.{c}.{name}"] = bins
    for i, effect in enumerate(effects.shown):
        for name in ("mean", "deviation", "rows"):
            arrays[f"shown.{i}.{name}"] = getattr(effect, name)
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stub: allow_pickle
    return file.getvalue()


def read_effects(path: Path) -> Effects:
    """The file of a run. Raises RunFolderError."""
    try:
        return _parse(arrays_of_archive(path))
    except FileNotFoundError:
        raise RunFolderError(f"{path}: is missing; train again") from None
    except DAMAGE:
        raise RunFolderError(f"{path}: is damaged, or of another version; train again") from None


def _parse(arrays: dict[str, NDArray[Any]]) -> Effects:
    facts = _Facts.model_validate_json(arrays["facts"].tobytes())
    columns = sorted({c for each in facts.shown for c in each.term})
    return Effects(
        facts.rows,
        facts.outputs,
        facts.terms,
        arrays["importance"],
        arrays["error"],
        {
            c: Axis(arrays.get(f"columns.{c}.edges"), arrays.get(f"columns.{c}.codes"))
            for c in columns
        },
        tuple(
            Effect(
                each.term,
                each.outputs,
                *(arrays[f"shown.{i}.{name}"] for name in ("mean", "deviation", "rows")),
            )
            for i, each in enumerate(facts.shown)
        ),
    )
