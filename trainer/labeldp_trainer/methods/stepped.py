"""Methods that train by steps: epochs, metrics, checkpoints, early stopping.

Early stopping keeps the parameters of least loss on the labels that training sees, and never looks
at others (Appendix G.2 of Optimal unbiased randomizers for regression with label DP).

A training in stages has a folder ``stages/1``, ``stages/2``, … inside its run folder, each with its
metrics and checkpoints. What a stage wants to keep (private labels) lies there, whole and synced,
before its first step, and the first stage's in the run folder itself: a run that is killed between
drawing labels and storing them draws others, but nobody has seen the first ones; one that is killed
later finds them. Finished stages are gone through again from their last checkpoints, in no time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from labeldp_trainer.config.model import OptimizerConfig
from labeldp_trainer.data.labels import Coded
from labeldp_trainer.devices import Devices, evaluated, mean_metrics
from labeldp_trainer.errors import DivergedError
from labeldp_trainer.methods.method import Fitted, Method, Setting, Stored, TrainingRun
from labeldp_trainer.methods.statement import Statement
from labeldp_trainer.models import Params, fresh_params
from labeldp_trainer.run import RunFolder
from labeldp_trainer.run.checkpoints import Checkpoints, Stages, State, program_facts
from labeldp_trainer.run.folder import Line, append_line, draw_curve, keep_lines

Metrics = dict[str, jax.Array]
Draw = Callable[[jax.Array, int, int], Any]
Gradient = Callable[[Params, jax.Array, Any, Any], tuple[Params, Metrics]]
TrainingLoss = Callable[[Params, Any], jax.Array]
RunEpoch = Callable[[State, jax.Array, Any], tuple[State, Metrics]]


@dataclass(frozen=True, kw_only=True)
class Stepped(Method):
    """A model that is trained step by step.

    Attributes:
        arrays: a pytree of device arrays that every step sees, as an argument and never as a
            constant of the compiled program.
        steps_per_epoch: steps in an epoch.
        examples_per_epoch: examples that an epoch visits (on average, if batches vary).
        draw: (epoch key, first step of the whole run, number of steps) → a pytree whose leaves have
            a leading axis of that many steps, all in one epoch; each step gets its slice.
        gradient: (params, step key, slice, arrays) → an estimate of the gradient, and metrics. The
            loop averages the metrics over an epoch and writes them down: return only what may leave
            the run, or nothing. Keys are functions of the seed and the step alone, so that a step
            that is done again repeats its randomness.
        training_loss: (params, arrays) → the mean loss on the labels that training sees, for early
            stopping; None where that would disclose more than the statement says.
        later: the next stage of a training in stages, from the parameters that this one ends with
            and what is stored of the next (None if it has not begun). What it wants to ``keep`` is
            on the disk before its first step. None for the last stage, or the only one.
        steps_at_once: the most steps for which ``draw`` is asked at a time; None for a whole epoch.
        times_are_public: whether it may be written down how long an epoch took.
    """

    arrays: Any
    steps_per_epoch: int
    examples_per_epoch: int
    draw: Draw
    gradient: Gradient
    training_loss: TrainingLoss | None
    later: Callable[[Params, Stored | None], Stepped] | None = None
    steps_at_once: int | None = None
    times_are_public: bool = True

    def fit(self, run: TrainingRun) -> Fitted:
        """Train for all epochs, and all stages, that are left.

        Every stage starts from fresh parameters, with the keys 2t − 2 and 2t − 1 of the seed; the
        metrics are those of the last. Raises InputError.
        """
        setting = run.setting
        seed_key = jax.random.key(setting.loaded.config.training.seed)
        key, params = jax.random.fold_in(seed_key, 1), run.params
        method, folder, later = self, run.folder, self.later
        if later is not None:
            stages, number = Stages(run.folder), 1
            folder = stages.open(number) or stages.create(number, {})
        while True:
            params, epoch, lines = _Epochs(run, method, folder).train(params, key)
            if later is None:
                break
            draw_curve(folder.path / "learning_curve.png", lines)
            number += 1
            kept = stages.open(number)
            method = later(params, None if kept is None else kept.stored())
            folder = kept or stages.create(number, method.keep)
            later = method.later
            params = fresh_params(setting.loaded, setting.model, 2 * number - 2)
            key = jax.random.fold_in(seed_key, 2 * number - 1)
        draw_curve(run.folder.path / "learning_curve.png", lines)
        told = {"epochs": len(lines), "epoch_of_parameters": epoch, **_tester(run)(params)}
        return Fitted(params, setting.model, told)

    def machine(self, setting: Setting) -> dict[str, Any]:
        """JAX's devices; and everything else that decides bits, if noise is repeated."""
        devices = Devices.of(setting.loaded)
        facts: dict[str, Any] = {"device": devices.kind, "devices": devices.count}
        if self.repeats_noise:
            model, start = setting.model, fresh_params(setting.loaded, setting.model)
            facts |= program_facts(model, start, setting.dataset.train.features)
        return facts


def _tester(run: TrainingRun) -> Callable[[Params], Line]:
    """A function from parameters to test metrics."""
    model, loss, tests = run.setting.model, run.setting.loss, run.tests
    if tests is None:
        return lambda params: {}
    placed = Devices.of(run.setting.loaded).everywhere(tests)

    def test(params: Params) -> Line:
        means = evaluated(model.apply, loss, params, *placed)
        return {f"test_{name}": float(value) for name, value in means.items()}

    return test


@dataclass(frozen=True)
class _Epochs:
    """The epochs of one stage, new or resumed."""

    run: TrainingRun
    method: Stepped
    folder: RunFolder

    def train(self, params: Params, key: jax.Array) -> tuple[Params, int, list[Line]]:
        """All epochs that are left: the parameters to keep, their epoch, and the metrics.

        Raises DivergedError if parameters are no longer finite and none before are to be kept.
        """
        config = self.run.setting.loaded.config
        devices = Devices.of(self.run.setting.loaded)
        training, test = config.training, _tester(self.run)
        stopping = training.early_stopping is not None
        steps = training.epochs * self.method.steps_per_epoch
        optimizer = build_optimizer(config.optimizer, steps)
        run_epoch = _make_epoch(self.method, optimizer, keep_best=stopping)
        state, key = devices.everywhere((_start(params, optimizer), key))
        with Checkpoints(self.folder.checkpoints) as checkpoints:
            state = checkpoints.restore(state) or state
            lines = keep_lines(self.folder.metrics, int(state.epoch))
            while not self._finished(state):
                began = time.monotonic()
                state, values = run_epoch(state, key, self.method.arrays)
                finite = bool(values.pop("finite"))  # waits for the device
                seconds = time.monotonic() - began
                lines.append(self._record(state, values | test(state.params), seconds))
                if not finite:
                    if int(state.best_epoch) > 0:
                        break  # all later epochs would be NaN, too; the best parameters are known
                    raise self._diverged(int(state.epoch))
                if int(state.epoch) % training.checkpoint_every == 0 or self._finished(state):
                    checkpoints.save(state)
        if stopping:
            return state.best_params, int(state.best_epoch), lines
        return state.params, int(state.epoch), lines

    def _diverged(self, epoch: int) -> DivergedError:
        advice = "lower optimizer.learning_rate"
        if self.method.training_loss is not None:
            advice += ", or set training.early_stopping"
        private = self.method.statement.epsilon is not None
        then = (
            "privacy.txt says what another run spends" if private else "you can delete this folder"
        )
        where = f"{self.folder.path}: training diverged in epoch {epoch}"
        return DivergedError(f"{where}: {advice}; {then}")

    def _record(self, state: State, values: Mapping[str, Any], seconds: float) -> Line:
        line: Line = {name: float(value) for name, value in values.items()}
        line = {"epoch": int(state.epoch), **line}
        speed = self.method.examples_per_epoch / max(seconds, 1e-9)
        times = {"seconds": seconds, "examples_per_second": speed}
        public = times if self.method.times_are_public else {}
        written = append_line(self.folder.metrics, line | public)
        self.run.progress(written | times)
        return written

    def _finished(self, state: State) -> bool:
        training, epoch = self.run.setting.loaded.config.training, int(state.epoch)
        stopping = training.early_stopping
        patience = None if stopping is None else stopping.patience
        waited = epoch - int(state.best_epoch)
        return epoch >= training.epochs or (patience is not None and waited >= patience)


def _start(params: Params, optimizer: optax.GradientTransformation) -> State:
    """The state before the first epoch."""
    zero = jnp.zeros((), jnp.int32)
    infinite = jnp.full((), jnp.inf, jnp.float32)
    return State(params, optimizer.init(params), zero, params, infinite, zero)


def _make_epoch(
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
    def some(carry: Any, key: jax.Array, start: Any, drawn: Any, arrays: Any) -> Any:
        def one(carry: tuple[Params, Any], inputs: tuple[jax.Array, Any]) -> Any:
            params, opt_state = carry
            index, own = inputs
            gradient, metrics = method.gradient(params, jax.random.fold_in(key, index), own, arrays)
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
        draw_key, steps_key = _two_keys(key, state.epoch)
        first = int(state.epoch) * steps
        carry, series = (state.params, state.opt_state), []
        for start in range(0, steps, most):
            count = min(most, steps - start)
            drawn = method.draw(draw_key, first + start, count)
            carry, told = some(carry, steps_key, np.int32(start), drawn, arrays)
            series.append(told)
        return finish(state, carry, series, arrays)

    return run


@jax.jit
def _two_keys(key: jax.Array, epoch: jax.Array) -> jax.Array:
    """Those of an epoch: for what is drawn, and for its steps."""
    return jax.random.split(jax.random.fold_in(key, epoch))


def build_optimizer(config: OptimizerConfig, steps: int) -> optax.GradientTransformation:
    """The optimizer for a run of ``steps`` steps; its learning rate may decay to 0 over them."""
    rate: Any = config.learning_rate
    if config.schedule == "cosine":
        rate = optax.cosine_decay_schedule(config.learning_rate, steps)
    makers = {
        "sgd": lambda: optax.sgd(rate),
        "momentum": lambda: optax.sgd(rate, momentum=config.momentum),
        "adam": lambda: optax.adam(rate),
        "rmsprop": lambda: optax.rmsprop(rate),
    }
    optimizer = makers[config.kind]()
    if config.l2 > 0:
        # In front of the optimizer: the gradient of ½·l2·‖w‖², not a decoupled decay.
        optimizer = optax.chain(optax.add_decayed_weights(config.l2, mask=_weights), optimizer)

    def update(updates: Any, state: Any, params: Any = None) -> Any:
        # optax mixes integers and floats; all other code here also runs under strict promotion.
        with jax.numpy_dtype_promotion("standard"):
            return optimizer.update(updates, state, params)

    return optax.GradientTransformation(optimizer.init, update)


def _weights(params: Any) -> Any:
    """True for weights and embeddings, False for biases and norms."""
    return jax.tree.map(lambda leaf: leaf.ndim > 1, params)


# Plain stochastic gradients: every epoch visits the examples in a fresh order.

PerExample = Callable[[jax.Array, jax.Array], jax.Array]


def minibatch_method(
    setting: Setting,
    targets: NDArray[Any] | Coded,
    statement: Statement,
    *,
    per_example: PerExample | None = None,
    mixup: float | None = None,
    information: float = 1.0,
    keep: Stored | None = None,
    notes: tuple[str, ...] = (),
) -> Stepped:
    """Mean gradients of batches without replacement; n mod batch examples sit an epoch out.

    ``targets`` are [n], or k numbers for each, such as soft labels; ``per_example`` takes the place
    of the loss on outputs and targets of a batch. With ``mixup`` = α, features are
    x' = λx + (1 − λ)x₂ and the loss is that for both targets, weighed alike, with λ ~ Beta(α, α)
    for each batch (Zhang et al., *mixup*, 2018). Gradients are divided by ``information``, the
    share of what true labels say that private ones keep; metrics are not. The share is at least
    that of one label in n.
    """
    model, devices = setting.model, Devices.of(setting.loaded)
    per_example = per_example or setting.loss.per_example
    n, batch = setting.dataset.train.rows, setting.loaded.config.training.batch_size
    steps, speed = n // batch, 1 / max(information, 1 / n)

    def draw(key: jax.Array, first: int, count: int) -> jax.Array:
        assert (first % steps, count) == (0, steps)
        return _epoch_rows(n, batch, key)

    arrays: tuple[Any, Any, Any] = (setting.dataset.train.features, targets, None)
    if isinstance(targets, Coded):
        arrays = (arrays[0], targets.codes, targets.rows.astype(np.float32))

    def batch_loss(params: Params, key: jax.Array, x: Any, y: jax.Array) -> jax.Array:
        return per_example(model.apply(params, x, key), y).mean()

    def mixed_loss(params: Params, key: jax.Array, x: Any, y: jax.Array) -> jax.Array:
        model_key, mix_key = jax.random.split(key)
        share = jax.random.beta(mix_key, jnp.float32(mixup), jnp.float32(mixup))
        # A batch is in random order already, so the reversed one is a random partner.
        mixed = jax.tree.map(lambda leaf: share * leaf + (1 - share) * leaf[::-1], x)
        outputs = model.apply(params, mixed, model_key)
        both = share * per_example(outputs, y) + (1 - share) * per_example(outputs, y[::-1])
        return both.mean()

    def gradient(
        params: Params, key: jax.Array, rows: jax.Array, arrays: Any
    ) -> tuple[Params, Metrics]:
        x, y = jax.tree.map(lambda leaf: leaf[devices.split(rows)], arrays[:2])
        loss = batch_loss if mixup is None else mixed_loss
        value, estimate = jax.value_and_grad(loss)(params, key, x, _decoded(y, arrays[2]))
        return jax.tree.map(lambda leaf: speed * leaf, estimate), {"batch_loss": value}

    def training_loss(params: Params, arrays: Any) -> jax.Array:
        def measure(outputs: jax.Array, y: jax.Array) -> Metrics:
            return {"loss": per_example(outputs, _decoded(y, arrays[2]))}

        return mean_metrics(model.apply, measure, params, *arrays[:2])["loss"]

    return Stepped(
        arrays=devices.everywhere(arrays),
        steps_per_epoch=steps,
        examples_per_epoch=steps * batch,
        draw=draw,
        gradient=gradient,
        training_loss=training_loss,
        statement=statement,
        keep=keep or {},
        notes=notes,
    )


def likelihood_loss(outputs: jax.Array, evidence: jax.Array) -> jax.Array:
    """−ln Σ_c softmax(outputs)_c·L_c: of what was seen instead of a class c with probability L_c.

    ``evidence`` are the ln L_c.
    """
    return -jax.nn.logsumexp(jax.nn.log_softmax(outputs, axis=-1) + evidence, axis=-1)


@partial(jax.jit, static_argnums=(0, 1))
def _epoch_rows(n: int, batch: int, key: jax.Array) -> jax.Array:
    """[steps, batch] rows in a random order; those that fill no batch are left out."""
    order = jax.random.permutation(key, jnp.arange(n, dtype=jnp.int32))
    return order[: n // batch * batch].reshape(-1, batch)


def _decoded(targets: jax.Array, rows: jax.Array | None) -> jax.Array:
    """Targets of a batch, or the rows of their codes."""
    return targets if rows is None else rows[targets]
