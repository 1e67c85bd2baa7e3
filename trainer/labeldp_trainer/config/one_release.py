"""``method: {kind: one_release}``: one noisy statistic of the labels."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt, StrictStr, model_validator

from labeldp_trainer.config.base import Number, UserLevel
from labeldp_trainer.config.central import SMALLEST_DELTA, LabelRange

LARGEST_END = 1e30
"""Models are of float32."""


Head = Literal["ridge", "softmax", "poisson"]
HEADS: dict[str, tuple[Head, ...]] = {
    "cross_entropy": ("softmax", "ridge"),
    "squared": ("ridge",),
    "poisson": ("poisson",),
}
"""Those that fit a loss, its default first."""


class OneRelease(UserLevel):
    """One noisy statistic Σ w·x ⊗ t(y) of public features x; models are fitted to it alone."""

    kind: Literal["one_release"]
    epsilon: Annotated[Number, Field(ge=1e-3, le=60)]
    delta: Annotated[Number, Field(gt=0, lt=1)]
    label_range: LabelRange | None = Field(
        None, description="the ends of a regression's labels; labels beyond are moved to them"
    )
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
        if self.delta < SMALLEST_DELTA:
            raise ValueError(f"delta: the least that is resolved is {SMALLEST_DELTA:g}; raise it")
        if self.label_range is not None and not self.label_range[0] < self.label_range[1]:
            raise ValueError("label_range: the first end must be less than the second")
        if self.label_range is not None and max(map(abs, self.label_range)) > LARGEST_END:
            raise ValueError(f"label_range: goes to {LARGEST_END:g} at most: rescale the labels")
        return self
