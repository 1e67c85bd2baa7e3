import jax
import numpy as np
import pytest
from labeldp_trainer.discrete_gaussian.sample import Words, secret_key
from labeldp_trainer.dp_gradient.accounting import NoisePlan
from labeldp_trainer.dp_gradient.step import (
    Randomness,
    StepConfig,
    independent_batch,
    poisson_batch,
)
from scipy import stats

KEY = np.arange(8, dtype=np.uint32)
DRAWS = 4000
NEVER, FAR = 1e-10, 7  # a p-value, standard deviations


def sampled(units, batch, max_batch):
    drawn = [
        poisson_batch(Words(KEY, 0, i), units=units, batch=batch, max_batch=max_batch)
        for i in range(DRAWS)
    ]
    return np.stack([b.indices for b in drawn]), np.stack([b.mask for b in drawn])


def members(indices, mask, units):
    member = np.zeros((len(indices), units))
    for row, (own, kept) in enumerate(zip(indices, mask, strict=True)):
        member[row, own[kept]] = 1
    return member


def test_poisson_sizes_and_memberships():
    """Sizes are binomial, every unit has rate q, and two units are independent."""
    indices, mask = sampled(20, 5, 20)
    sizes = mask.sum(axis=1)
    counts = np.bincount(sizes, minlength=21)[1:11]
    expected = stats.binom.pmf(np.arange(1, 11), 20, 0.25) * DRAWS
    assert stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), 9) > NEVER
    member = members(indices, mask, 20)
    assert np.array_equal(member.sum(axis=1), sizes)  # distinct
    assert np.abs(member.mean(axis=0) - 0.25).max() < FAR * np.sqrt(0.25 * 0.75 / DRAWS)
    correlation = np.corrcoef(member.T) - np.eye(20)
    assert np.abs(correlation).max() < FAR / np.sqrt(DRAWS)


def test_rows_are_distinct_and_padding_comes_last():
    indices, mask = sampled(20, 5, 12)
    assert all(len(set(row[m])) == m.sum() for row, m in zip(indices, mask, strict=True))
    assert np.all(mask[:, :-1] >= mask[:, 1:])


def test_truncation_keeps_a_uniform_choice():
    indices, mask = sampled(20, 10, 10)
    full = mask.all(axis=1)
    assert full.mean() == pytest.approx(stats.binom.sf(9, 20, 0.5), abs=0.055)
    kept = np.bincount(indices[full].reshape(-1), minlength=20)
    expected = full.sum() / 2
    # Each count has variance p(1 − p); they sum to a constant, so 19 degrees of freedom.
    statistic = ((kept - expected) ** 2 / (expected * 0.5)).sum() * 19 / 20
    assert stats.chi2.sf(statistic, 19) > NEVER


def test_independent_batch_is_uniform_and_distinct():
    drawn = [independent_batch(Words(KEY, 2, i), units=12, size=4) for i in range(DRAWS)]
    chosen = np.stack(drawn)
    assert all(len(set(row)) == 4 for row in chosen[:200])
    counts = np.bincount(chosen.reshape(-1), minlength=12)
    expected = DRAWS / 3
    statistic = ((counts - expected) ** 2 / (expected * 2 / 3)).sum() * 11 / 12
    assert stats.chi2.sf(statistic, 11) > NEVER
    everybody = independent_batch(Words(KEY, 2, 0), units=5, size=5)
    assert np.array_equal(everybody, np.arange(5))


def configure(batches="secret", **choices):
    plan = NoisePlan(20, 5, 8, 5 if batches == "partition" else 20, batches)
    return StepConfig(plan, 1.0, 2.0, hull_units=5, **choices)


@pytest.mark.slow
def test_independent_batch_does_not_follow_the_private_one():
    draws = Randomness(KEY, configure(denoiser="alt_conv"), 3).steps(0, DRAWS)
    member = members(draws.indices, draws.mask, 20)
    chosen = members(draws.alternative, np.ones_like(draws.alternative, bool), 20)
    shared = (member * chosen).sum(axis=1)
    assert shared.mean() == pytest.approx(20 * 0.25 * 0.25, abs=FAR * shared.std() / 63)


@pytest.mark.parametrize("batches", ["secret", "partition"])
def test_draws_are_a_function_of_key_and_step(batches):
    """However many steps are drawn together: a resumed run repeats them."""
    config = configure(batches)
    draws = Randomness(KEY, config, 50)
    together, apart = draws.steps(2, 5), [draws.step(i) for i in range(2, 7)]
    for whole, *parts in zip(
        jax.tree.leaves(together), *(jax.tree.leaves(own) for own in apart), strict=True
    ):
        assert np.array_equal(whole, np.stack(parts))
    assert len({own.noise.low.tobytes() for own in apart}) == 5
    assert len({own.indices.tobytes() for own in apart}) == 5
    other = Randomness(secret_key(), config, 50).step(2)
    assert not np.array_equal(other.noise.low, apart[0].noise.low)
    assert other.alternative.size == 0


def test_a_partition_uses_everybody_once_an_epoch():
    plan = NoisePlan(11, 4, 6, 4, "partition")
    draws = Randomness(KEY, StepConfig(plan, 1.0, 2.0), 1).steps(0, 6)
    epochs = [[*draws.indices[part][draws.mask[part]]] for part in (slice(0, 3), slice(3, 6))]
    assert all(sorted(epoch) == list(range(11)) for epoch in epochs)
    assert epochs[0] != epochs[1]
