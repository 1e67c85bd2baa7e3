"""``method: {kind: dp_sgd}`` and ``{kind: labeldp_pro}``: a private step, its noise calibrated.

The published ``labeldp_pro`` projects noisy sums onto what gradients can be. Computing with a
noisy sum is post-processing, so its promise is that of ``dp_sgd``. Measured
(``docs/measured/projections.md``), on images with large learning rates: ``alt_conv`` with hulls of
256 was up to 3 points ahead of DP-SGD on MNIST at a true ε of 0.1 to 0.2, the more the longer both
trained. It was level there on Fashion-MNIST, and 1 to 3 points behind on both at larger ε.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp

from labeldp_trainer.config import DpSgd, LabelDpPro
from labeldp_trainer.devices import Devices
from labeldp_trainer.dp_gradient.accounting import NoisePlan, calibrate_integers, padded_batch
from labeldp_trainer.dp_gradient.generated import WORKING_SET
from labeldp_trainer.dp_gradient.hull import gram_bytes
from labeldp_trainer.dp_gradient.problem import StepConfig
from labeldp_trainer.dp_gradient.step import Randomness, StepDraws, StepReport, private_gradient
from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.methods.central.statement import central_statement
from labeldp_trainer.methods.central.units import Units, kept_arrays, make_problem, make_units
from labeldp_trainer.methods.method import MethodBuilder, Setting
from labeldp_trainer.methods.stepped import Metrics, Stepped
from labeldp_trainer.models import Params, count_parameters

_DRAWN_BYTES = 1 << 26  # what the batches and noise of steps that are drawn together may take
_GRAM_BYTES = 1 << 30  # what the vertices and their Gram matrix may take if nobody chooses
_CENTRE_UNITS, _HULL_UNITS = 256, 64


class CentralBuilder(MethodBuilder[DpSgd | LabelDpPro]):
    """Builds both methods from a config."""

    def build(self, setting: Setting) -> Stepped:
        """Steps with noise. Raises InputError."""
        method, devices = self.method, Devices.of(setting.loaded)
        units = make_units(setting, method)
        plan, steps_per_epoch = self._plan(units)
        problem = make_problem(setting, method)
        size = count_parameters(jax.eval_shape(setting.model.init, jax.random.key(0)))
        choices = self._choices(setting, plan, units, size)
        kept = self._kept(setting, units, plan, size)  # takes seconds: after what may be refused
        config = StepConfig(plan, method.clip_norm, float(kept["noise_multiplier"]), **choices)
        randomness = Randomness(kept["noise_key"], config, size)

        def draw(key: jax.Array, first: int, count: int) -> StepDraws:
            # The loop's key comes from the public seed: no noise may depend on it.
            del key
            return devices.everywhere(randomness.steps(first, count))

        def gradient(
            params: Params, key: jax.Array, drawn: Any, arrays: Any
        ) -> tuple[Params, Metrics]:
            del key
            x, y = arrays
            estimate, report = private_gradient(config, problem, params, x, y, drawn)
            return estimate, _metrics(report, config)

        return Stepped(
            arrays=devices.everywhere((units.x, units.y)),
            steps_per_epoch=steps_per_epoch,
            examples_per_epoch=steps_per_epoch * plan.batch,
            draw=draw,
            steps_at_once=max(1, _DRAWN_BYTES // randomness.bytes_of_step),
            gradient=gradient,
            training_loss=None,
            statement=central_statement(self.loaded.config, method, config, size, units.rows),
            keep=kept,
            notes=self._notes(config),
            repeats_noise=True,
            times_are_public=False,  # they follow what the noise is, too
        )

    def _plan(self, units: Units) -> tuple[NoisePlan, int]:
        training, method, n = self.loaded.config.training, self.method, units.count
        batch, most = training.batch_size, method.max_batch
        self.loaded.require_batch(n, "users")
        partition = method.batches == "partition"
        steps_per_epoch = math.ceil(n / batch) if partition else max(1, round(n / batch))
        steps = training.epochs * steps_per_epoch
        if partition:
            most = batch
        elif most is None:
            most = padded_batch(n, batch, steps, method.delta, method.microbatch)
        elif not batch <= most <= n:
            reason = f"must be between the batch size, {batch:,}, and the number of units, {n:,}"
            raise self.loaded.error(("method", "max_batch"), f"{reason}; it is {most:,}")
        return NoisePlan(n, batch, steps, most, method.batches), steps_per_epoch

    def _kept(self, setting: Setting, units: Units, plan: NoisePlan, size: int) -> dict[str, Any]:
        method = self.method

        def noise_multiplier() -> float:
            try:
                return calibrate_integers(method.epsilon, plan, method.delta, size)
            except ValueError as error:
                raise self.loaded.error(("method", "epsilon"), str(error)) from None

        try:
            return kept_arrays(setting.stored, (units.x, units.y), noise_multiplier)
        except RunFolderError as error:
            raise RunFolderError(f"{self.loaded.source}: cannot be resumed: {error}") from None

    def _choices(
        self, setting: Setting, plan: NoisePlan, units: Units, size: int
    ) -> dict[str, Any]:
        """All but the noise; ``size`` is that of a gradient. Raises InputError."""
        method, devices, n = self.method, Devices.of(self.loaded), plan.units
        microbatch = min(method.microbatch, plan.max_batch)
        choices = {
            "clipping": method.clipping,
            "centre": method.centre,
            "centre_units": self._at_most("centre_units", method.centre_units, _CENTRE_UNITS, n),
            "radius_floor": method.radius_floor,
            "microbatch": math.ceil(microbatch / devices.count) * devices.count,
            "split": devices.split_if_even,
        }
        if not isinstance(method, LabelDpPro):
            return choices
        hull_units = self._at_most("hull_units", method.hull_units, _HULL_UNITS, n)
        rows = hull_units if method.denoiser == "alt_conv" else plan.max_batch
        classes = setting.loss.task.classes
        labels = 2 if classes is None else len(classes)  # that span an example's gradients
        vertices = rows * units.examples * labels
        if method.denoiser != "self_span":
            vertices = min(vertices, WORKING_SET)
        fits = gram_bytes(vertices, size) <= _GRAM_BYTES
        return choices | {
            "denoiser": method.denoiser,
            "projection": method.projection or ("gram" if fits else "matrix_free"),
            "clip_hull": method.clip_hull,
            "hull_units": hull_units,
            "smoothing": method.smoothing,
            "tolerance": method.tolerance,
        }

    def _at_most(self, name: str, given: int | None, default: int, units: int) -> int:
        """The given number of units, or the default. Raises ConfigError if there are fewer."""
        if given is not None and given > units:
            reason = f"{given:,} is more than the {units:,} units"
            raise self.loaded.error(("method", name), reason)
        return min(default, units) if given is None else given

    def _notes(self, config: StepConfig) -> tuple[str, ...]:
        notes, method = [], self.method
        if not Devices.of(self.loaded).kind.startswith("cpu"):
            notes.append(
                "this run can be resumed only if its steps repeat bit by bit; on a GPU this needs "
                "XLA_FLAGS=--xla_gpu_deterministic_ops=true"
            )
        if isinstance(method, LabelDpPro) and method.denoiser != "noop" and not method.projection:
            notes.append(
                f"projection: {config.projection} was chosen because of the memory it needs"
            )
        return tuple(notes)


def _metrics(report: StepReport, config: StepConfig) -> Metrics:
    """Functions of the noisy sum and of public data; none where batches must stay secret."""
    if config.plan.batches == "secret":
        return {}
    found = {"noisy_gradient_norm": report.noisy_norm}
    if config.denoiser != "noop":
        found["projection_distance"] = report.distance
        found["projection_certified"] = report.certified.astype(jnp.float32)
    return found
