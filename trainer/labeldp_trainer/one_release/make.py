"""From vectors and labels to a release: all that is decided, before the labels are looked at."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float64

from labeldp_trainer.config import OneRelease
from labeldp_trainer.data.labels import class_labels
from labeldp_trainer.discrete_gaussian.delta import least_sigma
from labeldp_trainer.discrete_gaussian.draw import ProvedNoise, noisy
from labeldp_trainer.linear.sums import with_constant
from labeldp_trainer.one_release.design import (
    CLASSES,
    NUMBERS,
    Expectation,
    certified,
    design,
    moments,
    prior_variances,
)
from labeldp_trainer.one_release.lattice import (
    STEPS,
    UNIT,
    Weights,
    label_sums,
    squared_sensitivity,
)
from labeldp_trainer.one_release.release import Facts, Release
from labeldp_trainer.one_release.rows import PublicRows
from labeldp_trainer.one_release.targets import label_steps
from labeldp_trainer.randomize import exact


def planned(
    rows: PublicRows,
    method: OneRelease,
    classes: tuple[int | str, ...] | None,
    label: str,
) -> Release:
    """The release without a statistic: weights, noise and proof, from features alone.

    ``label`` names the column. Raises ValueError if no noise that is resolved is large enough.
    """
    width = 1 if classes is None else len(classes)
    noise = _expected_noise(rows, method, classes)
    weights = design(
        rows,
        _prior(rows, classes),
        noise,
        _expectation(classes).quantile,
        evenly=method.goal == "coefficients",
    )
    found = weights.lengths(rows)
    squared = squared_sensitivity(found.longest, classes=classes is not None)
    epsilon, delta = exact(method.epsilon), exact(method.delta)
    proved = ProvedNoise.least(squared, weights.width * width, epsilon, delta)
    expected, gap = expectations(weights, rows, method, classes)
    facts = Facts(
        classes=classes,
        label_range=None if classes is not None else method.label_range,
        epsilon=repr(method.epsilon),
        delta=repr(method.delta),
        sigma=proved.sigma,
        longest=found.longest,
        squared_sensitivity=squared,
        floor=weights.floor,
        scale=weights.scale,
        rows=len(rows.vectors),
        users=rows.users,
        vectors_sha256=rows.sha256,
        rows_sha256=found.sha256,
        expected_error=expected,
        gap=gap,
        label=label,
    )
    none = np.zeros((weights.width, width), np.int64)
    return Release(none, weights.columns, weights.metric, facts)


def expectations(
    weights: Weights, rows: PublicRows, method: OneRelease, classes: tuple[int | str, ...] | None
) -> tuple[float, float]:
    """What a release states of its weights beside the privacy: ``expected_error`` and ``gap``.

    Raises ValueError for weights that no plan has.
    """
    found, prior = moments(weights, rows), _prior(rows, classes)
    noise = _expected_noise(rows, method, classes)
    return certified(found, rows.units, prior[weights.columns], noise)


def drawn(plan: Release, rows: PublicRows, labels: Any, method: OneRelease) -> Release:
    """The plan with its noisy statistic: the only place where labels are looked at."""
    classes, ends, default = plan.facts.classes, plan.facts.label_range, method.default
    count = None
    if classes is not None:
        assert not isinstance(default, float)
        numbers, count = class_labels(labels, classes, default), len(classes)
    else:
        assert ends is not None and not isinstance(default, str)
        numbers = label_steps(labels, *ends, default)
    total = label_sums(plan.weights, rows, numbers, count)
    return dataclasses.replace(plan, statistic=noisy(total, plan.facts.sigma))


def expected_share(release: Release, rows: PublicRows) -> float:
    """The expected squared error of a fit, over that of a constant, less what no fit explains.

    From features, ε and δ alone, for labels that fill their range or are spread over the classes:
    from 1 on the fit is expected to be no better than a constant. Columns that are not used are
    errors as large as their prior variances.
    """
    prior = _prior(rows, release.facts.classes)
    unused = prior.sum() - prior[release.columns].sum()
    return float((release.facts.expected_error + unused) / prior[1:].sum())


def target_variance(classes: tuple[int | str, ...] | None) -> float:
    """Of an entry of a one-hot label of equal classes, or of a uniform label in [−1, 1]."""
    return 1 / 3 if classes is None else (1 - 1 / len(classes)) / len(classes)


def _expectation(classes: tuple[int | str, ...] | None) -> Expectation:
    return NUMBERS if classes is None else CLASSES


def _prior(rows: PublicRows, classes: tuple[int | str, ...] | None) -> Float64[np.ndarray, " p+1"]:
    relative = with_constant(rows.spectrum, rows.vectors.shape[1])
    return prior_variances(relative, target_variance(classes), _expectation(classes).power)


def _expected_noise(
    rows: PublicRows, method: OneRelease, classes: tuple[int | str, ...] | None
) -> float:
    """Of a sum of rows of length 1, before it is known which of all columns are used.

    In units of a one-hot label's entry, or of half a label range.
    """
    unit = squared_sensitivity(UNIT * UNIT, classes=classes is not None)
    coordinates = (rows.vectors.shape[1] + 1) * (1 if classes is None else len(classes))
    sigma = least_sigma(unit, exact(method.epsilon), exact(method.delta), coordinates)
    return sigma / UNIT / (STEPS if classes is None else 1)
