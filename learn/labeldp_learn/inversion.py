"""From the probabilities of what was fitted to those of the true classes (forward correction).

A model that is fitted to private labels learns q(x) = Tᵀp(x), p(x) the probabilities of the k true
classes, and T [k, j] the known Pr[what was fitted | class] (Patrini et al. 2017). So p = qW with
T·W = I. A model is never exactly right, and qW may leave the simplex. Then the nearest point of the
simplex is taken. If T has no such W, p is the likeliest one given q.

A probability of 0 is worse than any noise for the log loss. So the result is mixed with a small
share of the estimated shares of all classes.
"""

import numpy as np
from labeldp_verify.analysis import least_variance_inverse, likeliest_shares, project_to_simplex

from labeldp_learn.private_rows import Floats

_BATCH = 1 << 14  # rows


def true_probabilities(fitted: Floats, mixing: Floats, shares: Floats, smoothing: float) -> Floats:
    """[n, k] from q [n, j], T [k, j] and the shares [k] of the classes; rows sum to 1."""
    weights = least_variance_inverse(mixing)
    if weights is not None:
        found = project_to_simplex(fitted @ weights)
    else:
        starts = range(0, len(fitted), _BATCH)
        parts = [likeliest_shares(mixing, fitted[i : i + _BATCH], shares) for i in starts]
        found = np.concatenate(parts) if parts else np.zeros((0, len(mixing)))
    return np.asarray((1 - smoothing) * found + smoothing * shares)
