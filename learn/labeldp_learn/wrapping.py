"""An estimator of scikit-learn around any other, fitted to rows that were made for it."""

from typing import Any

import numpy as np
from labeldp_verify.artifact import Artifact
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import (
    Tags,
    _safe_indexing,
    assert_all_finite,
    check_array,
    column_or_1d,
    get_tags,
)
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from labeldp_learn.columns import PrivateLabelError, array_of, names_of
from labeldp_learn.private_labels import PrivateLabels, opened

_MATRIX = 2  # dimensions


class Wrapping(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator around another one, with the artifact that made the labels private."""

    estimator: Any
    artifact: Any

    def get_metadata_routing(self) -> MetadataRouter:
        """Which metadata goes to this estimator, and which to the wrapped one."""
        router = MetadataRouter(owner=self).add_self_request(self)
        methods = MethodMapping().add(caller="fit", callee="fit")
        return router.add(estimator=self.estimator, method_mapping=methods)

    def __sklearn_tags__(self) -> Tags:
        """Those of the wrapped estimator that concern features."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.categorical = inner.input_tags.categorical
        tags.target_tags.required = True
        return tags

    def _opened(self) -> Artifact:
        return opened(self.artifact)

    def _labels(
        self, x: Any, y: Any, columns: Any, sample_weight: NDArray[np.float64] | None
    ) -> PrivateLabels:
        """The private labels y of the rows X. Raises PrivateLabelError, a ValueError."""
        artifact = self._opened()
        if names_of(y) is None or not artifact.certificate.label_columns[1:]:
            y = _column(y)
        if columns is None and artifact.groups.columns:
            columns = x
        private = PrivateLabels(artifact, y, columns, sample_weight)
        if private.rows != _num_samples(x):
            raise PrivateLabelError(
                f"there are {_num_samples(x):,} rows of features and {private.rows:,} labels"
            )
        return private

    def _begin(self, x: Any, y: Any, sample_weight: Any) -> NDArray[np.float64] | None:
        """Look at the features' names and numbers, and return the weights [n]."""
        validate_data(self, x, y, skip_check_array=True)
        if sample_weight is None:
            return None
        return _check_sample_weight(sample_weight, x)

    def _fitted(
        self,
        x: Any,
        targets: NDArray[Any],
        weights: NDArray[np.float64] | None,
        params: dict[str, Any],
        rows: NDArray[np.int64] | None = None,
    ) -> Any:
        """A fitted copy of the wrapped estimator; ``rows`` are those of X, if not all of them.

        ``params`` [n] is the metadata that was routed to it.
        """
        n = _num_samples(x)
        if rows is not None:
            x = _safe_indexing(x, rows)
            params = {
                name: _safe_indexing(given, rows) if _is_column(given, n) else given
                for name, given in params.items()
            }
        if weights is not None:
            params = {**params, "sample_weight": weights}
        return clone(self.estimator).fit(x, targets, **params)

    def _routed(self, params: dict[str, Any]) -> dict[str, Any]:
        """The metadata for ``fit`` of the wrapped estimator."""
        return dict(process_routing(self, "fit", **params)["estimator"]["fit"])

    def _takes_weights(self) -> bool:
        return bool(has_fit_parameter(self.estimator, "sample_weight"))

    def _features(self, x: Any) -> Any:
        """X for a prediction. Raises NotFittedError and ValueError."""
        check_is_fitted(self)
        if getattr(x, "ndim", _MATRIX) < _MATRIX:
            check_array(x)  # which says what is wrong
        validate_data(self, x, skip_check_array=True, reset=False)
        return x


def _column(y: Any) -> NDArray[Any]:
    found = array_of(y)
    if found.ndim == _MATRIX and found.shape[1] == 1:
        found = column_or_1d(found, warn=True)
    if found.dtype.kind == "c":
        raise PrivateLabelError("Complex data not supported: labels are no complex numbers")
    if found.dtype.kind == "f":
        assert_all_finite(found, input_name="y")
    return found


def _is_column(given: Any, rows: int) -> bool:
    try:
        return bool(_num_samples(given) == rows)
    except TypeError:
        return False
