"""Private training in the central model: ``dp_sgd`` and ``labeldp_pro``."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictInt, model_validator

from labeldp_trainer.config.base import NoisySum, Number

Positive = Annotated[Number, Field(gt=0)]
ClipNorm = Annotated[Number, Field(ge=1e-6, le=1e6)]  # far from the ends of float32
Count = Annotated[StrictInt, Field(ge=1)]
_CENTRED = ("centre", "centre_units", "radius_floor")


class Central(NoisySum):
    """The keys of methods that add noise to sums of clipped gradients."""

    epsilon: Annotated[Number, Field(gt=0, le=60)]
    clip_norm: ClipNorm = 1.0
    clipping: Literal["standard", "label_free"] = "standard"
    batches: Literal["secret", "public", "partition"] = "secret"
    max_batch: Count | None = Field(
        None, description="larger samples are cut; default: a size that is rarely exceeded"
    )
    microbatch: Count = Field(32, description="per-example gradients in memory at once")
    centre: Literal["mean", "none"] = "mean"
    centre_units: Count | None = Field(None, description="default: 256, or all if there are fewer")
    radius_floor: Positive = 1e-3

    @property
    def needs_labels(self) -> bool:
        """Whether a step computes the gradients for all possible labels."""
        return self.clipping == "label_free"

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Options that have no effect with the others."""
        yield from super().rules()
        useless = self.max_batch is not None and self.batches == "partition"
        yield (
            useless,
            "max_batch: has no effect with batches: partition, where all have the same size",
        )
        for name in _CENTRED:
            useless = name in self.model_fields_set and self.clipping == "standard"
            yield useless, f"{name} needs clipping: label_free"


class DpSgd(Central):
    """DP-SGD: noisy sums of clipped per-example gradients.

    Batches are secret Poisson samples, unless ``batches`` says otherwise. ``clipping: label_free``
    scales gradients by public facts about them.
    """

    kind: Literal["dp_sgd"]


class LabelDpPro(Central):
    """LabelDP-Pro: projects the noisy gradient onto the span or hull of possible gradients.

    Measured: level with ``dp_sgd`` at small ε and behind it at larger ones, once ``dp_sgd`` has
    learning rates of 4 (docs/measured/projections.md). The denoisers ``self_span`` and
    ``self_conv`` use the features of the batch, so their batches cannot be secret.
    """

    kind: Literal["labeldp_pro"]
    denoiser: Literal["self_span", "self_conv", "alt_conv", "noop"]
    projection: Literal["gram", "matrix_free"] | None = Field(
        None, description="default: gram if it needs at most 1 GiB, otherwise matrix_free"
    )
    clip_hull: StrictBool = True
    hull_units: Count | None = Field(
        None, description="for alt_conv; default: 64, or all if there are fewer"
    )
    smoothing: Annotated[Number, Field(gt=0, le=1)] = 1.0
    tolerance: Annotated[Number, Field(gt=0, lt=1)] = 1e-2

    @property
    def needs_labels(self) -> bool:
        """Whether a step computes the gradients for all possible labels."""
        return self.denoiser != "noop" or self.clipping == "label_free"

    @model_validator(mode="before")
    @classmethod
    def _batches_of_the_denoiser(cls, data: object) -> object:
        if isinstance(data, dict) and str(data.get("denoiser")).startswith("self_"):
            return {"batches": "partition", **data}
        return data

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Options match the denoiser."""
        yield from super().rules()
        given, denoiser = self.model_fields_set, self.denoiser
        yield (
            denoiser.startswith("self_") and self.batches == "secret",
            f"batches: cannot be secret because {denoiser} uses the features of the batch; "
            "use public or partition",
        )
        useless = denoiser != "alt_conv" and "hull_units" in given
        yield useless, "hull_units needs denoiser: alt_conv"
        useless = not denoiser.endswith("conv") and bool(given & {"smoothing", "tolerance"})
        yield useless, "smoothing and tolerance need denoiser: self_conv or alt_conv"
        useless = denoiser == "noop" and bool(given & {"projection", "clip_hull"})
        yield useless, "projection and clip_hull have no effect with denoiser: noop"
        useless = "clip_hull" in given and self.clipping == "label_free"
        yield (
            useless,
            "clip_hull: has no effect with clipping: label_free, which scales the hull itself",
        )
