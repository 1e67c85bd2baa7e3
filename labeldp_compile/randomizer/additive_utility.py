"""Exact moments and exact losses of an additive randomizer."""

from __future__ import annotations

from labeldp_compile.randomizer.additive import AdditiveRandomizer
from labeldp_compile.randomizer.loss import Labels, Loss, LossOfLabel, Moments


def additive_moments(randomizer: AdditiveRandomizer) -> Moments:
    """E[ŷ | y] and E[ŷ² | y] by the index of y."""
    raise NotImplementedError


def additive_loss(randomizer: AdditiveRandomizer, labels: Labels, loss: Loss) -> LossOfLabel:
    """Bounds of E[ℓ(ŷ, y) | y] by the index of y."""
    raise NotImplementedError
