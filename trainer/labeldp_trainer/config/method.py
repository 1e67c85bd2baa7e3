"""The part ``method`` of a config: how labels are protected."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr

from labeldp_trainer.config.base import Approximate, NoisySum, Number, Strict, UserLevel
from labeldp_trainer.config.central import DpSgd, LabelDpPro

Epsilon = Annotated[Number, Field(ge=1e-6, le=60)]
Correction = Literal["none", "forward", "backward"]


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

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Fractions are shares of all."""
        yield from super().rules()
        given, total = len(self.shares), math.fsum(self.shares)
        yield given != self.stages, f"fractions: {given} for {self.stages} stages"
        not_one = not math.isclose(total, 1, abs_tol=1e-6)
        yield not_one, f"fractions: their sum is {total:g}, not 1"


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

    def rules(self) -> Iterator[tuple[bool, str]]:
        """One source."""
        yield from super().rules()
        both = self.columns is not None and self.embeddings is not None
        yield both, "columns and embeddings: give one"


class NoMethod(Strict):
    """Train on the true labels: no privacy."""

    kind: Literal["none"]


class Privatized(UserLevel):
    """Train on labels that a certified randomizer made private.

    With ``artifact`` alone, the true labels of ``column`` are randomized once, before training.
    With ``private_column``, they were already, with the artifact or certificate that is named.
    """

    kind: Literal["privatized"]
    artifact: StrictStr | None = None
    certificate: StrictStr | None = None
    column: StrictStr | None = Field(None, description="true labels; default: data.label")
    private_column: StrictStr | None = None
    key: StrictStr | None = Field(None, description="key file of labeldp keygen")
    id_column: StrictStr | None = None
    context: StrictStr | None = Field(None, description="default: the name of the label column")
    label_version: StrictInt = Field(0, ge=0, lt=2**64)
    debiased: StrictBool = Field(False, description="the same as correction: backward")
    correction: Correction | None = Field(
        None, description="of the loss of classes for what the randomizer did to labels"
    )

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Labels, and what randomizes or has randomized them, are named once."""
        yield from super().rules()
        artifact, certificate = self.artifact is not None, self.certificate is not None
        private, key = self.private_column is not None, self.key is not None
        neither, both = not (artifact or certificate), artifact and certificate
        yield neither, "name an artifact, or private_column and its certificate"
        yield both, "artifact and certificate: one is enough, the artifact holds its certificate"
        reason = "a certificate alone cannot randomize: name the artifact, or the private_column"
        yield certificate and not private, reason
        reason = "column names true labels and private_column private ones: give one"
        yield self.column is not None and private, reason
        yield key != (self.id_column is not None), "key and id_column belong together"
        keyed = self.context is not None or self.label_version != 0
        yield keyed and not key, "context and label_version need a key"
        reason = "the labels of private_column are private already: leave key and id_column out"
        yield private and key, reason
        unknown = "needs the artifact: a certificate does not hold Pr[output | label]"
        yield self.debiased and not artifact, f"debiased {unknown}"
        corrected = self.correction in ("forward", "backward")
        yield corrected and not artifact, f"correction {unknown}"
        twice = self.debiased and self.correction is not None
        yield twice, "debiased: true is correction: backward: give one"


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

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Labels that float32 has."""
        yield from super().rules()
        beyond = max(map(abs, self.label_range or (0,))) > LARGEST_END
        yield beyond, f"label_range: goes to {LARGEST_END:g} at most: rescale the labels"


MOST_CLASSES = 1_000
"""Whose counts and probabilities of many rows are held at a time."""


class Pate(Approximate):
    """Noisy votes of teachers on disjoint parts of the labels (Malek et al. 2021, on public
    representations); a student learns from them and from all features.
    """

    kind: Literal["pate"]
    epsilon: Annotated[Number, Field(ge=1e-3, le=60)]
    teachers: StrictInt | None = Field(
        None, ge=1, description="T, each with rows of its own; default: by a rule"
    )
    queries: StrictInt | None = Field(
        None, ge=1, le=5_000, description="Q rows that are voted on; default: by a rule"
    )
    teacher: Literal["ridge"] = "ridge"
    student: Literal["ridge", "propagation"] = Field(
        "propagation", description="how the votes reach the rows that are not voted on"
    )
    default: StrictInt | StrictStr | None = Field(
        None, description="what a missing or unknown label counts as; default: the first class"
    )
    seed: StrictInt = Field(0, ge=0, lt=2**32, description="of the parts and of the queries")


MethodConfig = Annotated[
    NoMethod | Privatized | OneRelease | Pate | LpMst | Alibi | Clusters | DpSgd | LabelDpPro,
    Field(discriminator="kind"),
]
