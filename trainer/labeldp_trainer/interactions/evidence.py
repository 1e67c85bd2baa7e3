"""From noisy linear statistics to the coefficients: group-wise prior variances by evidence.

Statistics S = B·θ + noise of covariance N, one column an output; θ of a term is independent with a
variance that all its columns share. The variances are those of largest marginal likelihood, by
expectation and maximisation (MacKay 1992, Tipping 2001): first one for all terms of a kind, then
each for itself, drawn towards its kind's. All of it is post-processing of what was released.

Where noise hides most of what is asked, these steps are too small to take a variance to 0. For
labels that may be looked at, a search over factors finds the likeliest one for each kind, and in
the end one for all terms, whose value 0 is the constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Float32, Float64, Int64
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import expit

from labeldp_trainer.linear.sums import stable_root


class OutputLevel(NamedTuple):
    """The common levels of outputs that are about alike; powers of 2.

    Attributes:
        prior: variance of their coefficients, relative to others.
        label: that of their labels.
    """

    prior: float
    label: float


@dataclass(frozen=True)
class Outputs:
    """K independent outputs, of which the K outputs of a model are made.

    Attributes:
        prior: [K] variances of coefficients, relative to one another.
        label: [K] likewise, of what the model does not explain of labels.
        into: [K, K] from outputs of the model to these.
        back: [K, K] from these to outputs of the model.
    """

    prior: Float64[np.ndarray, " k"]
    label: Float64[np.ndarray, " k"]
    into: Float64[np.ndarray, "k k"]
    back: Float64[np.ndarray, "k k"]

    @classmethod
    def of_model(cls, scales: Float64[np.ndarray, " k"]) -> Outputs:
        """Its own: [K] variances, both of coefficients and of labels."""
        return cls(scales, scales, np.eye(len(scales)), np.eye(len(scales)))

    @property
    def scales(self) -> Float64[np.ndarray, " k"]:
        """Variances of the model's own outputs, relative to one another."""
        return np.asarray(self.prior @ np.square(self.back))

    def levels(self) -> list[tuple[OutputLevel, Int64[np.ndarray, " c"]]]:
        """And the outputs that are nearest to each of them."""
        powers = np.round(np.log2(np.stack([self.prior, self.label], axis=1)))
        return [
            (OutputLevel(*(2.0**level).tolist()), np.flatnonzero((powers == level).all(axis=1)))
            for level in np.unique(powers, axis=0)
        ]


_TOGETHER, _STEPS = 10, 26
_PULL = 4.0  # columns by which a term is drawn to its kind
_SPEED = 0.8
_DONE = 0.03
_SEARCHED = 10  # further steps after a search
_DOUBT = 3.0  # a gain in log likelihood that fitted variances have for nothing
_FACTORS, _MOST_FACTOR = (6.0, 2.0, 1.0), 24.0  # steps of a search, and its ends; powers of 2


@dataclass(frozen=True)
class NoisySums:
    """The released evidence of a model.

    Attributes:
        statistic: [M, K], less what the base explains.
        cross: [M, w] its expectation for coefficients of 1.
        noise: [M, M] of privacy.
        gram: [M, M] Σ q·qᵀ: the noise of a label of variance 1.
        spread: variance of labels that the model does not explain, relative to that of outputs.
        outputs: that are independent.
    """

    statistic: Float64[np.ndarray, "m k"]
    cross: Float64[np.ndarray, "m w"]
    noise: Float64[np.ndarray, "m m"]
    gram: Float64[np.ndarray, "m m"]
    spread: float
    outputs: Outputs
    _whitened: dict[float, tuple[Any, Any, Any]] = field(
        default_factory=dict, init=False, repr=False
    )

    @property
    def usual_level(self) -> OutputLevel:
        """That whose coefficients vary as usual, by about 1."""
        levels = (level for level, _ in self.outputs.levels())
        return min(levels, key=lambda level: abs(np.log2(level.prior)))

    def noise_of(self, label: float) -> Float64[np.ndarray, "m m"]:
        """The covariance of an output with this ``OutputLevel.label``, if coefficients are 0."""
        return self.noise + label * self.spread * self.gram

    def whitened(
        self, label: float
    ) -> tuple[Float64[np.ndarray, "m k"], Float64[np.ndarray, " m"], Float32[np.ndarray, "m w"]]:
        """Statistic of the independent outputs, and first column and all of cross, in units in
        which ``noise_of(label)`` is the identity. What the constant adds to it is too large for
        float32 if rows are many.
        """
        if label not in self._whitened:
            root = stable_root(self.noise_of(label))
            both = np.concatenate([self.statistic @ self.outputs.into, self.cross], axis=1)
            found = solve_triangular(root, both, lower=True)
            count = self.statistic.shape[1]
            # in the order of LAPACK, which copies others
            cross = found[:, count:].astype(np.float32, order="F")
            self._whitened[label] = found[:, :count], found[:, count], cross
        return self._whitened[label]

    def factor(self, variances: Float64[np.ndarray, " w"], level: OutputLevel) -> Any:
        """Cholesky factor of the covariance of a column of S."""
        scaled = self.cross * np.sqrt(level.prior * variances)
        whole = scaled @ scaled.T + self.noise + level.label * self.spread * self.gram
        return np.asfortranarray(stable_root(whole)), True

    def factors(self, variances: Float64[np.ndarray, " w"]) -> dict[OutputLevel, Any]:
        """Those of all levels."""
        return {level: self.factor(variances, level) for level, _ in self.outputs.levels()}

    def means(
        self,
        variances: Float64[np.ndarray, " w"],
        factors: dict[OutputLevel, Any],
        statistic: Float64[np.ndarray, "m k"],
    ) -> Float64[np.ndarray, "w k"]:
        """The posterior means of θ if this were the statistic: linear in it."""
        found, apart = np.zeros((len(variances), statistic.shape[1])), statistic @ self.outputs.into
        for level, columns in self.outputs.levels():
            solved = cho_solve(factors[level], apart[:, columns], check_finite=False)
            found[:, columns] = level.prior * variances[:, None] * (self.cross.T @ solved)
        return found @ self.outputs.back

    def gain(
        self, variances: Float64[np.ndarray, " w"], level: OutputLevel, factor: Any = None
    ) -> Float64[np.ndarray, "m w"]:
        """A root of what the statistic takes from the prior covariance: gainᵀ·gain."""
        root, _ = factor or self.factor(variances, level)
        seen = np.asfortranarray(self.cross) * (level.prior * variances)
        return np.asarray(solve_triangular(root, seen, lower=True, check_finite=False))

    def uncertainty(
        self, variances: Float64[np.ndarray, " w"], factors: dict[OutputLevel, Any] | None = None
    ) -> Uncertainty:
        """Of θ of an output of scale 1, as far as the usual level tells it."""
        level = self.usual_level
        gain = self.gain(variances, level, factors and factors[level])
        return Uncertainty(variances, gain / np.sqrt(level.prior))


@dataclass(frozen=True)
class Uncertainty:
    """The covariance of coefficients that are independent before they are measured.

    Attributes:
        prior: [w] variances before.
        gain: [m, w] the covariance is the prior's less gainᵀ·gain.
    """

    prior: Float64[np.ndarray, " w"]
    gain: Float64[np.ndarray, "m w"]

    @classmethod
    def before(cls, prior: Float64[np.ndarray, " w"]) -> Uncertainty:
        """Nothing has been measured."""
        return cls(prior, np.zeros((0, len(prior))))

    def over(self, gram: Float32[np.ndarray, "w w"]) -> float:
        """Mean variance of a prediction, of columns whose mean products are given."""
        gain = self.gain.astype(np.float32)
        known = np.einsum("mw,mw->m", gain @ gram, gain)
        return max(float(self.prior @ gram.diagonal()) - float(known.sum(dtype=np.float64)), 0.0)


@dataclass(frozen=True)
class Coefficients:
    """θ, given the evidence.

    Attributes:
        mean: [w, K].
        uncertainty: of an output of scale 1.
        variances: [G] prior variances of the terms' columns.
        evidence: what they were found from.
        probability: of any effects, by which all means but the constant's have been multiplied.
    """

    mean: Float64[np.ndarray, "w k"]
    uncertainty: Uncertainty
    variances: Float64[np.ndarray, " g"]
    evidence: NoisySums
    probability: float


def variances_by_evidence(
    evidence: NoisySums,
    term_of: Int64[np.ndarray, " w"],
    start: Float64[np.ndarray, " g"],
    kinds: Sequence[int],
    constant: float,
    *,
    searched: bool,
) -> Float64[np.ndarray, " g"]:
    """[G] a prior variance for each term; ``searched``: from the likeliest factor of each kind."""
    count = np.bincount(term_of[1:], minlength=len(start)).astype(float)
    kind = np.asarray(kinds)
    found, last, base = start.copy(), None, start
    if searched:
        found *= likeliest_factors(evidence, term_of, found, kind, constant)[0]
    for step in range(_TOGETHER, _TOGETHER + _SEARCHED) if searched else range(_STEPS):
        squares = _expected_squares(evidence, term_of, found, constant)
        new = found.copy()
        if step < _TOGETHER:
            for each in np.unique(kind):
                own = kind == each
                ratio = squares[own].sum() / max((count[own] * found[own]).sum(), 1e-300)
                new[own] = found[own] * np.clip(ratio, 0.2, 5.0)
                new[own] = np.maximum(new[own], start[own])
        else:
            if step == _TOGETHER:
                base = found.copy()
            new = (squares + _PULL * np.minimum(base, found)) / (count + _PULL)
        logs = np.log(np.maximum(found, 1e-300))
        moved = logs + (1 + _SPEED) * (np.log(np.maximum(new, 1e-300)) - logs)
        found = np.maximum(np.exp(moved), 1e-9 * (base if searched else start).sum())
        if step > _TOGETHER and last is not None and np.abs(np.log(found / last)).max() < _DONE:
            break
        last = found.copy()
    return found


def likeliest_factors(
    evidence: NoisySums,
    term_of: Int64[np.ndarray, " w"],
    variances: Float64[np.ndarray, " g"],
    kind: Int64[np.ndarray, " g"],
    constant: float,
) -> tuple[Float64[np.ndarray, " g"], float]:
    """[G] powers of 2 that multiply the variances of each kind, of largest marginal likelihood, and
    the probability of effects of these variances against that of the constant."""
    v, names = by_column(variances, term_of, constant), np.unique(kind)
    of_column = np.concatenate([[-1], np.searchsorted(names, kind)[term_of[1:]]])
    levels = []
    for (prior, label), columns in evidence.outputs.levels():
        statistic, first, cross = evidence.whitened(label)
        scaled = cross * np.sqrt(prior * v, dtype=np.float32)[None, :]
        parts = [scaled[:, of_column == i] for i in range(len(names))]
        known = prior * v[0] * np.outer(first, first)
        levels.append((statistic[:, columns], [known, *(part @ part.T for part in parts)]))
    powers = np.zeros(len(names))
    best = _log_likelihood(levels, powers)
    for step in _FACTORS:
        for i in range(len(names)):
            for sign in (-1, 1):
                while True:
                    tried = powers.copy()
                    tried[i] += sign * step
                    value = _log_likelihood(levels, tried)
                    if value <= best or abs(tried[i]) > _MOST_FACTOR:
                        break
                    powers, best = tried, value
    gain = best - _log_likelihood(levels, np.full(len(names), -np.inf))
    return np.asarray(2.0 ** powers[np.searchsorted(names, kind)]), float(expit(gain - _DOUBT))


def _log_likelihood(
    levels: Sequence[tuple[Float64[np.ndarray, "m c"], list[Any]]],
    powers: Float64[np.ndarray, " i"],
) -> float:
    """Of whitened statistics, but for a constant."""
    total = 0.0
    for statistic, (constant, *parts) in levels:
        whole = constant + sum(
            part * np.float32(2.0**power) for part, power in zip(parts, powers, strict=True)
        ).astype(np.float64)
        whole[np.diag_indices_from(whole)] += 1.0
        root = stable_root(whole)  # labels that are no private ones may make it indefinite
        apart = solve_triangular(root, statistic, lower=True, check_finite=False)
        logs = np.log(np.diag(root)).sum() * statistic.shape[1]
        total -= float(logs) + float(np.square(apart).sum()) / 2
    return total


def log_likelihood(
    evidence: NoisySums,
    term_of: Int64[np.ndarray, " w"],
    variances: Float64[np.ndarray, " g"],
    constant: float,
) -> tuple[float, Float64[np.ndarray, " g"]]:
    """Of the statistics, but for a constant, and its slope in the logarithms of the variances."""
    v = by_column(variances, term_of, constant)
    value, slope = 0.0, np.zeros(len(v))
    for (prior, label), columns in evidence.outputs.levels():
        # in units in which the noise is the identity, and in float32, as steps are only approached
        statistic, first, cross = evidence.whitened(label)
        scaled = cross * np.sqrt(prior * v, dtype=np.float32)[None, :]
        scaled[:, 0] = 0.0
        known = prior * v[0] * np.outer(first, first)
        try:
            root = _factor(known, scaled)
        except np.linalg.LinAlgError:  # variances that are too large for float32
            root = _factor(known, scaled.astype(np.float64))
        seen = statistic[:, columns]
        solved = cho_solve((root, True), seen, check_finite=False)
        gain = cross.T @ solved
        found = solve_triangular(root.astype(np.float32), cross, lower=True, check_finite=False)
        left = np.einsum("mw,mw->w", found, found).astype(np.float64)
        value -= (
            float(np.log(np.diag(root)).sum()) * len(columns) + float((seen * solved).sum()) / 2
        )
        slope += prior * v * (np.square(gain).sum(axis=1) - len(columns) * left) / 2
    return value, np.bincount(term_of[1:], slope[1:], len(variances))


def _factor(
    known: Float64[np.ndarray, "m m"], scaled: Float[np.ndarray, "m w"]
) -> Float64[np.ndarray, "m m"]:
    """Of the covariance of a whitened column of S."""
    whole = (scaled @ scaled.T).astype(np.float64, order="F")
    whole += known
    whole[np.diag_indices_from(whole)] += 1.0
    return np.asarray(cholesky(whole, lower=True, overwrite_a=True, check_finite=False))


def _expected_squares(
    evidence: NoisySums,
    term_of: Int64[np.ndarray, " w"],
    variances: Float64[np.ndarray, " g"],
    constant: float,
) -> Float64[np.ndarray, " g"]:
    """[G] the expected sum of squares of the terms' coefficients, for an output of scale 1."""
    _, slope = log_likelihood(evidence, term_of, variances, constant)
    count = np.bincount(term_of[1:], minlength=len(variances))
    return variances * (count + 2 * slope / evidence.statistic.shape[1])


def coefficients(
    evidence: NoisySums,
    term_of: Int64[np.ndarray, " w"],
    variances: Float64[np.ndarray, " g"],
    constant: float,
    probability: float = 1.0,
) -> Coefficients:
    """Mean and covariance of θ; all but the constant's mean times a probability of effects."""
    v = by_column(variances, term_of, constant)
    factors = evidence.factors(v)
    mean = evidence.means(v, factors, evidence.statistic)
    mean[1:] *= probability
    uncertainty = evidence.uncertainty(v, factors)
    return Coefficients(mean, uncertainty, variances, evidence, probability)


def by_column(
    variances: Float64[np.ndarray, " g"], term_of: Int64[np.ndarray, " w"], constant: float
) -> Float64[np.ndarray, " w"]:
    """[w] variances of all columns of the design: the constant's, and those of the terms."""
    return np.concatenate([[constant], variances[term_of[1:]]])
