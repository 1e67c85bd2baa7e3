"""An audit of a trained model: guesses which of two labels it was trained on (``epsilon_bound``).

Stand-ins are fitted to rows that the model was not trained on. Some see features alone, others the
model's output, too; of those that are fair, the ones that tell more are used. Each leaves out a
fold of these rows, which are the control: on them, the same guesses must find nothing, and what
chance lets them find is taken off. Of the rows of training, some choose how to guess, and the
others are guessed about.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeldp_learn.epsilon_bound import Guesses, epsilon_bound, p_value

Floats = NDArray[np.float64]
Bins = NDArray[np.int64]

LEAST_ROWS, MOST_ROWS = 200, 50_000
"""Of either kind; of more, as many are drawn."""
VIOLATION = 1e-6
"""The error of the finding that a model breaks its ε."""
_FAIR, _POOR = 0.55, 1e-3  # mistakes of a stand-in that help more, with this error, are too many
_MOST_BINS = 8  # of numbers
_FOLDS = 5  # of rows that were not trained on
_CHOOSE = 0.4  # of the rows of training
_SHARES = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03)  # of rows, about which a guess is made
_CHOOSING = 0.1  # the error of bounds that choose
_LEAST = 1e-4  # of a probability
_STEPS = 8  # of the picture


@dataclass(frozen=True)
class AuditRows:
    """Rows whose labels the auditor knows.

    Attributes:
        labels: [n] true labels: numbers, or classes 0 … k − 1.
        outputs: [n, k] the model's probabilities of classes, or [n, 1] its numbers.
        features: [n, p] numbers, and codes of categories; NaN where they are missing.
    """

    labels: NDArray[np.float64]
    outputs: Floats
    features: Floats

    def __len__(self) -> int:
        """How many rows."""
        return len(self.labels)

    def at(self, places: NDArray[np.bool_]) -> AuditRows:
        """Some of the rows."""
        return AuditRows(self.labels[places], self.outputs[places], self.features[places])


class Step(NamedTuple):
    """Guesses that are about equally sure, about rows of training and about others."""

    trained: Guesses
    others: Guesses


@dataclass(frozen=True)
class ModelAudit:
    """The result.

    Attributes:
        confidence: of the bound.
        bound: the lower bound of ε, or None if the stand-in is too poor.
        refuted: whether the stated ε is too small, with an error of at most one in a million.
        trained: guesses about rows of training.
        others: the same about rows that were not trained on.
        alone: the chance to be right that is taken off.
        poor: why the stand-in is too poor, in words; None if it is not.
        steps: guesses by how sure they are, from the least to the most.
    """

    confidence: float
    bound: float | None
    refuted: bool
    trained: Guesses
    others: Guesses
    alone: float
    poor: str | None
    steps: tuple[Step, ...]


def system_random() -> np.random.Generator:
    """Seeded by the system."""
    return np.random.default_rng()


def audit_model(
    trained: AuditRows,
    others: AuditRows,
    classes: int | None,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    categorical: NDArray[np.bool_] | None = None,
    random: np.random.Generator | None = None,
) -> ModelAudit:
    """A lower bound of the ε that a model spent on each of its training labels.

    It holds if both kinds of rows were drawn alike and independently. The result is not private.

    Args:
        trained: rows that the model was trained on, with their true labels.
        others: rows that it was not trained on.
        classes: how many there are; None if labels are numbers.
        epsilon: as stated of the model.
        delta: as stated of the model.
        confidence: of the bound.
        categorical: [p] which features are codes.
        random: what draws; by default seeded by the system.

    Raises ValueError for fewer than ``LEAST_ROWS`` rows of either kind.
    """
    from threadpoolctl import threadpool_limits  # noqa: PLC0415  # of scikit-learn

    if min(len(trained), len(others)) < LEAST_ROWS:
        raise ValueError(f"an audit needs at least {LEAST_ROWS} rows of either kind")
    random = random or system_random()
    trained, others = (
        rows.at(random.permutation(len(rows)) < MOST_ROWS) for rows in (trained, others)
    )
    p = trained.features.shape[1]
    codes = np.zeros(p, np.bool_) if categorical is None else categorical
    bins = _LabelBins.of(others, classes)
    folds = (random.random(len(others)) * _FOLDS).astype(int)
    chooses = random.random(len(trained)) < _CHOOSE
    with threadpool_limits(1):  # more threads are not faster, and on a busy machine wait forever
        matches = [
            _Match.played(trained, others, chooses, folds, bins, codes, knows, random)
            for knows in (False, True)
        ]
    share = len(matches)  # of the error, for each
    error = (1 - confidence) / 2 / share
    tried = [(match, *match.rule(error)) for match in matches]
    fair = [each for each in tried if each[0].poor(each[1]) is None]
    match, rule, _ = max(fair or tried[-1:], key=lambda each: each[2])
    own, other = rule.guesses(match.guessed), rule.guesses(match.control)

    def alone(error: float) -> float:
        return max(other.most(error), 0.5) if other.made else 1.0

    size, rare = match.guessed.shape[1], VIOLATION / 2 / share
    bound = epsilon_bound(own, error, delta, alone(error), size) if fair else None
    refuted = False
    if epsilon is not None and bound is not None and bound > epsilon and alone(rare) < 1:
        refuted = p_value(own, epsilon, delta, alone(rare), size) < rare
    steps = _steps(match.guessed[rule.score], match.control[rule.score])
    poor = match.poor(rule)
    return ModelAudit(confidence, bound, refuted, own, other, alone(error), poor, steps)


@dataclass(frozen=True)
class _Match:
    """Own labels against those of stand-ins of one kind: [3, m] how much more each score is for
    the own label, of rows whose two labels are in two bins. The scores are those of the model over
    the stand-in, of the model, and of the stand-in.

    Attributes:
        choosing: of rows of training that choose how to guess.
        guessed: of the other rows of training.
        control: of rows that the model was not trained on.
    """

    choosing: Floats
    guessed: Floats
    control: Floats

    @classmethod
    def played(
        cls,
        trained: AuditRows,
        others: AuditRows,
        chooses: NDArray[np.bool_],
        folds: NDArray[np.int64],
        bins: _LabelBins,
        categorical: NDArray[np.bool_],
        knows: bool,
        random: np.random.Generator,
    ) -> _Match:
        """Each fold against a stand-in that is fitted to the others; those that know the model see
        its output, and not only features."""
        found: list[list[Floats]] = [[], [], []]
        played = random.integers(_FOLDS, size=len(trained))
        for fold in range(_FOLDS):
            rows, left = others.at(folds != fold), others.at(folds == fold)
            model = bins.likelihoods(rows) if knows else np.zeros((len(rows), bins.count))
            codes = np.append(categorical, np.zeros(knows * rows.outputs.shape[1], np.bool_))
            stand_in = StandIn.fitted(_seen(rows, knows), model, bins.bins(rows), codes, random)
            parts = trained.at((played == fold) & chooses), trained.at((played == fold) & ~chooses)
            for each, part in zip(found, (*parts, left), strict=True):
                each.append(_compared(stand_in, part, bins, knows, random))
        return cls(*(np.concatenate(each, axis=1) for each in found))

    def rule(self, error: float) -> tuple[_Rule, float]:
        """The rule whose guesses bound ε best on the rows that choose, and this bound. Of the
        control, only the number of guesses is looked at: few of them take much off."""
        compared = self.choosing

        def bound(rule: _Rule) -> float:
            made = rule.guesses(self.control).made
            taken = Guesses(made, made // 2).most(error) if made else 1.0
            return epsilon_bound(rule.guesses(compared), _CHOOSING, 0.0, taken, compared.shape[1])

        best, most = _Rule(0, 0.0), 0.0
        for score in (0, 1) if compared.shape[1] else ():
            for share in _SHARES:
                least = float(np.quantile(np.abs(compared[score]), 1 - share)) if share < 1 else 0.0
                rule = _Rule(score, least)
                if (found := bound(rule)) > most:
                    best, most = rule, found
        return best, most

    def poor(self, rule: _Rule) -> str | None:
        """Why the stand-in is too poor for this rule."""
        control = rule.guesses(self.control)
        if control.or_more(_FAIR) < _POOR:
            return (
                f"{control.right:,} of {control.made:,} guesses are right on rows that the model "
                "was not trained on"
            )
        alone = _Rule(_STAND_IN, 0.0).guesses(self.control)
        wrong = Guesses(alone.made, alone.made - alone.right)
        if min(alone.or_more(_FAIR), wrong.or_more(_FAIR)) < _POOR / 2:
            return f"{alone.right:,} of {alone.made:,} guesses are right that do not know the model"
        return None


def _seen(rows: AuditRows, knows: bool) -> Floats:
    return np.concatenate([rows.features, rows.outputs], axis=1) if knows else rows.features


def _compared(
    stand_in: StandIn, rows: AuditRows, bins: _LabelBins, knows: bool, random: np.random.Generator
) -> Floats:
    """[3, m] as in ``_Match``."""
    model = bins.likelihoods(rows)
    expected = stand_in.probabilities(_seen(rows, knows), model)
    drawn = (random.random(len(rows))[:, None] > expected.cumsum(axis=1)).sum(axis=1)
    own, drawn = bins.bins(rows), np.minimum(drawn, bins.count - 1)
    at = np.flatnonzero(drawn != own)
    scores = model, np.log(expected)
    of_model, of_stand_in = (each[at, own[at]] - each[at, drawn[at]] for each in scores)
    return np.stack([of_model - of_stand_in, of_model, of_stand_in])


_STAND_IN = 2  # the score that does not know the model


@dataclass(frozen=True)
class _LabelBins:
    """Labels as one of k bins, and what a model says of these.

    Attributes:
        count: k.
        edges: [k − 1] inner ones of bins of numbers; None of classes.
        middles: [k] of bins of numbers.
        spread: of labels around the model's numbers, on rows that it was not trained on.
    """

    count: int
    edges: Floats | None
    middles: Floats
    spread: float

    @classmethod
    def of(cls, rows: AuditRows, classes: int | None) -> _LabelBins:
        """Classes, or about equally many numbers a bin."""
        if classes is not None:
            return cls(classes, None, np.zeros(0), 1.0)
        cuts = np.quantile(rows.labels, np.linspace(0, 1, _MOST_BINS + 1)[1:-1])
        edges = np.unique(cuts[cuts > rows.labels.min()])
        bins = np.searchsorted(edges, rows.labels, side="right")
        middles = np.array([np.median(rows.labels[bins == b]) for b in range(len(edges) + 1)])
        spread = float(np.std(rows.labels - rows.outputs[:, 0])) or 1.0
        return cls(len(middles), edges, middles, spread)

    def bins(self, rows: AuditRows) -> Bins:
        """[n] of the labels."""
        if self.edges is None:
            return rows.labels.astype(np.int64)
        return np.searchsorted(self.edges, rows.labels, side="right")

    def likelihoods(self, rows: AuditRows) -> Floats:
        """[n, k] logarithms of what the model says of the bins."""
        if self.edges is None:
            return np.log(np.maximum(rows.outputs, _LEAST))
        return np.asarray(np.square((self.middles - rows.outputs) / self.spread) / -2)


@dataclass(frozen=True)
class _Rule:
    """Guess the label with the larger score, if the difference is large enough."""

    score: int
    least: float

    def guesses(self, compared: Floats) -> Guesses:
        found = compared[self.score]
        found = found[(np.abs(found) >= self.least) & (found != 0)]
        return Guesses(len(found), int((found > 0).sum()))


def _steps(trained: Floats, others: Floats) -> tuple[Step, ...]:
    """Guesses by how sure they are: equally many of both kinds together."""
    both = np.abs(np.concatenate([trained, others]))
    edges = np.quantile(both, np.linspace(0, 1, _STEPS + 1)[1:-1]) if len(both) else np.zeros(0)
    found = []
    for step in range(_STEPS):
        parts = []
        for margins in (trained, others):
            own = margins[np.searchsorted(edges, np.abs(margins), side="right") == step]
            own = own[own != 0]
            parts.append(Guesses(len(own), int((own > 0).sum())))
        found.append(Step(*parts))
    return tuple(found)


# A stand-in for nature: draws a label for a row from its features and the model's output.


_LEAST_SHARE = 1e-6  # of a probability
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
    found = np.full((len(seen), count), _LEAST_SHARE)
    found[:, trees.classes_] = trees.predict_proba(seen)
    return np.log(np.maximum(found, _LEAST_SHARE))


def _mixed(
    trees: Floats, model: Floats, shares: Floats, of_trees: float, of_model: float, mixed: float
) -> Floats:
    logs = of_trees * trees + of_model * model
    powers = np.exp(logs - logs.max(axis=1, keepdims=True))
    powers /= powers.sum(axis=1, keepdims=True)
    return np.maximum((1 - mixed) * powers + mixed * shares, _LEAST_SHARE)
