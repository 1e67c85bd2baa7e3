"""Whole epochs inside jit, whatever the method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from labeldp_trainer.methods import Method
from labeldp_trainer.models import Params

Metrics = dict[str, jax.Array]
RunEpoch = Callable[["State", jax.Array, Any], tuple["State", Metrics]]


class State(NamedTuple):
    """All that a resumed run needs, beside the config and the seed.

    Attributes:
        params: the current parameters.
        opt_state: of optax.
        epoch: int32, epochs done.
        best_params: those of least private training loss, at the end of an epoch.
        best_loss: float32, that loss.
        best_epoch: int32, how many epochs had been done then.
    """

    params: Params
    opt_state: Any
    epoch: jax.Array
    best_params: Params
    best_loss: jax.Array
    best_epoch: jax.Array


def start(params: Params, optimizer: optax.GradientTransformation) -> State:
    """The state before the first epoch."""
    zero = jnp.zeros((), jnp.int32)
    infinite = jnp.full((), jnp.inf, jnp.float32)
    return State(params, optimizer.init(params), zero, params, infinite, zero)


def make_epoch(
    method: Method, optimizer: optax.GradientTransformation, *, keep_best: bool
) -> RunEpoch:
    """A jitted function (state, run key, arrays) → state after one more epoch, and its metrics.

    Metrics are the means of those of the steps, ``finite`` (are all parameters?), and with
    ``keep_best`` the ``training_loss`` at the end of the epoch. All randomness of an epoch is a
    function of the run key and its number.
    """
    steps = method.steps_per_epoch

    def run(state: State, key: jax.Array, arrays: Any) -> tuple[State, Metrics]:
        draw_key, steps_key = jax.random.split(jax.random.fold_in(key, state.epoch))
        first = state.epoch * steps

        def one(carry: tuple[Params, Any], inputs: tuple[jax.Array, Any]) -> Any:
            params, opt_state = carry
            index, drawn = inputs
            step_key = jax.random.fold_in(steps_key, index)
            gradient, metrics = method.gradient(params, step_key, first + index, drawn, arrays)
            updates, opt_state = optimizer.update(gradient, opt_state, params)
            return (optax.apply_updates(params, updates), opt_state), metrics

        inputs = jnp.arange(steps, dtype=jnp.int32), method.draw(draw_key)
        carry, series = jax.lax.scan(one, (state.params, state.opt_state), inputs)
        metrics = {name: values.mean() for name, values in series.items()}
        state = state._replace(params=carry[0], opt_state=carry[1], epoch=state.epoch + 1)
        if keep_best:
            assert method.training_loss is not None
            loss = method.training_loss(state.params, arrays)
            metrics["training_loss"] = loss
            state = _with_best(state, loss)
        leaves = [jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(state.params)]
        return state, metrics | {"finite": jnp.stack(leaves).all()}

    return jax.jit(run)


def _with_best(state: State, loss: jax.Array) -> State:
    better = loss < state.best_loss  # never if the loss is NaN
    best = jax.tree.map(
        lambda new, old: jnp.where(better, new, old), state.params, state.best_params
    )
    return state._replace(
        best_params=best,
        best_loss=jnp.where(better, loss, state.best_loss),
        best_epoch=jnp.where(better, state.epoch, state.best_epoch),
    )
