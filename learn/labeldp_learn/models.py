"""Models of scikit-learn on private labels, each around any other estimator of its kind.

A regressor is fitted to unbiased targets; a classifier has corrected probabilities.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from labeldp_verify.artifact import Artifact
from labeldp_verify.forms import CategoricalDomain, JointDomain
from labeldp_verify.printable import printable
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.metrics import r2_score
from sklearn.utils import (
    Tags,
    _safe_indexing,
    assert_all_finite,
    check_array,
    check_random_state,
    column_or_1d,
    get_tags,
)
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from labeldp_learn.columns import PrivateLabelError, array_of, names_of
from labeldp_learn.inversion import Floats, true_probabilities
from labeldp_learn.private_labels import PrivateLabels, is_numeric, opened, tables_of
from labeldp_learn.private_rows import PrivateRows

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
    column = array_of(y)
    if column.ndim == _MATRIX and column.shape[1] == 1:
        column = column_or_1d(column, warn=True)
    if column.dtype.kind == "c":
        raise PrivateLabelError("Complex data not supported: labels are no complex numbers")
    if column.dtype.kind == "f":
        assert_all_finite(column, input_name="y")
    return column


def _is_column(given: Any, rows: int) -> bool:
    try:
        return bool(_num_samples(given) == rows)
    except TypeError:
        return False


_SMOOTHINGS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0)
_FOLDS = 5
_LEAST = 1e-300


@dataclass(frozen=True)
class FittedTable:
    """A fitted estimator of the rows of one table.

    Attributes:
        estimator: fitted.
        mixing: [k, j] Pr[class that was fitted | true class]; rows sum to 1.
        shares: [k] the estimated shares of the true classes.
    """

    estimator: Any
    mixing: Floats
    shares: Floats

    def probabilities(self, x: Any, smoothing: float) -> Floats:
        """[n, k] of the true classes."""
        raw = np.asarray(self.estimator.predict_proba(x), np.float64)
        return true_probabilities(raw, self.mixing, self.shares, smoothing)


class PrivateLabelClassifier(ClassifierMixin, Wrapping):  # type: ignore[misc]
    """Fits any classifier to private labels, and predicts probabilities of the true classes.

    The wrapped estimator learns the private label. Its probabilities are corrected with the known
    matrix Pr[output | label] (``inversion.py``). If private labels are sets, each row becomes one
    row for each class in its set, of weight 1 over the size of the set. An estimator that takes no
    ``sample_weight`` gets one of these rows, drawn at random. If the artifact has a table for each
    public group, the rows of each table are fitted apart, because each table mixes classes in its
    own way.

    Only public features, private labels and the artifact are used: this spends no privacy.

    Args:
        estimator: a classifier with ``predict_proba``.
        artifact: a path, or an Artifact of ``labeldp_verify``.
        smoothing: by how much the shares of all classes are mixed into each prediction, in [0, 1].
            ``"auto"`` fits twice: first to four fifths of the rows, to choose the largest that
            makes the private labels of every fifth row nearly likeliest.
        random_state: for the draws from sets, as in scikit-learn.

    Attributes:
        classes_: [k] the classes, sorted. A class that is an output of the artifact, but occurs in
            no row, is left out. Combinations have names as in ``yes & 3``.
        estimator_: the fitted estimator, if there is one table.
        estimators_: by the number of the table.
        shares_: [k] the estimated shares of the true classes.
        smoothing_: what was chosen, or given.
        n_features_in_, feature_names_in_: as in scikit-learn.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> PrivateLabelClassifier(LogisticRegression(), "build/health-rating.onnx")
        PrivateLabelClassifier(artifact='build/health-rating.onnx',
                               estimator=LogisticRegression())
    """

    def __init__(
        self,
        estimator: Any,
        artifact: Any,
        *,
        smoothing: float | Literal["auto"] = 0.01,
        random_state: Any = None,
    ) -> None:
        """Keep the arguments; nothing is read."""
        self.estimator = estimator
        self.artifact = artifact
        self.smoothing = smoothing
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, columns: Any = None, **params: Any
    ) -> PrivateLabelClassifier:
        """Fit to features X [n, p] and private labels y [n].

        ``columns`` holds the public columns of the artifact's groups, if X does not. ``params`` is
        metadata for the wrapped estimator, if routing is enabled.

        Raises PrivateLabelError, a ValueError, if y holds anything but outputs of the artifact.
        """
        if self.smoothing != "auto" and not 0 <= self.smoothing <= 1:
            raise PrivateLabelError('smoothing lies in [0, 1], or is "auto"')
        if not hasattr(self.estimator, "predict_proba"):
            raise PrivateLabelError(
                f"{type(self.estimator).__name__} has no predict_proba, and only probabilities can "
                "be corrected; wrap it in CalibratedClassifierCV"
            )
        weights = self._begin(X, y, sample_weight)
        try:
            private = self._labels(X, y, columns, weights)
        except PrivateLabelError as error:
            raise PrivateLabelError(f"{error} {_unknown(y)}") from None
        routed = self._routed(params)
        classes = _classes(private)
        names = np.array(private.labels)[classes]
        self.classes_ = np.sort(names)
        classes = classes[np.argsort(names, kind="stable")]
        generator = check_random_state(self.random_state)

        def fitted(parts: Sequence[PrivateRows]) -> dict[int, FittedTable]:
            return {
                part.number: self._fit_table(X, part, classes, weights, routed, generator)
                for part in parts
                if part.count
            }

        self.smoothing_ = self.smoothing
        if self.smoothing == "auto":
            rest, held = zip(*(part.divided(_FOLDS) for part in private.parts), strict=True)
            self.smoothing_ = _likeliest_smoothing(fitted(rest), held, X, classes)
        self._tables = fitted(private.parts)
        self.estimators_ = {number: found.estimator for number, found in self._tables.items()}
        if not private.opened.groups.columns:
            self.estimator_ = self.estimators_[0]
        shares = private.shares()[classes]
        self.shares_ = shares / shares.sum()
        return self

    def predict_proba(self, X: Any, columns: Any = None) -> Floats:
        """[n, k] the probabilities of the true classes, in the order of ``classes_``.

        ``columns`` as in ``fit``.
        """
        self._features(X)
        n = _num_samples(X)
        tables = tables_of(self._opened().groups, X if columns is None else columns, n)
        # Of a table without rows, nothing but the shares is known.
        probabilities = np.tile(self.shares_, (n, 1))
        for number, fitted in self._tables.items():
            rows = np.flatnonzero(tables == number)
            if len(rows):
                part = X if len(rows) == n else _safe_indexing(X, rows)
                probabilities[rows] = fitted.probabilities(part, float(self.smoothing_))
        return probabilities

    def predict_log_proba(self, X: Any, columns: Any = None) -> Floats:
        """[n, k] natural logarithms of ``predict_proba``."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, columns))

    def predict(self, X: Any, columns: Any = None) -> NDArray[Any]:
        """[n] the likeliest true class of each row."""
        likeliest = self.predict_proba(X, columns).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])

    def score(self, X: Any, y: Any, sample_weight: Any = None, columns: Any = None) -> float:
        """The accuracy on the true labels behind private labels y [n], estimated without bias.

        It may leave [0, 1] with few rows. Its noise falls with the root of the number of rows.
        """
        predicted = self.predict(X, columns)
        private = self._labels(X, y, columns, None)
        place = {label: i for i, label in enumerate(private.labels)}
        at = np.array([place[label] for label in predicted.tolist()], np.int64)
        right = private.targets()[np.arange(len(at)), at]
        return float(np.average(right, weights=sample_weight))

    def _fit_table(
        self,
        x: Any,
        part: PrivateRows,
        classes: NDArray[np.int64],
        weights: Floats | None,
        routed: dict[str, Any],
        generator: np.random.RandomState,
    ) -> FittedTable:
        spread = part.spreading()
        # Outputs that are numbers, and no labels, are classes of their own.
        spread = np.eye(part.matrix.shape[1]) if spread is None else spread[:, classes]
        held = spread[part.codes]
        if (held > 0).sum(axis=1).max() == 1:
            which, label = np.arange(len(held)), held.argmax(axis=1)
            own = None
        elif self._takes_weights():
            which, label = np.nonzero(held)
            own = held[which, label]
        else:
            which, label, own = np.arange(len(held)), _drawn(held, generator), None
        rows = part.rows[which]
        if weights is not None:
            own = weights[rows] * (1 if own is None else own)
        every = len(rows) == _num_samples(x) and np.array_equal(rows, np.arange(len(rows)))
        at, codes = np.unique(label, return_inverse=True)  # 0, 1, … as XGBoost demands
        fitted = self._fitted(x, codes.reshape(-1), own, routed, None if every else rows)
        mixing = part.matrix[classes] @ spread[:, at]
        shares = part.shares[classes]
        return FittedTable(
            fitted, mixing / mixing.sum(axis=1, keepdims=True), shares / shares.sum()
        )


def _likeliest_smoothing(
    fitted: Mapping[int, FittedTable],
    held: Sequence[PrivateRows],
    x: Any,
    classes: NDArray[np.int64],
) -> float:
    """The largest smoothing under which the private labels of held-out rows are nearly likeliest.

    Nearly: within one standard error of the difference to the likeliest one (the rule of Breiman et
    al. 1984). The error of too much smoothing is small, and that of too little is not.
    """
    logs = []
    for part in held:
        if part.number in fitted and len(part.rows):
            of_table = fitted[part.number]
            plain = of_table.probabilities(_safe_indexing(x, part.rows), 0.0)
            likely = part.matrix[classes].T[part.codes]
            seen = [
                (((1 - share) * plain + share * of_table.shares) * likely).sum(axis=1)
                for share in _SMOOTHINGS
            ]
            logs.append(np.log(np.maximum(seen, _LEAST)) * part.counts)
    if not logs:
        return _SMOOTHINGS[-1]
    rows = np.concatenate(logs, axis=1)
    behind = rows[rows.sum(axis=1).argmax()] - rows
    near = behind.sum(axis=1) <= behind.std(axis=1) * np.sqrt(rows.shape[1])
    return _SMOOTHINGS[int(np.flatnonzero(near).max())]


def _classes(private: PrivateLabels) -> NDArray[np.int64]:
    """The places of the classes: all, but for outputs that are classes and occur in no row."""
    seen = np.zeros(len(private.labels), bool)
    for part in private.parts:
        spread = part.spreading()
        if spread is None:
            return np.arange(len(seen))
        seen |= spread[np.unique(part.codes[part.counts > 0])].sum(axis=0) > 0
    return np.flatnonzero(seen)


def _drawn(held: Floats, generator: np.random.RandomState) -> NDArray[np.int64]:
    """[n] a column of each row, with its weight for a probability."""
    ends = held.cumsum(axis=1)
    return np.asarray((ends < generator.random_sample((len(held), 1)) * ends[:, -1:]).sum(axis=1))


def _unknown(y: Any) -> str:
    """The words of scikit-learn for labels that cannot be classes."""
    try:
        kind = type_of_target(y)
    except (ValueError, TypeError):  # the latter for bytes, and for text beside nulls
        kind = "unknown"
    return f"Unknown label type: {kind}."


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
        numbers = np.asarray(self.estimator_.predict(X), np.float64)
        if numbers.ndim > 1 and numbers.shape[1] == 1:
            numbers = numbers[:, 0]
        return numbers.clip(*self._range) if self.clip else numbers

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
