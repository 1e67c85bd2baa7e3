"""Coverage of the intervals: enumerated from the binomial law for one label's share, and simulated.

Nothing is random where a count decides: the interval of every number of hits, and its probability.
"""

import numpy as np
import pytest
from labeldp_learn.estimators import LinearEstimators, OutputCounts
from labeldp_learn.inversion import Inverse, project_to_simplex
from labeldp_verify.analysis import least_variance_inverse
from scipy.stats import binom

TARGETS = ["rows", "population"]


def randomized_response(k, epsilon):
    table = np.ones((k, k)) + (np.exp(epsilon) - 1) * np.eye(k)
    table /= table.sum(axis=1, keepdims=True)
    return Inverse(table, least_variance_inverse(table))


def clipped_geometric(k, epsilon):
    """A table whose estimators have more than two values."""
    ends = np.exp(-epsilon * np.abs(np.subtract.outer(np.arange(k), np.arange(-40, k + 40))))
    table = np.concatenate(
        [ends[:, :41].sum(1)[:, None], ends[:, 41:-41], ends[:, -41:].sum(1)[:, None]], axis=1
    )
    table /= table.sum(axis=1, keepdims=True)
    return Inverse(table, least_variance_inverse(table))


def group(counts):
    outputs = np.flatnonzero(counts)
    return OutputCounts(outputs, np.asarray(counts)[outputs])


def found(estimator, counts, target):
    of_group = group(counts)
    shares = project_to_simplex(estimator.estimate(of_group))
    return estimator(of_group, target, shares)


def hits_in(n, hits, k):
    """Counts [k] with these hits of label 0, the rest spread over the others."""
    return [hits, *((n - hits + i) // (k - 1) for i in range(k - 1))]


def exact_coverage(k, epsilon, n, target):
    """[t] true shares of label 0, and the probability with which each is covered."""
    inverse = randomized_response(k, epsilon)
    a, b = inverse.table[0, :2]
    estimator, seen = LinearEstimators.shares(inverse), np.arange(n + 1)
    intervals = [found(estimator, hits_in(n, x, k), target) for x in seen]
    low, high = (np.array([getattr(h, end)[0] for h in intervals]) for end in ("low", "high"))
    truths = np.arange(n + 1) / n if target == "rows" else np.linspace(0, 1, 301)
    covered = []
    for share in truths:
        if target == "population":
            law = binom.pmf(seen, n, b + share * (a - b))
        else:
            labels = round(share * n)
            law = np.convolve(binom.pmf(seen, labels, a), binom.pmf(seen, n - labels, b))[: n + 1]
        covered.append(law[(low <= share) & (share <= high)].sum())
    return truths, np.array(covered)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("k", "epsilon", "n"),
    [
        *((10, 1, 40), (10, 4, 40), (53, 1, 40), (2, 2, 64), (53, 6, 64), (10, 4, 400)),
        pytest.param(53, 6, 400, marks=pytest.mark.slow),
    ],
)
def test_every_share_is_covered_as_often_as_promised(k, epsilon, n, target):
    truths, covered = exact_coverage(k, epsilon, n, target)
    # Every interval is exact if the number of hits cannot vary by more than 16.
    assert covered.min() >= (0.925 - 1e-4 if n <= 64 else 0.92)
    assert 0.945 <= covered.mean() <= 0.965
    # Labels that nobody has, or few, as most of many labels are.
    assert 0.93 <= covered[truths <= 0.1].mean() <= 0.975


@pytest.mark.parametrize("target", TARGETS)
def test_an_output_that_hardly_comes_is_covered_too_often_rather_than_too_rarely(target):
    # Of 40 rows, 0.09 give the output of a label that nobody has: none comes in 91.6 % of releases,
    # none or one in 99.6 %. There is nothing between.
    _, covered = exact_coverage(53, 6, 40, target)
    assert 0.995 < covered[0] < 0.997
    assert covered.min() >= 0.92


def test_either_end_misses_rarely_enough_for_quantiles():
    n, inverse = 40, randomized_response(53, 6.0)
    a, b = inverse.table[0, :2]
    estimator = LinearEstimators.shares(inverse, each_tail=True)
    hits = estimator.hits
    assert hits.of_label[0] == pytest.approx(a) and hits.of_others[0] == pytest.approx(b)
    seen = np.arange(n + 1)
    intervals = [found(estimator, hits_in(n, x, 53), "rows") for x in seen]
    low, high = (np.array([getattr(h, end)[0] for h in intervals]) for end in ("low", "high"))
    for labels in range(n + 1):
        law = np.convolve(binom.pmf(seen, labels, a), binom.pmf(seen, n - labels, b))[: n + 1]
        assert law[low > labels / n].sum() <= 0.0251
        assert law[high < labels / n].sum() <= 0.0251


def releases(inverse, labels, target, number):
    """[r, m] how often each output comes."""
    generator, table = np.random.default_rng(5), inverse.table
    if target == "population":
        return generator.multinomial(labels.sum(), labels / labels.sum() @ table, number)
    drawn = [generator.multinomial(n, row, number) for n, row in zip(labels, table, strict=True)]
    return sum(drawn)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("epsilon", [0.7, 3.0])
def test_small_groups_of_an_additive_randomizer_are_covered(epsilon, target):
    # At ε = 3 a step, single outputs decide: then too often rather than too rarely.
    inverse, labels = clipped_geometric(8, epsilon), np.array([22, 8, 4, 2, 2, 1, 1, 0])
    estimator, truth = LinearEstimators.shares(inverse), labels / labels.sum()
    intervals = [found(estimator, x, target) for x in releases(inverse, labels, target, 1000)]
    covered = [(h.low <= truth) & (truth <= h.high) for h in intervals]
    assert 0.935 <= np.mean(covered) <= (0.97 if epsilon < 1 else 0.985)
    assert np.mean(covered, axis=0).min() >= 0.915


@pytest.mark.parametrize("target", TARGETS)
def test_small_groups_have_means_that_are_covered(target):
    inverse, labels = randomized_response(30, 6.0), np.zeros(30, int)
    labels[[0, 1, 2, 5, 12, 29]] = [25, 6, 4, 3, 1, 1]
    values = np.arange(30.0)
    estimator = LinearEstimators.mean(inverse, values)
    truth, covered = labels @ values / labels.sum(), []
    for counts in releases(inverse, labels, target, 700):
        of_group = group(counts)
        shares = project_to_simplex(inverse.weights.T @ counts / counts.sum())
        mean = estimator(of_group, target, shares)
        assert mean.low[0] <= mean.value[0] <= mean.high[0]
        covered.append(mean.low[0] <= truth <= mean.high[0])
    assert 0.93 <= np.mean(covered) <= 0.98
