"""From a release and public vectors to a linear model. No label is needed: anyone can do it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64

from labeldp_trainer.one_release.design import SIGNAL_SHARE, restored_design
from labeldp_trainer.one_release.evidence import Posterior, posterior
from labeldp_trainer.one_release.heads import Head, canonical, penalty, temperature
from labeldp_trainer.one_release.lattice import STEPS, UNIT
from labeldp_trainer.one_release.make import Rows, target_variance
from labeldp_trainer.one_release.release import Release


@dataclass(frozen=True)
class LinearFit:
    """A linear function of vectors [p].

    Attributes:
        w: [p, k].
        b: [k].
        unexplained: the share of the prior variance that the noise left.
        columns: how many columns were used.
    """

    w: Float32[np.ndarray, "p k"]
    b: Float32[np.ndarray, " k"]
    unexplained: float
    columns: int


def fitted(release: Release, rows: Rows, head: Head) -> LinearFit:
    """The model of a release on the features that it was made with.

    Outputs are logits, numbers in the label's unit, or logarithms of means (Poisson).
    """
    weights, vectors = release.weights, rows.vectors
    moments = restored_design(weights, vectors, rows.spectrum, rows.shares)
    units = float(UNIT) if release.classes is not None else float(UNIT) * STEPS
    noise = release.sigma / units
    statistic = release.statistic / units
    targets = statistic.shape[1]
    variance = target_variance(release.classes)
    base = np.zeros(1)
    if release.classes is not None:
        # the entries of a one-hot label have the sum 1, so the row sums are public
        statistic = statistic - (statistic.sum(axis=1) - moments.total)[:, None] / targets
        base = np.full(targets, 1 / targets)
    sampling = (1 - SIGNAL_SHARE) * variance * moments.gram
    found = posterior(
        statistic - moments.total[:, None] * base[None, :],
        moments.cross,
        noise**2 * np.eye(weights.width) + sampling,
        moments.spectrum,
        label_variance=variance,
        constant=bool(weights.columns[0] == 0),
        targets=max(targets - 1, 1),
    )
    solved = _head(release, rows, head, found, moments.cross, moments.total, base)
    full = np.zeros((vectors.shape[1] + 1, targets))
    full[weights.columns] = solved
    return LinearFit(
        full[1:].astype(np.float32),
        full[0].astype(np.float32),
        found.unexplained,
        weights.width,
    )


def _head(
    release: Release,
    rows: Rows,
    head: Head,
    found: Posterior,
    cross: Float64[np.ndarray, "d d"],
    total: Float64[np.ndarray, " d"],
    base: Float64[np.ndarray, " k"],
) -> Float64[np.ndarray, "d k"]:
    """[d, k] of the used columns, in the units of the outputs."""
    weights, has_constant = release.weights, release.weights.columns[0] == 0
    if release.label_range is not None:
        low, high = release.label_range
        middle, half = (low + high) / 2, (high - low) / 2
        if head == "ridge":
            solved = half * found.mean
            if has_constant:
                solved[0] += middle
            return solved
        counts = (half * (cross @ found.mean) + middle * total[:, None]) / weights.metric[:, None]
        used, factors = weights.used(rows.vectors), weights.factors(rows.vectors, rows.shares)
        return canonical("poisson", used, factors, counts, penalty(found.unexplained))
    used, factors = weights.used(rows.vectors), weights.factors(rows.vectors, rows.shares)
    sums = (cross @ found.mean + total[:, None] * base[None, :]) / weights.metric[:, None]
    scores = found.mean
    if head == "softmax":
        scores = canonical("softmax", used, factors, sums, penalty(found.unexplained))
    agreement = float((scores * sums).sum())
    return scores * temperature((used @ scores).astype(np.float32), factors, agreement)
