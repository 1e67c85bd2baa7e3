"""Whether outputs can be private labels of an artifact at all: impossible estimates, by chance.

By the noise an estimate of a share may lie below 0 or above 1. How far, whatever the labels are,
has a bound (Chernoff 1952): for n independent rows and any λ > 0

    Pr[mean of g(o) ≥ v]  ≤  (max over labels y of E[exp(λ·(g(o) − v)) | y])^n

The same with −g bounds estimates that are too small. Where there is no table, Bernstein's
inequality takes the largest variance of a label and the largest distance of an output.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.tools.estimate.functionals import LinearEstimators
from labeldp_compile.tools.estimate.private_counts import OutputCounts

Floats = NDArray[np.float64]
HARDLY = math.log(1e-9)  # what is less likely is not put down to chance
_FURTHEST = 4  # of many estimates: those that lie furthest outside
_LAMBDAS = 2.0 ** np.arange(-12, 8)  # for |g − v| ≤ 1
_TINY = float(np.finfo(float).tiny)


def log_chance(linear: LinearEstimators, counts: OutputCounts) -> float:
    """log of a bound on the probability that one of the estimates is as far outside as these are.

    Outside of what labels can have, that is; 0 if none is.
    """
    f, g = linear.functionals, linear.of_output
    value = linear.estimate(counts)
    beyond = np.maximum(f.min(axis=0) - value, value - f.max(axis=0))
    relative = beyond / np.maximum(np.abs(g).max(axis=0), _TINY)
    least = 0.0
    for i in np.argsort(-relative)[:_FURTHEST]:
        if beyond[i] <= 0:
            break
        side = 1 if value[i] > f[:, i].max() else -1
        away = side * (g[:, i] - value[i])
        powers = np.exp(np.outer(away / np.maximum(np.abs(away).max(), _TINY), _LAMBDAS))
        largest = (linear.inverse.table @ powers).max(axis=0)
        least = min(least, counts.rows * math.log(largest.min()))
    return min(least + math.log(len(value)), 0.0)


def log_chance_of_mean(beyond: float, variance: float, reach: float, rows: int) -> float:
    """The same of one mean, which lies ``beyond`` what is possible.

    ``variance`` of an output and ``reach``, its distance from the label, are the largest ones.
    """
    if beyond <= 0:
        return 0.0
    return -rows * beyond**2 / (2 * (variance + reach * beyond / 3))
