import jax
import jax.numpy as jnp
import numpy as np
import pytest
from labeldp_trainer.dp_gradient.accounting import NoisePlan
from labeldp_trainer.dp_gradient.step import (
    GradientProblem,
    Randomness,
    StepConfig,
    private_gradient,
)

from trainer.tests.models import (
    adversary,
    cross_entropy,
    examples,
    flat,
    parameters,
    slow_clip,
    slow_gradient,
)

UNITS = 24
KEY = np.arange(8, dtype=np.uint32)
PROBLEM = GradientProblem(cross_entropy, (0, 1, 2))
PARAMS, X = parameters(), examples(UNITS)
Y = jnp.arange(UNITS, dtype=jnp.int32) % 3


def configure(batches="secret", sigma=1e-6, **choices):
    plan = NoisePlan(UNITS, 6, 10, 12, batches)
    return StepConfig(plan, 0.8, sigma, hull_units=8, microbatch=5, **choices)


def drawn(config, params=PARAMS, step=0):
    size = sum(leaf.size for leaf in jax.tree.leaves(params))
    return jax.tree.map(jnp.asarray, Randomness(KEY, config, size).step(step))


def run(config, problem=PROBLEM, params=PARAMS, x=X, y=Y, steps=(0,)):
    step = jax.jit(lambda p, a, b, d: private_gradient(config, problem, p, a, b, d))
    results = [step(params, x, y, drawn(config, params, s)) for s in steps]
    return results if len(results) > 1 else results[0]


def members(step=0):
    draws = drawn(configure(), step=step)
    return np.asarray(draws.indices)[np.asarray(draws.mask)]


def test_dp_sgd_divides_the_clipped_sum_by_the_expected_batch_size():
    for step, (estimate, report) in zip((0, 3), run(configure(), steps=(0, 3)), strict=True):
        chosen = members(step)
        slow = sum(slow_clip(slow_gradient(cross_entropy, PARAMS, X[i], Y[i]), 0.8) for i in chosen)
        np.testing.assert_allclose(flat(estimate), slow / 6, rtol=1e-4, atol=1e-5)
        assert float(report.noisy_norm) == pytest.approx(np.linalg.norm(slow / 6), rel=1e-4)
    assert set(members(0)) != set(members(3))


def test_noise_has_the_stated_size_whatever_the_batch():
    config = configure(sigma=50.0)
    draws = np.stack([flat(g) for g, _ in run(config, steps=tuple(range(40)))])
    assert draws.std() == pytest.approx(50.0 * 0.8 / 6, rel=0.12)


@pytest.mark.parametrize("denoiser", ["noop", "alt_conv"])
def test_labels_outside_the_batch_leave_no_trace(denoiser):
    """Not a bit of the estimate or the report depends on them, as batches are label-free, too."""
    config = configure(sigma=1.0, denoiser=denoiser)
    outside = np.setdiff1d(np.arange(UNITS), members())
    changed = Y.at[jnp.asarray(outside)].set((Y[jnp.asarray(outside)] + 1) % 3)
    draws = drawn(config)
    step = jax.jit(lambda y: private_gradient(config, PROBLEM, PARAMS, X, y, draws))
    same, other = jax.tree.leaves(step(Y)), jax.tree.leaves(step(changed))
    assert all(np.array_equal(a, b) for a, b in zip(same, other, strict=True))
    inside = jax.tree.leaves(step(Y.at[int(members()[0])].add(1) % 3))
    assert not all(np.array_equal(a, b) for a, b in zip(same, inside, strict=True))


def test_one_label_moves_the_estimate_by_at_most_2c_over_qn():
    """Same key, so the same noise cancels; the label is that of a unit in the batch."""
    problem = GradientProblem(adversary("opposite"), (0, 1, 2))
    row = int(members()[0])
    config = configure()
    draws = drawn(config)
    step = jax.jit(lambda y: private_gradient(config, problem, PARAMS, X, y, draws)[0])
    results = [flat(step(Y.at[row].set(label))) for label in (0, 1, 2)]
    widest = max(np.linalg.norm(a - b) for a in results for b in results)
    assert 0.01 < widest <= 2 * 0.8 / 6 * (1 + 1e-5)


def test_self_conv_keeps_the_signal_of_its_own_batch():
    """Without noise the mean over the realized batch is in the hull of that batch's vertices."""
    plan = NoisePlan(UNITS, 6, 10, 6, "partition")
    config = StepConfig(plan, 0.8, 1e-6, denoiser="self_conv", tolerance=1e-4, microbatch=5)
    estimate, report = run(config)
    slow = sum(
        slow_clip(slow_gradient(cross_entropy, PARAMS, X[i], Y[i]), 0.8)
        for i in np.asarray(drawn(config).indices)
    )
    np.testing.assert_allclose(flat(estimate), slow / 6, atol=2e-3 * np.linalg.norm(slow / 6))
    assert float(report.distance) < 1e-2


def test_a_model_that_overflows_still_gives_a_finite_step():
    problem = GradientProblem(adversary("overflow"), (0, 1, 2))
    estimate, _ = run(configure(sigma=1.0, denoiser="alt_conv"), problem)
    assert np.all(np.isfinite(flat(estimate)))
