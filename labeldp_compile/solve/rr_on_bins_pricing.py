"""Where multipliers fall short of proving that RR-on-Bins is best: squared and absolute loss.

With h_y(v) = p_y·g(v, y) − α_y and E = e^ε − 1, multipliers α prove a loss of at least Σα if

    F(v) = Σ_y h_y(v) + E·Σ_y min(h_y(v), 0) ≥ 0 for all real v.

Between the roots of the h_y (for the absolute loss, and the labels) F is one quadratic or line.
"""

from __future__ import annotations

import numpy as np

from labeldp_compile.solve.losses import DistanceLoss, Floats, loss_of
from labeldp_compile.solve.optimal_unbiased.pricing import price

_MINIMA = 64  # of F that one projection deals with


def piece_minima(
    loss: DistanceLoss, labels: Floats, prior: Floats, epsilon: float, alpha: Floats
) -> tuple[Floats, Floats]:
    """The minimum of F·e^-ε on every piece, and the output where it is taken.

    Args:
        loss: "squared" or "absolute".
        labels: [k] increasing. prior: [k] positive. epsilon: > 0. alpha: [k] multipliers.

    Returns:
        Two arrays [pieces], outputs not decreasing.
    """
    low = float(np.exp(-epsilon))
    if loss == "squared":
        found = price(labels, prior, low, alpha, np.zeros_like(alpha))
        return found.minima, found.places
    radius = np.maximum(alpha, 0.0) / prior
    places = np.concatenate([labels, labels - radius, labels + radius])
    # With b = e^-ε, F·b = Σ b·h + (1 − b)·Σ min(h, 0), where min(h, 0) leaves zero at the lower
    # root, turns at the label and is zero again from the upper root on. No root: the bends cancel.
    p = prior.astype(np.longdouble)
    bends = np.concatenate([2.0 * p, -(1.0 - low) * p, -(1.0 - low) * p])
    order = np.argsort(places, kind="stable")
    places, bends = places[order], bends[order]
    slopes = -low * p.sum() + np.cumsum(bends)
    first = low * (p @ np.abs(places[0] - labels.astype(np.longdouble)) - alpha.sum())
    rises = np.concatenate([np.zeros(1, np.longdouble), np.cumsum(slopes[:-1] * np.diff(places))])
    return (first + rises).astype(np.float64), places


def local_minima(minima: Floats, places: Floats, below: float) -> Floats:
    """Outputs where F has a local minimum under ``below``, given the minima of its pieces."""
    f = np.concatenate([[np.inf], minima, [np.inf]])
    least = (f[1:-1] <= f[:-2]) & (f[1:-1] <= f[2:]) & (minima < below)
    return np.unique(places[least])


def projected(
    loss: DistanceLoss,
    labels: Floats,
    prior: Floats,
    epsilon: float,
    alpha: Floats,
    weight: Floats,
    rows: Floats,
    below: float,
) -> tuple[Floats, Floats]:
    """Move α until F = 0 where it has negative minima now, given the labels with negative h there.

    That is the right move where no optimal α leaves F positive, because equally good bins exist.

    Args:
        loss, labels, prior, epsilon, alpha: as above.
        weight: [k] how far a multiplier may go; the shortest move by this measure is taken.
        rows: [r, k] of 0 and 1: sums of α that stay.
        below: minima of F·e^-ε above this do not count.

    Returns:
        The new α, and ``rows`` with a row for each minimum added.
    """
    minima, places = piece_minima(loss, labels, prior, epsilon, alpha)
    outputs = local_minima(minima, places, below)[:_MINIMA]
    h = prior * loss_of(loss, outputs[:, None], labels) - alpha
    e = float(np.expm1(epsilon))
    f = h.sum(axis=1) + e * np.minimum(h, 0.0).sum(axis=1)
    rows = np.concatenate([rows, (h < 0).astype(np.float64)])
    lacking = np.concatenate([np.zeros(rows.shape[0] - f.size), f / e])
    scaled = rows * weight
    move = np.linalg.lstsq(scaled, lacking, rcond=1e-10)[0]
    return alpha + weight * move, rows
