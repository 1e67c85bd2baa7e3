"""From what was learned of a table in stages to the parameters of a model."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64, UInt8

from labeldp_trainer.data.features import room
from labeldp_trainer.data.labels import Coded
from labeldp_trainer.errors import DataError
from labeldp_trainer.interactions.columns import VALUE_BITS, BinnedColumn, entries_of, learn_columns
from labeldp_trainer.interactions.effects import FILE as EXPLAINED
from labeldp_trainer.interactions.effects import Effects, effects_of, read_effects, to_bytes
from labeldp_trainer.interactions.questions import (
    BROAD,
    Answered,
    FirstGuess,
    Guess,
    KeepRows,
    LabelQuestion,
    MeanCurve,
    Offset,
    Residuals,
    Source,
)
from labeldp_trainer.interactions.softmax import softmax_weights
from labeldp_trainer.interactions.stages import STAGES, Fit, Learner
from labeldp_trainer.interactions.terms import BLOCK, Term, Terms
from labeldp_trainer.methods.method import Fitted, Method, Setting, TrainingRun
from labeldp_trainer.models import Params
from labeldp_trainer.one_release.rows import UNIT, RowOwners
from labeldp_trainer.operators import POISSON_FLOOR
from labeldp_trainer.run.folder import Line, write_bytes

_SOFT, _LEAST_SOFT = 0.4, 1e-2
"""Of the uncertainty of a prediction: how softly it is kept positive; and the least."""


def learned_columns(setting: Setting) -> list[BinnedColumn]:
    """The columns of the training features, as ``learn_columns`` says. Raises DataError if none
    says anything."""
    train = setting.dataset.train
    found = learn_columns(train.features, setting.dataset.shape.vocabularies)
    if not any(column.rank for column in found):
        raise DataError(f"{train.source}: every feature column is constant")
    return found


def codes_of(columns: list[BinnedColumn], features: Any) -> UInt8[np.ndarray, "n c"]:
    """The bins of all rows; those of a column follow one another."""
    entries = entries_of(features)
    found = room((len(entries[0]), len(columns)), np.uint8, by_column=True)
    for j, (column, own) in enumerate(zip(columns, entries, strict=True)):
        for start in range(0, len(own), BLOCK):
            part = slice(start, start + BLOCK)
            found[part, j] = column.codes(own[part])
    return found


def learner(
    setting: Setting,
    columns: list[BinnedColumn],
    codes: UInt8[np.ndarray, "n c"],
    source: Source,
    factors: Float32[np.ndarray, " n"],
) -> Learner:
    """The learner of a source, as the config says."""
    config = setting.loaded.config
    return Learner(
        columns=columns,
        codes=codes,
        source=source,
        order=config.interactions or 0,
        factors=factors,
        stage_done=lambda stage: setting.steps("stages", stage, STAGES),
    )


def params_of(
    fit: Fit,
    loss: str,
    ends: tuple[float, float] | None,
    targets: Coded | None = None,
    *,
    randomized: bool = False,
) -> Params:
    """The parameters of ``models.Interactions``; ``targets`` are labels that may be looked at.

    More than two classes get a softmax, unless ``targets`` are randomized: their noise hides which
    penalty is best.
    """
    terms, unit = fit.terms, float(1 << VALUE_BITS)
    many = ends is None and len(fit.base) > 1
    weights, base = softmax_weights(fit, targets) if many and not randomized else fit.raw()
    if ends is None and len(base) == 1:  # log-odds, as logits of two classes
        weights = np.concatenate([-weights / 2, weights / 2], axis=1)
        base = np.concatenate([-base / 2, base / 2])
    if not terms.chosen:  # predictions are of rows: a column of no effect says how many there are
        any_column = next(c for c, column in enumerate(terms.columns) if column.rank)
        terms = terms.of((Term((any_column,)),))
        weights = np.pad(weights, [(0, terms.width - 1), (0, 0)])
    columns: dict[str, Any] = {}
    for c in sorted({c for term in terms.chosen for c in term.columns}):
        column = terms.columns[c]
        own = {"edges": column.edges} if column.bins is None else {"bins": column.bins}
        columns[str(c)] = own
    found, at = {}, 1
    for term, width in zip(terms.chosen, terms.widths, strict=True):
        functions = term.functions(terms.columns)
        found["x".join(map(str, term.columns))] = {
            "tables": {
                str(i): (terms.columns[c].values[:, chosen] / unit).astype(np.float32)
                for i, (c, chosen) in enumerate(zip(term.columns, functions, strict=True))
            },
            "weights": (weights[at : at + width] * unit).astype(np.float32),
        }
        at += width
    found_params = {
        "base": (base + weights[0] * unit).astype(np.float32),
        "columns": columns,
        "terms": found,
    }
    if fit.curve is not None:
        found_params["curve"] = _curve(fit.curve, loss)
    elif ends is not None or (many and randomized):
        low, high = ends or (-np.inf, np.inf)
        uncertain = np.minimum(np.sqrt(fit.uncertainty * fit.scales), (high - low) / 2)
        soft = np.maximum(_SOFT * uncertain, _LEAST_SOFT)
        if loss == "poisson":
            with np.errstate(divide="ignore"):
                low, high = np.log(np.maximum([low, high], 0.0))
        found_params |= {
            "softness": soft.astype(np.float32),
            "log_softness": np.log(soft).astype(np.float32),
            "ends": np.array([low, high], np.float32),
        }
    return found_params


def _curve(curve: MeanCurve, loss: str) -> Params:
    """Of the mean label; of counts of its logarithm."""
    if loss == "poisson":
        curve = MeanCurve(curve.points, np.log(np.maximum(curve.means, POISSON_FLOOR)))
    return {
        "first": curve.means[:1].astype(np.float32),
        "starts": curve.points[:-1].astype(np.float32),
        "widths": np.diff(curve.points).astype(np.float32),
        "slopes": curve.slopes[:, None].astype(np.float32),
    }


def keep_effects(run: TrainingRun, fit: Fit, rows: int) -> None:
    """Write what ``labeldp explain`` shows into the run folder."""
    write_bytes(run.folder.path / EXPLAINED, to_bytes(replace(effects_of(fit), rows=rows)))


@dataclass(frozen=True, kw_only=True)
class Staged(Method):
    """A model of interactions that is learned in stages.

    Attributes:
        solve: given the run, the parameters, and further entries of ``result.json``.
    """

    solve: Callable[[TrainingRun], tuple[Params, Line]]

    def fit(self, run: TrainingRun) -> Fitted:
        """The solution. Raises InputError."""
        params, facts = self.solve(run)
        metrics, effects = run.tested(params), read_effects(run.folder.path / EXPLAINED)
        notes = () if metrics and len(effects.importance) else _hidden(effects)
        return Fitted(params, run.setting.model, metrics, notes, facts)


def _hidden(effects: Effects) -> tuple[str, ...]:
    """Without a test set, or effects: a warning from what was learned, which spends nothing."""
    if not len(effects.importance):
        return ("labels are nearly all alike, as far as noise shows: the model is their mean",)
    if (effects.importance > effects.error).any():
        return ()
    return (
        "no column, or pair of columns, has an effect that is larger than its error: the model may "
        "be no better than a constant; add a test set to check",
    )


@dataclass
class KnownLabels:
    """Answers without noise, from labels that may be looked at: private ones, or true ones.

    Attributes:
        columns, codes: of the table.
        targets: n of K numbers each.
        base: [K] shares of classes; None of numbers.
        extra: variance of a target that randomizing added.
        shares: [n] that multiply the rows.
        ends: of numbers; None of classes.
        exposure, visible, most_sums, refined, guess: as in ``Source``.
    """

    columns: list[BinnedColumn]
    codes: UInt8[np.ndarray, "n c"]
    targets: Coded
    base: Float64[np.ndarray, " k"] | None
    extra: float
    shares: Float32[np.ndarray, " n"]
    ends: tuple[float, float] | None = None
    exposure: Float32[np.ndarray, " n"] | None = None
    visible: bool = True
    most_sums: int = 450
    refined: int = 8
    guess: Guess = BROAD

    def labels(self) -> FirstGuess:
        """Where labels lie."""
        if self.base is not None:
            return FirstGuess.of_classes(self.base)
        each = self.targets.each()[:, 0]
        square = float(each.var())
        variance = max(square - self.extra, _LEAST_SIGNAL * square, 1e-300)
        clip = float(np.sqrt(square)) or 1.0
        return FirstGuess(np.array([each.mean()]), variance, clip, self.ends)

    def noise(self, clip: float) -> float:
        """As if the labels' own noise were that of sums: what it hides is not asked about."""
        del clip
        spread = self.labels().variance + self.extra
        return float(np.sqrt(spread * len(self.codes) / _SUMS))

    def sums(self, question: LabelQuestion, keep: KeepRows) -> Answered:
        """The sums themselves."""
        total: Any = 0.0
        terms = Terms(self.columns, self.codes, question.terms)
        offset = question.offset
        compared = None if offset is None else offset.over(terms, self.exposure)
        for part, whole in question.integer_rows(terms, self.shares):
            keep(part, whole)
            q = whole / UNIT
            t = self.targets.rows[self.targets.codes[part]]
            if compared is not None:
                t = t - compared[part, None]
            total = total + q.T @ t
        return Answered(question, self.shares, total, _NOISELESS * question.clip, compared)

    def curve(self, offset: Offset, spread: float) -> None:
        """Predictions are mean labels."""

    def residuals(self, offset: Offset) -> Residuals:
        """Of all rows; nothing is clipped."""
        terms = Terms(self.columns, self.codes, ())
        apart = self.targets.each()[:, 0] - offset.over(terms, self.exposure)
        first = terms.first_of_alike(slice(None))
        count = np.diff(np.r_[first, len(apart)])
        square = np.square(apart)
        pairs = (np.square(np.add.reduceat(apart, first)) - np.add.reduceat(square, first)) / count
        shared = float(pairs.sum()) / max(len(apart) - len(first), 1)
        return Residuals(float(square.mean()), np.inf, shared)


_NOISELESS = 1e-6
_SUMS = 60  # ten times as many made fits slower, and no better
_LEAST_SIGNAL = 0.02  # of the variance of private numbers


def known_labels_method(
    setting: Setting,
    targets: Coded,
    ends: tuple[float, float] | None,
    *,
    shares: Float64[np.ndarray, " k"] | None,
    extra: float,
    **stated: Any,
) -> Staged:
    """The method for labels that may be looked at; ``stated`` are the fields of ``Method``."""

    def solve(run: TrainingRun) -> tuple[Params, Line]:
        columns, train = learned_columns(setting), setting.dataset.train
        codes = codes_of(columns, train.features)
        order = np.lexsort(codes.T)  # rows that no bin tells apart follow one another
        codes, labels = codes[order], Coded(targets.codes[order], targets.rows)
        range_ = None if shares is not None else (ends or (-np.inf, np.inf))
        factors = RowOwners(count=train.rows, weights=train.weights).relative[order]
        exposure = None if train.exposure is None else train.exposure[order]
        source = KnownLabels(
            columns, codes, labels, shares, extra, factors, range_, exposure=exposure
        )
        fit = learner(setting, columns, codes, source, factors).learn()
        keep_effects(run, fit, train.rows)
        loss = setting.loaded.config.loss
        return params_of(fit, loss, ends, labels, randomized=extra > 0), {}

    return Staged(solve=solve, **stated)
