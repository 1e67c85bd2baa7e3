"""The part ``refine`` of a config: a network on features learns what a fitted model says of them.

The fitted model predicts for the clean features of all public rows: the training rows, and those
that its representation was learnt from, too. The network has to say the same of them, and of images
that are shifted or mirrored at random. No label is read, so that this is post-processing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32

from labeldp_trainer.augment import Augmentations, augmentation
from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.representation import TEST, FromFile
from labeldp_trainer.data import Dataset, Part, load_unlabelled
from labeldp_trainer.evaluation import predict
from labeldp_trainer.losses import Loss
from labeldp_trainer.methods import Method, Setting, Statement
from labeldp_trainer.methods.minibatch import Also, minibatch_method
from labeldp_trainer.models import Model, Params, build_model, fresh_params
from labeldp_trainer.representation import Representation, vectors_of_part
from labeldp_trainer.representation.kind import Steps
from labeldp_trainer.sharding import Devices

Outputs = Float32[np.ndarray, "n k"]
_NETWORK = (
    "The final model is a network that was trained on the fitted model's predictions for public "
    "features (refine)"
)
_FREE = "; it saw no label, so this is post-processing and costs no ε"


@dataclass(frozen=True)
class Refinement:
    """What refines a fitted model, ready before anything is spent.

    Attributes:
        final: the config of the network.
        unlabelled: rows beside those of training and test.
        with_test: whether the features of the test part are learnt from.
        dataset: with the features of all rows to learn from, and no label, as its training part.
        model: the network.
        loss: with its task.
        augment: images that are to look the same; None of what is no image.
    """

    final: LoadedConfig
    unlabelled: Sequence[Part]
    with_test: bool
    dataset: Dataset
    model: Model
    loss: Loss
    augment: Augmentations | None

    def setting(self, devices: Devices) -> Setting:
        """What the network is trained with."""
        return Setting(self.final, self.dataset, self.model, self.loss, devices, None)

    def outputs(
        self,
        model: Model,
        params: Params,
        seen: Dataset,
        representation: Representation | None,
        steps: Steps,
    ) -> Outputs:
        """What a fitted model gives for all rows; ``seen`` are those that it was fitted on."""
        vectors = [seen.train.features]
        if representation is not None:
            vectors += [vectors_of_part(representation, part, steps) for part in self.unlabelled]
        if self.with_test and seen.test is not None:
            vectors.append(seen.test.features)
        parts = [Part(each, len(each), {}, "") for each in vectors]
        return np.concatenate([predict(model, params, part) for part in parts])

    def method(self, setting: Setting, outputs: Outputs, statement: Statement) -> Method:
        """Minibatches of all rows, and of what these outputs say of them."""
        if self.loss.task.classes is None:
            targets = self.loss.predictions(jnp.asarray(outputs))
        else:
            targets = jax.nn.softmax(jnp.asarray(outputs), axis=-1)
        weak = None if self.augment is None else self.augment.weak
        also = self._consistency()
        return minibatch_method(setting, np.asarray(targets), statement, augment=weak, also=also)

    def _consistency(self) -> Also | None:
        """FixMatch (Sohn et al. 2020): of images whose class the network is sure of, the loss of
        that class on strongly changed ones.
        """
        refine, augment, model = self.final.config.refine, self.augment, self.model
        sure = None if refine is None else refine.sure
        if sure is None or augment is None:
            return None

        def also(params: Params, key: jax.Array, images: Any) -> jax.Array:
            weak_key, strong_key, model_key = jax.random.split(key, 3)
            weak = images if augment.weak is None else augment.weak(weak_key, images)
            seen = jax.nn.softmax(jax.lax.stop_gradient(model.apply(params, weak, model_key)))
            counts = seen.max(axis=1) >= jnp.float32(sure)
            outputs = model.apply(params, augment.strong(strong_key, images), model_key)
            losses = self.loss.per_example(outputs, jnp.argmax(seen, axis=1))
            return jnp.where(counts, losses, 0).mean()

        return also

    def start(self, outputs: Outputs, fitted: Params) -> Params:
        """Fresh parameters; numbers start with mean, deviation and ends of the fitted model's."""
        params = fresh_params(self.final, self.model)
        if self.loss.task.classes is not None:
            return params
        size = {"scale": jnp.float32(outputs.std() or 1), "offset": jnp.float32(outputs.mean())}
        if "ends" not in params:
            return params | size
        largest = np.finfo(np.float32).max  # parameters must be finite
        ends = jnp.clip(fitted["ends"], -largest, largest)
        return {"model": params["model"] | size, "ends": ends}

    def tests(self, tests: tuple[Any, Any] | None, devices: Devices) -> tuple[Any, Any] | None:
        """Features and targets of the test part, from what the fitted model is tested on."""
        if tests is None or self.dataset.test is None:
            return None
        return devices.everywhere(self.dataset.test.features), tests[1]


def refined_statement(loaded: LoadedConfig, statement: Statement) -> Statement:
    """The same, with a sentence on the network if there is one."""
    if loaded.config.refine is None:
        return statement
    sentence = f"{_NETWORK}{_FREE * (statement.epsilon is not None)}."
    return dataclasses.replace(statement, remarks=(*statement.remarks, sentence))


def open_refinement(loaded: LoadedConfig, dataset: Dataset, loss: Loss) -> Refinement | None:
    """As a config says, for the features of its data; None without that part. Raises InputError."""
    if loaded.config.refine is None:
        return None
    final, config = loaded.final, loaded.config.representation
    names = () if config is None or isinstance(config, FromFile) else config.unlabelled
    unlabelled = [load_unlabelled(loaded, name, dataset) for name in names if name != TEST]
    parts = [dataset.train, *unlabelled]
    if TEST in names and dataset.test is not None:
        parts.append(dataset.test)
    features = jax.tree.map(lambda *leaves: np.concatenate(leaves), *(p.features for p in parts))
    rows = Part(features, sum(part.rows for part in parts), {}, dataset.train.source)
    require_batch(final, rows.rows)
    return Refinement(
        final,
        unlabelled,
        TEST in names,
        dataclasses.replace(dataset, train=rows),
        build_model(final, dataset.shape, loss.task.outputs),
        loss,
        augmentation(final, dataset.shape),
    )


def require_batch(loaded: LoadedConfig, rows: int) -> None:
    """Raise ConfigError unless a batch has no more examples than there are."""
    batch = loaded.config.training.batch_size
    if batch > rows:
        reason = f"is larger than the {rows:,} examples of the training data"
        raise loaded.error(("training", "batch_size"), f"{batch:,} {reason}")
