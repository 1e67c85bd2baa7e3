"""``method: {kind: labeldp_pro}``: noisy gradients that are projected onto what gradients can be.

Whatever is done to a noisy sum is post-processing: the promise is that of ``dp_sgd``.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from labeldp_trainer.config import LabelDpPro
from labeldp_trainer.dp_gradient.accounting import NoisePlan
from labeldp_trainer.dp_gradient.hull import gram_bytes
from labeldp_trainer.dp_gradient.step import StepReport
from labeldp_trainer.dp_gradient.step_config import StepConfig
from labeldp_trainer.methods.central.builder import CentralBuilder
from labeldp_trainer.methods.central.units import Units
from labeldp_trainer.methods.loop import Metrics
from labeldp_trainer.methods.method import Setting

GRAM_BYTES = 1 << 30  # what the vertices and their Gram matrix may take if nobody chooses
_HULL_UNITS = 64


class LabelDpProBuilder(CentralBuilder[LabelDpPro]):
    """Builds ``labeldp_pro``."""

    def denoising(
        self, setting: Setting, plan: NoisePlan, units: Units, size: int
    ) -> dict[str, Any]:
        """The denoiser and how it projects. Raises InputError."""
        method, projection = self.method, self.method.projection
        hull_units = self.at_most("hull_units", method.hull_units, _HULL_UNITS, plan.units)
        if projection is None:
            rows = hull_units if method.denoiser == "alt_conv" else plan.max_batch
            classes = setting.loss.task.classes
            labels = 2 if classes is None else len(classes)  # that span an example's gradients
            needed = gram_bytes(rows * units.examples, labels, size)
            projection = "gram" if needed <= GRAM_BYTES else "matrix_free"
        return {
            "denoiser": method.denoiser,
            "projection": projection,
            "clip_hull": method.clip_hull,
            "hull_units": hull_units,
            "smoothing": method.smoothing,
            "tolerance": method.tolerance,
        }

    def details(self, config: StepConfig) -> dict[str, Any]:
        """What else decides how noisy sums are used."""
        found: dict[str, Any] = {}
        if config.denoiser != "noop":
            found["projection"] = config.projection
        if config.denoiser.endswith("conv"):
            found |= {"smoothing": config.smoothing, "tolerance": config.tolerance}
            if config.clipping == "standard":
                found["clip_hull"] = config.clip_hull
        return found

    def metrics(self, report: StepReport, config: StepConfig) -> Metrics:
        """With how far the projection came."""
        found = super().metrics(report, config)
        if config.denoiser != "noop":
            found["projection_distance"] = report.distance
            found["projection_certified"] = report.certified.astype(jnp.float32)
        return found

    def notes(self, config: StepConfig) -> tuple[str, ...]:
        """Which projection was chosen."""
        if config.denoiser == "noop" or self.method.projection is not None:
            return ()
        return (f"projection: {config.projection}, by the memory it needs",)
