"""From vectors to a release: what is decided before labels are looked at, and verified later."""

import dataclasses
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Float64
from labeldp_verify.printable import at_most, percent_at_most

from labeldp_trainer.config import OneRelease
from labeldp_trainer.config.method import Head, StagedRelease
from labeldp_trainer.data.labels import class_labels
from labeldp_trainer.discrete_gaussian.noise import ProvedNoise, least_sigma, noisy
from labeldp_trainer.linear.fit import fitted
from labeldp_trainer.linear.sums import Sums, of_groups, with_constant
from labeldp_trainer.one_release.release import Facts, Release
from labeldp_trainer.one_release.rows import (
    SCALE,
    STEPS,
    UNIT,
    Lengths,
    PublicRows,
    RowMoments,
    Targets,
    Weights,
    label_steps,
    squared_sensitivity,
    unit_of,
)
from labeldp_trainer.randomize import exact

SIGNAL_SHARE = 0.7
"""Of the variance of a label, what features explain, roughly."""
_NOTHING = 1e-30  # prior variance of a constant that is not there


class Expectation(NamedTuple):
    """The expectations of labels before any is seen.

    Fixed on training rows that were held out, and no test row: for classes the last 10,000 of
    Fashion-MNIST, for numbers 15,000 of the first 50,000 of weeks worked (docs/training.md).

    Attributes:
        power: of the spectrum, to which the prior variances of coefficients are proportional.
        quantile: rows shorter than this quantile of the lengths are not made longer.
    """

    power: float
    quantile: float


CLASSES, NUMBERS = Expectation(0.7, 0.25), Expectation(1.2, 0.5)


def design(
    rows: PublicRows,
    prior: Float64[np.ndarray, " p+1"],
    noise: float,
    quantile: float,
    *,
    evenly: bool = False,
) -> Weights:
    """The weights for whitened vectors.

    ``prior`` are the variances of coefficients, the constant's first; ``noise`` the standard
    deviation of the noise on a sum of rows of length 1. ``evenly`` gives all columns the same
    precision, so that none is left out and the units of features do not matter (D-optimality).
    """
    precision = np.ones_like(prior)
    if not evenly:
        precision = water_filling(prior, (rows.units / noise) ** 2)
    columns = np.flatnonzero(precision > 0)
    metric = np.sqrt(precision[columns] / precision.max()).astype(np.float32)
    floor = _floor(Weights(columns, metric, 0.0, 1.0), rows.vectors, quantile)
    return Weights(columns, metric, floor, SCALE * unit_of(rows.count) / UNIT)


def prior_variances(
    relative: Float64[np.ndarray, " d"], label_variance: float, power: float
) -> Float64[np.ndarray, " d"]:
    """[d] of the constant, which comes first, and of whitened columns."""
    signal = relative[1:] ** power
    share = SIGNAL_SHARE * label_variance / max(signal.sum(), 1e-300)
    return np.concatenate([[label_variance], share * signal])


def water_filling(prior: Float64[np.ndarray, " d"], budget: float) -> Float64[np.ndarray, " d"]:
    """[d] precisions max(0, μ − 1/τ²) whose sum is the budget; at least one is positive."""
    costs = np.sort(1 / prior)
    sums = np.cumsum(costs)
    counts = np.arange(1, len(costs) + 1)
    levels = (budget + sums) / counts
    level = levels[np.flatnonzero(levels > costs)[-1]]
    return np.maximum(0.0, level - 1 / prior)


def certified(
    found: RowMoments, units: int, prior: Float64[np.ndarray, " d"], noise: float
) -> tuple[float, float]:
    """The expected error tr (T⁻¹ + P)⁻¹ of coefficients, and how far it is from the best.

    That is: by how much at most it exceeds the least of any noise shape for these rows,
    relatively. Rows b = H⁻¹·q estimate coefficients; noise of precision P hides a label if
    b·P·b ≤ 1/noise² for all rows, and all labels of a user only if the sum of b·P·b over the user's
    rows is at most that: some signs make ‖Σ ±P^½·b‖² at least as large. By weak duality, with V the
    mean over ``units`` of the sum of b·bᵀ, no such P has an error below
    (tr V^½)²/(tr T⁻¹V + 1/noise²).
    """
    cross, gram, _ = found
    inverse = np.linalg.pinv(cross)
    precision = cross.T @ cross / noise**2
    expected = float(np.trace(np.linalg.inv(np.diag(1 / prior) + precision)))
    mean = inverse @ (gram / units) @ inverse.T
    roots = np.sqrt(np.maximum(np.linalg.eigvalsh((mean + mean.T) / 2), 0)).sum()
    least = roots**2 / (float((np.diag(mean) / prior).sum()) + 1 / noise**2)
    return expected, max(expected / least - 1, 0.0)


def _floor(weights: Weights, vectors: Float32[np.ndarray, "n p"], quantile: float) -> float:
    found = []
    for start in range(0, len(vectors), 4096):
        moved = weights.used(vectors[start : start + 4096]) * weights.metric
        found.append(np.sqrt(np.square(moved, dtype=np.float64).sum(axis=1)))
    return float(max(np.quantile(np.concatenate(found), quantile), 1e-6))


# From vectors and labels to a release: all that is decided, before the labels are looked at.


def planned(
    rows: PublicRows,
    method: OneRelease,
    classes: tuple[int | str, ...] | None,
    label: str,
) -> Release:
    """The release without a statistic: weights, noise and proof, from features alone.

    ``label`` names the column. Raises ValueError if no noise that is resolved is large enough.
    """
    weights = _designed(rows, method, classes)
    found = rows.sums(weights)
    return _stated(weights, found.moments, found.lengths, rows, method, classes, label)


def drawn(
    rows: PublicRows,
    method: OneRelease,
    classes: tuple[int | str, ...] | None,
    label: str,
    column: Any,
    ready: Callable[[Release], None] = lambda plan: None,
) -> Release:
    """The plan with its noisy statistic: the only place where labels are looked at.

    ``column`` has the labels of rows in memory. The plan's noise is for the very integers that are
    summed. ``ready`` is called with the plan before noise is drawn, and may raise.
    """
    weights, ends, default = _designed(rows, method, classes), method.label_range, method.default
    if classes is not None:
        assert not isinstance(default, float)
        read = partial(class_labels, classes=classes, default=default)
    else:
        assert ends is not None and not isinstance(default, str)
        read = partial(label_steps, low=ends[0], high=ends[1], default=default)
    count = None if classes is None else len(classes)
    moments, lengths, exact = rows.sums(weights, Targets(count, column, read))
    plan = _stated(weights, moments, lengths, rows, method, classes, label)
    ready(plan)
    return dataclasses.replace(plan, statistic=noisy(exact, plan.facts.sigma))


def _designed(
    rows: PublicRows, method: OneRelease, classes: tuple[int | str, ...] | None
) -> Weights:
    return design(
        rows,
        _prior(rows, classes),
        _expected_noise(rows, method, classes),
        _expectation(rows, classes).quantile,
        evenly=method.goal == "coefficients",
    )


def _stated(
    weights: Weights,
    moments: RowMoments,
    lengths: Lengths,
    rows: PublicRows,
    method: OneRelease,
    classes: tuple[int | str, ...] | None,
    label: str,
) -> Release:
    width = 1 if classes is None else len(classes)
    squared = squared_sensitivity(lengths.longest, rows.count, classes=classes is not None)
    epsilon, delta = exact(method.epsilon), exact(method.delta)
    proved = ProvedNoise.least(squared, weights.width * width, epsilon, delta)
    expected, gap = expectations(weights, moments, rows, method, classes)
    facts = Facts(
        classes=classes,
        label_range=None if classes is not None else method.label_range,
        epsilon=repr(method.epsilon),
        delta=repr(method.delta),
        sigma=proved.sigma,
        longest=lengths.longest,
        squared_sensitivity=squared,
        floor=weights.floor,
        scale=weights.scale,
        rows=rows.count,
        users=rows.users,
        rows_sha256=lengths.sha256,
        expected_error=expected,
        gap=gap,
        label=label,
    )
    none = np.zeros((weights.width, width), np.int64)
    return Release(none, weights.columns, weights.metric, facts)


def expectations(
    weights: Weights,
    moments: RowMoments,
    rows: PublicRows,
    method: OneRelease,
    classes: tuple[int | str, ...] | None,
) -> tuple[float, float]:
    """The stated facts of a release's weights beside the privacy: ``expected_error`` and ``gap``.

    Raises ValueError for weights that no plan has.
    """
    noise, prior = _expected_noise(rows, method, classes), _prior(rows, classes)
    return certified(moments, rows.units, prior[weights.columns], noise)


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


def _expectation(rows: PublicRows, classes: tuple[int | str, ...] | None) -> Expectation:
    return NUMBERS if classes is None and not rows.paired else CLASSES


def _prior(rows: PublicRows, classes: tuple[int | str, ...] | None) -> Float64[np.ndarray, " p+1"]:
    relative = with_constant(rows.spectrum, rows.vectors.shape[1])
    variance = 1.0 if rows.paired else target_variance(classes)
    found = prior_variances(relative, variance, _expectation(rows, classes).power)
    if rows.paired:
        found[0] = _NOTHING
    return found


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


# Verifies a release from its file and the features, without the run that made it.

_ALIKE = 1e-2


class ReleaseCheck(NamedTuple):
    """A claim in words, and whether it holds."""

    ok: bool
    words: str


def checks(
    release: Release,
    rows: PublicRows,
    method: OneRelease,
    classes: tuple[int | str, ...] | None,
    label: str,
) -> Iterator[ReleaseCheck]:
    """All checks of the promise of a release.

    No file can prove that the sum was taken over these rows and that the noise was drawn as stated.
    """
    facts = release.facts
    epsilon, delta = Fraction(facts.epsilon), Fraction(facts.delta)
    first, *others = promise_checks(facts, method, classes, label)
    yield from (first, *others)
    yield ReleaseCheck(
        facts.users == rows.users,
        "each label is protected on its own, as in the config"
        if rows.users is None
        else "all labels of a user are protected together, as in the config",
    )
    if release.columns[-1] > rows.vectors.shape[1]:
        yield ReleaseCheck(False, "the weights are for other features")
        return
    moving = "a replaced label moves" if rows.users is None else "all labels of a user move"
    with np.errstate(all="ignore"):
        found = rows.sums(release.weights)
    yield ReleaseCheck(
        facts.rows == rows.count and found.lengths.sha256 == facts.rows_sha256,
        f"the features give the integer rows of the release ({facts.rows:,} rows)",
    )
    yield ReleaseCheck(
        found.lengths.longest <= facts.longest,
        f"{moving} the sum by at most √{facts.squared_sensitivity:,}, measured on the integers",
    )
    proved = release.noise.proved_delta(epsilon)
    yield ReleaseCheck(
        proved <= delta,
        f"discrete Gaussian noise of scale {facts.sigma:,} gives δ ≤ {at_most(proved, 3)} at "
        f"ε = {float(epsilon)!r}, proved in rationals",
    )
    if first.ok:
        yield ReleaseCheck(
            _as_stated(release, found.moments, rows, method),
            f"the expected error and the gap to the best noise shape, at most "
            f"{percent_at_most(facts.gap)}, are those of the weights",
        )


def promise_checks(
    facts: Any,
    method: OneRelease | StagedRelease,
    classes: tuple[int | str, ...] | None,
    label: str,
) -> Iterator[ReleaseCheck]:
    """Whether the facts of a release are those of the config: first ε and δ, then the labels."""
    epsilon, delta = Fraction(facts.epsilon), Fraction(facts.delta)
    yield ReleaseCheck(
        (epsilon, delta) == (exact(method.epsilon), exact(method.delta)),
        f"ε = {float(epsilon)!r} and δ = {float(delta)!r} are those of the config",
    )
    ends = None if method.label_range is None else tuple(method.label_range)
    yield ReleaseCheck(
        facts.classes == classes and (facts.label_range == ends or classes is not None),
        "the classes or the range of the labels are those of the config",
    )
    yield ReleaseCheck(facts.label == label, f"the label column is that of the config, {label!r}")


def _as_stated(release: Release, moments: RowMoments, rows: PublicRows, method: OneRelease) -> bool:
    """Floats of another processor differ in their last digits."""
    facts = release.facts
    try:
        with np.errstate(all="ignore"):
            expected, gap = expectations(release.weights, moments, rows, method, facts.classes)
    except ValueError:  # of linear algebra
        return False
    return math.isclose(expected, facts.expected_error, rel_tol=_ALIKE) and math.isclose(
        1 + gap, 1 + facts.gap, rel_tol=_ALIKE
    )


# From a release and public vectors to a linear model. No label is needed: anyone can do it.


def fitted_release(
    release: Release, rows: PublicRows, head: Head
) -> tuple[Float32[np.ndarray, "p k"], Float32[np.ndarray, " k"]]:
    """Weights of the vectors' columns and biases: logits, numbers, or logarithms of means."""
    sums = _sums(release, rows)
    solved = fitted(sums, head)
    full = np.zeros((rows.vectors.shape[1] + 1, solved.shape[1]))
    full[release.columns] = solved
    return full[1:].astype(np.float32), full[0].astype(np.float32)


def _sums(release: Release, rows: PublicRows) -> Sums:
    weights, facts = release.weights, release.facts
    found, every = rows.moments(weights), rows.count / len(rows.vectors)
    variance, classes = target_variance(facts.classes), facts.classes is not None
    statistic, noise = label_units(release, found.total)
    if rows.paired:  # what is said of 1 and −1 is said of two classes, whose entries add up to 1
        variance, classes = 1 / 4, True
        statistic = (found.total[:, None] + statistic * np.array([1.0, -1.0])) / 2
        noise, base = noise / 2**0.5, np.full(2, 1 / 2)
    elif classes:
        base = np.full(statistic.shape[1], 1 / statistic.shape[1])
    else:
        assert facts.label_range is not None
        low, high = facts.label_range
        variance, base = variance * ((high - low) / 2) ** 2, np.full(1, (low + high) / 2)
    return Sums(
        statistic=statistic,
        cross=found.cross,
        total=found.total,
        noise=noise**2 * np.eye(weights.width),
        residual=variance * found.gram,
        unexplained=1 - SIGNAL_SHARE,
        spectrum=with_constant(rows.spectrum, rows.vectors.shape[1])[weights.columns],
        groups=of_groups(rows.groups, rows.vectors.shape[1])[weights.columns],
        metric=weights.metric.astype(np.float64),
        constant=bool(weights.columns[0] == 0),
        variance=variance,
        base=base,
        scales=np.ones(len(base)),
        classes=classes,
        used=lambda: weights.used(rows.vectors),
        factors=lambda: weights.factors(rows) * np.float32(every),
        every=every,
    )


def label_units(
    release: Release, total: Float64[np.ndarray, " d"]
) -> tuple[Float64[np.ndarray, "d k"], float]:
    """The statistic Σ q ⊗ t(y) [d, k] of labels or one-hot labels, and the deviation of its noise.

    ``total`` is Σ q, in units of ``Weights.unit``.
    """
    facts, unit = release.facts, release.weights.unit
    noise, statistic = facts.sigma / unit, release.statistic / unit
    if facts.classes is not None:
        # the entries of a one-hot label have the sum 1, so the row sums are public
        return statistic - (statistic.sum(axis=1) - total)[:, None] / statistic.shape[1], noise
    assert facts.label_range is not None
    low, high = facts.label_range
    middle, half = (low + high) / 2, (high - low) / 2
    # from steps around the middle to labels
    return statistic / STEPS * half + middle * total[:, None], noise / STEPS * half
