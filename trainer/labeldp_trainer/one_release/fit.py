"""From a release and public vectors to a linear model. No label is needed: anyone can do it."""

import numpy as np
from jaxtyping import Float32, Float64

from labeldp_trainer.config.method import Head
from labeldp_trainer.linear.fit import fitted
from labeldp_trainer.linear.sums import Sums, of_groups, with_constant
from labeldp_trainer.one_release.plan import SIGNAL_SHARE, moments, target_variance
from labeldp_trainer.one_release.release import Release
from labeldp_trainer.one_release.rows import STEPS, UNIT, PublicRows


def fitted_release(
    release: Release, rows: PublicRows, head: Head
) -> tuple[Float32[np.ndarray, "p k"], Float32[np.ndarray, " k"]]:
    """Weights of the vectors' columns and biases: logits, numbers, or logarithms of means."""
    sums = _sums(release, rows)
    solved = fitted(sums, head)
    full = np.zeros((rows.vectors.shape[1] + 1, solved.shape[1]))
    full[release.columns] = solved
    return full[1:].astype(np.float32), full[0].astype(np.float32)


def _sums(release: Release, rows: PublicRows) -> Sums:
    weights, facts = release.weights, release.facts
    found = moments(weights, rows)
    variance = target_variance(facts.classes)
    statistic, noise = label_units(release, found.total)
    if facts.classes is not None:
        base = np.full(statistic.shape[1], 1 / statistic.shape[1])
    else:
        assert facts.label_range is not None
        low, high = facts.label_range
        variance, base = variance * ((high - low) / 2) ** 2, np.full(1, (low + high) / 2)
    return Sums(
        statistic=statistic,
        cross=found.cross,
        total=found.total,
        noise=noise**2 * np.eye(weights.width),
        residual=variance * found.gram,
        unexplained=1 - SIGNAL_SHARE,
        spectrum=with_constant(rows.spectrum, rows.vectors.shape[1])[weights.columns],
        groups=of_groups(rows.groups, rows.vectors.shape[1])[weights.columns],
        metric=weights.metric.astype(np.float64),
        constant=bool(weights.columns[0] == 0),
        variance=variance,
        base=base,
        scales=np.ones(len(base)),
        classes=facts.classes is not None,
        used=lambda: weights.used(rows.vectors),
        factors=lambda: weights.factors(rows),
    )


def label_units(
    release: Release, total: Float64[np.ndarray, " d"]
) -> tuple[Float64[np.ndarray, "d k"], float]:
    """The statistic Σ q ⊗ t(y) [d, k] of labels or one-hot labels, and the deviation of its noise.

    ``total`` is Σ q, in units of UNIT.
    """
    facts = release.facts
    noise, statistic = facts.sigma / UNIT, release.statistic / UNIT
    if facts.classes is not None:
        # the entries of a one-hot label have the sum 1, so the row sums are public
        return statistic - (statistic.sum(axis=1) - total)[:, None] / statistic.shape[1], noise
    assert facts.label_range is not None
    low, high = facts.label_range
    middle, half = (low + high) / 2, (high - low) / 2
    # from steps around the middle to labels
    return statistic / STEPS * half + middle * total[:, None], noise / STEPS * half
