"""Exact binomial confidence bounds (Clopper and Pearson 1934).

The tail of the binomial distribution is a regularized incomplete beta function; it is inverted by
bisection, so that a bound holds as far as the function itself is right, at errors as small as
those of an audit, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

Floats = NDArray[np.float64]
_STEPS = 60


def lower_bound(successes: Any, trials: Any, error: float) -> Floats:
    """A number that is above the true probability with a chance of at most ``error``.

    Args:
        successes: counts, of any shape.
        trials: how often each was tried, ≥ 1; of a shape that broadcasts.
        error: one-sided, for each bound.
    """
    c, n = np.broadcast_arrays(np.asarray(successes, float), np.asarray(trials, float))
    # Pr[X ≥ c] = I_p(c, n − c + 1) rises with p: the largest p at which it is at most the error.
    low, high = np.zeros(c.shape), np.where(c > 0, c / n, 0.0)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        rare = betainc(np.maximum(c, 0.5), n - c + 1, middle) <= error
        low, high = np.where(rare, middle, low), np.where(rare, high, middle)
    return np.where(c > 0, low, 0.0)


def upper_bound(successes: Any, trials: Any, error: float) -> Floats:
    """A number that is below the true probability with a chance of at most ``error``.

    The arguments are those of ``lower_bound``.
    """
    c, n = np.broadcast_arrays(np.asarray(successes, float), np.asarray(trials, float))
    return 1.0 - lower_bound(n - c, n, error)
