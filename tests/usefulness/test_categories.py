"""Sets against other private labels; ``benchmarks/categories.py`` does it with more classes."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from labeldp_verify.analysis.share_noise import least_share_noise
from labeldp_verify.forms.exact_numbers import exp_lower

from tests.fixtures.one_hot_noise import (
    least_bit_flips,
    least_noise_of,
    least_unary,
    natural_bit_flips,
    natural_unary,
)

EPSILONS = [Fraction(x) for x in ("0.1", "1", "3", "8")]


def bit_table(k, own, other):
    """[k, 2^k] the probability of every string of bits."""
    strings = np.array(list(product((0, 1), repeat=k)))
    set_with = np.where(np.eye(k, dtype=bool), own, other)
    return np.array([np.where(strings, q, 1 - q).prod(axis=1) for q in set_with]), strings


def variance_of(table, estimate):
    """The mean trace of the covariance of the estimate [outputs, k], which is unbiased."""
    np.testing.assert_allclose(table @ estimate, np.eye(len(table)), atol=1e-9)
    return float(np.mean(table @ (estimate**2).sum(axis=1)) - 1)


@pytest.mark.parametrize("k", [2, 3, 8])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_bits_are_as_noisy_as_all_their_strings_say(k, epsilon):
    ratio, root = exp_lower(epsilon), exp_lower(epsilon / 2)
    for own, other, natural, least in (
        (root / (root + 1), 1 / (root + 1), natural_bit_flips(k, root), least_bit_flips(k, root)),
        (Fraction(1, 2), 1 / (ratio + 1), natural_unary(k, ratio), least_unary(k, ratio)),
    ):
        p, q = float(own), float(other)
        table, strings = bit_table(k, p, q)
        assert float(natural) == pytest.approx(variance_of(table, (strings - q) / (p - q)))
        assert least == pytest.approx(least_noise_of(table), rel=1e-8)
        assert least <= float(natural) * (1 + 1e-9)
        assert least >= float(least_share_noise(k, ratio)) * (1 - 1e-9)


@pytest.mark.slow
def test_the_comparison_of_few_classes():
    script = Path(__file__).parents[2] / "benchmarks" / "categories.py"
    command = [sys.executable, script, "--classes", "2", "3", "10"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split("|")[1:-1] for line in done.stdout.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + 3 * 10
    assert all(row[6].strip() == "0.00%" for row in rows[1:])
    assert "have less than ours nowhere" in done.stdout
    assert "Optimised unary, with" not in done.stdout
