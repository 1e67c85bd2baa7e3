"""Privacy of a small release by enumeration: every table, every neighbour, the noise itself."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from labeldp_trainer.discrete_gaussian.noise import ProvedNoise, rounding_distance
from labeldp_trainer.one_release import rows as lattice
from labeldp_trainer.one_release.rows import (
    Targets,
    Weights,
    label_steps,
    squared_sensitivity,
)

from trainer.tests.one_release.release_helpers import rows

EPSILONS = ("0.01", "0.2", "1", "3")
VECTORS = np.array([[0.3], [-1.2], [2.0], [0.9], [-0.1]], np.float32)


def noise(sigma):
    """[2m + 1] probabilities of discrete Gaussian noise from −m to m; beyond lies < 1e-16."""
    k = np.arange(-9 * sigma, 9 * sigma + 1, dtype=np.float64)
    weights = np.exp(-np.square(k) / (2 * sigma**2))
    return weights / weights.sum()


def along(shift, sigma):
    """Values of ⟨noise, shift⟩ of independent noise on each coordinate, and their probabilities."""
    total = np.ones(1)
    for step in (abs(int(s)) for s in shift if s):
        one = noise(sigma)
        stretched = np.zeros((len(one) - 1) * step + 1)
        stretched[::step] = one
        size = len(total) + len(stretched) - 1
        total = np.fft.irfft(np.fft.rfft(total, size) * np.fft.rfft(stretched, size), size)
    reach = len(total) // 2
    return np.arange(-reach, reach + 1), np.maximum(total, 0)


def hockey_sticks(shift, sigma, epsilons):
    """δ(ε) of noise against noise + shift: Pr[x − shift]/Pr[x] depends on ⟨x, shift⟩ alone."""
    value, probability = along(shift, sigma)
    log_ratio = (2 * value - int(np.square(shift).sum())) / (2 * sigma**2)
    losses = (np.maximum(-np.expm1(epsilon + log_ratio), 0) for epsilon in epsilons)
    return [float((probability * loss).sum()) for loss in losses]


def grid_hockey_stick(shift, sigma, epsilon):
    """The same of two coordinates, point by point of the plane."""
    one = noise(sigma)
    here = one[:, None] * one[None, :]
    there = np.zeros_like(here)
    a, b = shift
    there[a:, b:] = here[: len(one) - a, : len(one) - b]
    return float(np.maximum(here - np.exp(epsilon) * there, 0).sum())


def shifts(sums):
    """All differences of the statistics of neighbours, up to their sign and order."""
    found = set()
    for one, other in sums:
        moved = np.abs((one - other).ravel())
        found.add(tuple(sorted(moved[moved > 0].tolist())))
    return found - {()}


def require(found, squared, sigma, coordinates):
    """No neighbour is told apart better than stated; the one furthest away as well as stated of it,
    but for what rounding is given.
    """
    furthest = max(int(np.square(shift).sum()) for shift in found)
    assert furthest <= squared
    deltas = [hockey_sticks(np.array(s), sigma, map(float, EPSILONS)) for s in found]
    for text, worst in zip(EPSILONS, np.max(deltas, axis=0), strict=True):
        stated = float(ProvedNoise(squared, sigma, coordinates).proved_delta(Fraction(text)))
        assert worst <= stated + 1e-12
        rounding = (1 + math.exp(float(text))) * float(rounding_distance(sigma, coordinates))
        assert (
            worst
            >= float(ProvedNoise(furthest, sigma, coordinates).proved_delta(Fraction(text)))
            - 2 * rounding
        )
        assert worst > 0.1 or text != "0.01"


def neighbours(count, values, groups):
    """Pairs of labelings that differ in one group of rows only, in any way."""
    for labels in itertools.product(values, repeat=count):
        for group in groups:
            for others in itertools.product(values, repeat=len(group)):
                changed = list(labels)
                for row, value in zip(group, others, strict=True):
                    changed[row] = value
                if tuple(changed) > labels:
                    yield labels, tuple(changed)


@pytest.fixture
def few_steps(monkeypatch):
    monkeypatch.setattr(lattice, "STEPS", 4)


WEIGHTS = Weights(np.array([0, 1]), np.array([1.0, 0.6], np.float32), 1.1, 40.0)
SHORT = dataclasses.replace(WEIGHTS, scale=8.0)  # for labels of several steps


@pytest.mark.parametrize("sigma", [64, pytest.param(90, marks=pytest.mark.slow)])
def test_classes(sigma):
    longest = rows(VECTORS).sums(WEIGHTS).lengths.longest

    def statistic(labels):
        return rows(VECTORS).sums(WEIGHTS, Targets(3, np.array(labels, np.int32))).labels

    known = {}
    pairs = neighbours(5, range(3), [(i,) for i in range(5)])
    sums = [tuple(known.setdefault(y, statistic(y)) for y in pair) for pair in pairs]
    assert len(sums) == 5 * 3**4 * 3  # rows, other labels, unordered pairs
    require(shifts(sums), squared_sensitivity(longest, classes=True), sigma, 6)


@pytest.mark.slow
def test_numbers(few_steps):
    values, longest = (
        (-3.0, -1.2, 0.4, 2.0),
        rows(VECTORS).sums(SHORT).lengths.longest,
    )

    def statistic(labels):
        return (
            rows(VECTORS)
            .sums(SHORT, Targets(None, label_steps(np.array(labels), -1, 2, None)))
            .labels
        )

    known = {}
    pairs = neighbours(5, values, [(i,) for i in range(5)])
    sums = [tuple(known.setdefault(y, statistic(y)) for y in pair) for pair in pairs]
    squared = squared_sensitivity(longest, classes=False)
    assert squared == longest * (2 * 4) ** 2
    require(shifts(sums), squared, 64, 2)


@pytest.mark.parametrize("classes", [True, False])
def test_all_labels_of_a_user(few_steps, classes):
    owners = np.array([0, 1, 0, 1, 2])
    table = rows(VECTORS, owners)
    groups = [tuple(np.flatnonzero(owners == user).tolist()) for user in range(3)]
    weights = WEIGHTS if classes else SHORT
    longest = table.sums(weights).lengths.longest

    def statistic(labels):
        if classes:
            return table.sums(weights, Targets(3, np.array(labels, np.int32))).labels
        return table.sums(weights, Targets(None, label_steps(np.array(labels), 0, 2, None))).labels

    known = {}
    sums = [
        tuple(known.setdefault(y, statistic(y)) for y in pair)
        for pair in neighbours(5, (0, 1, 2), groups)
    ]
    squared = squared_sensitivity(longest, classes=classes)
    require(shifts(sums), squared, 64, 6 if classes else 2)


@pytest.mark.parametrize("shift", [(40, 9), (31, 31), (0, 5)])
def test_one_direction_tells_as_much_as_the_plane(shift):
    for epsilon in (0.01, 0.3):
        whole = grid_hockey_stick(shift, 64, epsilon)
        assert hockey_sticks(np.array(shift), 64, [epsilon])[0] == pytest.approx(whole, abs=1e-12)


def test_less_noise_than_stated_would_be_seen():
    """Enumeration finds a scale that is a thousandth too small for the stated δ."""
    shift = np.array([40, 40])
    for text in ("0.2", "1"):
        stated = float(
            ProvedNoise(int(np.square(shift).sum()), 128, 2).proved_delta(Fraction(text))
        )
        assert hockey_sticks(shift, 128, [float(text)])[0] <= stated
        assert hockey_sticks(shift, 127, [float(text)])[0] > stated
