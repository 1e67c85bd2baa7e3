"""The randomizers of the study of rivals: their ε, and what they are special cases of."""

from fractions import Fraction

import numpy as np
import pytest

from benchmarks.training_studies.rival_randomizers import (
    IntegerTable,
    block_rr,
    rp_with_prior,
)

ONE = Fraction(1)


SKEWED = np.array([0.6, 0.25, 0.1, 0.05])


def ratio(table):
    """The largest ratio of the probabilities of an output."""
    return (table.lines.max(axis=0) / table.lines.min(axis=0)).max()


def test_block_rr_of_even_shares_is_randomized_response():
    table = block_rr(np.full(4, 0.25), ONE)
    kept = np.e / (np.e + 3)
    assert np.allclose(table.chances, np.where(np.eye(4), kept, (1 - kept) / 3), atol=1e-4)


def test_a_table_beyond_epsilon_is_refused():
    table = block_rr(SKEWED, ONE)
    assert table.keeps(ONE)
    assert not table.keeps(Fraction(1, 2))
    with pytest.raises(ValueError, match="not ε-DP"):
        IntegerTable.of(np.array([[3.0, 1.0], [1.0, 3.0]]), ONE)


def test_rp_with_prior_answers_near_the_label_most_often():
    outputs, table = rp_with_prior(np.array([0.0, 0.5, 0.3, 0.2, 0.0]), Fraction(2), 1)
    assert (outputs.min(), outputs.max()) == (0, 4)  # the interval 1 … 3, and 1 on either side
    inside = table.chances[:, np.abs(outputs - 2) <= 1].sum(axis=1)
    assert inside[2] == pytest.approx(3 * np.e**2 / (3 * np.e**2 + 2), rel=1e-3)
    assert (table.chances[0] == table.chances[1]).all()
    assert ratio(table) <= np.e**2
