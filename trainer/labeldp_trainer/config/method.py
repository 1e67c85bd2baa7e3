"""The part ``method`` of a config: how labels are protected."""

import math
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from labeldp_compile.toolkit import Strict
from labeldp_trainer.config.data import (
    Approximate,
    NoisySum,
    Number,
    TrueLabels,
    UserLevel,
    may_lack,
)

# Private training in the central model: ``dp_sgd`` and ``labeldp_pro``.

ClipNorm = Annotated[Number, Field(ge=1e-6, le=1e6)]  # far from the ends of float32
Count = Annotated[StrictInt, Field(ge=1)]


class Central(NoisySum):
    """The keys of methods that add noise to sums of clipped gradients."""

    epsilon: Annotated[Number, Field(gt=0, le=60)]
    clip_norm: ClipNorm = 1.0
    batches: Literal["secret", "public", "partition"] = "secret"
    max_batch: Count | None = Field(
        None, description="larger samples are cut; default: a size that is rarely exceeded"
    )
    microbatch: Count = Field(32, description="per-example gradients in memory at once")

    @property
    def needs_labels(self) -> bool:
        """Whether a step computes the gradients for all possible labels."""
        return False

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Options that have no effect with the others."""
        yield from super().rules()
        useless = self.max_batch is not None and self.batches == "partition"
        yield (
            useless,
            "max_batch: has no effect with batches: partition, where all have the same size",
        )


class DpSgd(Central):
    """DP-SGD: noisy sums of clipped per-example gradients.

    Batches are secret Poisson samples, unless ``batches`` says otherwise.
    """

    kind: Literal["dp_sgd"]


class LabelDpPro(Central):
    """LabelDP-Pro: projects the noisy gradient onto the span or hull of possible gradients.

    Measured: level with ``dp_sgd`` at small ε and behind it at larger ones, once ``dp_sgd`` has
    learning rates of 4 (benchmarks/notes/projections.md). The denoisers ``self_span`` and
    ``self_conv`` use the features of the batch, so their batches cannot be secret.
    """

    kind: Literal["labeldp_pro"]
    denoiser: Literal["self_span", "self_conv", "alt_conv", "noop"]
    hull_units: Count | None = Field(
        None, description="for alt_conv; default: 64, or all if there are fewer"
    )
    smoothing: Annotated[Number, Field(gt=0, le=1)] = 1.0
    tolerance: Annotated[Number, Field(gt=0, lt=1)] = 1e-2

    @property
    def needs_labels(self) -> bool:
        """Whether a step computes the gradients for all possible labels."""
        return self.denoiser != "noop"

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


Epsilon = Annotated[Number, Field(ge=1e-6, le=60)]
Correction = Literal["none", "forward", "backward"]


class _LabelMethod(TrueLabels):
    epsilon: Epsilon = Field(description="ε that randomizing a label spends")
    mixup: Annotated[Number, Field(gt=0)] | None = Field(
        None,
        description="α of mixup: each batch is mixed with itself with a weight from Beta(α, α)",
    )


class LpMst(_LabelMethod):
    """Multi-stage training (Deep learning with label DP, Algorithm 3)."""

    kind: Literal["lp_mst"]
    stages: StrictInt = Field(2, ge=1, le=64, description="number of stages, T")
    fractions: tuple[Annotated[Number, Field(gt=0)], ...] | None = Field(
        None, description="share of the examples that each stage randomizes; default: equal shares"
    )
    temperature: Annotated[Number, Field(gt=0)] = Field(
        1.0, description="priors are softmax(logits/temperature): sharper below 1, flatter above 1"
    )

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of each stage."""
        return self.fractions or (1 / self.stages,) * self.stages

    def rules(self) -> Iterator[tuple[bool, str]]:
        """There is one fraction for each stage, and their sum is 1."""
        yield from super().rules()
        given, total = len(self.shares), math.fsum(self.shares)
        yield given != self.stages, f"fractions: there are {given} for {self.stages} stages"
        not_one = not math.isclose(total, 1, abs_tol=1e-6)
        yield not_one, f"fractions: their sum is {total:g}, not 1"


class Alibi(_LabelMethod):
    """Laplace noise on one-hot labels, then their Bayesian posterior (Malek et al. 2021)."""

    kind: Literal["alibi"]
    prior: Literal["model", "uniform"] = Field(
        "model",
        description="prior of the posterior: the current predictions of the model, or uniform",
    )


class Clusters(_LabelMethod):
    """Clusters the examples; the private histogram of a cluster is the prior of its randomizer.

    Deep learning with label DP, Section 5.2.
    """

    kind: Literal["clusters"]
    k: StrictInt = Field(ge=1, le=10_000, description="number of k-means clusters")
    epsilon_prior: Epsilon = Field(description="ε that counting the histograms spends")


class NoMethod(Strict):
    """Train on the true labels, without privacy."""

    kind: Literal["none"]


class Privatized(UserLevel):
    """Train on labels that a certified randomizer made private.

    With ``artifact`` alone, the true labels of ``column`` are randomized once, before training.
    With ``private_column``, that artifact has randomized them.
    """

    kind: Literal["privatized"]
    artifact: StrictStr
    column: StrictStr | None = Field(
        None, description="column of the true labels; default: data.label"
    )
    private_column: StrictStr | None = None
    unnoted: StrictBool = Field(
        False, description="take a private_column of which no note says that the artifact made it"
    )
    correction: Correction | None = Field(
        None, description="how the loss of classes accounts for the noise in the labels"
    )

    def rules(self) -> Iterator[tuple[bool, str]]:
        """The labels are given once, without contradiction."""
        yield from super().rules()
        private = self.private_column is not None
        reason = "column (true labels) and private_column (private labels): give only one of them"
        yield self.column is not None and private, reason
        yield self.unnoted and not private, "unnoted needs private_column"


LARGEST_END, LEAST_WIDTH = 1e18, 1e-18
"""The largest label, and the narrowest range of labels: models use float32, and squares."""
_LEAST_SHARE = 1e-4  # of the larger end: with 1e-5, rounding began to cost accuracy


Head = Literal["ridge", "softmax", "poisson"]
HEADS: dict[str, tuple[Head, ...]] = {
    "cross_entropy": ("softmax", "ridge"),
    "squared": ("ridge",),
    "poisson": ("poisson",),
}
"""The heads for each loss, its default first."""


class _Release(NoisySum):
    """The keys of both methods that release noisy statistics of labels."""

    epsilon: Annotated[Number, Field(ge=1e-3, le=60)]

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Labels fit into float32, and are told apart there."""
        yield from super().rules()
        low, high = self.label_range or (0, 1)
        largest, width = max(abs(low), abs(high)), high - low
        reason = f"label_range: must not exceed {LARGEST_END:g}; rescale the labels"
        yield largest > LARGEST_END, reason
        reason = f"label_range: must be wider than {LEAST_WIDTH:g}; rescale the labels"
        yield 0 < width < LEAST_WIDTH, reason
        reason = (
            f"label_range: must be wider than its larger end times {_LEAST_SHARE:g}, as models use "
            "float32; subtract a number from the labels"
        )
        yield 0 < width < _LEAST_SHARE * largest, reason


class OneRelease(_Release):
    """Releases a noisy statistic Σ w·x ⊗ t(y) of public features x, and fits models to it alone."""

    kind: Literal["one_release"]
    head: Head | None = Field(
        None, description="default: softmax for classes, poisson for loss: poisson, otherwise ridge"
    )
    goal: Literal["predictions", "coefficients"] = Field(
        "predictions",
        description="the goal that shapes the noise; coefficients releases every direction of the "
        "features, for labeldp runs --coefficients",
    )


class StagedRelease(_Release):
    """Releases a few adaptive noisy statistics of labels, and fits effects of columns, pairs and
    triples of columns to them."""

    model_config = may_lack("kind")

    kind: Literal["staged_release"]
    interactions: StrictInt = Field(
        3, ge=1, le=3, description="columns in a term: 1 (main effects), 2 (pairs) or 3"
    )


MOST_CLASSES = 1_000
"""The most classes of ``pate``, which holds counts of all of them for many rows."""


class Pate(Approximate):
    """Teachers on disjoint parts of the labels vote with noise; a student learns from the votes.

    Malek et al. 2021, on public representations. The student also uses all features.
    """

    kind: Literal["pate"]
    epsilon: Annotated[Number, Field(ge=1e-3, le=60)]
    teachers: StrictInt | None = Field(
        None, ge=1, description="number of teachers, each with its own rows; default: by a rule"
    )
    queries: StrictInt | None = Field(
        None, ge=1, le=5_000, description="number of rows to vote on; default: by a rule"
    )
    seed: StrictInt = Field(
        0,
        ge=0,
        lt=2**32,
        description="seed for splitting rows among teachers and for choosing the rows to vote on",
    )


MethodConfig = Annotated[
    NoMethod
    | Privatized
    | OneRelease
    | StagedRelease
    | Pate
    | LpMst
    | Alibi
    | Clusters
    | DpSgd
    | LabelDpPro,
    Field(discriminator="kind"),
]
