"""A margin of error holds for every file, also where few outputs are rare and large."""

import random
from fractions import Fraction

import numpy as np
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.analysis.probabilities import matrix
from labeldp_verify.forms import AdditiveRandomizer, IntegerDomain, TableRandomizer
from scipy.stats import binom

from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from verifier.tests.files import file_of

NORMAL = 1.959964
RARE = 10  # of 2^16 words


def rare_file(rare):
    """Labels 0 and 1: the output −1, and, ``rare`` of 2^16 times or twice that, a large one."""
    words = 1 << 16
    table = TableRandomizer(
        16, ((words - rare, rare), (words - 2 * rare, 2 * rare)), (-1.0, words / rare - 1)
    )
    model = file_of(IntegerDomain(0, 1), table, Fraction(7, 10), "squared", weights=[10**6, 1])
    report = check_bytes(model)
    assert report.ok, report.checks[-1]
    return report.artifact.only


def coverage(margin, rows, ones, rare):
    """Exactly: of ``rows`` labels, ``ones`` of them 1, by the number of large outputs."""
    first = binom.pmf(np.arange(rows - ones + 1), rows - ones, rare)
    second = binom.pmf(np.arange(ones + 1), ones, 2 * rare)
    counts = np.convolve(first, second)
    private = np.arange(len(counts)) / rare / rows - 1
    return counts[np.abs(private - ones / rows) <= margin].sum()


@pytest.mark.parametrize("rows", [20, 1_000, 5_000, 20_000])
def test_a_file_with_rare_outputs_keeps_its_margin(rows):
    decoded, rare = rare_file(RARE), RARE / (1 << 16)
    use = decoded.usefulness
    assert use.unbiased
    for ones in (0, rows // 10, rows // 2, rows):
        assert coverage(use.margin(rows), rows, ones, rare) >= 0.95
    assert coverage(use.margin_under_prior(rows), rows, 0, rare) >= 0.95
    if rows == 1_000:  # what 1.96 standard errors would say
        deviation = np.sqrt((1 - rare) / rare / rows)
        assert coverage(NORMAL * deviation, rows, 0, rare) < 0.86


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_margin_holds_for_random_tables_and_labels(seed):
    """The distribution of a sum of 40 labels, by convolution over outputs that are whole."""
    generator = random.Random(seed)
    outputs = sorted(generator.sample(range(-30, 60), 3))
    words, k = 1 << 12, 2
    rows = []
    for _ in range(k):
        cuts = sorted(generator.sample(range(1, words), 2))
        rows.append((cuts[0], cuts[1] - cuts[0], words - cuts[1]))
    table = TableRandomizer(12, tuple(rows), tuple(float(v) for v in outputs))
    report = check_bytes(file_of(IntegerDomain(0, 1), table, Fraction(20)))
    assert report.ok, report.checks[-1]
    use = report.artifact.only.usefulness
    if use.noise is None:
        return
    weights = weights_of(matrix(table, range(k)))
    n, unit = 40, 1e-3 * np.ptp(weights)  # of the lattice on which the weights are laid
    steps = np.rint(weights / unit).astype(int)
    for ones in (0, 7, 20, 40):
        law, low = np.ones(1), 0
        for label, count in ((0, n - ones), (1, ones)):
            one = np.zeros(steps.max() - steps.min() + 1)
            for step, probability in zip(steps, matrix(table, [label])[0], strict=True):
                one[step - steps.min()] += probability
            for _ in range(count):
                law = convolved(law, one)
                low += steps.min()
        estimates = (np.arange(len(law)) + low) * unit / n
        held = law[np.abs(estimates - ones / n) <= use.margin(n) + unit].sum()
        assert held >= 0.95


def weights_of(table):
    """Of least variance with P·v = (0, 1), as the figures take them."""
    scaled = table / table.mean(axis=0)
    inverse = np.linalg.solve(scaled @ table.T, scaled).T
    return inverse @ np.array([0.0, 1.0])


def convolved(first, second):
    size = len(first) + len(second) - 1
    product = np.fft.irfft(np.fft.rfft(first, size) * np.fft.rfft(second, size), size)
    return np.maximum(product, 0)


@pytest.mark.parametrize("mechanism", ["laplace", "staircase"])
def test_noise_that_is_added_has_the_moments_and_the_tail_that_are_taken(mechanism):
    model = compile_text(INTEGER_SPEC.replace("rr_on_bins", mechanism)).model
    decoded = check_bytes(model).verified().only
    r, use = decoded.randomizer, decoded.usefulness
    assert isinstance(r, AdditiveRandomizer) and use.unbiased and use.noise.tail
    values = (r.low + np.arange(r.outputs)) * r.unit + r.origin
    for label in (0, 5, 9):
        probabilities, noise = matrix(r, [label])[0], values - label
        third = float(probabilities @ np.abs(noise) ** 3 / (probabilities @ noise**2))
        assert 0.99 * use.noise.third < third <= use.noise.third * (1 + 1e-9)
        assert np.abs(noise).max() <= use.noise.reach
        for rate, psi in use.noise.tail[::8]:
            for sign in (-1, 1):
                grown = np.log1p(probabilities @ np.expm1(sign * rate * noise))
                assert grown <= psi * (1 + 1e-6) + 1e-12
