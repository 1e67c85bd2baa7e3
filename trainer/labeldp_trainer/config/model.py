"""A training config as pydantic models. Unknown keys are errors."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictInt, model_validator

from labeldp_trainer.config.base import Number, Strict, UserLevel
from labeldp_trainer.config.data import DataConfig
from labeldp_trainer.config.method import MethodConfig
from labeldp_trainer.config.representation import RepresentationConfig

Width = Annotated[StrictInt, Field(ge=1, le=65_536)]
Rate = Annotated[Number, Field(ge=0, lt=1)]


class _Model(Strict):
    scale: Annotated[Number, Field(gt=0)] = Field(
        1.0, description="the model's outputs are offset + scale·network"
    )
    offset: Number = 0.0


class LinearConfig(_Model):
    """A linear function of the features; a categorical column has one weight a category."""

    kind: Literal["linear"]


class MlpConfig(_Model):
    """Fully connected layers with ReLU; a categorical column is embedded."""

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


ModelConfig = Annotated[
    LinearConfig | MlpConfig | CnnConfig | ResNet18Config, Field(discriminator="kind")
]
LossName = Literal["squared", "absolute", "poisson", "cross_entropy"]


class OptimizerConfig(Strict):
    """An optimizer of optax, its schedule, and ½·l2·‖w‖² on weights (not on biases)."""

    kind: Literal["sgd", "momentum", "adam", "rmsprop"] = "sgd"
    learning_rate: Annotated[Number, Field(gt=0)]
    schedule: Literal["constant", "cosine"] = "constant"
    momentum: Rate = 0.9
    l2: Annotated[Number, Field(ge=0)] = 0.0


class EarlyStopping(Strict):
    """Keep the parameters of least private training loss; stop after ``patience`` worse epochs."""

    patience: StrictInt | None = Field(None, ge=1, description="default: never stop, keep the best")


class TrainingConfig(Strict):
    """How long, in what batches, and from which seed."""

    epochs: StrictInt = Field(ge=1)
    batch_size: StrictInt = Field(ge=1)
    seed: StrictInt = Field(0, ge=0, lt=2**32)
    early_stopping: EarlyStopping | None = None
    checkpoint_every: StrictInt = Field(1, ge=1, description="epochs")


class RefineTraining(TrainingConfig):
    """As ``training``, with defaults."""

    epochs: StrictInt = Field(10, ge=1)
    batch_size: StrictInt = Field(256, ge=1)


class Refine(Strict):
    """A network on features, trained on what PATE's linear student says of all of them."""

    model: ModelConfig
    optimizer: OptimizerConfig = OptimizerConfig.model_validate(
        {"kind": "adam", "learning_rate": 1e-3, "schedule": "cosine"}
    )
    training: RefineTraining = RefineTraining.model_validate({})
    shift: StrictInt | None = Field(
        None, ge=0, description="images are moved by up to so many pixels; default: 2"
    )
    flip: StrictBool = Field(False, description="a mirrored image shows the same thing")
    sure: Annotated[Number, Field(gt=0, lt=1)] | None = Field(
        None,
        description="classes of images: one that the network gives at least this probability has "
        "to be told from a strongly changed image, too (FixMatch)",
    )


CLOSED_FORMS = ("one_release", "pate", "privatized", "none")
_REPRESENTATIONS = {"table": "splines", "idx": "patches", "npz": "pca"}


class Config(Strict):
    """A whole training config."""

    version: Literal[1]
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    data: DataConfig
    representation: RepresentationConfig | None = Field(
        None, description="what models and methods see instead of features, learnt without labels"
    )
    model: ModelConfig | None = Field(None, description="may be given from Python instead")
    loss: LossName
    method: MethodConfig
    optimizer: OptimizerConfig = Field(
        OptimizerConfig.model_validate({"learning_rate": 1.0}),
        description="of methods that train step by step",
    )
    training: TrainingConfig = Field(
        TrainingConfig.model_validate({"epochs": 1, "batch_size": 1}),
        description="of methods that train step by step",
    )
    refine: Refine | None = Field(None, description="of method pate: the student is a network")

    @property
    def closed_form(self) -> bool:
        """Whether a linear model is fitted to sums over all rows: no model, optimizer or training
        is given, and the method has such a form.
        """
        given = self.model_fields_set & {"model", "optimizer", "training"}
        return self.method.kind in CLOSED_FORMS and not given

    @property
    def user_column(self) -> str | None:
        """Who a row belongs to, or None if labels are the units."""
        return self.method.user_column if isinstance(self.method, UserLevel) else None

    @property
    def examples_per_user(self) -> int | None:
        """The most rows of a user that are used, or None if labels are the units."""
        return self.method.max_examples_per_user if isinstance(self.method, UserLevel) else None

    @model_validator(mode="before")
    @classmethod
    def _default_representation(cls, data: object) -> object:
        """Closed forms need vectors: a good kind for the data, if none is named."""
        if not isinstance(data, dict) or data.get("representation") is not None:
            return data
        method, kind = data.get("method"), data.get("data")
        if not (isinstance(method, dict) and isinstance(kind, dict)):
            return data
        default = _REPRESENTATIONS.get(str(kind.get("kind")))
        steps = {"model", "optimizer", "training"} & set(data)
        if method.get("kind") not in CLOSED_FORMS or default is None or steps:
            return data
        return {**data, "representation": {"kind": default}}
