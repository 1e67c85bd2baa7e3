"""Verifies a release from its file and the features, without the run that made it."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from labeldp_verify.rounded import at_most, percent_at_most

from labeldp_trainer.config import OneRelease
from labeldp_trainer.config.method import StagedRelease
from labeldp_trainer.one_release.make import expectations
from labeldp_trainer.one_release.release import Release
from labeldp_trainer.one_release.rows import PublicRows
from labeldp_trainer.randomize import exact

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
    yield ReleaseCheck(
        facts.rows == len(rows.vectors) and facts.vectors_sha256 == rows.sha256,
        f"the features are those of the release ({facts.rows:,} rows)",
    )
    if release.columns[-1] > rows.vectors.shape[1]:
        yield ReleaseCheck(False, "the weights are for other features")
        return
    moving = "a replaced label moves" if rows.users is None else "all labels of a user move"
    found = release.weights.lengths(rows)
    yield ReleaseCheck(
        found.sha256 == facts.rows_sha256, "the integer rows are those of the release"
    )
    yield ReleaseCheck(
        found.longest <= facts.longest,
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
            _as_stated(release, rows, method),
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


def _as_stated(release: Release, rows: PublicRows, method: OneRelease) -> bool:
    """Floats of another processor differ in their last digits."""
    facts = release.facts
    try:
        with np.errstate(all="ignore"):
            expected, gap = expectations(release.weights, rows, method, facts.classes)
    except ValueError:  # of linear algebra
        return False
    return math.isclose(expected, facts.expected_error, rel_tol=_ALIKE) and math.isclose(
        1 + gap, 1 + facts.gap, rel_tol=_ALIKE
    )
