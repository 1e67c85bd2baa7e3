"""``labeldp train --plan``: what a staged release may learn, before it reads any label."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, UInt8
from scipy.optimize import brentq
from scipy.special import softmax

from labeldp_trainer.config import LoadedConfig, StagedRelease
from labeldp_trainer.config.representation import Steps, silent
from labeldp_trainer.interactions.columns import BinnedColumn
from labeldp_trainer.interactions.terms import Term, Terms
from labeldp_trainer.losses import predict
from labeldp_trainer.methods import open_method
from labeldp_trainer.methods.interactions import learner, params_of
from labeldp_trainer.methods.staged_release import StagedReleaseBuilder, public_table
from labeldp_trainer.randomize import exact
from labeldp_trainer.staged_release.draw import Draws, LabelColumn
from labeldp_trainer.staged_release.plan import BudgetPlan
from labeldp_trainer.training import public_setting

SIGNALS = (0.2, 0.4, 0.8)
"""Shares of the variance of labels that features explain."""
_PAIRS = 1 / 3  # of what features explain
_DEVIATION = 1 / 8  # of made-up numbers, in widths of the range
_FEW = 60.0  # rows of a Gaussian mechanism of μ = 1


@dataclass(frozen=True)
class Forecast:
    """What is learned of made-up labels.

    Attributes:
        signal: the share of the variance of labels that features explain.
        explained: the share that the model explains of it; below 0 if a constant is better.
    """

    signal: float
    explained: float


def forecasts(loaded: LoadedConfig, steps: Steps = silent) -> tuple[int, list[Forecast]]:
    """How many rows there are, and a forecast for each of ``SIGNALS``: by the method with its noise
    on the features and made-up labels.

    The effects of columns, and of pairs, fall as 1, 1/2, 1/3, … in random order. No label is
    read. Raises InputError.
    """
    method = loaded.config.method
    if not isinstance(method, StagedRelease):
        raise loaded.error(("method", "kind"), "--plan is for staged_release")
    builder = open_method(loaded)
    assert isinstance(builder, StagedReleaseBuilder)
    builder.columns = builder.columns[1:]
    setting = public_setting(loaded, builder, steps)
    table, train, loss = public_table(setting), setting.dataset.train, setting.loss
    columns, codes, rows = list(table.columns), table.codes, table.rows
    release = builder.empty(setting, table)
    ends, classes = release.facts.label_range, loss.task.classes
    exposure = 1.0 if train.exposure is None else train.exposure

    def explained(seed: int, signal: float) -> float:
        random = np.random.default_rng(seed)
        if ends is None:
            assert classes is not None
            truth = _shares(columns, codes, len(classes), signal, random)
            drawn = random.random((len(codes), 1)) > np.cumsum(truth, axis=1)[:, :-1]
            labels = drawn.sum(axis=1).astype(np.int32)
        else:
            deviation = (ends[1] - ends[0]) * _DEVIATION
            effects = _effects(columns, codes, random)
            truth = exposure * (np.mean(ends) + deviation * np.sqrt(signal) * effects)
            own = random.normal(size=len(codes)) * deviation * np.sqrt(1 - signal)
            labels = np.clip(truth + own, *ends)
            truth = truth[:, None]
        draws = Draws(release, table, LabelColumn(labels), lambda _: None)
        fit = learner(setting, columns, codes, draws, rows.relative).learn()
        params = params_of(fit, loaded.config.loss, ends)
        found = loss.predictions(predict(setting.model, params, train)).reshape(len(codes), -1)
        if ends is None:
            found = softmax(found, axis=1)
        missed = np.square(found - truth).mean(axis=0).sum() / truth.var(axis=0).sum()
        return signal * (1 - float(missed))

    return len(codes), [Forecast(s, explained(seed, s)) for seed, s in enumerate(SIGNALS)]


def few_for_classes(rows: int, method: StagedRelease) -> bool:
    """Whether noise hides so much that one release may predict classes better."""
    plan = BudgetPlan.of(exact(method.epsilon), exact(method.delta), classes=True)
    return rows * float(plan.ratio) ** 0.5 < _FEW


def _effects(
    columns: list[BinnedColumn], codes: UInt8[np.ndarray, "n c"], random: np.random.Generator
) -> Float64[np.ndarray, " n"]:
    """The sum of effects of a row, of mean 0 and variance 1."""
    names = random.permutation([c for c, column in enumerate(columns) if column.rank])
    mains, pairs = names[:, None], np.sort(np.stack([names[1:], names[:-1]], axis=1), axis=1)
    found = np.zeros(len(codes))
    for terms, share in ((mains, 1 - _PAIRS), (pairs, _PAIRS)):
        sizes = 1 / np.arange(1, len(terms) + 1)
        for term, size in zip(terms, share * sizes / sizes.sum(), strict=True):
            own = Terms(columns, codes, (Term(tuple(term.tolist())),))
            effect = own.weighted(np.r_[0.0, random.normal(size=own.width - 1)])
            found += np.sqrt(size) * (effect - effect.mean()) / (effect.std() or 1.0)
    return (found - found.mean()) / (found.std() or 1.0)


def _shares(
    columns: list[BinnedColumn],
    codes: UInt8[np.ndarray, "n c"],
    classes: int,
    signal: float,
    random: np.random.Generator,
) -> Float64[np.ndarray, "n k"]:
    """The probabilities of classes, of which features explain this share of the variance."""
    logits = np.stack([_effects(columns, codes, random) for _ in range(classes)], axis=1)

    def explained(scale: float) -> float:
        p = softmax(scale * logits, axis=1)
        return float(p.var(axis=0).sum() / (p.mean(axis=0) * (1 - p.mean(axis=0))).sum())

    scale = brentq(lambda scale: explained(scale) - signal, 0.0, 1e3)
    return np.asarray(softmax(scale * logits, axis=1))
