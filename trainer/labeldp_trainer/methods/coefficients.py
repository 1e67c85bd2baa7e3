"""From a method to ``coefficients.json``, if its vectors are linear in the features."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from labeldp_trainer.coefficients.columns import OriginalColumn, OriginalColumns
from labeldp_trainer.coefficients.kept import MOST, Coefficient, KeptCoefficients, Why
from labeldp_trainer.coefficients.solve import CoefficientEstimates
from labeldp_trainer.methods.method import Setting
from labeldp_trainer.methods.unbiased import BiasedError
from labeldp_trainer.methods.users import used_rows

MOST_COLUMNS = 500
"""Of features. Sums of their products take time that grows with the square."""
Solve = Callable[[OriginalColumns], CoefficientEstimates]


def coefficients_of(
    setting: Setting, solve: Solve, *, weighted: bool, refused: str | None = None
) -> KeptCoefficients | None:
    """What ``solve`` finds for the original features of these rows; None for other vectors.

    ``setting`` has all rows: those that users may not have are left out here. ``refused`` says why
    nothing is to be solved.
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
    try:
        with np.errstate(all="ignore"):  # what is not finite is left out below
            found = solve(columns) if refused is None else None
    except BiasedError as error:
        found, refused = None, str(error)
    except ValueError:  # of linear algebra
        found, refused = None, "the features have very different sizes; rescale them"
    if found is None:
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
