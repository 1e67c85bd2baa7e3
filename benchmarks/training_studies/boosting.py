"""Gradient boosting on true or private labels: scikit-learn and LightGBM, tuned on held-out rows.

A fifth of the rows is held out. Of a fixed list of settings, each with early stopping, the one with
the least loss on these rows is fitted again to all rows, with the number of rounds that was best.

Private numbers are right on average, so they are fitted and judged like true ones. For the Poisson
loss, which needs a positive prediction, trees are fitted and judged by least squares, and smaller
predictions are raised to a share of the mean. Private classes are from randomized response, and
judged by the likelihood of what was seen (forward correction). LightGBM fits that likelihood.
scikit-learn takes no loss of ours: it predicts the private class, and the inverse of the known
matrix gives the probabilities of the true one. Those below 0 become 0, and the rest is renormalised
and mixed with a share of the classes' estimated frequencies. Both shares are chosen on the held-out
rows.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from training_studies.six_tables import halves

ROUNDS, PATIENCE, STRIDE = 2000, 40, 5
SHARES = {"poisson": (0.1, 0.3, 0.6, 0.9), "cross_entropy": (0.02, 0.1, 0.3, 0.6, 0.9)}
LEAST = 1e-3  # prediction of a number with the Poisson loss, as in the trainer
INSTALL = "boosting needs the packages scikit-learn and lightgbm: install both"


@dataclass(frozen=True)
class Setting:
    """What both libraries call by different names."""

    rate: float
    leaves: int
    min_leaf: int
    l2: float


TRUE_GRID = (
    Setting(0.1, 31, 20, 0),
    Setting(0.1, 8, 20, 1),
    Setting(0.05, 63, 50, 10),
    Setting(0.05, 16, 100, 1),
    Setting(0.03, 31, 20, 1),
)
PRIVATE_GRID = (
    Setting(0.1, 31, 50, 1),
    Setting(0.1, 8, 100, 10),
    Setting(0.05, 2, 200, 10),
    Setting(0.05, 4, 100, 1),
    Setting(0.05, 16, 400, 10),
    Setting(0.03, 8, 400, 100),
)


@dataclass(frozen=True)
class Problem:
    """Features and labels to fit.

    ``labels`` are numbers, or places of ``classes`` classes. ``kept`` is how much likelier
    randomized response returns the true class than any other one; None for true classes. ``ends``
    are those of numbers. ``block``: rows that are held out together.
    """

    x: np.ndarray  # [n, p]
    coded: list
    labels: np.ndarray  # [n]
    loss: str
    classes: int | None = None
    kept: float | None = None
    ends: tuple[float, float] | None = None
    private: bool = False
    block: int = 1

    def of(self, rows):
        """The same for some rows."""
        return replace(self, x=self.x[rows], labels=self.labels[rows])

    @property
    def fitted(self):
        """The loss that trees are fitted by."""
        return "squared" if self.private and self.loss == "poisson" else self.loss

    @property
    def shares(self):
        """[k] of the true classes, as far as the labels show, none below its standard error."""
        seen = np.bincount(self.labels, minlength=self.classes) / len(self.labels)
        errors = np.sqrt(seen * (1 - seen) / len(self.labels)) / self.kept
        found = np.maximum((seen - (1 - self.kept) / self.classes) / self.kept, errors)
        return found / found.sum()

    def seen(self, probabilities):
        """[n, k] of the labels, from those of the true classes."""
        if self.kept is None:
            return probabilities
        return self.kept * probabilities + (1 - self.kept) / self.classes

    def finished(self, raw, share):
        """Predictions, from what trees predict."""
        if self.loss == "squared":
            return raw.clip(*self.ends)
        if self.loss == "poisson":
            return np.maximum(raw, LEAST if share is None else share * self._level)
        if share is None:
            return raw
        found = (raw - (1 - self.kept) / self.classes) / self.kept
        found = np.maximum(found, 0)  # before, each row has the sum 1
        return share * self.shares + (1 - share) * found / found.sum(axis=1, keepdims=True)

    def judged(self, raw, labels, candidates):
        """The loss of the best share, and which one it is.

        Trees that are fitted by another loss are judged by that one, which noise moves less.
        """
        share = min(
            candidates, key=lambda one: self.measured(self.finished(raw, one), labels, self.loss)
        )
        return self.measured(self.finished(raw, share), labels, self.fitted), share

    def measured(self, found, labels, loss):
        """The mean loss of predictions."""
        if loss == "squared":
            return float(np.mean((found - labels) ** 2))
        if loss == "poisson":
            return float(np.mean(found - labels * np.log(found)))
        chosen = self.seen(found)[np.arange(len(labels)), labels]
        return float(-np.log(np.maximum(chosen, 1e-12)).mean())

    @property
    def _level(self):
        """A positive mean of the labels."""
        return max(float(self.labels.mean()), 0.1)


class ScikitLearn:
    """HistGradientBoosting."""

    def __init__(self):
        """ImportError: the package is not among the project's."""
        from sklearn import ensemble

        self.library = ensemble

    def candidates(self, problem):
        """Shares that are tried."""
        inverted = problem.kept is not None
        return SHARES[problem.loss] if inverted or problem.fitted != problem.loss else (None,)

    def search(self, problem, held, setting, seed):
        """(loss, rounds, share) of the best rounds on the held-out rows."""
        model = self._model(problem, setting, seed, ROUNDS, stopped=True)
        model.fit(problem.x, problem.labels, X_val=held.x, y_val=held.labels)
        best = (np.inf, 0, None)
        for index, raw in enumerate(self._staged(model, problem)(held.x), 1):
            if index % STRIDE == 0 or index == model.n_iter_:
                found = self._all_classes(model, problem, raw)
                loss, share = problem.judged(found, held.labels, self.candidates(problem))
                best = min(best, (loss, index, share), key=lambda one: one[0])
        return best

    def final(self, problem, setting, rounds, seed):
        """Features → what trees predict, of trees fitted to all rows."""
        model = self._model(problem, setting, seed, rounds, stopped=False)
        model.fit(problem.x, problem.labels)
        predict = model.predict if problem.classes is None else model.predict_proba
        return lambda x: self._all_classes(model, problem, predict(x))

    def _model(self, problem, setting, seed, rounds, *, stopped):
        options = {
            "learning_rate": setting.rate,
            "max_leaf_nodes": setting.leaves,
            "min_samples_leaf": setting.min_leaf,
            "l2_regularization": setting.l2,
            "max_iter": rounds,
            "categorical_features": problem.coded,
            "early_stopping": stopped,
            "n_iter_no_change": PATIENCE,
            "tol": 0,
            "random_state": seed,
        }
        if problem.classes is not None:
            return self.library.HistGradientBoostingClassifier(**options)
        loss = {"squared": "squared_error"}.get(problem.fitted, problem.fitted)
        return self.library.HistGradientBoostingRegressor(loss=loss, **options)

    @staticmethod
    def _staged(model, problem):
        return model.staged_predict if problem.classes is None else model.staged_predict_proba

    @staticmethod
    def _all_classes(model, problem, raw):
        """A column for every class, also for those that no row has."""
        if problem.classes is None or raw.shape[1] == problem.classes:
            return raw
        whole = np.zeros((len(raw), problem.classes))
        whole[:, model.classes_] = raw
        return whole


class LightGBM:
    """Its own trees, with forward correction as an objective."""

    def __init__(self):
        """ImportError: the package is not among the project's."""
        import lightgbm

        self.library = lightgbm

    def candidates(self, problem):
        """Shares that are tried."""
        return SHARES[problem.loss] if problem.fitted != problem.loss else (None,)

    def search(self, problem, held, setting, seed):
        """(loss, rounds, share) of the best rounds on the held-out rows."""
        candidates = self.candidates(problem)

        def judge(raw, _):
            found = self._outputs(problem, raw)
            return "loss", problem.judged(found, held.labels, candidates)[0], False

        data = self._data(problem, problem)
        model = self.library.train(
            self._options(problem, setting, seed),
            data,
            ROUNDS,
            valid_sets=[self._data(held, problem, data)],
            feval=judge,
            callbacks=[self.library.early_stopping(PATIENCE, verbose=False)],
        )
        raw = self._predicted(model, problem, held.x)
        loss, share = problem.judged(raw, held.labels, candidates)
        return loss, model.best_iteration, share

    def final(self, problem, setting, rounds, seed):
        """Features → what trees predict, of trees fitted to all rows."""
        options = self._options(problem, setting, seed)
        model = self.library.train(options, self._data(problem, problem), rounds)
        return partial(self._predicted, model, problem)

    def _options(self, problem, setting, seed):
        objective = {"squared": "regression", "cross_entropy": "multiclass"}
        options = {
            "objective": objective.get(problem.fitted, problem.fitted),
            "metric": "None",
            "learning_rate": setting.rate,
            "num_leaves": setting.leaves,
            "min_data_in_leaf": setting.min_leaf,
            "lambda_l2": setting.l2,
            "seed": seed,
            "num_threads": 1,
            "verbose": -1,
        }
        if problem.classes is not None:
            options["num_class"] = problem.classes
        if problem.kept is not None:
            # Gradients say little at a small ε, so their second derivatives are tiny.
            options |= {"objective": forward(problem.kept), "min_sum_hessian_in_leaf": 0}
        return options

    def _data(self, part, problem, reference=None):
        start = None
        if problem.kept is not None:
            start = np.tile(np.log(problem.shares), (len(part.labels), 1))
        return self.library.Dataset(
            part.x,
            part.labels,
            categorical_feature=part.coded,
            init_score=start,
            reference=reference,
            free_raw_data=False,
            params={"verbose": -1},
        )

    @staticmethod
    def _outputs(problem, raw):
        return raw if problem.kept is None else softmax(raw)

    def _predicted(self, model, problem, x):
        raw = model.predict(x)
        if problem.kept is not None:
            raw = raw + np.log(problem.shares)
        return self._outputs(problem, raw)


def softmax(raw):
    """[n, k] probabilities."""
    powers = np.exp(raw - raw.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def forward(kept):
    """The objective −ln Pr[private class], with Fisher's information for second derivatives."""

    def objective(raw, data):
        labels = data.get_label().astype(int)
        p = softmax(raw)
        rows, k = np.arange(len(p)), p.shape[1]
        q = kept * p + (1 - kept) / k
        after = p * ((1 - kept) / k) / q[rows, labels][:, None]
        after[rows, labels] = p[rows, labels] * (kept + (1 - kept) / k) / q[rows, labels]
        parts = np.square(p) / q
        own = np.square(1 - p) / q
        information = np.square(kept * p) * (parts.sum(axis=1, keepdims=True) - parts + own)
        return p - after, np.maximum(information * k / (k - 1), 1e-12)

    return objective


LIBRARIES = {"scikit-learn": ScikitLearn, "LightGBM": LightGBM}


def tuned(name, problem, seed):
    """Features → predictions, by the best setting on held-out rows; and what was chosen."""
    library = LIBRARIES[name]()
    generator = np.random.default_rng([seed, 5])
    held, rest = halves(len(problem.labels), problem.block, (1, 5), generator)
    fitted, judged = problem.of(np.sort(rest)), problem.of(np.sort(held))
    grid = PRIVATE_GRID if problem.private else TRUE_GRID
    tried = [(*library.search(fitted, judged, setting, seed), setting) for setting in grid]
    loss, rounds, share, setting = min(tried, key=lambda one: one[0])
    predict = library.final(problem, setting, rounds, seed)
    chosen = {"held_out_loss": loss, "rounds": rounds, **vars(setting)}
    if share is not None:
        chosen["share"] = share
    return lambda x: problem.finished(predict(x), share), chosen
