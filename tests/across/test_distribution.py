"""The running artifact draws from the certified distribution, and its draws are independent."""

import numpy as np
import pytest
from labeldp_runtime import Randomizer
from labeldp_verify.analysis.probabilities import matrix
from scipy.stats import chi2

from tests.fixtures.compiled import compile_text
from tests.fixtures.specs import spec

MECHANISMS = [
    "randomized_response",
    "rr_with_prior",
    "rr_top_k, k: 3",
    "rr_on_bins",
    "optimal_unbiased",
    "debiased_rr",
    "laplace",
    "laplace, clip: true, lattice: 0.5",
    "staircase, clip: true",
    "exponential",
]
DRAWS = 20_000


def artifact_of(mechanism, epsilon):
    weights = [9, 8, 0, 6, 5, 4, 1]
    return compile_text(spec(weights=weights, mechanism=f"{{kind: {mechanism}}}", epsilon=epsilon))


# Of a correct randomizer failing one of the 143 tests; where cells are expected 50 times the
# statistic exceeds it more often than chi-square does, by a factor below a thousand.
RARE = 1e-13
OFTEN = 50


def too_large(statistic, degrees):
    return degrees > 0 and chi2.sf(statistic, degrees) < RARE


@pytest.mark.parametrize("epsilon", ["0.5", "3"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_chi_square_of_every_label(mechanism, epsilon):
    artifact = artifact_of(mechanism, epsilon)
    randomizer = Randomizer(artifact.model)
    exact = artifact.randomizer
    if exact.form == "additive":
        values = [exact.value(t) for t in range(exact.low, exact.high + 1)]
    else:
        values = [float(v) for v in exact.values]
    index = {value: i for i, value in enumerate(values)}
    expected = np.asarray(matrix(exact, range(7)), dtype=float) * DRAWS
    for label in range(7):
        drawn = randomizer(np.full(DRAWS, label))
        seen = np.bincount([index[v] for v in drawn.tolist()], minlength=len(values))
        often = expected[label] >= OFTEN
        got, wanted = seen[often], expected[label][often]
        got, wanted = [*got, seen[~often].sum()], [*wanted, expected[label][~often].sum()]
        cells = [(g, w) for g, w in zip(got, wanted, strict=True) if w >= OFTEN]
        statistic = sum((g - w) ** 2 / w for g, w in cells)
        assert not too_large(statistic, len(cells) - 1), label


@pytest.mark.parametrize("distance", ["next row", "next batch", "other column"])
def test_outputs_are_independent(distance):
    # A contingency table of two outputs that would be equal if words were shared.
    artifact = artifact_of("randomized_response", "0.5")
    randomizer = Randomizer(artifact.model)
    labels = np.full(DRAWS, 3)
    if distance == "next row":
        drawn = randomizer(np.full(2 * DRAWS, 3))
        first, second = drawn[::2], drawn[1::2]
    elif distance == "next batch":
        first, second = randomizer(labels), randomizer(labels)
    else:
        first, second = randomizer(labels), Randomizer(artifact.model)(np.full(DRAWS, 0))
    table = np.zeros((7, 7))
    np.add.at(table, (first.astype(int), second.astype(int)), 1)
    wanted = np.outer(table.sum(axis=1), table.sum(axis=0)) / DRAWS
    assert not too_large(((table - wanted) ** 2 / wanted).sum(), 36)
