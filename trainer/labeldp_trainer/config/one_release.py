"""``method: {kind: one_release}``: one noisy statistic of the labels."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt, StrictStr, model_validator

from labeldp_trainer.config.base import NoisySum, Number

LARGEST_END = 1e30
"""Models are of float32."""


Head = Literal["ridge", "softmax", "poisson"]
HEADS: dict[str, tuple[Head, ...]] = {
    "cross_entropy": ("softmax", "ridge"),
    "squared": ("ridge",),
    "poisson": ("poisson",),
}
"""Those that fit a loss, its default first."""


class OneRelease(NoisySum):
    """One noisy statistic Σ w·x ⊗ t(y) of public features x; models are fitted to it alone."""

    kind: Literal["one_release"]
    epsilon: Annotated[Number, Field(ge=1e-3, le=60)]
    default: StrictInt | StrictStr | Number | None = Field(
        None,
        description="what a missing or unknown label counts as; default: the first class, or the "
        "middle of label_range",
    )
    head: Head | None = Field(
        None, description="default: softmax for classes, poisson for loss: poisson, else ridge"
    )

    @model_validator(mode="after")
    def _ranges(self) -> Self:
        if self.label_range is not None and max(map(abs, self.label_range)) > LARGEST_END:
            raise ValueError(f"label_range: goes to {LARGEST_END:g} at most: rescale the labels")
        return self
