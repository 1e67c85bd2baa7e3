"""Regression coefficients of the original features, with intervals that include privacy noise.

All of it post-processes what a method has released, or private labels: it spends nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64
from labeldp_learn.toolkit import Z
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from labeldp_trainer.data import DataPart
from labeldp_trainer.data.encoders import ArrayEncoder, Encoder
from labeldp_trainer.errors import DAMAGE, RunFolderError
from labeldp_trainer.one_release.plan import label_units
from labeldp_trainer.one_release.release import Release
from labeldp_trainer.one_release.rows import PublicRows, Weights
from labeldp_trainer.run.folder import read_json

FILE = "coefficients.json"
MOST = 10_000
"""Coefficients of a run, of all classes together."""
Why = Literal["constant", "collinear", "not released", "not finite", "too few rows"]
_Real = Annotated[float, Field(allow_inf_nan=False)]


class _Kept(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Coefficient(_Kept):
    """A coefficient, for each of k outputs.

    Attributes:
        feature: its name; None for the intercept.
        category: of a categorical feature, compared with ``reference``.
        reference: the category of the feature that has no coefficient.
        why_not: why there is no estimate or, for too few rows, no interval; None otherwise.
        estimates: [k]; None if labels, or what is released of them, do not decide it.
        margins: [k] 95% margins of error for the true labels of these rows.
        population_margins: [k] for the population that these rows were drawn from; None if unknown.
    """

    feature: str | None
    category: str | None = None
    reference: str | None = None
    why_not: Why | None = None
    estimates: list[_Real] | None = None
    margins: list[_Real] | None = None
    population_margins: list[_Real] | None = None


class KeptCoefficients(_Kept):
    """The coefficients of a run.

    Attributes:
        format_version: of the file.
        refused: why there are none; None if there are.
        label: the column.
        classes: of the outputs; None for numbers.
        rows: that took part.
        users: whether rows of a user were counted together.
        weighted: whether rows have public weights, or are equal.
        population: whether there are margins for a population.
        coefficients: the intercept first.
    """

    format_version: Literal["1.0"] = "1.0"
    refused: str | None = None
    label: str
    classes: list[int | str] | None = None
    rows: int = Field(gt=0)
    users: bool = False
    weighted: bool = False
    population: bool = False
    coefficients: list[Coefficient] = []


def read_coefficients_file(path: Path) -> KeptCoefficients:
    """The file of a run. Raises RunFolderError."""
    try:
        return KeptCoefficients.model_validate(read_json(path))
    except FileNotFoundError:
        raise RunFolderError(f"{path}: is missing; train again") from None
    except DAMAGE:
        raise RunFolderError(f"{path}: is damaged, or of another version; train again") from None


# The columns of a regression on features as they are: numbers, and differences of categories.

MISSING = "(missing)"
_CHUNK = 4096
_VECTOR, _BYTE = 2, 255.0  # dimensions; what bytes are divided by
Rows = slice | Int64[np.ndarray, " b"]


class OriginalColumn(NamedTuple):
    """The column, and category, of a coefficient.

    Attributes:
        feature: its name; None for the intercept.
        category: of a categorical feature, whose labels are compared with those of ``reference``.
        reference: the most frequent category of the feature.
    """

    feature: str | None
    category: str | None = None
    reference: str | None = None


class OriginalColumns:
    """The columns z of a regression: 1, numbers, and indicators of all categories but a reference.

    Of n rows. All but the 1 are centred and have variance 1, so that sums of products are well
    conditioned.

    Attributes:
        columns: [r] what they are of.
        constant: features without a column, because all rows have the same value.
        rows: n.
        to_original: [r, r] from coefficients of z to those of the features.
    """

    def __init__(self, encoder: Encoder, part: DataPart) -> None:
        """Of all rows of an encoded part: a table, or vectors [n, p]."""
        numbers, codes, names = _fields(encoder, part)
        divisors, shifts = _scales(encoder, numbers.shape[1])
        self.rows, self.constant = part.rows, list[OriginalColumn]()
        self.columns, moments, units = [OriginalColumn(None)], [(0.0, 1.0)], [(1.0, 0.0)]
        kept, places = list[int](), list[tuple[int, int]]()
        for j, name in enumerate(names):
            values = numbers[:, j].astype(np.float64)
            if (values == values[0]).all():
                self.constant.append(OriginalColumn(name))
                continue
            kept.append(j)
            self.columns.append(OriginalColumn(name))
            moments.append((float(values.mean()), float(values.std())))
            units.append((divisors[j], shifts[j]))
        for j, stated in enumerate(getattr(encoder, "categorical", ())):
            counts = np.bincount(codes[:, j], minlength=len(stated.vocabulary) + 1)
            texts, reference = [MISSING, *stated.vocabulary], int(counts.argmax())
            others = [code for code in np.flatnonzero(counts).tolist() if code != reference]
            if not others:
                self.constant.append(OriginalColumn(stated.name))
            for code in others:
                share = counts[code] / part.rows
                places.append((j, code))
                self.columns.append(OriginalColumn(stated.name, texts[code], texts[reference]))
                moments.append((share, float(np.sqrt(share * (1 - share)))))
                units.append((1.0, 0.0))
        self._numbers, self._codes = numbers[:, kept], codes
        self._of = np.array([j for j, _ in places], np.int64)
        self._wanted = np.array([code for _, code in places], np.int32)
        self._means, self._deviations = np.array(moments).T
        divided, shifted = np.array(units).T
        slopes = 1 / (self._deviations * divided)
        self.to_original = np.diag(slopes)
        self.to_original[0, 1:] = -(slopes * (self._means * divided + shifted))[1:]

    def values(self, rows: Rows) -> Float64[np.ndarray, "b r"]:
        """z of some rows."""
        numbers = self._numbers[rows].astype(np.float64)
        indicators = self._codes[rows][:, self._of] == self._wanted[None, :]
        ones = np.ones((len(numbers), 1))
        whole = np.concatenate([ones, numbers, indicators.astype(np.float64)], axis=1)
        return np.asarray((whole - self._means[None, :]) / self._deviations[None, :])

    def chunks(self) -> Iterator[tuple[slice, Float64[np.ndarray, "b r"]]]:
        """z of all rows, part by part."""
        for start in range(0, self.rows, _CHUNK):
            rows = slice(start, min(start + _CHUNK, self.rows))
            yield rows, self.values(rows)


def _fields(
    encoder: Encoder, part: DataPart
) -> tuple[NDArray[np.float32], NDArray[np.int32], list[str]]:
    """Encoded numbers [n, p] and codes [n, c], and the names of the numbers."""
    if isinstance(encoder, ArrayEncoder):
        numbers: Any = part.features
        assert numbers.ndim == _VECTOR
        names = [f"column {j}" for j in range(numbers.shape[1])]
        return numbers, np.zeros((part.rows, 0), np.int32), names
    names = [column.name for column in encoder.numeric]
    return part.features["numeric"], part.features["categorical"], names


def _scales(encoder: Encoder, count: int) -> tuple[list[float], list[float]]:
    """The means and scales by which the encoder standardized numbers."""
    if isinstance(encoder, ArrayEncoder):
        return [_BYTE if encoder.bytes else 1.0] * count, [0.0] * count
    return [c.deviation for c in encoder.numeric], [c.mean for c in encoder.numeric]


# Least squares without shrinkage on original features, and the variances of the estimates.
#
# Of private labels: β̂ = (ZᵀZ)⁻¹·Zᵀt for unbiased targets t. With r_i the row of Z·(ZᵀZ)⁻¹, the
# part of the variance that privacy adds is Σ r_i²·Var[t_i | y_i]. For a population, it is Σ
# r_i²·e_i² with residuals e_i over 1 − leverage (HC3: MacKinnon and White 1985), summed within
# users first, whose labels depend on one another. Where few rows or rare outputs decide, the
# estimate is skewed. Margins are wider by what the largest possible skewness moves a quantile
# (Cornish and Fisher 1938): third moments are at most the root of second times fourth ones.
#
# Of one release S = Qᵀt + noise: E[S] = (QᵀZ)·β for weights that the rows Q have, so that
# β̂ = (QᵀZ)⁻¹·S is the weighted least-squares solution, and the noise's covariance σ²·I gives its
# variance. Residuals are not in a release, so nothing is known of a population.

LEAST_ROWS = 10
"""A coefficient that fewer rows decide, about, has no interval: noise does not average out."""
_COLLINEAR = 1e-9  # of the largest eigenvalue of the columns' correlations
_APART = 1e-5  # of a coefficient, that what is released may miss


class PrivateTargets(NamedTuple):
    """Targets of n rows; the target of row i is ``values[codes[i]]``, and so on.

    Attributes:
        codes: [n].
        values: [m, k] whose mean under each label is the label, or its one-hot row.
        noise: [m, k] whose mean under each label is at least the variance of ``values`` under it,
            and equal where the table can be inverted.
    least, most: [m, k] the smallest and the largest of these variances.
    fourth: [m, k] the largest fourth central moment of ``values`` under any label.
    """

    codes: Int64[np.ndarray, " n"]
    values: Float64[np.ndarray, "m k"]
    noise: Float64[np.ndarray, "m k"]
    least: Float64[np.ndarray, "m k"]
    most: Float64[np.ndarray, "m k"]
    fourth: Float64[np.ndarray, "m k"]


@dataclass(frozen=True)
class CoefficientEstimates:
    """Coefficients [r, k] and their 95% margins of error.

    Attributes:
        values: [r, k].
        rows: [r, k] margins for the true labels of these rows.
        population: [r, k] for the population that they were drawn from; None if unknown.
        known: [r] whether the labels, or what is released of them, decide a coefficient.
        collinear: [r] whether no labels could decide it.
        enough: [r] whether enough rows decide it.
    """

    values: Float64[np.ndarray, "r k"]
    rows: Float64[np.ndarray, "r k"]
    population: Float64[np.ndarray, "r k"] | None
    known: Bool[np.ndarray, " r"]
    collinear: Bool[np.ndarray, " r"]
    enough: Bool[np.ndarray, " r"]


def of_private(
    columns: OriginalColumns, targets: PrivateTargets, owners: Int64[np.ndarray, " n"] | None
) -> CoefficientEstimates:
    """From private labels. ``owners`` [n] are the numbers of the users, if they are protected."""
    r, k = len(columns.columns), targets.values.shape[1]
    gram, goal = np.zeros((r, r)), np.zeros((r, k))
    for part, z in columns.chunks():
        gram += z.T @ z
        goal += z.T @ targets.values[targets.codes[part]]
    inverse = np.linalg.pinv(gram, rcond=_COLLINEAR, hermitian=True)
    map_back = columns.to_original
    known = _decided(map_back, inverse @ gram)
    solved, influence = inverse @ goal, map_back @ inverse
    noise, least, most, scatter = (np.zeros((r, k)) for _ in range(4))
    noise_fourth, scatter_fourth = np.zeros((r, k)), np.zeros((r, k))
    second, fourth = np.zeros(r), np.zeros(r)
    for rows, first in _by_owner(owners, columns.rows):
        z = columns.values(rows)
        weight, codes = z @ influence.T, targets.codes[rows]
        squared = weight**2
        noise += squared.T @ targets.noise[codes]
        least += squared.T @ targets.least[codes]
        most += squared.T @ targets.most[codes]
        noise_fourth += (squared**2).T @ targets.fourth[codes]
        second += squared.sum(axis=0)
        fourth += (squared**2).sum(axis=0)
        left = 1 - np.einsum("ij,ij->i", z @ inverse, z)
        residuals = (targets.values[codes] - z @ solved) / np.maximum(left, _APART)[:, None]
        for c in range(k):
            scores = np.add.reduceat(weight * residuals[:, c : c + 1], first, axis=0)
            scatter[:, c] += (scores**2).sum(axis=0)
            scatter_fourth[:, c] += (scores**4).sum(axis=0)
    noise = np.clip(noise, least, most)
    scatter, scatter_fourth = np.maximum(scatter, noise), np.maximum(scatter_fourth, noise_fourth)
    return CoefficientEstimates(
        values=map_back @ solved,
        rows=_margin(noise, noise_fourth),
        population=_margin(scatter, scatter_fourth),
        known=known,
        collinear=~known,
        enough=second**2 >= LEAST_ROWS * fourth,
    )


@dataclass(frozen=True)
class ReleasedColumns:
    """From the statistics of releases of the same rows with the same weights to coefficients.

    Attributes:
        influence: [r, d] of each entry of a statistic on each coefficient.
        total: [d] Σ q.
        known: [r] whether the statistic decides a coefficient.
        collinear: [r] whether no labels could decide it.
    """

    influence: Float64[np.ndarray, "r d"]
    total: Float64[np.ndarray, " d"]
    known: Bool[np.ndarray, " r"]
    collinear: Bool[np.ndarray, " r"]

    @classmethod
    def of(cls, columns: OriginalColumns, weights: Weights, rows: PublicRows) -> ReleasedColumns:
        """From features alone."""
        r, map_back = len(columns.columns), columns.to_original
        cross, gram = np.zeros((weights.width, r)), np.zeros((r, r))
        total = np.zeros(weights.width)
        for part, _, _, integers in weights.chunks(rows):
            q, z = integers.astype(np.float64) / weights.unit, columns.values(part)
            cross += q.T @ z
            gram += z.T @ z
            total += q.sum(axis=0)
        pseudo = np.linalg.pinv(cross)
        free = np.linalg.pinv(gram, rcond=_COLLINEAR, hermitian=True) @ gram
        return cls(
            map_back @ pseudo, total, _decided(map_back, pseudo @ cross), ~_decided(map_back, free)
        )

    def estimates(self, release: Release) -> CoefficientEstimates:
        """Those of a release; its noise alone is random."""
        statistic, noise = label_units(release, self.total)
        k = statistic.shape[1]
        if release.facts.classes is not None:  # the mean of the noise over classes is subtracted
            noise *= math.sqrt(1 - 1 / k)
        margin = Z * noise * np.sqrt((self.influence**2).sum(axis=1))
        return CoefficientEstimates(
            values=self.influence @ statistic,
            rows=np.repeat(margin[:, None], k, axis=1),
            population=None,
            known=self.known,
            collinear=self.collinear,
            enough=np.ones(len(margin), bool),
        )


def _margin(
    variance: Float64[np.ndarray, "r k"], fourth: Float64[np.ndarray, "r k"]
) -> Float64[np.ndarray, "r k"]:
    """Of a sum with this variance, whose terms have fourth moments with this sum."""
    largest = np.sqrt(fourth / np.where(variance > 0, variance, np.inf))
    return np.asarray(Z * np.sqrt(variance) + (Z**2 - 1) / 6 * largest)


def _decided(
    map_back: Float64[np.ndarray, "r r"], projector: Float64[np.ndarray, "r r"]
) -> Bool[np.ndarray, " r"]:
    """Which functionals of the coefficients are combinations of what is known of them."""
    missed = np.abs(map_back @ projector - map_back).max(axis=1)
    return np.asarray(missed <= _APART * np.abs(map_back).max(axis=1))


def _by_owner(
    owners: Int64[np.ndarray, " n"] | None, count: int
) -> Iterator[tuple[Int64[np.ndarray, " b"], Int64[np.ndarray, " u"]]]:
    """All rows in batches, those of a user together, and where each user's rows begin."""
    own = np.arange(count) if owners is None else owners
    order = np.argsort(own, kind="stable")
    starts = np.flatnonzero(np.diff(own[order], prepend=-1))
    chosen = np.unique(np.searchsorted(starts, np.arange(0, count, _CHUNK)))
    for first, last in zip(chosen, [*chosen[1:], len(starts)], strict=True):
        if first == last:
            continue
        begin = starts[first]
        end = count if last == len(starts) else starts[last]
        yield order[begin:end], starts[first:last] - begin
