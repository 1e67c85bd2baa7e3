"""Epochs, of which the steps run inside jit, whatever the method."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from labeldp_trainer.models import Params
from labeldp_trainer.run.checkpoints import State

if TYPE_CHECKING:
    from labeldp_trainer.methods.stepped import Stepped

Metrics = dict[str, jax.Array]
RunEpoch = Callable[[State, jax.Array, Any], tuple[State, Metrics]]


def start(params: Params, optimizer: optax.GradientTransformation) -> State:
    """The state before the first epoch."""
    zero = jnp.zeros((), jnp.int32)
    infinite = jnp.full((), jnp.inf, jnp.float32)
    return State(params, optimizer.init(params), zero, params, infinite, zero)


def make_epoch(
    method: Stepped, optimizer: optax.GradientTransformation, *, keep_best: bool
) -> RunEpoch:
    """A function (state, run key, arrays) → state after one more epoch, and its metrics.

    Metrics are the means of those of the steps, ``finite`` (are all parameters?), and with
    ``keep_best`` the ``training_loss`` at the end of the epoch. What is random in an epoch is a
    function of the run key and its number, or of what the method draws for the numbers of its
    steps. What ``draw`` returns for some steps is drawn while the device does those before.
    """
    steps = method.steps_per_epoch
    most = min(steps, method.steps_at_once or steps)

    @jax.jit
    def keys(key: jax.Array, epoch: jax.Array) -> jax.Array:
        return jax.random.split(jax.random.fold_in(key, epoch))

    @jax.jit
    def some(carry: Any, key: jax.Array, place: Any, drawn: Any, arrays: Any) -> Any:
        first, start = place  # steps of the run before this epoch, and of the epoch before these

        def one(carry: tuple[Params, Any], inputs: tuple[jax.Array, Any]) -> Any:
            params, opt_state = carry
            index, own = inputs
            step_key = jax.random.fold_in(key, index)
            gradient, metrics = method.gradient(params, step_key, first + index, own, arrays)
            updates, opt_state = optimizer.update(gradient, opt_state, params)
            return (optax.apply_updates(params, updates), opt_state), metrics

        count = jax.tree.leaves(drawn)[0].shape[0]
        indices = start + jnp.arange(count, dtype=jnp.int32)
        return jax.lax.scan(one, carry, (indices, drawn))

    @jax.jit
    def finish(state: State, carry: Any, series: list[Metrics], arrays: Any) -> Any:
        metrics = {
            name: jnp.concatenate([values[name] for values in series]).mean() for name in series[0]
        }
        state = state._replace(params=carry[0], opt_state=carry[1], epoch=state.epoch + 1)
        if keep_best:
            assert method.training_loss is not None
            loss = method.training_loss(state.params, arrays)
            metrics["training_loss"] = loss
            better = loss < state.best_loss  # never if the loss is NaN
            best, loss, epoch = jax.tree.map(
                lambda new, old: jnp.where(better, new, old),
                (state.params, loss, state.epoch),
                (state.best_params, state.best_loss, state.best_epoch),
            )
            state = state._replace(best_params=best, best_loss=loss, best_epoch=epoch)
        leaves = [jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(state.params)]
        return state, metrics | {"finite": jnp.stack(leaves).all()}

    def run(state: State, key: jax.Array, arrays: Any) -> tuple[State, Metrics]:
        draw_key, steps_key = keys(key, state.epoch)
        first = int(state.epoch) * steps
        carry, series = (state.params, state.opt_state), []
        for start in range(0, steps, most):
            count = min(most, steps - start)
            drawn = method.draw(draw_key, first + start, count)
            place = np.int32(first), np.int32(start)
            carry, told = some(carry, steps_key, place, drawn, arrays)
            series.append(told)
        result: tuple[State, Metrics] = finish(state, carry, series, arrays)
        return result

    return run
