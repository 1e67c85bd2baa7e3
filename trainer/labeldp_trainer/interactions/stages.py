"""Learning a model of interactions in stages: what is asked of labels next, from what is known.

Every question is a histogram of labels, or of the sizes of residuals, or a sum of public rows times
labels (or clipped residuals). A source answers: with noise (``staged_release``), exactly (``none``), or
from labels that are private already (``privatized``). What is decided between questions is a function
of public features and of earlier answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from jaxtyping import Float32, Float64, Int32

from labeldp_trainer.interactions.columns import Column
from labeldp_trainer.interactions.design import (
    Moments,
    RowWeights,
    design_moments,
    row_weights,
)
from labeldp_trainer.interactions.evidence import (
    Coefficients,
    Evidence,
    coefficients,
    variances_by_evidence,
)
from labeldp_trainer.interactions.terms import MOST_COLUMNS, MOST_WEIGHT, Term, Terms

STAGES = 3
_MAIN, _PAIRS = 0.6, 0.3  # of the variance of labels, before anything is known
_POWERS = (0.4, 0.8, 1.0)
_QUANTILE = 0.5
_TOP = 12  # columns that may be in pairs
_NEW_PAIRS, _NEW_TRIPLES = 0.2, 0.1  # of what is left
_STRONGEST_PAIRS, _STRONGEST_COLUMNS = 5, 6
_LEAST_MAIN, _LEAST_PAIR = 1e-6, (3e-4, 5e-4)
_CACHED_BYTES = 1 << 30


@dataclass(frozen=True)
class Offset:
    """A prediction that labels are compared with: base + unit·(z·weights), within ``ends``.

    Attributes:
        terms: of z.
        weights: [w] integers up to MOST_WEIGHT.
        unit: of them.
        base: without them.
        ends: of labels.
    """

    terms: tuple[Term, ...]
    weights: Int32[np.ndarray, " w"]
    unit: float
    base: float
    ends: tuple[float, float]

    def of(self, z: Float64[np.ndarray, "b w"]) -> Float64[np.ndarray, " b"]:
        """The predictions for rows z of these terms: the same on every processor."""
        found = self.base + self.unit * (z @ self.weights.astype(np.float64))
        return np.clip(found, *self.ends)


@dataclass(frozen=True)
class Question:
    """The sum Σ q ⊗ t of a stage: rows q of terms, and what t is of a label.

    Attributes:
        terms: of the rows.
        rows: from a row of the terms to q.
        offset: t is the label less this, clipped to ± ``clip``; None for classes, whose t is one-hot.
        clip: in units of labels.
    """

    terms: tuple[Term, ...]
    rows: RowWeights
    offset: Offset | None
    clip: float


@dataclass(frozen=True)
class Known:
    """What is known of labels before any feature is used.

    Attributes:
        base: [K] a prediction without features.
        variance: that features may explain, a mean over outputs.
        spread: of labels as they are answered about, noise of their own included.
        clip: half the range in which nearly all labels lie.
    """

    base: Float64[np.ndarray, " k"]
    variance: float
    spread: float
    clip: float


@dataclass(frozen=True)
class Residuals:
    """The mean square of residuals, and a size that nearly all of them have at most."""

    square: float
    clip: float


class Source(Protocol):
    """Answers questions about labels, one after another."""

    extra: float
    """Variance of answers' labels beyond that of true labels."""

    def labels(self) -> Known:
        """Where labels lie."""

    def noise(self, clip: float) -> float:
        """About the deviation that the next sums will have, in units of labels."""

    def sums(self, question: Question) -> tuple[Question, Float64[np.ndarray, "m k"], float]:
        """Sums in units of labels and of rows of length 1, the question that they answer, and the
        deviation of their noise."""

    def residuals(self, offset: Offset) -> Residuals:
        """The sizes of residuals of numbers."""


@dataclass(frozen=True)
class Task:
    """What is learned: ends of the labels, or the number of classes."""

    ends: tuple[float, float] | None
    classes: int


@dataclass
class Block:
    """An answer, and rows that it is of. ``rows`` [n, m] are kept while there is room."""

    question: Question
    statistic: Float64[np.ndarray, "m k"]
    noise: float
    offsets: Float32[np.ndarray, " n"] | None
    kept: Float32[np.ndarray, "n m"] | None = None


@dataclass(frozen=True)
class Fit:
    """What has been learned.

    Attributes:
        terms: with coefficients.
        moments: of their columns.
        found: the coefficients of centred and scaled columns.
        base: [K].
        scales: [K] variances of outputs, relative to one another.
        spread: variance that the model does not explain.
        uncertainty: mean variance of a prediction.
    """

    terms: Terms
    moments: Moments
    found: Coefficients
    base: Float64[np.ndarray, " k"]
    scales: Float64[np.ndarray, " k"]
    spread: float
    uncertainty: float

    def raw(self) -> tuple[Float64[np.ndarray, "w k"], Float64[np.ndarray, " k"]]:
        """Coefficients of the integer columns, and what comes to the base."""
        weights = self.found.mean * self.moments.scale[:, None]
        moved = -(self.moments.mean[1:] @ weights[1:])
        return weights, self.base + moved


@dataclass
class Learner:
    """Learns from a table's public columns and a source of answers."""

    columns: Sequence[Column]
    codes: Int32[np.ndarray, "n c"]
    task: Task
    source: Source
    interactions: int = 3
    most_sums: int = 600
    shares: np.ndarray | None = None
    blocks: list[Block] = field(default_factory=list)
    stage_done: Callable[[int], None] = lambda stage: None

    def learn(self) -> Fit:
        """All stages."""
        known_labels = self.source.labels()
        base, variance, clip = known_labels.base, known_labels.variance, known_labels.clip
        spread = known_labels.spread
        names = [c for c, column in enumerate(self.columns) if column.rank]
        chosen: list[Term] = [(c,) for c in names]
        pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
        if self.interactions > 1 and len(names) <= _TOP:
            chosen += pairs
        known, fit = {}, None
        offset = self._offset(None, base)
        for stage in range(STAGES):
            terms = self._within(chosen)
            moments = design_moments(terms)
            start = self._prior(terms, known, variance, spread, stage)
            covariance = self._covariance(terms, moments, start, variance, spread)
            noise = self.source.noise(clip)
            rows = row_weights(
                terms,
                moments,
                covariance,
                noise,
                most=self.most_sums,
                power=_POWERS[min(stage, 2)],
                quantile=_QUANTILE,
            )
            asked = Question(terms.chosen, rows, offset, clip)
            asked, statistic, noise = self.source.sums(asked)
            self._add(asked, statistic, noise)
            self.stage_done(stage + 1)
            fit = self._fit(
                terms, moments, start, known, base, variance, spread if fit is None else fit.spread
            )
            if stage == STAGES - 1:
                break
            offset = self._offset(fit, base)
            spread, clip = self._sizes(stage, fit, offset, clip, variance)
            fit = replace(fit, spread=spread)
            known = dict(zip(terms.chosen, fit.found.variances, strict=True))
            chosen = self._next(stage, known, pairs, names)
        return fit

    def _within(self, chosen):
        """At most MOST_COLUMNS columns."""
        terms = Terms(self.columns, self.codes, tuple(chosen))
        while terms.width > MOST_COLUMNS // 2 and len(chosen) > 1:
            chosen = chosen[:-1]
            terms = Terms(self.columns, self.codes, tuple(chosen))
        return terms

    def _offset(self, fit, base):
        if self.task.ends is None:
            return None
        if fit is None:
            return Offset((), np.zeros(1, np.int32), 0.0, float(base[0]), self.task.ends)
        weights, moved = fit.raw()
        unit = float(np.abs(weights).max()) / MOST_WEIGHT or 1.0
        whole = np.rint(weights[:, 0] / unit).astype(np.int32)
        return Offset(fit.terms.chosen, whole, unit, float(moved[0]), self.task.ends)

    def _prior(self, terms, known, variance, spread, stage):
        """[G] prior variances of terms before the answer."""
        order = np.array([len(term) for term in terms.chosen])
        mains, others = max((order == 1).sum(), 1), max((order > 1).sum(), 1)
        if not known:
            return np.where(order == 1, _MAIN * variance / mains, _PAIRS * variance / others)
        new = [term for term in terms.chosen if term not in known]
        share = (_NEW_PAIRS if stage == 1 else _NEW_TRIPLES) * spread / max(len(new), 1)
        return np.array([known.get(term, share) for term in terms.chosen])

    def _covariance(self, terms, moments, start, variance, spread):
        if not self.blocks:
            return np.diag(np.concatenate([[variance], start[terms.term_of[1:]]]))
        evidence = self._evidence(terms, moments, spread)
        return coefficients(evidence, terms.term_of, start, variance).covariance

    def _add(self, asked, statistic, noise):
        offsets = None
        if asked.offset is not None and asked.offset.unit:
            terms = Terms(self.columns, self.codes, asked.offset.terms)
            offsets = np.concatenate([asked.offset.of(z) for _, z in terms.chunks()]).astype(
                np.float32
            )
        elif asked.offset is not None:
            offsets = np.full(len(self.codes), asked.offset.base, np.float32)
        self.blocks.append(Block(asked, statistic, noise, offsets))

    def _rows(self, block, part):
        if block.kept is not None:
            return block.kept[part]
        terms = Terms(self.columns, self.codes, block.question.terms)
        share = None if self.shares is None else self.shares[part]
        return (block.question.rows.integers(terms.rows(part), share) / (1 << 24)).astype(
            np.float32
        )

    def _evidence(self, terms, moments, spread):
        sizes = [block.question.rows.weights.shape[1] for block in self.blocks]
        m = sum(sizes)
        room = _CACHED_BYTES // (4 * len(self.codes))
        for block, size in zip(self.blocks, sizes, strict=True):
            room -= size
            if block.kept is None and room >= 0:
                block.kept = np.concatenate(
                    [
                        self._rows(block, part)
                        for part, _ in Terms(self.columns, self.codes, ()).chunks()
                    ]
                )
        cross, gram, total = np.zeros((m, terms.width)), np.zeros((m, m)), np.zeros(m)
        offset = np.zeros(m)
        for part, z in terms.chunks():
            q = np.concatenate([self._rows(block, part) for block in self.blocks], axis=1)
            cross += q.T @ z.astype(np.float32)
            gram += q.T @ q
            total += q.sum(axis=0)
            at = 0
            for block, size in zip(self.blocks, sizes, strict=True):
                if block.offsets is not None:
                    offset[at : at + size] += q[:, at : at + size].T @ block.offsets[part]
                at += size
        cross = (cross - total[:, None] * moments.mean[None, :]) * moments.scale[None, :]
        statistic = np.concatenate([block.statistic for block in self.blocks])
        statistic = statistic + offset[:, None] - total[:, None] * self._base[None, :]
        noise = np.diag(np.repeat([block.noise**2 for block in self.blocks], sizes))
        scales = np.ones(1)
        if self.task.ends is None:
            own = self._base * (1 - self._base)
            scales = own / own.mean()
        return Evidence(statistic, cross, noise, gram, spread, scales)

    def _fit(self, terms, moments, start, known, base, variance, spread):
        self._base = base
        evidence = self._evidence(terms, moments, spread)
        kinds = [len(term) + 10 * (bool(known) and term not in known) for term in terms.chosen]
        variances = variances_by_evidence(evidence, terms.term_of, start, kinds, 10 * variance)
        found = coefficients(evidence, terms.term_of, variances, 10 * variance)
        left = float((moments.gram * found.covariance).sum())
        return Fit(terms, moments, found, base, evidence.scales, spread, left)

    def _sizes(self, stage, fit, offset, clip, variance):
        """The variance that is not explained, and where residuals are clipped next."""
        if offset is None:
            explained = float(moments_explained(fit).mean())
            spread = max(variance - explained - fit.uncertainty, 0.1 * variance)
            return spread + self.source.extra, clip
        found = self.source.residuals(offset)
        spread = max(found.square - fit.uncertainty, 0.01 * variance)
        return spread, min(clip, found.clip)

    def _next(self, stage, known, pairs, names):
        if self.interactions == 1:
            return list(known)
        importance = dict.fromkeys(names, 0.0)
        for term, value in known.items():
            for c in term:
                importance[c] += float(value)
        best = sorted(names, key=lambda c: -importance[c])
        total = sum(known.values())

        def strong(least):
            return [
                t for t, v in known.items() if v > (_LEAST_MAIN if len(t) == 1 else least) * total
            ]

        if stage == 0:
            top = set(best[:_TOP])
            kept = [t for t in known if len(t) == 1 or known[t] > _LEAST_PAIR[0] * total]
            return kept + [p for p in pairs if set(p) <= top and p not in known]
        kept = strong(_LEAST_PAIR[1])
        if self.interactions < 3:
            return kept
        strongest = sorted((t for t in kept if len(t) == 2), key=lambda t: -known[t])[
            :_STRONGEST_PAIRS
        ]
        triples = {
            tuple(sorted((*t, c)))
            for t in strongest
            for c in best[:_STRONGEST_COLUMNS]
            if c not in t
        }
        return kept + sorted(triples)


def moments_explained(fit):
    """[K] variance of predictions over the rows."""
    return np.einsum(
        "wk,wv,vk->k", fit.found.mean[1:], fit.moments.gram[1:, 1:], fit.found.mean[1:]
    )
