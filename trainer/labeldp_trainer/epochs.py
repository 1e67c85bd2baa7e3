"""The epochs of a run: metrics, checkpoints, early stopping.

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
from collections.abc import Callable
from dataclasses import dataclass, replace

import jax

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.errors import DivergedError
from labeldp_trainer.loop import State, make_epoch, start
from labeldp_trainer.losses import build_optimizer
from labeldp_trainer.methods import Method
from labeldp_trainer.models import Model, Params
from labeldp_trainer.run import RunFolder
from labeldp_trainer.run.checkpoints import Checkpoints
from labeldp_trainer.run.metrics import Line, append_line, draw_curve, keep_lines
from labeldp_trainer.run.program import Stages
from labeldp_trainer.sharding import Devices


@dataclass(frozen=True)
class Run:
    """One run over its epochs, new or resumed.

    Attributes:
        loaded: the config of the model that is trained.
        method: built.
        folder: where metrics and checkpoints go.
        devices: to use.
        test: params → test metrics.
        progress: called with the metrics of every epoch.
    """

    loaded: LoadedConfig
    method: Method
    folder: RunFolder
    devices: Devices
    test: Callable[[Params], Line]
    progress: Callable[[Line], None]

    def epochs(self, params: Params, key: jax.Array) -> tuple[Params, int, list[Line]]:
        """All epochs that are left: the parameters to keep, their epoch, and the metrics.

        Raises DivergedError if parameters are no longer finite and none before are to be kept.
        """
        config, training = self.loaded.config, self.loaded.config.training
        stopping = training.early_stopping is not None
        steps = training.epochs * self.method.steps_per_epoch
        optimizer = build_optimizer(config.optimizer, steps)
        run_epoch = make_epoch(self.method, optimizer, keep_best=stopping)
        state, key = self.devices.everywhere((start(params, optimizer), key))
        with Checkpoints(self.folder.checkpoints) as checkpoints:
            state = checkpoints.restore(state) or state
            lines = keep_lines(self.folder.metrics, int(state.epoch))
            while not self._finished(state):
                began = time.monotonic()
                state, values = run_epoch(state, key, self.method.arrays)
                finite = bool(values.pop("finite"))  # waits for the device
                lines.append(self._record(state, values, time.monotonic() - began))
                if not finite:
                    if int(state.best_epoch) > 0:
                        break  # whatever follows is NaN, too: the best parameters are known
                    raise self._diverged(int(state.epoch))
                if int(state.epoch) % training.checkpoint_every == 0 or self._finished(state):
                    checkpoints.save(state)
        if stopping:
            return state.best_params, int(state.best_epoch), lines
        return state.params, int(state.epoch), lines

    def _diverged(self, epoch: int) -> DivergedError:
        part = "".join(f"{key}." for key in self.loaded.within)
        advice = f"lower {part}optimizer.learning_rate"
        if self.method.training_loss is not None:
            advice += f", or set {part}training.early_stopping"
        said = f"{self.folder.path}: training diverged in epoch {epoch}: {advice}"
        if self.method.statement.epsilon is None:
            return DivergedError(f"{said}; this folder may go")
        return DivergedError(f"{said}; what another run spends stands in privacy.txt")

    def _record(self, state: State, values: dict[str, jax.Array], seconds: float) -> Line:
        line = {
            "epoch": int(state.epoch),
            **{name: float(value) for name, value in values.items()},
            **self.test(state.params),
        }
        times = {
            "seconds": seconds,
            "examples_per_second": self.method.examples_per_epoch / max(seconds, 1e-9),
        }
        written = line | times if self.method.times_are_public else line
        written = append_line(self.folder.metrics, written)
        self.progress(written | times)
        return written

    def _finished(self, state: State) -> bool:
        training = self.loaded.config.training
        stopping = training.early_stopping
        patience = None if stopping is None else stopping.patience
        waited = int(state.epoch) - int(state.best_epoch)
        return int(state.epoch) >= training.epochs or (patience is not None and waited >= patience)


def run_stages(
    run: Run, model: Model, params: Params, seed_key: jax.Array
) -> tuple[Params, int, list[Line]]:
    """All stages that are left: parameters, their epoch, and the metrics of the last stage.

    Every stage starts from fresh parameters; ``params`` are those of the first. Stage t has the
    keys 2t − 2 and 2t − 1 of the seed. Raises InputError.
    """
    later = run.method.later
    if later is None:
        return run.epochs(params, jax.random.fold_in(seed_key, 1))
    stages, number = Stages(run.folder), 1
    run = replace(run, folder=stages.open(number) or stages.create(number, {}))
    while True:
        keys = (
            jax.random.fold_in(seed_key, 2 * number - 2),
            jax.random.fold_in(seed_key, 2 * number - 1),
        )
        if number > 1:
            params = jax.jit(model.init)(keys[0])
        params, epoch, lines = run.epochs(params, keys[1])
        if later is None:
            return params, epoch, lines
        draw_curve(run.folder.path / "learning_curve.png", lines)
        number += 1
        folder = stages.open(number)
        method = later(params, None if folder is None else folder.stored())
        run = replace(run, method=method, folder=folder or stages.create(number, method.keep))
        later = method.later
