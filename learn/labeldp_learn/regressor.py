"""A regressor on private labels: any regressor of scikit-learn, on unbiased targets."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from labeldp_verify.forms import CategoricalDomain, JointDomain
from labeldp_verify.printable import printable
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from labeldp_learn.columns import PrivateLabelError
from labeldp_learn.private_labels import is_numeric
from labeldp_learn.wrapping import Wrapping

MOST_BIAS_LEFT = 0.05
"""Of the labels' standard deviation: more of it is a warning."""


class PrivateLabelRegressor(RegressorMixin, Wrapping):  # type: ignore[misc]
    """Fits any regressor to private numbers, and keeps predictions inside the range of labels.

    The wrapped estimator is fitted to unbiased targets of the least variance
    (``PrivateLabels.targets``), with their weights if groups have tables of their own. A mean over
    many of them is right, and a single one says little. So the estimator must average: large
    leaves, few rounds, strong regularization (``boosting_preset``). Targets may be negative, which
    ``loss="poisson"`` of scikit-learn refuses: fit squared error, or use ``UnbiasedPoissonLoss``.

    Only public features, private labels and the artifact are used: this spends no privacy.

    Args:
        estimator: a regressor.
        artifact: a path, or an Artifact of ``labeldp_verify``, of a label that is a number.
        clip: whether predictions are kept inside the artifact's range of labels.
        of: the column, if the label has several.

    Attributes:
        estimator_: the fitted estimator.
        bias_: what no choice of targets removes, over the standard deviation of the labels; about
            0 for an artifact with ``goal: training``.
        n_features_in_, feature_names_in_: as in scikit-learn.

    Example:
        >>> from sklearn.linear_model import Ridge
        >>> PrivateLabelRegressor(Ridge(), "build/mdvis.onnx")
        PrivateLabelRegressor(artifact='build/mdvis.onnx', estimator=Ridge())
    """

    def __init__(
        self, estimator: Any, artifact: Any, *, clip: bool = True, of: str | None = None
    ) -> None:
        """Keep the arguments; nothing is read."""
        self.estimator = estimator
        self.artifact = artifact
        self.clip = clip
        self.of = of

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, columns: Any = None, **params: Any
    ) -> PrivateLabelRegressor:
        """Fit to features X [n, p] and private labels y [n].

        ``columns`` holds the public columns of the artifact's groups, if X does not. ``params`` is
        metadata for the wrapped estimator, if routing is enabled.

        Raises PrivateLabelError, a ValueError, if y holds anything but outputs of the artifact, and
        for an artifact of classes. Warns of a bias that training cannot average out.
        """
        weights = self._begin(X, y, sample_weight)
        private = self._labels(X, y, columns, weights)
        self._range = self._ends()
        routed = self._routed(params)
        if private.opened.groups.columns and self._takes_weights():
            weights = private.weights() * (1 if weights is None else weights)
        self.estimator_ = self._fitted(X, private.targets(self.of), weights, routed)
        self.bias_ = 0.0 if self.of is not None else private.bias
        if self.bias_ > MOST_BIAS_LEFT:
            name = printable(private.opened.certificate.name)
            warnings.warn(
                f"{name}: the artifact gives different labels nearly "
                f"the same outputs, so targets are off by {self.bias_:.0%} of the labels' standard "
                "deviation; training cannot average this out; goal: training in the spec avoids it",
                stacklevel=2,
            )
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """[n] the expected true labels."""
        X = self._features(X)
        found = np.asarray(self.estimator_.predict(X), np.float64)
        if found.ndim > 1 and found.shape[1] == 1:
            found = found[:, 0]
        return found.clip(*self._range) if self.clip else found

    def score(self, X: Any, y: Any, sample_weight: Any = None, columns: Any = None) -> float:
        """R² on the unbiased targets of private labels y [n].

        It orders models as R² on true labels would, on average. It is far smaller, because no model
        explains the noise.
        """
        predicted = self.predict(X)
        targets = self._labels(X, y, columns, None).targets(self.of)
        return float(r2_score(targets, predicted, sample_weight=sample_weight))

    def _ends(self) -> tuple[float, float]:
        """The range of labels. Raises PrivateLabelError for classes."""
        artifact = self._opened()
        name, domain = artifact.certificate.name, artifact.label
        if isinstance(domain, JointDomain) and self.of is not None:
            names = list(artifact.certificate.label_columns)
            if self.of in names and not isinstance(
                part := domain.parts[names.index(self.of)], CategoricalDomain
            ):
                return float(part.min), float(part.max)
        if not is_numeric(artifact) or self.of is not None:
            raise PrivateLabelError(
                f"{name}: its private labels are classes or sets; use PrivateLabelClassifier, or "
                "name a column of numbers with of"
            )
        assert not isinstance(domain, CategoricalDomain)
        return float(domain.min), float(domain.max)
