"""Verifying a release from the file and the features, without any state of the run that made it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from labeldp_verify.rounded import percent_at_most

from labeldp_trainer.config import OneRelease
from labeldp_trainer.one_release.lattice import lengths
from labeldp_trainer.one_release.make import PublicRows, expectations
from labeldp_trainer.one_release.release import Release
from labeldp_trainer.randomize import exact

_ALIKE = 1e-2


class ReleaseCheck(NamedTuple):
    """One claim: whether it holds, and in words."""

    ok: bool
    words: str


def checks(
    release: Release,
    rows: PublicRows,
    method: OneRelease,
    classes: tuple[int | str, ...] | None,
    label: str,
) -> Iterator[ReleaseCheck]:
    """Everything that the promise of a release rests on, one after the other.

    That the sum was taken over these rows, and the noise drawn as stated, no file can prove.
    """
    epsilon, delta = Fraction(release.epsilon), Fraction(release.delta)
    same = (epsilon, delta) == (exact(method.epsilon), exact(method.delta))
    yield ReleaseCheck(
        same, f"ε = {float(epsilon)!r} and δ = {float(delta)!r} are those of the config"
    )
    ends = None if method.label_range is None else tuple(method.label_range)
    yield ReleaseCheck(
        release.classes == classes and (release.label_range == ends or classes is not None),
        "classes or range of the labels are those of the config",
    )
    if release.label is not None:  # files of earlier versions do not say
        yield ReleaseCheck(
            release.label == label, f"the label column is that of the config, {label!r}"
        )
    yield ReleaseCheck(
        release.users == rows.users,
        "each label is protected on its own, as in the config"
        if rows.users is None
        else "all labels of a user are protected together, as in the config",
    )
    yield ReleaseCheck(
        release.rows == len(rows.vectors) and release.vectors_sha256 == rows.sha256,
        f"the features are those of the release ({release.rows:,} rows)",
    )
    if not _readable(release, rows):
        yield ReleaseCheck(False, "the weights are for other features")
        return
    found = lengths(release.weights, rows.vectors, rows.owners, rows.shares)
    yield ReleaseCheck(
        found.sha256 == release.rows_sha256, "the integer rows are those of the release"
    )
    yield ReleaseCheck(
        found.longest <= release.longest,
        f"a replaced label moves the sum by at most √{release.squared_sensitivity:,}, measured on "
        "the integers",
    )
    proved = release.proved_delta()
    yield ReleaseCheck(
        proved <= delta,
        f"discrete Gaussian noise of scale {release.sigma:,} gives δ ≤ {_up(proved)} at "
        f"ε = {float(epsilon)!r}, proved in rationals",
    )
    if same:
        yield ReleaseCheck(
            _as_stated(release, rows, method),
            f"the expected error and the gap to the best noise shape, at most "
            f"{percent_at_most(release.gap)}, are those of the weights",
        )


def _as_stated(release: Release, rows: PublicRows, method: OneRelease) -> bool:
    """Floats of another processor differ in their last digits."""
    try:
        with np.errstate(all="ignore"):
            expected, gap = expectations(release, rows, method)
    except ValueError:  # of linear algebra
        return False
    return math.isclose(expected, release.expected, rel_tol=_ALIKE) and math.isclose(
        1 + gap, 1 + release.gap, rel_tol=_ALIKE
    )


def _readable(release: Release, rows: PublicRows) -> bool:
    return bool(release.weights.columns[-1] <= rows.vectors.shape[1])


def _up(value: Fraction) -> str:
    """Three digits, rounded up, of a number of at most 1."""
    if value == 0:
        return "0"
    exponent = 0
    while value < 1:
        value, exponent = value * 10, exponent - 1
    digits = math.ceil(value * 100)
    if digits == 1000:
        digits, exponent = 100, exponent + 1
    return f"{digits // 100}.{digits % 100:02d}e{exponent:+03d}"
