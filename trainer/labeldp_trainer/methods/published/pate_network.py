"""The part ``refine`` of a config: PATE's student is a network on features (PATE-FM).

It learns the linear student's predictions for the clean features of all public rows: the training
rows, and those from which their representation was learned. The network has to predict the same for
these rows, and for images of them that are shifted or mirrored at random. No label is read: this is
post-processing.

Strongly changed images show the same thing but are harder to classify: brighter or darker, moved
further, and with a square cut out (Cutout, DeVries and Taylor 2017).
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, PRNGKeyArray

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.model import Refine
from labeldp_trainer.config.representation import TEST
from labeldp_trainer.data import DataPart, FeatureShape, load_unlabelled
from labeldp_trainer.evaluation import predict
from labeldp_trainer.methods.method import ClosedForm, Fitted, Method, Setting, TrainingRun
from labeldp_trainer.methods.stepped import Also, machine, minibatch_method
from labeldp_trainer.models import Params, build_model, fresh_params
from labeldp_trainer.representation import vectors_of_part
from labeldp_trainer.run.folder import Line, for_json
from labeldp_trainer.run.params import load_params, save_params

FITTED = "fitted.npz"
DEFAULT_SHIFT = 2  # pixels
_GAIN = 0.4  # of a strong change: brightness 1 ± 0.4
Images = Float[Array, "b h w c"]
Augment = Callable[[PRNGKeyArray, Images], Images]
_REMARK = (
    "The final model is a network that was trained on the fitted model's predictions for public "
    "features (refine). It saw no label, so this is post-processing and spends nothing."
)


@dataclass(frozen=True)
class Augmentations:
    """Changes of images that keep their size and what they show.

    Attributes:
        weak: None leaves images unchanged.
        strong: for consistency; predictions should be the same as for weak changes.
    """

    weak: Augment | None
    strong: Augment


@dataclass(frozen=True, kw_only=True)
class NetworkStudent(Method):
    """A linear student, and a network that learns from it by steps.

    Attributes:
        linear: the student.
        seen: what it was built from.
        setting: what the network is trained with: the features of all rows, and no label.
        unlabelled: rows besides those of training and test.
        with_test: whether the network also learns from the features of the test part.
        refine: the network's part of the config.
        augment: changes of images that keep the class; None for other features.
    """

    linear: ClosedForm
    seen: Setting
    setting: Setting
    unlabelled: Sequence[DataPart]
    with_test: bool
    refine: Refine
    augment: Augmentations | None

    def fit(self, run: TrainingRun) -> Fitted:
        """The network; the linear student is kept, so that a resumed run does not fit it again."""
        setting, augment = self.setting, self.augment
        path = run.folder.path / FITTED
        if not path.exists():
            save_params(path, self.linear.solve())
        params = load_params(path, self.seen.model.init(None))
        tested = for_json(run.tested(params))
        before = {name.removeprefix("test_"): value for name, value in tested.items()}
        targets = jax.nn.softmax(jnp.asarray(self._outputs(params)), axis=-1)
        method = minibatch_method(
            setting,
            np.asarray(targets),
            self.statement,
            augment=None if augment is None else augment.weak,
            also=self._consistency(),
        )
        tests = run.tests
        if tests is not None and setting.dataset.test is not None:
            tests = setting.dataset.test.features, tests[1]
        fresh = fresh_params(setting.loaded, setting.model)
        fitted = method.fit(dataclasses.replace(run, setting=setting, params=fresh, tests=tests))
        metrics = {"before_refining": before, **fitted.metrics}
        return dataclasses.replace(fitted, metrics=metrics, notes=_if_worse(before, metrics))

    def machine(self, setting: Setting) -> dict[str, Any]:
        """JAX's devices."""
        return machine(setting.loaded)

    def _outputs(self, params: Params) -> Float32[np.ndarray, "n k"]:
        """The linear student's outputs for all rows."""
        data, representation, steps = self.seen.dataset, self.seen.representation, self.seen.steps
        vectors = [data.train.features]
        if representation is not None:
            vectors += [vectors_of_part(representation, part, steps) for part in self.unlabelled]
        if self.with_test and data.test is not None:
            vectors.append(data.test.features)
        parts = [DataPart(each, len(each), {}, "") for each in vectors]
        return np.concatenate([predict(self.seen.model, params, part) for part in parts])

    def _consistency(self) -> Also | None:
        """FixMatch (Sohn et al. 2020): if the network is sure of an image's class, the loss of that
        class on the strongly changed image.
        """
        sure, augment = self.refine.sure, self.augment
        model, loss = self.setting.model, self.setting.loss
        if sure is None or augment is None:
            return None

        def also(params: Params, key: jax.Array, images: Any) -> jax.Array:
            weak_key, strong_key, model_key = jax.random.split(key, 3)
            weak = images if augment.weak is None else augment.weak(weak_key, images)
            seen = jax.nn.softmax(jax.lax.stop_gradient(model.apply(params, weak, model_key)))
            counts = seen.max(axis=1) >= jnp.float32(sure)
            outputs = model.apply(params, augment.strong(strong_key, images), model_key)
            losses = loss.per_example(outputs, jnp.argmax(seen, axis=1))
            return jnp.where(counts, losses, 0).mean()

        return also


def _if_worse(before: Line, metrics: Line) -> tuple[str, ...]:
    """A note if the network is worse on the test set."""
    if not before or metrics["test_accuracy"] >= before["accuracy"]:
        return ()
    return (
        f"refining made the model worse: its test accuracy is {metrics['test_accuracy']:.4g}, "
        f"before it was {before['accuracy']:.4g}; remove refine, or train longer",
    )


def refined(setting: Setting) -> Callable[[ClosedForm], Method]:
    """A function that adds the network of ``refine`` to a linear student.

    Everything that does not fit is refused here, before anything is spent. Raises InputError.
    """
    loaded, dataset, refine = setting.loaded, setting.original, setting.loaded.config.refine
    assert refine is not None and dataset is not None
    final, source = loaded.final, loaded.config.representation
    names = getattr(source, "unlabelled", ())
    unlabelled = [load_unlabelled(loaded, name, dataset) for name in names if name != TEST]
    parts = [dataset.train, *unlabelled]
    if TEST in names and dataset.test is not None:
        parts.append(dataset.test)
    features = jax.tree.map(lambda *leaves: np.concatenate(leaves), *(p.features for p in parts))
    rows = DataPart(features, sum(part.rows for part in parts), {}, dataset.train.source)
    final.require_batch(rows.rows, "examples of the training data")
    model = build_model(final, dataset.shape, setting.loss.task.outputs)
    own = dataclasses.replace(dataset, train=rows)
    student = partial(
        NetworkStudent,
        seen=setting,
        setting=Setting(final, own, model, setting.loss, None),
        unlabelled=unlabelled,
        with_test=TEST in names,
        refine=refine,
        augment=augmentation(final, refine, dataset.shape),
    )

    def of_linear(linear: ClosedForm) -> Method:
        remarks = (*linear.statement.remarks, _REMARK)
        statement = dataclasses.replace(linear.statement, remarks=remarks)
        return student(statement=statement, keep=linear.keep, linear=linear)

    return of_linear


def augmentation(loaded: LoadedConfig, refine: Refine, shape: FeatureShape) -> Augmentations | None:
    """The changes that ``refine`` asks for; None for features that are not images.

    Raises ConfigError if that part does not fit the data.
    """
    if shape.image is None:
        for key in ("shift", "flip", "sure"):
            if getattr(refine, key):
                raise loaded.error((key,), "needs images [n, height, width, channels]")
        return None
    shift, flip = DEFAULT_SHIFT if refine.shift is None else refine.shift, refine.flip
    if refine.shift is not None and shift >= min(shape.image[:2]):
        raise loaded.error(
            ("shift",), f"{shift:,} pixels is not less than the shorter side of the images"
        )
    most = min(shape.image[:2]) - 1
    shift = min(shift, most)
    further = min(2 * shift, most)

    def moved(key: PRNGKeyArray, images: Images, most: int) -> Images:
        shift_key, flip_key = jax.random.split(key)
        found = shifted(shift_key, images, most)
        return flipped(flip_key, found) if flip else found

    def strong(key: PRNGKeyArray, images: Images) -> Images:
        move_key, gain_key, cut_key = jax.random.split(key, 3)
        gain = jax.random.uniform(
            gain_key, (len(images), 1, 1, 1), minval=1 - _GAIN, maxval=1 + _GAIN
        )
        return cut(cut_key, gain * moved(move_key, images, further))

    def weak(key: PRNGKeyArray, images: Images) -> Images:
        return moved(key, images, shift)

    return Augmentations(weak if shift or flip else None, strong)


def shifted(key: PRNGKeyArray, images: Images, most: int) -> Images:
    """Each image moved by up to ``most`` pixels both ways; its edge pixels are repeated outside."""
    b, height, width, channels = images.shape
    around = ((0, 0), (most, most), (most, most), (0, 0))
    starts = jax.random.randint(key, (b, 2), 0, 2 * most + 1)

    def one(image: Float[Array, "H W c"], start: Array) -> Float[Array, "h w c"]:
        place = (start[0], start[1], jnp.int32(0))
        return jax.lax.dynamic_slice(image, place, (height, width, channels))

    return jax.vmap(one)(jnp.pad(images, around, "edge"), starts)


def flipped(key: PRNGKeyArray, images: Images) -> Images:
    """Every other image, on average, mirrored left to right."""
    mirrored = jax.random.bernoulli(key, 0.5, (len(images), 1, 1, 1))
    return jnp.where(mirrored, images[:, :, ::-1], images)


def cut(key: PRNGKeyArray, images: Images) -> Images:
    """Each image with a square of half its shorter side, anywhere, in its mean colour."""
    b, height, width, _ = images.shape
    half = max(min(height, width) // 4, 1)
    row_key, column_key = jax.random.split(key)

    def near(key: PRNGKeyArray, size: int) -> Bool[Array, "b s"]:
        centre = jax.random.randint(key, (b, 1), 0, size)
        return jnp.abs(jnp.arange(size)[None, :] - centre) < half

    hole = near(row_key, height)[:, :, None, None] & near(column_key, width)[:, None, :, None]
    return jnp.where(hole, images.mean(axis=(1, 2), keepdims=True), images)
