"""The methods that randomize labels while a model is trained: LP-MST, ALIBI, priors of clusters."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt, model_validator

from labeldp_trainer.config.base import Number, Strict

Epsilon = Annotated[Number, Field(ge=1e-6, le=60)]


class _LabelMethod(Strict):
    epsilon: Epsilon = Field(description="ε that each label pays when it is randomized")
    mixup: Annotated[Number, Field(gt=0)] | None = Field(
        None, description="α: each batch is mixed with itself, with a weight of Beta(α, α)"
    )


class LpMst(_LabelMethod):
    """Multi-stage training (Deep learning with label DP, Algorithm 3)."""

    kind: Literal["lp_mst"]
    stages: StrictInt = Field(2, ge=1, le=64, description="T")
    fractions: tuple[Annotated[Number, Field(gt=0)], ...] | None = Field(
        None, description="share of the examples that each stage randomizes; default: equal"
    )
    temperature: Annotated[Number, Field(gt=0)] = Field(
        1.0, description="priors are softmax(logits/temperature): below 1 sharper, above 1 flatter"
    )

    @property
    def shares(self) -> tuple[float, ...]:
        """One a stage."""
        return self.fractions or (1 / self.stages,) * self.stages

    @model_validator(mode="after")
    def _fractions(self) -> Self:
        if self.fractions is not None:
            if len(self.fractions) != self.stages:
                raise ValueError(f"fractions: {len(self.fractions)} for {self.stages} stages")
            if not math.isclose(math.fsum(self.fractions), 1, abs_tol=1e-6):
                raise ValueError(f"fractions: their sum is {math.fsum(self.fractions):g}, not 1")
        return self


class Alibi(_LabelMethod):
    """Laplace noise on one-hot labels, and their Bayesian posterior (Malek et al. 2021)."""

    kind: Literal["alibi"]
    prior: Literal["model", "uniform"] = Field(
        "model", description="of the posterior: the model's present predictions, or uniform"
    )
