"""Scorers of scikit-learn that take private labels, so that a search tunes on them."""

from typing import Any

import numpy as np

from labeldp_learn.errors import PrivateLabelError
from labeldp_learn.evaluation import LARGER_IS_BETTER, METRICS
from labeldp_learn.opened import Source
from labeldp_learn.private_labels import PrivateLabels, is_numeric

_OF_CLASSES = frozenset({"accuracy"})  # which need no probabilities


class PrivateScorer:
    """Called as (estimator, X, y) with private labels y; larger is better."""

    def __init__(self, metric: str, artifact: Source) -> None:
        """As ``scorer``."""
        if metric not in METRICS:
            raise PrivateLabelError(f"no metric {metric!r}; there are {', '.join(METRICS)}")
        self.metric, self.artifact = metric, artifact

    def __call__(self, estimator: Any, X: Any, y: Any, columns: Any = None) -> float:
        """The estimate for the true labels; losses with a minus sign.

        ``columns`` holds the public columns of the artifact's groups, if X does not.
        """
        private = PrivateLabels(self.artifact, y, X if columns is None else columns)
        found = METRICS[self.metric](private, self._predictions(private, estimator, X)).value
        return found if self.metric in LARGER_IS_BETTER else -found

    def _predictions(self, private: PrivateLabels, estimator: Any, x: Any) -> Any:
        """Numbers [n], or probabilities [n, k] in the order of the artifact's labels."""
        if is_numeric(private.opened):
            return np.asarray(estimator.predict(x), np.float64)
        place = {label: i for i, label in enumerate(private.labels)}
        if self.metric in _OF_CLASSES:
            return np.array([place[label] for label in np.asarray(estimator.predict(x)).tolist()])
        found = np.zeros((private.rows, len(place)))
        columns = [place[label] for label in np.asarray(estimator.classes_).tolist()]
        found[:, columns] = estimator.predict_proba(x)
        return found


def scorer(metric: str, artifact: Source) -> PrivateScorer:
    """A scorer for ``GridSearchCV`` and ``cross_val_score`` of estimators of this package.

    Args:
        metric: one of ``labeldp_learn.evaluation.METRICS``, such as ``"log loss"``.
        artifact: a path, or an Artifact of ``labeldp_verify``.

    Example:
        >>> from labeldp_learn import scorer
        >>> scorer("log loss", "build/health-rating.onnx").metric
        'log loss'
    """
    return PrivateScorer(metric, artifact)
