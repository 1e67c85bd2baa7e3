"""What several parts spend together, against the curve of Gaussian differential privacy."""

import dataclasses
import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from labeldp_trainer.discrete_gaussian.noise import (
    ProvedNoise,
    composed_delta,
    greatest_ratio,
    rounding_distance,
    squared_ratio,
)
from labeldp_trainer.staged_release import plan
from labeldp_trainer.staged_release.plan import KINDS, BudgetPlan, histogram_sensitivity

from trainer.tests.staged_release.staged_helpers import ENDS, own_noise, table

EPSILONS = ("0.01", "0.3", "1", "4", "12")
SIZE = 1 << 24


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(60):
        yield


def gaussian_curve(squared, epsilon):
    """δ(ε) of μ-GDP, μ² = ``squared`` (Dong, Roth and Su 2022, Corollary 1)."""
    mu, e = mpmath.sqrt(squared), mpmath.mpf(epsilon.numerator) / epsilon.denominator
    below = mpmath.ncdf(-e / mu - mu / 2)
    return mpmath.ncdf(-e / mu + mu / 2) - mpmath.exp(e) * below


def real(x):
    return mpmath.mpf(x.numerator) / x.denominator


def some_releases(seed):
    random = np.random.default_rng(seed)
    found = []
    for _ in range(random.integers(1, 8)):
        moved = int(random.integers(1, 1 << 50))
        scale = 10.0 ** random.uniform(-1, 1.5)
        found.append(
            ProvedNoise(moved, max(int(moved**0.5 * scale), 64), int(random.integers(1, 600)))
        )
    return found


@pytest.mark.parametrize("text", EPSILONS)
def test_what_is_proved_is_never_below_the_curve_and_close_to_it(text):
    epsilon = Fraction(text)
    for seed in range(40):
        releases = some_releases(seed)
        exact = gaussian_curve(real(squared_ratio(releases)), epsilon)
        distance = sum(rounding_distance(r.sigma, r.coordinates) for r in releases)
        proved = real(composed_delta(releases, epsilon))
        assert proved >= min(exact, 1)
        assert proved <= exact + (1 + mpmath.exp(real(epsilon))) * real(distance) + 1e-25


@pytest.mark.parametrize("text", EPSILONS)
def test_several_spend_as_much_as_one_of_the_same_squared_ratio(text):
    epsilon = Fraction(text)
    one = ProvedNoise(2 * SIZE**2, 3 * SIZE, 40)
    assert composed_delta([one], epsilon) == one.proved_delta(epsilon)
    parts = [ProvedNoise(2 * SIZE**2, 6 * SIZE, 10)] * 4
    assert squared_ratio(parts) == squared_ratio([one])
    far = 2 * (1 + mpmath.exp(real(epsilon))) * real(rounding_distance(SIZE, 40))
    assert abs(composed_delta(parts, epsilon) - composed_delta([one], epsilon)) <= far


def test_a_budget_is_what_is_proved_of_less():
    epsilon = Fraction(1)
    one = ProvedNoise(2 * SIZE**2, 6 * SIZE, 10)
    budget = 4 * squared_ratio([one])
    proved = [composed_delta([one] * k, epsilon, budget) for k in (1, 2, 3, 4)]
    assert proved == sorted(proved)
    assert proved[0] > composed_delta([one] * 3, epsilon)
    assert proved[3] == composed_delta([one] * 4, epsilon)
    assert composed_delta([one] * 5, epsilon, budget) == composed_delta([one] * 5, epsilon)


def test_nothing_is_proved_of_a_scale_that_is_too_small():
    good, bad = ProvedNoise(1, 1000, 1), ProvedNoise(1, 63, 1)
    for order in itertools.permutations([good, good, bad]):
        assert composed_delta(order, Fraction(1)) == 1
    assert composed_delta([good], Fraction(1)) < 1
    assert composed_delta([], Fraction(1)) == 0


@pytest.mark.parametrize(
    ("epsilon", "stated"),
    [
        ("0.001", "1e-5"),
        ("0.1", "1e-6"),
        ("1", "1e-5"),
        ("1", "0.01"),
        ("4", "1e-9"),
        ("20", "0.1"),
    ],
)
def test_the_greatest_ratio_is_found_to_a_millionth(epsilon, stated):
    epsilon, stated = Fraction(epsilon), Fraction(stated)
    found = greatest_ratio(epsilon, stated)
    most = real(stated) * mpmath.mpf("0.95")
    assert gaussian_curve(real(found), epsilon) <= most
    assert gaussian_curve(real(found) * mpmath.mpf("1.000001"), epsilon) > most


@pytest.mark.parametrize("classes", [True, False])
@pytest.mark.parametrize("text", ["0.1", "1", "4"])
def test_the_parts_of_a_plan_spend_it_all_and_no_more(classes, text):
    epsilon, stated = Fraction(text), Fraction("1e-5")
    plan = BudgetPlan.of(epsilon, stated, classes=classes)
    assert sum(share for _, share in KINDS[classes]) == 1
    random = np.random.default_rng(0)
    for _ in range(20):
        moved = [int(m) for m in random.integers(1 << 45, 1 << 50, len(plan.parts))]
        noises = [ProvedNoise(m, plan.sigma(i, m), 64) for i, m in enumerate(moved)]
        assert plan.ratio * (1 - Fraction(1, 10**5)) <= squared_ratio(noises) <= plan.ratio
        for noise, (_, share) in zip(noises, plan.parts, strict=True):
            assert squared_ratio([noise]) <= share * plan.ratio
        for count in range(len(noises) + 1):
            assert plan.proved_delta(noises[:count], epsilon) <= stated
        less = [noise._replace(sigma=noise.sigma * 999 // 1000) for noise in noises]
        assert plan.proved_delta(less, epsilon) == 1
        many = [noise._replace(coordinates=1 << 50) for noise in noises]
        assert stated < plan.proved_delta(many, epsilon)


def test_a_history_that_spends_less_may_not_be_farther_from_continuous_noise():
    """The distance has one bound for all histories, as Theorem 18 (c) needs."""
    epsilon, stated = Fraction(1), Fraction("1e-5")
    plan = BudgetPlan.of(epsilon, stated, classes=True)
    moved = histogram_sensitivity(1)
    sigma = plan.sigma(0, moved)
    far = 45 * sigma**2 * stated / (1 + Fraction(2719, 1000))  # coordinates for all of δ
    near, between = (ProvedNoise(moved, sigma, int(far * share)) for share in (1e-4, 0.5))
    assert plan.proved_delta([near], epsilon) <= stated
    assert composed_delta([between], epsilon) <= stated < plan.proved_delta([between], epsilon)


@pytest.mark.parametrize("classes", [(0, 1), None])
def test_a_part_that_would_exceed_the_budget_is_not_drawn(classes):
    """Noise is added only if what is proved with it stays within δ; else no one sees an answer."""
    drawn = []

    def add(exact, sigma):
        drawn.append(sigma)
        return own_noise(np.random.default_rng(0))(exact, sigma)

    own = table(0, 6, classes=classes, delta=1e-2)
    labels = np.zeros(6, np.int32) if classes else np.full(6, ENDS[0])
    release = own.drawn(labels, add_noise=add)
    assert len(drawn) == len(release.parts)
    for count in range(1, len(release.parts)):
        start = own.release
        for number, part in enumerate(release.parts[:count]):
            spent = part.facts.sigma // (8 if number == count - 1 else 1)
            facts = part.facts.model_copy(update={"sigma": spent})
            start = start.with_part(dataclasses.replace(part, facts=facts))
        drawn.clear()
        with pytest.raises(ValueError, match="δ is too small"):
            own.learn(own.draws(labels, start, add_noise=add))
        assert not drawn


@pytest.mark.parametrize(("count", "most"), [(200, 1), (2000, 2)])
def test_few_rows_are_asked_about_single_columns_only(monkeypatch, count, most):
    monkeypatch.setattr(plan, "_ROWS_OF_REFINED", 500)
    own, random = table(0, count, order=2), np.random.default_rng(0)
    release = own.drawn(random.uniform(*ENDS, count), add_noise=own_noise(random))
    asked = [part.facts.terms for part in release.parts if part.facts.kind == "sums"]
    assert max(term.size for terms in asked for term in terms) == most
