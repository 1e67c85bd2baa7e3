"""The frame of methods that fit a linear model to sums over all rows; and method ``none``."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Float32, Float64, Real

from labeldp_trainer.coefficients import (
    MOST,
    Coefficient,
    CoefficientEstimates,
    KeptCoefficients,
    OriginalColumn,
    OriginalColumns,
    Why,
)
from labeldp_trainer.config import LoadedConfig, NoMethod
from labeldp_trainer.config.method import HEADS, Head
from labeldp_trainer.data.labels import Coded
from labeldp_trainer.linear.fit import fitted_labels, label_sums
from labeldp_trainer.methods.corrections import BiasedError
from labeldp_trainer.methods.interactions import known_labels_method
from labeldp_trainer.methods.method import ClosedForm, Method, MethodBuilder, Setting, used_rows
from labeldp_trainer.methods.statement import Statement
from labeldp_trainer.models import Params

_VECTORS = 2  # dimensions


def default_head(loaded: LoadedConfig) -> Head:
    """The canonical one of the loss."""
    return HEADS[loaded.config.loss][0]


def vectors_of(setting: Setting) -> Float32[np.ndarray, "n p"]:
    """The features of the training part as vectors. Raises ConfigError."""
    vectors = setting.dataset.train.features
    if isinstance(vectors, dict) or vectors.ndim != _VECTORS:
        reason = "this key is missing; it says which vectors to use"
        raise setting.loaded.error(("representation",), reason)
    return np.asarray(vectors, np.float32)


def label_solver(
    setting: Setting,
    targets: Real[np.ndarray, " n"] | Coded,
    ends: tuple[float, float] | None,
    shares: Float64[np.ndarray, " k"] | None = None,
    added: float = 0.0,
) -> Callable[[], Params]:
    """Solves for the model of labels that may be looked at: numbers or classes [n], or k numbers
    for each. The sums are there before: rows beyond a sample can be refused.

    ``shares`` are about those of the classes behind these numbers; ``added`` is the variance that
    randomizing added to each. Raises InputError.
    """
    coded, shares = coded_targets(setting, targets, shares)
    vectors, streamed = vectors_of(setting), None
    if setting.dataset.train.whole is not None:
        from labeldp_trainer.sampled import streamed_vectors  # noqa: PLC0415

        streamed = streamed_vectors(setting)
    sums = label_sums(
        vectors,
        setting.spectrum,
        coded,
        groups=setting.groups,
        shares=shares,
        added=added,
        streamed=streamed,
    )
    head = default_head(setting.loaded)
    return lambda: linear_params(setting.loaded, *fitted_labels(sums, head), ends)


def coded_targets(
    setting: Setting,
    targets: Real[np.ndarray, " n"] | Coded,
    shares: Float64[np.ndarray, " k"] | None = None,
) -> tuple[Coded, Float64[np.ndarray, " k"] | None]:
    """Targets by code, and about the shares of the classes behind them; None for numbers."""
    if isinstance(targets, Coded):
        return targets, shares
    classes = setting.loss.task.classes
    if classes is None:
        return Coded.numbers(np.asarray(targets, np.float64)), None
    coded = Coded.one_hot(np.asarray(targets, np.int32), len(classes))
    return coded, np.bincount(coded.codes, minlength=len(classes)) / len(coded)


def linear_params(
    loaded: LoadedConfig,
    w: Float32[np.ndarray, "p k"],
    b: Float32[np.ndarray, " k"],
    ends: tuple[float, float] | None,
) -> Params:
    """The parameters of ``models.build.closed_form_model``."""
    linear = {"categories": np.zeros((0, w.shape[1]), np.float32), "w": w, "b": b}
    if loaded.config.loss != "squared":
        return linear
    low, high = (-np.inf, np.inf) if ends is None else ends
    return {"model": linear, "ends": np.array([low, high], np.float32)}


# From a method to ``coefficients.json``, if its vectors are linear in the features.

MOST_COLUMNS = 500
"""Of features. Sums of their products take time that grows with the square."""
Solve = Callable[[OriginalColumns], CoefficientEstimates]


def coefficients_of(setting: Setting, solve: Solve, *, weighted: bool) -> KeptCoefficients | None:
    """The solution of ``solve`` for the original features of these rows; None for other vectors.

    ``setting`` has all rows: those that users may not have are left out here.
    """
    config, original = setting.loaded.config, setting.original
    if not config.linear_in_features or original is None or original.encoder is None:
        return None
    part, classes = original.train, setting.loss.task.classes
    if config.user_column is not None:
        part = part.take(used_rows(replace(setting, dataset=original)))
    kept = KeptCoefficients(
        label=config.data.label,
        classes=None if classes is None else list(classes),
        rows=part.rows,
        users=config.user_column is not None,
        weighted=weighted,
    )
    if original.shape.image is not None:
        return kept.model_copy(update={"refused": "its features are images, not columns"})
    outputs, columns = setting.loss.task.outputs, OriginalColumns(original.encoder, part)
    width = len(columns.columns) + len(columns.constant)
    if width > MOST_COLUMNS or width * outputs > MOST:
        refused = f"{width:,} columns are too many; at most {MOST_COLUMNS:,} have coefficients"
        return kept.model_copy(update={"refused": refused})
    try:
        with np.errstate(all="ignore"):  # what is not finite is left out below
            found = solve(columns)
    except BiasedError as error:
        return kept.model_copy(update={"refused": str(error)})
    except ValueError:  # of linear algebra
        refused = "the features have very different sizes; rescale them"
        return kept.model_copy(update={"refused": refused})
    each = [_coefficient(found, j, column) for j, column in enumerate(columns.columns)]
    each += [_without(column, "constant") for column in columns.constant]
    population = found.population is not None
    return kept.model_copy(update={"population": population, "coefficients": each})


def _coefficient(found: CoefficientEstimates, j: int, column: OriginalColumn) -> Coefficient:
    if not found.known[j]:
        return _without(column, "collinear" if found.collinear[j] else "not released")
    numbers = (found.values, found.rows, found.population)
    if not all(own is None or np.isfinite(own[j]).all() for own in numbers):
        return _without(column, "not finite")
    values, margins, population = (None if own is None else own[j].tolist() for own in numbers)
    few: Why | None = None if found.enough[j] else "too few rows"
    return Coefficient(
        **column._asdict(),
        why_not=few,
        estimates=values,
        margins=margins,
        population_margins=population,
    )


def _without(column: OriginalColumn, why: Why) -> Coefficient:
    return Coefficient(**column._asdict(), why_not=why)


# ``method: {kind: none}``: the true labels, without privacy.

STATEMENT = Statement(
    method="none",
    epsilon=None,
    delta=0.0,
    mechanism="the model was trained on the true labels",
    secret=("the labels", "the parameters and all metrics, which depend on the labels"),
)


class NoneBuilder(MethodBuilder[NoMethod]):
    """Builds the method without privacy."""

    def build(self, setting: Setting) -> Method:
        """Plain minibatches, or the closed form. Raises DataError if a label cannot be used."""
        train, label = setting.dataset.train, self.loaded.config.data.label
        targets = setting.loss.task.targets(train.columns[label], train.source, label)
        if not self.loaded.config.closed_form:
            from labeldp_trainer.methods.stepped import minibatch_method  # noqa: PLC0415

            return minibatch_method(setting, targets, STATEMENT)
        ends = None
        if setting.loss.task.classes is None:
            ends = float(targets.min()), float(targets.max())
        if self.loaded.config.interactions is not None:
            coded, shares = coded_targets(setting, targets)
            return known_labels_method(
                setting, coded, ends, shares=shares, extra=0.0, statement=STATEMENT
            )
        return ClosedForm(solve=label_solver(setting, targets, ends), statement=STATEMENT)
