"""The best that one prediction for all rows does on a test set: what a model must beat.

It is computed from the test labels alone, as the other metrics on the test set are, which the
statement lists as not covered.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Real

from labeldp_trainer.losses import POISSON_FLOOR, Loss


def constant_metrics(loss: Loss, targets: Real[np.ndarray, " n"]) -> dict[str, float]:
    """Every metric of the loss, each at the constant that is best for it.

    Classes: the largest class's share and the entropy of the shares. Numbers: the variance, the
    mean distance from the median, and the loss at the mean (squared, Poisson) or the median.
    """
    if loss.task.classes is not None:
        shares = np.bincount(targets, minlength=len(loss.task.classes)) / len(targets)
        seen = shares[shares > 0]
        return {"loss": float(-(seen * np.log(seen)).sum()), "accuracy": float(shares.max())}
    y = targets.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        mse, mae = float(y.var()), float(np.abs(y - np.median(y)).mean())
        mean = max(float(y.mean()), POISSON_FLOOR)
        best = {
            "squared": 0.5 * mse,
            "absolute": mae,
            "poisson": mean - float(y.mean()) * float(np.log(mean)),
        }
    return {"loss": best[loss.name], "mse": mse, "mae": mae}
