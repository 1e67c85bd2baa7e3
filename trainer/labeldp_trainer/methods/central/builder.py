"""From the config and the data to a private step, its noise calibrated for its plan."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp

from labeldp_compile.yaml_tree import KeyPath
from labeldp_trainer.config import DpSgd, LabelDpPro, LoadedConfig
from labeldp_trainer.dp_gradient.accounting import (
    Plan,
    calibrate_integers,
    padded_batch,
    provable_epsilon,
)
from labeldp_trainer.dp_gradient.draws import Randomness, StepDraws
from labeldp_trainer.dp_gradient.hull import gram_bytes
from labeldp_trainer.dp_gradient.step import Report, private_gradient
from labeldp_trainer.dp_gradient.step_config import StepConfig
from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.methods.central.statement import central_statement
from labeldp_trainer.methods.central.units import Kept, Units, make_problem, make_units
from labeldp_trainer.methods.method import Method, Metrics, Setting
from labeldp_trainer.methods.statement import written
from labeldp_trainer.models import Params, count_parameters

GRAM_BYTES = 1 << 30  # what the vertices and their Gram matrix may take if nobody chooses
_DRAWN_BYTES = 1 << 26  # what the batches and noise of steps that are drawn together may take
_HULL_UNITS, _CENTRE_UNITS = 64, 256


class CentralBuilder:
    """Builds ``dp_sgd`` and ``labeldp_pro``."""

    def __init__(self, loaded: LoadedConfig) -> None:
        """Keep the config."""
        method = loaded.config.method
        assert isinstance(method, DpSgd | LabelDpPro)
        self._loaded, self._method = loaded, method
        users = () if method.user_column is None else (method.user_column,)
        self.columns: tuple[str, ...] = (loaded.config.data.label, *users)
        self.classes: tuple[int | str, ...] | None = None

    def build(self, setting: Setting) -> Method:
        """Steps with noise. Raises InputError."""
        method, devices = self._method, setting.devices
        units = make_units(setting, method)
        plan, steps_per_epoch = self._plan(units)
        problem = make_problem(setting, method)
        config = self._step_config(setting, plan, units)
        size = count_parameters(jax.eval_shape(setting.model.init, jax.random.key(0)))
        kept = self._kept(setting, units, plan, size)  # takes seconds: after what may be refused
        config = dataclasses.replace(config, noise_multiplier=kept.noise_multiplier)
        amplified = plan.batches == "secret"
        randomness = Randomness(kept.noise_key, config, size)

        def draw(key: jax.Array, first: int, count: int) -> StepDraws:
            # The loop's key comes from the public seed: no noise may depend on it.
            del key
            drawn: StepDraws = devices.everywhere(randomness.steps(first, count))
            return drawn

        def gradient(
            params: Params, key: jax.Array, step: jax.Array, drawn: Any, arrays: Any
        ) -> tuple[Params, Metrics]:
            del key, step
            x, y = arrays
            estimate, report = private_gradient(config, problem, params, x, y, drawn)
            return estimate, {} if amplified else _metrics(report, config)

        projection = None if config.denoiser == "noop" else config.projection
        details: dict[str, Any] = {"projection": projection, "rows": units.rows}
        return Method(
            arrays=devices.everywhere((units.x, units.y)),
            steps_per_epoch=steps_per_epoch,
            examples_per_epoch=steps_per_epoch * plan.batch,
            draw=draw,
            steps_at_once=max(1, _DRAWN_BYTES // randomness.bytes_of_step),
            gradient=gradient,
            training_loss=None,
            statement=central_statement(
                method.kind,
                config,
                coordinates=size,
                epsilon=method.epsilon,
                delta=method.delta,
                examples_per_user=method.max_examples_per_user,
                has_test=setting.dataset.test is not None,
                details=details | self._choices(config),
            ),
            keep=kept.arrays(),
            notes=_notes(setting, config, size),
            repeats_noise=True,
            times_are_public=not amplified,
        )

    def _plan(self, units: Units) -> tuple[Plan, int]:
        training, method, n = self._loaded.config.training, self._method, units.count
        batch, most = training.batch_size, method.max_batch
        if batch > n:
            self._fail(("training", "batch_size"), f"{batch:,} is larger than the {n:,} users")
        partition = method.batches == "partition"
        steps_per_epoch = math.ceil(n / batch) if partition else max(1, round(n / batch))
        steps = training.epochs * steps_per_epoch
        if partition:
            most = batch
        elif most is None:
            most = padded_batch(n, batch, steps, method.delta, method.microbatch)
        elif not batch <= most <= n:
            reason = f"must be between the batch size, {batch:,}, and the number of units, {n:,}"
            self._fail(("method", "max_batch"), f"{reason}; it is {most:,}")
        return Plan(n, batch, steps, most, method.batches), steps_per_epoch

    def _kept(self, setting: Setting, units: Units, plan: Plan, size: int) -> Kept:
        method = self._method

        def noise_multiplier() -> float:
            try:
                return calibrate_integers(method.epsilon, plan, method.delta, size)
            except ValueError as error:
                raise self._loaded.error(("method", "epsilon"), str(error)) from None

        try:
            return Kept.of_run(setting.stored, (units.x, units.y), noise_multiplier)
        except RunFolderError as error:
            raise RunFolderError(f"{self._loaded.source}: cannot be resumed: {error}") from None

    def _step_config(self, setting: Setting, plan: Plan, units: Units) -> StepConfig:
        """All but σ."""
        method, devices, n = self._method, setting.devices, plan.units
        choices: dict[str, Any] = {}
        if isinstance(method, LabelDpPro):
            hull_units = self._at_most("hull_units", method.hull_units, _HULL_UNITS, n)
            choices = {
                "denoiser": method.denoiser,
                "projection": method.projection,
                "clip_hull": method.clip_hull,
                "hull_units": hull_units,
                "smoothing": method.smoothing,
                "tolerance": method.tolerance,
            }
            if method.projection is None:
                rows = hull_units if method.denoiser == "alt_conv" else plan.max_batch
                size = count_parameters(jax.eval_shape(setting.model.init, jax.random.key(0)))
                needed = gram_bytes(rows * units.examples, _vertices(setting), size)
                choices["projection"] = "gram" if needed <= GRAM_BYTES else "matrix_free"
        microbatch = min(method.microbatch, plan.max_batch)
        return StepConfig(
            plan,
            method.clip_norm,
            1.0,
            method.clipping,
            centre=method.centre,
            centre_units=self._at_most("centre_units", method.centre_units, _CENTRE_UNITS, n),
            radius_floor=method.radius_floor,
            microbatch=math.ceil(microbatch / devices.count) * devices.count,
            split=devices.split_if_even,
            **choices,
        )

    def _at_most(self, name: str, given: int | None, default: int, units: int) -> int:
        if given is not None and given > units:
            self._fail(("method", name), f"{given:,} is more than the {units:,} units")
        return min(default, units) if given is None else given

    def _choices(self, config: StepConfig) -> dict[str, Any]:
        """What else decides how the labels are used."""
        found: dict[str, Any] = {"label_range": self._method.label_range}
        if config.clipping == "label_free":
            found |= {"centre": config.centre, "radius_floor": config.radius_floor}
        if config.denoiser.endswith("conv"):
            found |= {"smoothing": config.smoothing, "tolerance": config.tolerance}
            if config.clipping == "standard":
                found["clip_hull"] = config.clip_hull
        return found

    def _fail(self, key: KeyPath, message: str) -> None:
        raise self._loaded.error(key, message)


def _vertices(setting: Setting) -> int:
    """Labels that span an example's gradients."""
    classes = setting.loss.task.classes
    return 2 if classes is None else len(classes)


def _metrics(report: Report, config: StepConfig) -> Metrics:
    """Functions of the noisy sum and of public data."""
    found = {"noisy_gradient_norm": report.noisy_norm}
    if config.denoiser != "noop":
        found["projection_distance"] = report.distance
        found["projection_certified"] = report.certified.astype(jnp.float32)
    return found


def _notes(setting: Setting, config: StepConfig, size: int) -> tuple[str, ...]:
    notes = []
    units, method = config.plan.units, setting.loaded.config.method
    assert isinstance(method, DpSgd | LabelDpPro)
    if method.delta * units >= 1:
        lost = "the label of one row" if method.user_column is None else "the labels of one user"
        notes.append(
            f"δ = {written(method.delta)} is no less than 1/{units:,}: publishing {lost} drawn at "
            "random would be allowed, too; choose a far smaller δ"
        )
    proved = provable_epsilon(method.epsilon, config.plan, method.delta, size)
    if proved < method.epsilon:
        notes.append(
            f"ε = {written(method.epsilon)} is proved at ε = {written(proved)}, with the noise of "
            "that: at a larger ε, rounding to integers would take more than a tenth of δ"
        )
    if config.denoiser != "noop" and getattr(method, "projection", None) is None:
        notes.append(f"projection: {config.projection}, by the memory it needs")
    if not setting.devices.kind.startswith("cpu"):
        notes.append(
            "a run that has begun is resumed only where steps repeat bit by bit: on a GPU with "
            "XLA_FLAGS=--xla_gpu_deterministic_ops=true"
        )
    return tuple(notes)
