"""From vectors and labels to a release: all that is decided, before the labels are looked at."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64, Int64

from labeldp_trainer.config import OneRelease
from labeldp_trainer.discrete_gaussian.delta import least_sigma
from labeldp_trainer.discrete_gaussian.draw import noisy, with_float
from labeldp_trainer.linear.sums import with_constant
from labeldp_trainer.one_release.design import (
    CLASSES,
    NUMBERS,
    certified,
    design,
    moments,
    prior_variances,
)
from labeldp_trainer.one_release.lattice import (
    STEPS,
    UNIT,
    class_sums,
    lengths,
    number_sums,
    squared_sensitivity,
)
from labeldp_trainer.one_release.release import Release
from labeldp_trainer.one_release.targets import class_labels, label_steps
from labeldp_trainer.randomize import exact


@dataclasses.dataclass(frozen=True)
class PublicRows:
    """Public vectors, and whose rows they are.

    Attributes:
        vectors: [n, p].
        spectrum: [p] eigenvalues of the components that the columns are, if they are.
        sha256: of the vectors.
        owners: [n] numbers of the users, or None if a label is on its own.
        users: what a release says of them.
    """

    vectors: Float32[np.ndarray, "n p"]
    spectrum: Float64[np.ndarray, " p"] | None
    sha256: str
    owners: Int64[np.ndarray, " n"] | None = None
    users: dict[str, Any] | None = None

    @property
    def shares(self) -> Float32[np.ndarray, " n"] | None:
        """1/m for each of the m rows of a user."""
        if self.owners is None:
            return None
        counts = np.bincount(self.owners)
        shares: Float32[np.ndarray, " n"] = (1 / counts[self.owners]).astype(np.float32)
        return shares


def planned(
    rows: PublicRows,
    method: OneRelease,
    classes: tuple[int | str, ...] | None,
    label: str | None = None,
) -> Release:
    """The release without a statistic: weights, noise and proof, from features alone.

    ``label`` names the column. Raises ValueError if no noise that is resolved is large enough.
    """
    n, p = rows.vectors.shape
    width = 1 if classes is None else len(classes)
    epsilon, delta = exact(method.epsilon), exact(method.delta)
    noise, units = _expected_noise(method, p, classes), _units(classes)
    found = design(
        rows.vectors,
        rows.spectrum,
        target_variance(classes) * units**2,
        noise,
        NUMBERS if classes is None else CLASSES,
        rows.shares,
    )
    exactly = lengths(found.weights, rows.vectors, rows.owners, rows.shares)
    squared = squared_sensitivity(exactly.longest, classes=classes is not None)
    coordinates = found.weights.width * width
    sigma = with_float(least_sigma(squared, epsilon, delta, coordinates))
    planned_release = Release(
        statistic=np.zeros((found.weights.width, width), np.int64),
        weights=found.weights,
        classes=classes,
        label_range=None if classes is not None else _ends(method),
        epsilon=repr(method.epsilon),
        delta=repr(method.delta),
        sigma=sigma,
        longest=exactly.longest,
        rows=n,
        users=rows.users,
        vectors_sha256=rows.sha256,
        rows_sha256=exactly.sha256,
        expected=found.expected / units**2,
        gap=found.gap,
        label=label,
    )
    if planned_release.proved_delta() > delta:
        raise AssertionError("the noise does not give the δ that it was chosen for")
    return planned_release


def expectations(release: Release, rows: PublicRows, method: OneRelease) -> tuple[float, float]:
    """What ``planned`` states of a release's weights beside the privacy: ``expected`` and ``gap``.

    Raises ValueError for weights that no plan has.
    """
    (n, p), classes, weights = rows.vectors.shape, release.classes, release.weights
    units, power = _units(classes), (NUMBERS if classes is None else CLASSES).power
    variance = target_variance(classes) * units**2
    prior = prior_variances(with_constant(rows.spectrum, p), variance, power)[weights.columns]
    found, noise = moments(weights, rows.vectors, rows.shares), _expected_noise(method, p, classes)
    expected, gap = certified(found.cross, found.gram, n, prior, noise)
    return expected / units**2, gap


def _expected_noise(method: OneRelease, p: int, classes: tuple[int | str, ...] | None) -> float:
    """Of a sum of rows of length 1, before it is known which of p columns are used."""
    unit = squared_sensitivity(UNIT * UNIT, classes=classes is not None)
    coordinates = (p + 1) * (1 if classes is None else len(classes))
    return least_sigma(unit, exact(method.epsilon), exact(method.delta), coordinates) / UNIT


def _units(classes: tuple[int | str, ...] | None) -> float:
    """Lattice steps in a label's unit."""
    return 1.0 if classes is not None else float(STEPS)


def drawn(plan: Release, rows: PublicRows, labels: Any, method: OneRelease) -> Release:
    """The plan with its noisy statistic: the only place where labels are looked at."""
    shares, weights = rows.shares, plan.weights
    if plan.classes is not None:
        default = method.default
        assert not isinstance(default, float)
        classes = class_labels(labels, plan.classes, default)
        total = class_sums(weights, rows.vectors, classes, len(plan.classes), shares)
    else:
        low, high = _ends(method)
        assert not isinstance(method.default, str)
        steps = label_steps(labels, low, high, method.default)
        total = number_sums(weights, rows.vectors, steps, shares)
    return dataclasses.replace(plan, statistic=noisy(total, plan.sigma))


def expected_share(release: Release, rows: PublicRows) -> float:
    """The expected squared error of a fit, over that of a constant, less what no fit explains.

    From features, ε and δ alone, for labels that fill their range or are spread over the classes:
    from 1 on the fit is expected to be no better than a constant. Columns that are not used are
    errors as large as their prior variances.
    """
    numbers = release.classes is None
    prior = prior_variances(
        with_constant(rows.spectrum, rows.vectors.shape[1]),
        target_variance(release.classes),
        (NUMBERS if numbers else CLASSES).power,
    )
    unused = prior.sum() - prior[release.weights.columns].sum()
    return float((release.expected + unused) / prior[1:].sum())


def target_variance(classes: tuple[int | str, ...] | None) -> float:
    """Of an entry of a one-hot label of equal classes, or of a uniform label in [−1, 1]."""
    return 1 / 3 if classes is None else (1 - 1 / len(classes)) / len(classes)


def _ends(method: OneRelease) -> tuple[float, float]:
    assert method.label_range is not None
    return method.label_range
