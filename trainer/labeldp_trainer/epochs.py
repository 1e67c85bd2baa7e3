"""The epochs of a run: metrics, checkpoints, early stopping.

Early stopping keeps the parameters of least loss on the labels that training sees, and never looks
at others (Appendix G.2 of Optimal unbiased randomizers for regression with label DP).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import jax

from labeldp_trainer.config import Config
from labeldp_trainer.errors import DivergedError
from labeldp_trainer.loop import State, make_epoch, start
from labeldp_trainer.losses import build_optimizer
from labeldp_trainer.methods import Method
from labeldp_trainer.models import Params
from labeldp_trainer.run import Checkpoints, RunFolder
from labeldp_trainer.run.metrics import Line, append_line, keep_lines
from labeldp_trainer.sharding import Devices


@dataclass(frozen=True)
class Run:
    """One run over its epochs, new or resumed.

    Attributes:
        config: of the run.
        method: built.
        folder: where metrics and checkpoints go.
        devices: to use.
        test: params → test metrics.
        progress: called with the metrics of every epoch.
    """

    config: Config
    method: Method
    folder: RunFolder
    devices: Devices
    test: Callable[[Params], Line]
    progress: Callable[[Line], None]

    def epochs(self, params: Params, key: jax.Array) -> tuple[Params, int, list[Line]]:
        """All epochs that are left: the parameters to keep, their epoch, and the metrics.

        Raises DivergedError if parameters are no longer finite and none before are to be kept.
        """
        training = self.config.training
        stopping = training.early_stopping is not None
        steps = training.epochs * self.method.steps_per_epoch
        optimizer = build_optimizer(self.config.optimizer, steps)
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
        advice = "lower optimizer.learning_rate"
        if self.method.training_loss is not None:
            advice += ", or set training.early_stopping"
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
        training = self.config.training
        stopping = training.early_stopping
        patience = None if stopping is None else stopping.patience
        waited = int(state.epoch) - int(state.best_epoch)
        return int(state.epoch) >= training.epochs or (patience is not None and waited >= patience)
