"""Unbiased targets of private labels, and how much noise they have under each label."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64
from labeldp_learn.toolkit import PrivateRows, central_fourth_moments, debiased_values

from labeldp_trainer.coefficients import PrivateTargets
from labeldp_trainer.methods.corrections import debiasing_weights

_BIAS_WEIGHTS = (1e-12, 1e-9, 1e-6)
"""Of the variance in ``debiased_values``: about none."""
_EVENLY = 0.01  # share of labels spread over all labels
_MOST_BIAS = 0.05  # of the least standard error that a coefficient can have


class BiasedError(ValueError):
    """No targets are unbiased; the text says why."""


def private_targets(parts: Sequence[PrivateRows], order: Sequence[int] | None) -> PrivateTargets:
    """Of all rows of parts, for the classes ``order`` of an artifact, or for numbers (None).

    Raises BiasedError, or ArtifactError for classes whose outputs are nearly the same.
    """
    codes = np.empty(sum(len(part.rows) for part in parts), np.int64)
    found = list[tuple[Float64[np.ndarray, "m k"], ...]]()
    before = 0
    for part in parts:
        if not part.is_small:
            raise BiasedError("its artifact has too many outputs")
        seen, own = np.unique(part.codes, return_inverse=True)
        whole = _numbers(part) if order is None else _classes(part, order)
        found.append(tuple(numbers[seen] for numbers in whole))
        codes[part.rows] = own + before
        before += len(found[-1][0])
    return PrivateTargets(codes, *(np.concatenate(own) for own in zip(*found, strict=True)))


def _classes(part: PrivateRows, order: Sequence[int]) -> tuple[Float64[np.ndarray, "m k"], ...]:
    """W[o, c] has the mean 1[y = c], so that W² − W has the mean Var[W[o, c] | y]."""
    values = debiasing_weights(part.matrix, part.table.certificate.name)[:, order]
    means = np.eye(len(part.matrix))[:, order]
    variances = np.maximum(part.matrix @ values**2 - means, 0.0)
    fourth = central_fourth_moments(part.matrix, values, means)
    return _of_all(values, values**2 - values, variances, fourth)


def _numbers(part: PrivateRows) -> tuple[Float64[np.ndarray, "m k"], ...]:
    """Of all values that are unbiased, those of least variance for the likeliest labels."""
    matrix = part.matrix
    # what no label seems to have must be unbiased, too
    shares = (1 - _EVENLY) * part.shares + _EVENLY / len(matrix)
    labels = np.array(list(part.table.domain.listed), np.float64)
    for weight in _BIAS_WEIGHTS:
        values = debiased_values(matrix, labels, shares, weight)
        means = matrix @ values
        variances = np.maximum(matrix @ values**2 - means**2, 0.0)
        bias = float(np.abs(means - labels).max())
        if bias <= _MOST_BIAS * np.sqrt(variances.min() / len(part.rows)):
            break
    else:
        raise BiasedError("its private labels are biased; goal: training in the spec avoids it")
    noise = debiased_values(matrix, variances, shares, _BIAS_WEIGHTS[-1])
    missed = max(float((variances - matrix @ noise).max()), 0.0)
    fourth = central_fourth_moments(matrix, values[:, None], means[:, None])
    return _of_all(values[:, None], noise[:, None] + missed, variances[:, None], fourth)


def _of_all(
    values: Float64[np.ndarray, "m k"],
    noise: Float64[np.ndarray, "m k"],
    variances: Float64[np.ndarray, "y k"],
    fourth: Float64[np.ndarray, "y k"],
) -> tuple[Float64[np.ndarray, "m k"], ...]:
    ends = (variances.min(axis=0), variances.max(axis=0), fourth.max(axis=0))
    return values, noise, *(np.repeat(end[None, :], len(values), axis=0) for end in ends)
