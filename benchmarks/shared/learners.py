"""Well-regularised learners in closed form or by convex optimisation, for private labels."""

import numpy as np
import pyarrow as pa
from labeldp_verify.analysis.inversion import least_variance_inverse
from labeldp_verify.analysis.probabilities import matrix
from scipy.optimize import minimize
from scipy.special import log_softmax

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


def debiased(decoded, private):
    """[n, k] private labels as what stands for the one-hot true ones, right on average."""
    inverse = least_variance_inverse(matrix(decoded.randomizer, range(decoded.domain.size)))
    outputs = {value: o for o, value in enumerate(decoded.randomizer.values)}
    return inverse[[outputs[value] for value in private.tolist()]]


def softmax_predictions(train, soft, test, folds=5, seed=0):
    """[test rows, K] log-probabilities of a multinomial logistic regression with a ridge.

    ``soft`` [n, K] are labels, or debiased private ones, whose rows sum to 1 and may be negative:
    the loss is linear in them. The strength is the one of least loss on held-out rows.
    """
    n = len(train)
    parts = np.array_split(np.random.default_rng(seed).permutation(n), folds)

    def held_out(strength):
        total = 0.0
        for part in parts:
            rest = np.setdiff1d(np.arange(n), part)
            scores = train[part] @ _softmax_weights(train[rest], soft[rest], strength)
            total -= float((soft[part] * log_softmax(scores, axis=1)).sum())
        return total

    strengths = n * np.geomspace(1e-2, 10, 7)
    best = min(strengths, key=held_out)
    return log_softmax(test @ _softmax_weights(train, soft, best), axis=1)


def _softmax_weights(x, soft, strength):
    """[p, K] weights; the first feature, a one, is not shrunk."""
    p, classes = x.shape[1], soft.shape[1]
    correlation = x.T.astype(float) @ soft
    shrink = np.full((p, 1), strength)
    shrink[0] = 1e-6

    def loss(flat):
        w = flat.reshape(p, classes)
        logs = log_softmax(x @ w, axis=1)
        shares = np.exp(logs)
        value = -(soft * logs).sum() + 0.5 * (shrink * w * w).sum()
        slope = x.T @ (shares * soft.sum(axis=1, keepdims=True)) - correlation + shrink * w
        return float(value), slope.ravel()

    found = minimize(
        loss, np.zeros(p * classes), jac=True, method="L-BFGS-B", options={"maxiter": 100}
    )
    return found.x.reshape(p, classes)
