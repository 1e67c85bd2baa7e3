"""The methods that randomize labels themselves: LP-MST, ALIBI, priors of clusters."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictInt, StrictStr, model_validator

from labeldp_trainer.config.base import Number, Strict
from labeldp_trainer.config.users import UserLevel

Epsilon = Annotated[Number, Field(ge=1e-6, le=60)]


class _LabelMethod(UserLevel):
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


class Embeddings(Strict):
    """An array [n, d] in an npz archive, one row a training example."""

    file: StrictStr
    array: StrictStr = "embeddings"


class Clusters(_LabelMethod):
    """A private label histogram of each cluster of examples as the prior of their randomizer.

    Deep learning with label DP, Section 5.2. ``domain`` and ``mechanism`` are those of a spec.
    """

    kind: Literal["clusters"]
    k: StrictInt = Field(ge=1, le=10_000, description="clusters of k-means")
    epsilon_prior: Epsilon = Field(description="ε that the labels pay for the histograms")
    columns: tuple[StrictStr, ...] | None = Field(
        None, min_length=1, description="feature columns of a table to cluster by; default: all"
    )
    embeddings: Embeddings | None = Field(None, description="to cluster by instead of features")
    components: StrictInt = Field(
        50, ge=1, description="wider features are projected onto so many principal components"
    )
    mechanism: dict[str, Any] = Field({"kind": "rr_with_prior"}, description="as in a spec")
    domain: dict[str, Any] | None = Field(None, description="as in a spec, for regression")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.columns is not None and self.embeddings is not None:
            raise ValueError("columns and embeddings: give one")
        return self
