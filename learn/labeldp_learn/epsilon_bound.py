"""What guesses prove about ε: a lower bound from how many of them are right.

A training row is shown as two labels in random order: its own, and one that a stand-in drew. A
guess says which is its own. If the stand-in drew as nature does, a guess from the model and all
other rows would be right with probability e^ε/(1 + e^ε) at most, whichever were right before
(Steinke, Nasr and Jagielski 2023, Theorem 5.2; for labels and a stand-in: arXiv 2511.14084).

No stand-in is perfect, so a guess may be right with probability p > ½ without any help of the
model's training on that label. With it, the odds grow by e^ε at most: to
e^ε·p/(1 − p + e^ε·p). This is concave in p, so the mean p of the guesses bounds the mean (Jensen),
and sums of unlike chances have no heavier upper tail than a binomial of the same mean (Hoeffding
1956).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import bdtrc, betaincinv

_MOST = 50.0  # a larger ε says no more


@dataclass(frozen=True)
class Guesses:
    """How many guesses were made, and how many of them were right."""

    made: int
    right: int

    def most(self, error: float) -> float:
        """The Clopper–Pearson upper bound of the probability to be right."""
        if self.right == self.made:
            return 1.0
        return float(betaincinv(self.right + 1, self.made - self.right, 1 - error))

    def or_more(self, chance: float) -> float:
        """The probability of as many right guesses, or more, if each has this chance."""
        return float(bdtrc(self.right - 1, self.made, chance)) if self.right else 1.0


def p_value(guesses: Guesses, epsilon: float, delta: float, alone: float, rows: int) -> float:
    """An upper bound of the probability of as many right guesses, or more, under (ε, δ).

    Args:
        guesses: about rows of training.
        epsilon: ε ≥ 0.
        delta: δ.
        alone: the mean chance to be right without the model's training on the label.
        rows: about which a guess could have been made.
    """
    grown = math.exp(min(epsilon, _MOST)) * alone
    chance = grown / (1 - alone + grown)
    found = guesses.or_more(chance)
    if delta and guesses.right:
        less = np.arange(1, guesses.right + 1)
        tails = np.where(
            less < guesses.right, bdtrc(guesses.right - less - 1, guesses.made, chance), 1.0
        )
        found += 2 * rows * delta * max(float(np.max((tails - found) / less)), 0.0)
    return min(found, 1.0)


def epsilon_bound(guesses: Guesses, error: float, delta: float, alone: float, rows: int) -> float:
    """The largest ε that is refuted with this probability of an error; 0 if none is."""

    def excess(epsilon: float) -> float:
        return p_value(guesses, epsilon, delta, alone, rows) - error

    if not guesses.made or alone >= 1 or excess(0.0) >= 0:
        return 0.0
    return _MOST if excess(_MOST) < 0 else float(brentq(excess, 0.0, _MOST, xtol=1e-9))
