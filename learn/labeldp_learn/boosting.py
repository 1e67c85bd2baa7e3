"""Losses as objectives of LightGBM and XGBoost, neither of which is imported here.

Both libraries call an objective with the scores and what holds the labels, and take gradients and
second derivatives of the same shape. So one function serves both, in their own interface and in
that of scikit-learn. A dataset holds ``loss.labels(private)`` for labels, and as ``init_score``
(LightGBM) or ``base_margin`` (XGBoost) ``loss.start(private)``. Predictions do not include it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labeldp_learn.losses import PrivateLoss
from labeldp_learn.private_rows import Floats

Derivatives = tuple[Floats, Floats]


def boosting_objective(loss: PrivateLoss) -> BoostingObjective:
    """An objective for ``lightgbm.train`` and ``xgboost.train``, and for their estimators.

    Args:
        loss: one of ``labeldp_learn``.

    Returns:
        A function of (scores, dataset) as the libraries call it, or of (labels, scores, weights) as
        their estimators for scikit-learn do. It returns gradients and second derivatives, each
        times the row's weight if there are weights.

    Example:
        >>> from labeldp_learn import UnbiasedPoissonLoss, boosting_objective
        >>> objective = boosting_objective(UnbiasedPoissonLoss())
        >>> gradients, hessians = objective([2.0, -1.0], [0.0, 0.0])  # labels and scores
        >>> gradients.tolist(), hessians.tolist()
        ([-1.0, 2.0], [1.0, 1.0])
    """
    return BoostingObjective(loss)


@dataclass(frozen=True)
class BoostingObjective:
    """What ``boosting_objective`` returns; it can be pickled if its loss can."""

    loss: PrivateLoss

    def __call__(self, first: Any, second: Any, sample_weight: Any = None) -> Derivatives:
        """Gradients and second derivatives, as ``boosting_objective`` says.

        Both libraries look for a third argument. Without one, the estimator of LightGBM ignores
        weights, and that of XGBoost refuses them.
        """
        if hasattr(second, "get_label"):
            scores, labels, weights = first, second.get_label(), second.get_weight()
        else:
            scores, labels, weights = second, first, sample_weight
        scores = np.asarray(scores, np.float64)
        found = self.loss.gradient(scores, labels), self.loss.hessian(scores, labels)
        if weights is None or not len(weights):
            return found
        each = np.asarray(weights).reshape(-1, *([1] * (scores.ndim - 1)))
        return found[0] * each, found[1] * each
