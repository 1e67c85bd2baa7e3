"""The training config as pydantic models. Unknown keys are errors."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, StrictInt, model_validator

from labeldp_compile.toolkit import Strict
from labeldp_trainer.config.data import DataConfig, Number, UserLevel, may_lack
from labeldp_trainer.config.method import MethodConfig, StagedRelease
from labeldp_trainer.config.representation import Kind, kind_class, one_of

Width = Annotated[StrictInt, Field(ge=1, le=65_536)]
Rate = Annotated[Number, Field(ge=0, lt=1)]


class _Model(Strict):
    scale: Annotated[Number, Field(gt=0)] = Field(
        1.0, description="the outputs are offset + scale·network"
    )
    offset: Number = 0.0


class LinearConfig(_Model):
    """A linear function of the features, with a weight for each category of a column."""

    kind: Literal["linear"]


class MlpConfig(_Model):
    """Fully connected layers with ReLU. Categorical columns are embedded."""

    kind: Literal["mlp"]
    hidden: tuple[Width, ...] = (128, 64)
    embedding: Width = 8


class CnnConfig(_Model):
    """Table 10 of LabelDP-Pro: ``mnist`` is part (a), ``cifar`` part (b)."""

    kind: Literal["cnn"]
    variant: Literal["mnist", "cifar"]


class ResNet18Config(_Model):
    """ResNet-18 for small images, with group norm."""

    kind: Literal["resnet18"]
    width: Width = 64
    groups: Width = 16


class InteractionsConfig(Strict):
    """A sum of effects of columns, of pairs and of triples of columns of a table, on bins.

    It is fitted in closed form, by stages, without model options that a network has.
    """

    kind: Literal["interactions"]
    order: StrictInt = Field(
        3, ge=1, le=3, description="columns in a term: 1 (main effects), 2 (pairs) or 3"
    )


NetworkConfig = LinearConfig | MlpConfig | CnnConfig | ResNet18Config
"""The models that are trained by steps."""
ModelConfig = Annotated[NetworkConfig | InteractionsConfig, Field(discriminator="kind")]
LossName = Literal["squared", "absolute", "poisson", "cross_entropy"]


class OptimizerConfig(Strict):
    """An optimizer of optax, its schedule, and ½·l2·‖w‖² on weights (not on biases)."""

    kind: Literal["sgd", "momentum", "adam", "rmsprop"] = "sgd"
    learning_rate: Annotated[Number, Field(gt=0)]
    schedule: Literal["constant", "cosine"] = "constant"
    momentum: Rate = 0.9
    l2: Annotated[Number, Field(ge=0)] = 0.0


class EarlyStopping(Strict):
    """Keep the parameters with the smallest loss on the labels that training sees.

    ``patience`` also stops after that number of epochs without improvement.
    """

    patience: StrictInt | None = Field(
        None, ge=1, description="default: do not stop early, keep the best"
    )


class TrainingConfig(Strict):
    """Epochs, batch size and seed."""

    epochs: StrictInt = Field(ge=1)
    batch_size: StrictInt = Field(ge=1)
    seed: StrictInt = Field(0, ge=0, lt=2**32)
    early_stopping: EarlyStopping | None = None
    checkpoint_every: StrictInt = Field(1, ge=1, description="epochs between checkpoints")


CLOSED_FORMS = ("one_release", "pate", "privatized", "none")
STAGED = "staged_release"
_MANY_NUMBERS = 16
"""Columns, of which one release learns classes better (benchmarks/notes/models-of-tables.md)."""
LINEAR_ONLY = "which is linear in the columns of a table or archive"
_GRAPH_OF_IMAGES = {"kind": "graph", "of": ["patches", "scattering"]}
_JOINED = {"kind": "joined", "of": ["patches", _GRAPH_OF_IMAGES]}
OF_IMAGES = kind_class("joined").model_validate(_JOINED)
"""Fixed on the last 10,000 training rows of MNIST and Fashion-MNIST, after learning from the first
8,000 (docs/representations.md)."""
_REPRESENTATIONS = {
    "table": {"kind": "splines"},
    "idx": _JOINED,
    "npz": {"kind": "pca"},
    "pairs": {"kind": "differences"},
}


if TYPE_CHECKING:
    RepresentationConfig = Kind
else:
    RepresentationConfig = one_of()


class Config(Strict):
    """A training config."""

    model_config = may_lack("loss")

    version: Literal[1]
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    data: DataConfig
    representation: RepresentationConfig | None = Field(
        None, description="the input instead of features; learned without labels"
    )
    model: ModelConfig | None = Field(None, description="Python code may pass a model instead")
    loss: LossName
    method: MethodConfig
    optimizer: OptimizerConfig = Field(
        OptimizerConfig.model_validate({"learning_rate": 1.0}),
        description="for methods that train by steps",
    )
    training: TrainingConfig = Field(
        TrainingConfig.model_validate({"epochs": 1, "batch_size": 1}),
        description="for methods that train by steps",
    )

    @property
    def closed_form(self) -> bool:
        """Whether a model is fitted to sums over all rows.

        This is so if the method can do it and no model, optimizer or training is given, and for
        models of interactions.
        """
        given = self.model_fields_set & {"model", "optimizer", "training"}
        linear = self.method.kind in CLOSED_FORMS and not given
        return linear or self.interactions is not None

    @property
    def interactions(self) -> int | None:
        """The most columns in a term if the model is one of interactions; None for other models."""
        if isinstance(self.method, StagedRelease):
            return self.method.interactions
        return self.model.order if isinstance(self.model, InteractionsConfig) else None

    @property
    def linear_in_features(self) -> bool:
        """Whether vectors are linear in numbers and indicators of categories."""
        return self.representation is not None and (
            self.representation.kind == "pca" and self.data.kind != "idx"
        )

    @property
    def model_kind(self) -> str | None:
        """The kind of model; None for a linear one in closed form."""
        if self.interactions is not None:
            return "interactions"
        return None if self.model is None else self.model.kind

    @property
    def takes_missing_numbers(self) -> bool:
        """Whether the model has a bin for missing numbers."""
        return self.interactions is not None

    @property
    def user_column(self) -> str | None:
        """The column with the user of each row, or None if each label is protected on its own."""
        return self.method.user_column if isinstance(self.method, UserLevel) else None

    @property
    def examples_per_user(self) -> int | None:
        """The most rows used of each user, or None if each label is protected on its own."""
        return self.method.max_examples_per_user if isinstance(self.method, UserLevel) else None

    @model_validator(mode="before")
    @classmethod
    def _default_representation(cls, data: object) -> object:
        """Closed forms need vectors: choose a kind that suits the data if none is given."""
        if not isinstance(data, dict) or data.get("representation") is not None:
            return data
        method, kind = data.get("method"), data.get("data")
        if not (isinstance(method, dict) and isinstance(kind, dict)):
            return data
        default = _REPRESENTATIONS.get(str(kind.get("kind")))
        steps = {"model", "optimizer", "training"} & set(data)
        if method.get("kind") not in CLOSED_FORMS or default is None or steps:
            return data
        if method.get("goal") == "coefficients":
            default = {"kind": "pca"}
        return {**data, "representation": default}

    @model_validator(mode="before")
    @classmethod
    def _default_method(cls, data: object) -> object:
        """A table takes the staged release, and one release if classes are predicted from many
        numbers alone, such as pixels. Classes take cross-entropy, and numbers the squared loss;
        with exposure they are counts."""
        if not isinstance(data, dict) or not isinstance(data.get("data"), dict):
            return data
        method, given = data.get("method"), data["data"]
        if not isinstance(method, dict):
            return data
        chosen = given.get("kind") == "table" and "epsilon" in method and "kind" not in method
        if chosen:
            numeric, classes = given.get("numeric"), given.get("classes") is not None
            many = isinstance(numeric, list) and len(numeric) >= _MANY_NUMBERS
            others = given.get("categorical") or given.get("dates") or "interactions" in method
            one = classes and many and not others
            method = {"kind": "one_release" if one else STAGED, **method}
        if (chosen or method.get("kind") == STAGED) and "loss" not in data:
            numbers = "squared" if given.get("exposure") is None else "poisson"
            loss = numbers if given.get("classes") is None else "cross_entropy"
            data = {**data, "loss": loss}
        return {**data, "method": method}
