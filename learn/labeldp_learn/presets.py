"""Starting values of gradient boosting on private labels, from the noise of the artifact.

A private label is worth less than a true one. With the variance s² of the true labels and the mean
variance σ² that randomizing adds to a target, a mean over R = (s² + σ²)/s² private labels is as
exact as one true label. So n rows are worth N = n/R true labels. Both s² and σ² come from the
artifact and the private labels alone. Everything else follows from R and N:

* Rows in a leaf: 20·R, because 20 is what libraries take for true labels; n/8 at most.
* λ: a leaf's value is pulled to 0 as if 10·R more rows had said 0. This is the posterior mean for
  effects of variance s²/10 (ridge regression; James and Stein 1961).
* Depth d: the largest from 2 to 6 with at least 250 true labels' worth for each of 2^d leaves.
* Learning rate η: 0.05 (shrinkage, Friedman 2001).
* Rounds: a model fits about T·η·2^d numbers, each with the noise of about one N-th of the labels'
  variance (degrees of freedom of boosting, Bühlmann and Yu 2003). T·η = N/(16·2^d) keeps that noise
  at a sixteenth of s²; 40/d at most, where more rounds add little.

The constants were chosen on four of the tables of ``benchmarks/own_tools.py`` and are held against
tuning there. No library is imported here. Early stopping is off: what it watches is mostly noise.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from labeldp_verify.claims import Prior, PrivatePriorClaims

from labeldp_learn.inversion import Floats, debiased_values
from labeldp_learn.losses import PrivateLoss
from labeldp_learn.private_labels import PrivateLabels, is_numeric

_LEAF, _PULL, _PER_LEAF, _RATE = 20, 10, 250, 0.05
_DEPTHS, _FREEDOM, _MOST = (2, 6), 16, 40
_LEAVES_AT_LEAST = 8  # rows over rows in a leaf
_LOOKED_AT = 1000  # rows
_NARROW, _ERRORS = 10, 1  # of the range; standard errors


@dataclass(frozen=True)
class BoostingPreset:
    """Starting values for boosting; the methods give them in the names of each library.

    Attributes:
        rows: n, what was fitted to.
        ratio: R, the private labels that are worth one true label.
        rounds, learning_rate, depth: of the trees.
        rows_in_leaf: the least number of rows of a leaf.
        pull: λ in rows.
        information: the mean second derivative of the loss in one row, by which ``pull`` and
            ``rows_in_leaf`` become sums of second derivatives.
        copies: how many weighted rows ``PrivateLabelClassifier`` makes of a row.
    """

    rows: int
    ratio: float
    rounds: int
    learning_rate: float
    depth: int
    rows_in_leaf: int
    pull: float
    information: float = 1.0
    copies: float = 1.0

    @property
    def worth(self) -> float:
        """N: how many true labels the rows are worth."""
        return self.rows / self.ratio

    def lightgbm(self) -> dict[str, Any]:
        """For ``LGBMRegressor`` and ``LGBMClassifier``."""
        return {
            "n_estimators": self.rounds,
            "learning_rate": self.learning_rate,
            "max_depth": self.depth,
            "num_leaves": 2**self.depth,
            "min_child_samples": round(self.rows_in_leaf * self.copies),
            "min_child_weight": 0.0,  # counted in rows instead
            "reg_lambda": self.pull * self.information,
        }

    def xgboost(self) -> dict[str, Any]:
        """For ``XGBRegressor`` and ``XGBClassifier``."""
        return {
            "n_estimators": self.rounds,
            "learning_rate": self.learning_rate,
            "max_depth": self.depth,
            "min_child_weight": self.rows_in_leaf * self.information,
            "reg_lambda": self.pull * self.information,
        }

    def hist_gradient_boosting(self) -> dict[str, Any]:
        """For ``HistGradientBoostingRegressor`` and ``HistGradientBoostingClassifier``."""
        return {
            "max_iter": self.rounds,
            "learning_rate": self.learning_rate,
            "max_depth": self.depth,
            "max_leaf_nodes": 2**self.depth,
            "min_samples_leaf": round(self.rows_in_leaf * self.copies),
            "l2_regularization": self.pull * self.information,
            "early_stopping": False,
        }


def boosting_preset(private: PrivateLabels, loss: PrivateLoss | None = None) -> BoostingPreset:
    """Starting values for boosting on these private labels.

    Args:
        private: the labels that are fitted.
        loss: a loss of ``labeldp_learn``. Without one, the library's own: squared error of
            unbiased targets, or the log loss of private classes in ``PrivateLabelClassifier``.

    Raises:
        PrivateLabelError: no useful weights remove the noise of classes.

    Example:
        >>> from pathlib import Path
        >>> from labeldp_compile import compile_spec
        >>> from labeldp_learn import PrivateLabels, boosting_preset
        >>> from labeldp_runtime import Randomizer
        >>> _ = compile_spec("specs/health-rating.yaml").write(Path("build"))
        >>> private = Randomizer.load("build/health-rating.onnx")(["good", "fair"] * 1000)
        >>> preset = boosting_preset(PrivateLabels("build/health-rating.onnx", private))
        >>> preset.depth, preset.xgboost()["learning_rate"]
        (2, 0.05)
    """
    n, spread = float(private.rows), _spread(private)
    ratio = min(max((spread + private.noise) / max(spread, 1e-300), 1.0), n)
    worth = n / ratio
    depth = min(max(math.floor(math.log2(max(worth / _PER_LEAF, 1.0))), _DEPTHS[0]), _DEPTHS[1])
    fitted = min(worth / (_FREEDOM * 2**depth), _MOST / depth)
    return BoostingPreset(
        rows=private.rows,
        ratio=ratio,
        rounds=max(round(fitted / _RATE), 1),
        learning_rate=_RATE,
        depth=depth,
        rows_in_leaf=max(round(min(_LEAF * ratio, n / _LEAVES_AT_LEAST)), 1),
        pull=_PULL * ratio,
        information=_information(private, loss),
        copies=_copies(private) if loss is None else 1.0,
    )


def _spread(private: PrivateLabels) -> float:
    """s², rather too small than too large: a tuned model must not take noise for signal.

    Of numbers, it is the largest of three: an unbiased estimate from the private labels, less one
    standard error; that of the artifact's prior, if it knows labels, without bins whose count may
    be noise; and that of labels in a tenth of their range.
    """
    if not is_numeric(private.opened):
        return private.spread
    parts, counts = private.parts, np.array([part.count for part in private.parts])
    labels = parts[0].goal()[:, 0]
    least = (float(np.ptp(labels)) / _NARROW) ** 2 / 12
    if not all(part.is_small for part in parts):
        return max(least, private.spread)
    # E[square | label] = label², about
    squares = np.concatenate(
        [
            debiased_values(part.matrix, labels**2, part.shares, 1 / part.sample)[part.codes]
            for part in parts
        ]
    )
    error = float(squares.std() / math.sqrt(len(squares)))
    seen = float(squares.mean() - private.targets().mean() ** 2) - _ERRORS * error
    known = 0.0
    if all(part.table.certificate.prior.kind != "uniform" for part in parts):
        shares = counts @ np.array([_known_shares(part.table.certificate.prior) for part in parts])
        shares /= counts.sum()
        known = float(shares @ (labels - shares @ labels) ** 2)
    return max(least, seen, known)


def _known_shares(prior: Prior) -> Floats:
    """[k] the shares of a prior; of a private one without bins whose count may be noise.

    Neighbours with equal weights are a bin. Its count is kept above the noise's scale times the
    logarithm of the number of bins (Donoho and Johnstone 1994, for Laplace noise).
    """
    weights = np.array([float(w) for w in prior.weights])
    if isinstance(prior, PrivatePriorClaims):
        bins = np.concatenate([[0], np.cumsum(np.diff(weights) != 0)])
        counts = np.bincount(bins, weights) / weights.sum() * prior.rows
        above = counts > prior.scale * math.log(max(len(counts), 2))
        weights = weights * (above if above.any() else counts == counts.max())[bins]
    return np.asarray(weights / weights.sum())


def _information(private: PrivateLabels, loss: PrivateLoss | None) -> float:
    """The mean second derivative of a loss in one row, without features."""
    if loss is not None:
        some = np.linspace(0, private.rows - 1, min(private.rows, _LOOKED_AT)).astype(np.int64)
        labels, start = loss.labels(private)[some], loss.start(private)
        return float(loss.hessian(np.tile(start, (len(some), *([1] * start.ndim))), labels).mean())
    if is_numeric(private.opened):
        return 1.0
    found = 0.0
    for part in private.parts:
        spread = part.spreading()
        fitted = part.shares @ (part.matrix if spread is None else part.matrix @ spread)
        found += part.count * float((fitted * (1 - fitted)).mean())
    return found / sum(part.count for part in private.parts)


def _copies(private: PrivateLabels) -> float:
    """The mean number of labels in a set."""
    if not private.answers_with_sets:
        return 1.0
    return len(private.expanded().rows) / max(private.rows, 1)
