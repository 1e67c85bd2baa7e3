"""The best width of the staircase for a loss.

With weights h(m) = 1 for m < ρ and b = e^−ε after that, the expected loss of the noise is a ratio
of two sums, which prefix sums give for all widths ρ at once. The width only chooses among private
noises, so float64 is enough. Geng and Viswanath (2014) proved that a staircase of some width is the
best of all unclipped additive noises.
"""

import math

import numpy as np
from labeldp_verify.analysis import Loss

from labeldp_compile.solve.losses import Floats, loss_of


def staircase_width(
    period: int, spacing: int, prior: Floats, epsilon: float, loss: Loss, clip: bool
) -> int:
    """The width ρ in 1 … D with the least expected loss; O(D + k).

    ``period`` D and ``spacing`` are in lattice steps, ``prior`` is [k]. Without ``clip``, the loss
    is that of the noise, for any prior. With ``clip``, it is that of the label plus noise, clamped
    to the range of the labels. The loss depends only on the distance.
    """
    if clip:
        above = _clipped(period, spacing, prior, epsilon, loss)
        below = _clipped(period, spacing, prior[::-1], epsilon, loss)
    else:
        above = below = _unclipped(period, epsilon, loss)
    b = math.exp(-epsilon)
    widths = np.arange(1, period + 1)
    # Distances 0 … D − 1 from zero upwards, and 1 … D below: a width covers ρ and ρ − 1 of them.
    covered = np.cumsum(above[:period]) + np.concatenate([[0.0], np.cumsum(below[1:period])])
    everything = above[:period].sum() + below[1:].sum()
    expected = b * everything + (1 - b) * covered
    weight = b * 2 * period + (1 - b) * (2 * widths - 1)
    return int(np.argmin(expected / weight)) + 1


def _unclipped(period: int, epsilon: float, loss: Loss) -> Floats:
    """[D + 1] Σ over j of e^(−ε·j)·ℓ(j·D + m)."""
    b, rest = math.exp(-epsilon), -math.expm1(-epsilon)
    zeroth, first, second = 1 / rest, b / rest**2, b * (1 + b) / rest**3
    m = np.arange(period + 1, dtype=np.float64)
    if loss == "squared":
        squares = period**2 * second + 2 * period * first * m + zeroth * m * m
        return np.asarray(squares / 2)
    if loss == "absolute":
        return np.asarray(period * first + zeroth * m)
    return np.asarray(loss_of(loss, m, 0.0) + b * zeroth)


def _clipped(period: int, spacing: int, prior: Floats, epsilon: float, loss: Loss) -> Floats:
    """[D + 1] Σ over j of e^(−ε·j)·E ℓ(clamp(y + j·D + m) − y), y a random label."""
    m = np.arange(period + 1)
    room = period - spacing * np.arange(float(len(prior)))  # steps from each label to the highest
    fully = (period - m) // spacing + 1  # labels that m more steps do not push over the end
    mass = np.concatenate([[0.0], np.cumsum(prior)])
    stopped = np.concatenate([[0.0], np.cumsum((prior * loss_of(loss, room, 0.0))[::-1])])[::-1]
    losses = loss_of(loss, m.astype(np.float64), 0.0) * mass[fully] + stopped[fully]
    b = math.exp(-epsilon)
    # From one period on every label is pushed to the end.
    return np.asarray(losses + b / -math.expm1(-epsilon) * losses[period])
