"""The mechanisms of the spec and their options, as pydantic models."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictInt, model_validator

from labeldp_compile.spec.strict import Number, Strict

MAX_KEPT_LABELS = 1_000_000


class RandomizedResponse(Strict):
    """Randomized response over all labels (Warner 1965)."""

    kind: Literal["randomized_response"]


class RRonBins(Strict):
    """Randomized response on the optimal bins (RR-on-Bins, ICLR 2023, Algorithm 2)."""

    kind: Literal["rr_on_bins"]


class RRTopK(Strict):
    """Randomized response over the k likeliest labels (RRTop-k, NeurIPS 2021, Algorithm 1)."""

    kind: Literal["rr_top_k"]
    k: StrictInt = Field(ge=1, le=MAX_KEPT_LABELS, description="number of labels kept as outputs")


class RRWithPrior(Strict):
    """RRTop-k with the best k under the prior (RRWithPrior, NeurIPS 2021, Algorithm 2)."""

    kind: Literal["rr_with_prior"]


class DebiasedRR(Strict):
    """Randomized response whose outputs are moved apart to be unbiased (Definition 23)."""

    kind: Literal["debiased_rr"]


class AdditiveSpec(Strict):
    """Noise added to the label; Δ is the range of the domain."""

    clip: StrictBool = Field(
        False, description="whether outputs are clamped to the range of the labels (biased)"
    )
    lattice: Annotated[Number, Field(gt=0)] | None = Field(
        None,
        description="realise the noise on a lattice at least this fine (default: one step a label)",
    )


class Laplace(AdditiveSpec):
    """Discrete Laplace noise (Definition 17), or on a fine lattice the continuous one (18)."""

    kind: Literal["laplace"]


class Staircase(AdditiveSpec):
    """Staircase noise of the width that is best for the loss (Definitions 19 and 20)."""

    kind: Literal["staircase"]


class Exponential(Strict):
    """The exponential mechanism over the labels, with the scores −loss, spending all of ε."""

    kind: Literal["exponential"]


class Auto(Strict):
    """Chooses the mechanism by the loss and the purpose."""

    kind: Literal["auto"]
    goal: Literal["training", "labels"] = Field(
        "training",
        description="training: what a model learns best from; labels: the least noisy label loss",
    )


class GivenOutputs(Strict):
    """Outputs to choose from: evenly spaced ones (Algorithm 2 of the paper), or a list."""

    grid: StrictInt | None = Field(None, ge=2, le=100_000, description="number of outputs")
    values: list[Number] | None = Field(None, min_length=2, description="the outputs")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.grid is None) == (self.values is None):
            raise ValueError("expected exact, {grid: n} or {values: [...]}")
        if self.values and len({float(value) for value in self.values}) < len(self.values):
            raise ValueError("the outputs must differ")
        return self


class BiasSpec(Strict):
    """How much bias is allowed, or what it costs; exactly one of the three."""

    max: Annotated[Number, Field(ge=0)] | None = Field(
        None, description="the largest |E[output | label] − label|"
    )
    penalty: Annotated[Number, Field(ge=0)] | None = Field(
        None, description="λ: minimise the noisy label loss + λ·Σ prior·bias²"
    )
    sample_size: StrictInt | None = Field(
        None, ge=1, description="the penalty (n − 1)/2, for averages of n labels"
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(part is not None for part in (self.max, self.penalty, self.sample_size)) != 1:
            raise ValueError("a bias budget is one of max, penalty and sample_size")
        return self


class OptimalUnbiased(Strict):
    """The unbiased randomizer of least loss (NeurIPS 2023), or one within a bias budget."""

    kind: Literal["optimal_unbiased"]
    outputs: Literal["exact"] | GivenOutputs = Field(
        "exact", description="exact: real outputs, squared loss; or {grid: n}, or {values: [...]}"
    )
    bias: BiasSpec | None = None

    @model_validator(mode="after")
    def _bias_needs_exact_outputs(self) -> Self:
        if self.bias is not None and self.outputs != "exact":
            raise ValueError("a bias budget needs outputs: exact")
        return self


Mechanism = (
    RandomizedResponse
    | RRonBins
    | OptimalUnbiased
    | RRTopK
    | RRWithPrior
    | DebiasedRR
    | Laplace
    | Staircase
    | Exponential
)


def is_unbiased(mechanism: Mechanism | Auto) -> bool:
    """Whether the mechanism keeps the mean of a label (but for clamping far out in the tails)."""
    if isinstance(mechanism, Laplace | Staircase):
        return not mechanism.clip
    return isinstance(mechanism, OptimalUnbiased | DebiasedRR)
