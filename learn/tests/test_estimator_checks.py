"""scikit-learn's own checks of estimators; artifacts have the labels of the checks as outputs.

A check that is left out is named with its reason; only those whose labels are no outputs are.
"""

from typing import ClassVar

import numpy as np
import pytest
from labeldp_learn import PrivateLabelClassifier, PrivateLabelRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import check_estimator

from learn.tests.drawn import numbers, response

CODES = response((-1, 0, 1, 2, 3))
UNKNOWN = "values are not outputs"


class Recording(Ridge):
    """Ridge that remembers which labels the checks fit and score."""

    seen: ClassVar[set[float]] = set()

    def fit(self, X, y, sample_weight=None):
        self._remember(y)
        return super().fit(X, y, sample_weight)

    def score(self, X, y, sample_weight=None):
        self._remember(y)
        return super().score(X, y, sample_weight)

    def _remember(self, y):
        found = np.asarray(y)
        if y is not None and found.dtype.kind in "biuf":
            self.seen.update(found[np.isfinite(found)].ravel().astype(float).tolist())


def failures(estimator, expected):
    """Name → message of the checks that fail though they are expected to pass."""
    found = check_estimator(estimator, on_skip=None, on_fail=None)
    failed = {
        check["check_name"]: str(check["exception"])
        for check in found
        if check["status"] == "failed"
    }
    assert len(found) > 50
    assert all(UNKNOWN in failed.get(name, "") for name in expected), failed
    return {name: said for name, said in failed.items() if name not in expected}


@pytest.mark.filterwarnings("ignore")
def test_the_classifier_passes_the_checks():
    left_out = {"check_classifiers_classes": "labels of text, one of two artifacts"}
    assert failures(PrivateLabelClassifier(LogisticRegression(), CODES), left_out) == {}


@pytest.mark.filterwarnings("ignore")
def test_the_regressor_passes_the_checks():
    Recording.seen.clear()
    check_estimator(Recording(), on_skip=None, on_fail=None)
    artifact = numbers(Recording.seen)
    assert failures(PrivateLabelRegressor(Ridge(), artifact, clip=False), {}) == {}
