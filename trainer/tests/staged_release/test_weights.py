"""Weights of rows: what is learned is a weighted mean, and rows are measured with their weights."""

import dataclasses

import numpy as np
import pytest
from labeldp_trainer.errors import DataError
from labeldp_trainer.interactions.terms import Terms
from labeldp_trainer.one_release.rows import RowOwners
from labeldp_trainer.staged_release.check import checks
from labeldp_trainer.staged_release.draw import Draws, LabelColumn

from trainer.tests.staged_release.staged_helpers import ENDS, own_noise, table

ROWS = 6000
HEAVY = np.arange(ROWS) % 2 == 0
WEIGHTS = np.where(HEAVY, 450.0, 50.0).astype(np.float32)
"""In any unit: half of the rows, which no column tells from the others, have 90% of the weight."""


def released(mean, noise):
    """The table, the release, and the error of its predictions of the weighted mean."""
    own = table(5, ROWS, epsilon=8.0, weights=WEIGHTS)
    x = own.public.features["numeric"][:, 0].astype(float)
    random = np.random.default_rng(0)
    y = np.where(HEAVY, mean(x, True), mean(x, False)) + noise * random.normal(size=ROWS)
    draws = own.draws(np.clip(y, *ENDS), add_noise=own_noise(random))
    fit = own.learn(draws)
    weights, base = fit.raw()
    predicted = fit.terms.weighted(weights[:, 0]) + base[0]
    predicted = predicted if fit.curve is None else fit.curve.over(predicted)
    true = 0.9 * mean(x, True) + 0.1 * mean(x, False)
    return own, draws.release, np.square(predicted - true).mean() / true.var()


SLOPES = (lambda x, heavy: 0.5 + (0.3 if heavy else -0.3) * x, 0.1)
FACTORS = (lambda x, heavy: ENDS[0] + (0.6 if heavy else 0.2) * np.exp(0.4 * x), 0.0)


@pytest.mark.parametrize(("labels", "curved"), [(SLOPES, False), (FACTORS, True)])
def test_a_release_comes_near_the_weighted_mean(labels, curved):
    """On a power of the label, too, whose curve leads back to means."""
    _, release, error = released(*labels)
    assert (release.parts[-2].facts.power < 1) == curved and error < 0.1


def test_integer_rows_are_as_long_as_their_weights_and_others_are_refused():
    own, release, _ = released(*SLOPES)
    public = own.public
    for part in (each for each in release.parts if each.facts.kind == "sums"):
        asked = part.question(ENDS)
        terms = Terms(release.columns, public.codes, asked.terms)
        weighted, alike = (
            np.concatenate([np.square(q).sum(axis=1) for _, q in asked.integer_rows(terms, shares)])
            for shares in (public.rows.relative, np.ones(ROWS))
        )
        assert part.facts.longest == weighted.max()
        assert np.allclose(weighted**0.5, alike**0.5 * WEIGHTS / 450, rtol=1e-4)
    heavier = WEIGHTS.copy()
    heavier[1] *= 1.01
    for other, refused in ((3 * WEIGHTS, False), (heavier, True), (None, True)):
        rows = RowOwners(count=ROWS, weights=other)
        found = checks(release, own.method, dataclasses.replace(public, rows=rows), None, "y")
        words = [check.words for check in found if not check.ok]
        assert bool(words) == refused and all("measured on its integer rows" in w for w in words)


def test_rows_of_a_user_are_expected_at_right_angles():
    weights, owners = np.float32([1, 2, 4, 4]), np.array([0, 0, 0, 1])
    rows = RowOwners(count=4, owners=owners, weights=weights)
    assert rows.usual_length == pytest.approx(((0.25 + 0.5 + 1) / 3**0.5 + 1) / 4)
    assert rows.sample(2).usual_length == pytest.approx((0.25 + 1) / 2 / 2**0.5)


def test_a_user_with_more_rows_than_were_counted_ends_a_release():
    """Files may change between the jobs that count and that sum."""
    own = table(5, 60, owners=np.arange(60) // 3)
    users = own.public.rows.users.model_copy(update={"most_rows": 2})
    public = dataclasses.replace(own.public, rows=dataclasses.replace(own.public.rows, users=users))
    draws = Draws(own.release, public, LabelColumn(np.zeros(60)), lambda grown: None)
    with pytest.raises(DataError, match="changed while it was read"):
        draws.labels()
    assert draws.release.parts == ()
