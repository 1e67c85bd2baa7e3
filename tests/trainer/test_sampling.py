import jax
import numpy as np
import pytest
from labeldp_trainer.dp_gradient.sampling import (
    independent_batch,
    partition_batch,
    poisson_batch,
    step_keys,
)
from scipy import stats

KEYS = jax.random.split(jax.random.key(7), 4000)
# The keys are fixed, but what JAX makes of them may change with a version: chances below 1e-9.
NEVER, FAR = 1e-10, 7  # a p-value, standard deviations


def sampled(units, batch, max_batch):
    draw = jax.jit(
        jax.vmap(lambda k: poisson_batch(k, units=units, batch=batch, max_batch=max_batch))
    )
    indices, mask = draw(KEYS)
    return np.asarray(indices), np.asarray(mask)


def test_poisson_sizes_and_memberships():
    """Sizes are binomial, every unit has rate q, and two units are independent."""
    indices, mask = sampled(20, 5, 20)
    sizes = mask.sum(axis=1)
    counts = np.bincount(sizes, minlength=21)[1:11]
    expected = stats.binom.pmf(np.arange(1, 11), 20, 0.25) * len(KEYS)
    assert stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), 9) > NEVER
    member = np.zeros((len(KEYS), 20))
    np.put_along_axis(member, indices, mask.astype(float), axis=1)
    assert np.abs(member.mean(axis=0) - 0.25).max() < FAR * np.sqrt(0.25 * 0.75 / len(KEYS))
    correlation = np.corrcoef(member.T) - np.eye(20)
    assert np.abs(correlation).max() < FAR / np.sqrt(len(KEYS))


def test_rows_are_distinct_and_padding_comes_last():
    indices, mask = sampled(20, 5, 12)
    assert all(len(set(row)) == 12 for row in indices[:200])
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


def test_everybody_is_sampled_at_rate_one():
    indices, mask = sampled(6, 6, 6)
    assert mask.all()
    assert np.all(np.sort(indices, axis=1) == np.arange(6))


def test_same_step_same_batch_other_step_other_batch():
    key = jax.random.key(3)
    draw = jax.jit(
        lambda step: poisson_batch(step_keys(key, step).sampling, units=500, batch=50, max_batch=99)
    )
    first, again, other = draw(4), draw(4), draw(5)
    assert np.array_equal(first.indices, again.indices)
    assert not np.array_equal(first.indices, other.indices)
    data = {bytes(np.asarray(jax.random.key_data(k))) for s in (4, 5) for k in step_keys(key, s)}
    assert len(data) == 8


def test_independent_batch_is_uniform_and_distinct():
    draw = jax.vmap(lambda k: independent_batch(k, units=12, size=4))
    chosen = np.asarray(draw(KEYS))
    assert all(len(set(row)) == 4 for row in chosen[:200])
    counts = np.bincount(chosen.reshape(-1), minlength=12)
    expected = len(KEYS) / 3
    statistic = ((counts - expected) ** 2 / (expected * 2 / 3)).sum() * 11 / 12
    assert stats.chi2.sf(statistic, 11) > NEVER
    everybody = independent_batch(KEYS[0], units=5, size=5)
    assert np.array_equal(everybody, np.arange(5))


def test_independent_batch_does_not_follow_the_private_one():
    def both(key):
        keys = step_keys(key, 0)
        private = poisson_batch(keys.sampling, units=20, batch=5, max_batch=20)
        return private.indices, private.mask, independent_batch(keys.alternative, units=20, size=5)

    indices, mask, alternative = (np.asarray(a) for a in jax.vmap(both)(KEYS))
    member = np.zeros((len(KEYS), 20))
    np.put_along_axis(member, indices, mask.astype(float), axis=1)
    chosen = np.zeros((len(KEYS), 20))
    np.put_along_axis(chosen, alternative, 1.0, axis=1)
    shared = (member * chosen).sum(axis=1)
    assert shared.mean() == pytest.approx(20 * 0.25 * 0.25, abs=FAR * shared.std() / 63)


def test_partition_uses_everybody_once_an_epoch():
    draw = jax.jit(lambda step: partition_batch(jax.random.key(1), step, units=11, batch=4))
    epochs = []
    for epoch in range(2):
        seen = []
        for place in range(3):
            indices, mask = draw(3 * epoch + place)
            seen += list(np.asarray(indices)[np.asarray(mask)])
        assert sorted(seen) == list(range(11))
        epochs.append(seen)
    assert epochs[0] != epochs[1]


@pytest.mark.parametrize(("batch", "most"), [(0, 5), (6, 5), (5, 11)])
def test_impossible_batches(batch, most):
    with pytest.raises(ValueError, match="need 1 <="):
        poisson_batch(jax.random.key(0), units=10, batch=batch, max_batch=most)
    with pytest.raises(ValueError, match="need 1 <="):
        independent_batch(jax.random.key(0), units=10, size=11)
    with pytest.raises(ValueError, match="need 1 <="):
        partition_batch(jax.random.key(0), 0, units=10, batch=11)
