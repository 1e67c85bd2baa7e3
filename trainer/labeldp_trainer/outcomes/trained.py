"""A finished run, ready to predict: config, encoder, model and parameters from its folder."""

from dataclasses import dataclass, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
from jaxtyping import Float32, Int64

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.data import DataPart, FeatureShape, Task
from labeldp_trainer.data.encoder import Encoder, EncoderFile
from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.evaluation import predict
from labeldp_trainer.losses import Loss
from labeldp_trainer.models import Interactions, Model, Params, build_model
from labeldp_trainer.representation import Representation, restored, vectors_of_part
from labeldp_trainer.run import RunFolder
from labeldp_trainer.run.checkpoints import load_params, load_tree
from labeldp_trainer.run.folder import ENCODER

_MOST_INTEGER = 2**63


@dataclass(frozen=True)
class Trained:
    """A finished run.

    Attributes:
        folder: of the run.
        loaded: its config, for the final model; relative paths start where they did in training.
        encoder: from the features of a file to those of the model.
        loss: with its task.
        representation: what the model sees instead of features; None if it sees features.
        model: built from the config.
        params: the final parameters.
    """

    folder: RunFolder
    loaded: LoadedConfig
    encoder: Encoder
    loss: Loss
    representation: Representation | None
    model: Model
    params: Params

    def outputs(self, part: DataPart) -> Float32[np.ndarray, "n k"]:
        """The model's outputs for n encoded examples."""
        if self.representation is not None:
            part = replace(part, features=vectors_of_part(self.representation, part))
        return predict(self.model, self.params, part)

    def predictions(
        self, outputs: Float32[np.ndarray, "n k"]
    ) -> tuple[pa.Array, Float32[np.ndarray, "n k"] | None]:
        """What outputs mean: numbers [n], or classes [n] and their probabilities [n, classes]."""
        if self.loss.task.classes is None:
            return pa.array(np.asarray(self.loss.predictions(jnp.asarray(outputs)))), None
        likeliest: Int64[np.ndarray, " n"] = outputs.argmax(axis=1)
        probabilities = np.asarray(jax.nn.softmax(outputs, axis=-1))
        return self.classes.take(pa.array(likeliest)), probabilities

    @property
    def classes(self) -> pa.Array:
        """[k] the classes as a column has them: int64 if all are whole numbers, else text."""
        classes = self.loss.task.classes or ()
        if all(isinstance(c, int) and -_MOST_INTEGER <= c < _MOST_INTEGER for c in classes):
            return pa.array(classes, pa.int64())
        return pa.array(map(str, classes), pa.string())


def open_trained(path: Path) -> Trained:
    """The finished run in a folder. Raises InputError if it cannot predict."""
    folder = RunFolder(path)
    folder.facts()
    stated = stated_encoder(folder)
    loaded = folder.config(stated.data_directory).final
    if stated.model_from != "config":
        raise RunFolderError(
            f"{path}: was trained with a model from Python, which is not in the folder; call its "
            "apply with the parameters from labeldp_trainer.load_params"
        )
    if not folder.params.exists():
        raise RunFolderError(f"{path}: is not finished; resume it with labeldp train --resume")
    encoder, task = stated.features, Task(None if stated.classes is None else tuple(stated.classes))
    representation = None if loaded.config.representation is None else restored(path)
    shape = encoder.shape
    if representation is not None:
        if representation.shape != shape:
            raise RunFolderError(
                f"{path}: encoder.json and representation/ do not match; train again"
            )
        shape = FeatureShape(numeric=representation.width)
    model = build_model(loaded, shape, task.outputs)
    params = _params(folder, model)
    loss = Loss(loaded.config.loss, task)
    return Trained(folder, loaded, encoder, loss, representation, model, params)


def _params(folder: RunFolder, model: Model) -> Params:
    """Raises RunFolderError."""
    if not isinstance(model, Interactions):
        return load_params(folder.params, jax.eval_shape(model.init, jax.random.key(0)))
    try:  # which terms there are is learned, so that the file says it
        return model.require(load_tree(folder.params))
    except ValueError:
        raise RunFolderError(f"{folder.params}: has the parameters of another model") from None


def stated_encoder(folder: RunFolder) -> EncoderFile:
    """The contents of ``encoder.json``. Raises RunFolderError."""
    path = folder.path / ENCODER
    found = folder.document(
        ENCODER, f"{path}: is missing or damaged (earlier versions did not write it); train again"
    )
    try:
        return EncoderFile.model_validate(found)
    except ValueError:
        raise RunFolderError(f"{path}: is damaged; train again") from None
