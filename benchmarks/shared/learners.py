"""Well-regularised learners in closed form or by convex optimisation, for private labels."""

import numpy as np
import pyarrow as pa
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

FEW = 100  # distinct numbers, that are also taken as categories
STRENGTHS = np.geomspace(1e-3, 1e7, 101)


def features_of(table, left_out=(), codes=(), few=FEW):
    """[n, p] float32: ones, standardised numbers, and one-hot categories and ``codes``.

    Numbers of at most ``few`` different values are taken as both.
    """
    columns = [np.ones((table.num_rows, 1))]
    for name in table.schema.names:
        if name in left_out:
            continue
        column = table[name].combine_chunks()
        if isinstance(column, pa.DictionaryArray):
            column = column.cast(column.type.value_type)
        is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        if is_number and name not in codes:
            values = column.to_numpy(zero_copy_only=False).astype(float)
            values = np.where(np.isnan(values), np.nanmean(values), values)
            columns.append(((values - values.mean()) / (values.std() or 1))[:, None])
        if not is_number or name in codes or len(column.unique()) <= few:
            numbers = column.dictionary_encode().indices.fill_null(-1).to_numpy()
            columns.append((numbers[:, None] == np.unique(numbers)).astype(float))
    return np.concatenate(columns, axis=1, dtype=np.float32)


class Ridge:
    """Ridge regressions on the same features: one decomposition, then any labels."""

    def __init__(self, train, test):
        gram = train.T.astype(float) @ train
        self.squares, self.basis = np.linalg.eigh(gram)
        self.squares = np.maximum(self.squares, 0)
        self.train, self.test = train, test

    def predict(self, labels):
        """Predictions for the test rows, at the strength of least generalised cross-validation."""
        centre = labels.mean()
        projected = self.basis.T @ (self.train.T @ (labels - centre))
        total, n = float(((labels - centre) ** 2).sum()), len(labels)
        shrunk = self.squares / (self.squares + STRENGTHS[:, None])
        inverse = 1 / (self.squares + STRENGTHS[:, None])
        # RSS = |y|² − 2·c'b + b'Gb in the basis of G's eigenvectors.
        residual = total - (projected**2 * inverse * (2 - shrunk)).sum(axis=1)
        score = residual / (1 - shrunk.sum(axis=1) / n) ** 2
        return centre + self.test @ (self.basis @ (projected * inverse[score.argmin()]))


def softmax_predictions(train, outputs, table, test, folds=5, seed=0):
    """[test rows, k] log-probabilities of a multinomial logistic regression with a ridge.

    Fitted by the likelihood of the private labels, of which ``outputs`` [n] are the indices:
    Pr[o | x] = Σ_y table[y, o]·Pr[y | x]. True labels have the unit matrix for a table. The
    strength is the one of least loss on held-out private labels. The first feature is a one.
    """
    n = len(train)
    parts = np.array_split(np.random.default_rng(seed).permutation(n), folds)

    def held_out(strength):
        total = 0.0
        for part in parts:
            rest = np.setdiff1d(np.arange(n), part)
            weights = _softmax_weights(train[rest], outputs[rest], table, strength)
            shares = softmax(train[part] @ weights, axis=1)
            total -= float(np.log((shares * table[:, outputs[part]].T).sum(axis=1)).sum())
        return total

    best = min(np.geomspace(1e-1, 1e4, 8), key=held_out)
    return log_softmax(test @ _softmax_weights(train, outputs, table, best), axis=1)


def _softmax_weights(x, outputs, table, strength):
    """[p, k] weights; that of the first feature is not shrunk."""
    p, likely = x.shape[1], table[:, outputs].T
    shrink = np.full((p, 1), strength)
    shrink[0] = 1e-3

    def loss(flat):
        w = flat.reshape(p, -1)
        shares = softmax(x @ w, axis=1)
        mixed = (shares * likely).sum(axis=1, keepdims=True)
        value = -np.log(mixed).sum() + 0.5 * (shrink * w * w).sum()
        slope = x.T @ (shares - shares * likely / mixed) + shrink * w
        return float(value), slope.ravel()

    start = np.zeros(p * len(table))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 100})
    return found.x.reshape(p, -1)
