"""A stand-in for nature: draws a label for a row from its features and the model's output."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bins = NDArray[np.int64]

_LEAST = 1e-6  # of a probability
_FITTED = 0.75  # of the rows; the others choose the powers
_POWERS = np.linspace(0, 1.25, 6)
_MIXED = (0.0, 0.02, 0.1, 0.3, 1.0)


@dataclass(frozen=True)
class StandIn:
    """Probabilities of bins of labels: powers of what boosted trees say and of what the model says,
    multiplied, and mixed with the shares of the bins.

    Attributes:
        trees: a fitted classifier; None without any column, or if all labels are in one bin.
        shares: [k] of the bins.
        of_trees, of_model: the powers.
        mixed: the weight of ``shares``.
    """

    trees: Any
    shares: Floats
    of_trees: float
    of_model: float
    mixed: float

    @classmethod
    def fitted(
        cls,
        seen: Floats,
        model: Floats,
        bins: Bins,
        categorical: NDArray[np.bool_],
        random: np.random.Generator,
    ) -> StandIn:
        """To rows [n, p] with the model's logarithms [n, k] and the bins [n] of their labels."""
        from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415

        count = model.shape[1]
        shares = (np.bincount(bins, minlength=count) + 1.0) / (len(bins) + count)
        order = random.permutation(len(bins))
        fitting, rest = np.split(order, [int(_FITTED * len(bins))])
        if not seen.shape[1] or len(np.unique(bins[fitting])) == 1:
            return cls(None, shares, 0.0, 0.0, 1.0)
        trees = HistGradientBoostingClassifier(
            learning_rate=0.06,
            max_iter=60,
            max_leaf_nodes=8,
            categorical_features=categorical,
            early_stopping=False,  # it would need rows of every bin, and powers do as much
            random_state=int(random.integers(1 << 31)),
        ).fit(seen[fitting], bins[fitting])
        logs, own = _logs(trees, seen[rest], count), bins[rest]
        knows = _POWERS if model.any() else _POWERS[:1]
        settings = itertools.product(_POWERS, knows, _MIXED)

        def loss(setting: tuple[float, float, float]) -> float:
            found = _mixed(logs, model[rest], shares, *setting)
            return float(-np.log(found[np.arange(len(own)), own]).mean())

        return cls(trees, shares, *min(settings, key=loss))

    def probabilities(self, seen: Floats, model: Floats) -> Floats:
        """[n, k] of rows [n, p] with the model's logarithms [n, k]."""
        if self.trees is None:
            return np.tile(self.shares, (len(seen), 1))
        logs = _logs(self.trees, seen, len(self.shares))
        return _mixed(logs, model, self.shares, self.of_trees, self.of_model, self.mixed)


def _logs(trees: Any, seen: Floats, count: int) -> Floats:
    found = np.full((len(seen), count), _LEAST)
    found[:, trees.classes_] = trees.predict_proba(seen)
    return np.log(np.maximum(found, _LEAST))


def _mixed(
    trees: Floats, model: Floats, shares: Floats, of_trees: float, of_model: float, mixed: float
) -> Floats:
    logs = of_trees * trees + of_model * model
    powers = np.exp(logs - logs.max(axis=1, keepdims=True))
    powers /= powers.sum(axis=1, keepdims=True)
    return np.maximum((1 - mixed) * powers + mixed * shares, _LEAST)
