"""Shared by methods that randomize labels themselves, once, and train on the result."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.config import Alibi, Clusters, LoadedConfig, LpMst
from labeldp_trainer.losses import predict
from labeldp_trainer.methods.corrections import kept_information
from labeldp_trainer.methods.method import (
    MethodBuilder,
    Setting,
    Stored,
    limited_to_users,
    require_label_type,
    true_classes,
)
from labeldp_trainer.methods.statement import Statement, cost_to_users, protected, written
from labeldp_trainer.methods.stepped import Stepped, likelihood_loss, minibatch_method
from labeldp_trainer.models import Params
from labeldp_trainer.randomize import (
    STEPS,
    WORD_BITS,
    NoisyOneHot,
    RRWithRowPriors,
    epsilon_up,
    exact,
)

KEPT = "private_labels"
Arrays = Mapping[str, NDArray[Any]]
L = TypeVar("L", bound=Alibi | LpMst | Clusters)


class LabelNoiseBuilder(MethodBuilder[L]):
    """Builds a method that draws private labels here, unless an interrupted run has stored them.

    A method defines what it draws, and how it trains on that.
    """

    def __init__(self, loaded: LoadedConfig, method: L) -> None:
        """Raises ConfigError if the loss is not for classes."""
        super().__init__(loaded, method)
        if loaded.config.loss != "cross_entropy":
            reason = f"method {loaded.config.method.kind} needs loss: cross_entropy"
            raise loaded.error(("loss",), reason)

    def build(self, setting: Setting) -> Stepped:
        """Steps on private labels of the rows that take part. Raises InputError."""
        if self.method.mixup is not None and setting.dataset.shape.vocabularies:
            reason = "cannot mix categorical columns; remove this key, or use only numeric features"
            raise self.loaded.error(("method", "mixup"), reason)
        require_label_type(setting)
        whole, setting = setting, limited_to_users(setting)
        stored = setting.stored
        return self.trained(setting, self.drawn(setting, whole) if stored is None else stored)

    def drawn(self, setting: Setting, whole: Setting) -> Arrays:
        """Private labels, and what goes with them; ``whole`` has all rows."""
        raise NotImplementedError

    def trained(self, setting: Setting, kept: Arrays) -> Stepped:
        """The steps on what was drawn. Raises InputError."""
        raise NotImplementedError


def statement(
    setting: Setting,
    *,
    epsilon: float,
    mechanism: str,
    details: Mapping[str, Any],
    released: str = "the private labels",
    remarks: tuple[str, ...] = (),
) -> Statement:
    """The promise of a run in which every label was randomized once, with fresh random bits.

    ``epsilon`` is that of a label; for a user it is that of all labels that are used
    (Theorem 7 (f)). ``setting`` is that of the rows that take part.
    """
    config, used = setting.loaded.config, setting.dataset.train.rows
    most = config.examples_per_user
    rows = used if setting.original is None else setting.original.train.rows
    return protected(
        config,
        epsilon=epsilon_up(exact(epsilon) * (most or 1)),
        mechanism=mechanism,
        details={**details, "labels": used},
        released=(released, "the parameters", "metrics on the private labels"),
        remarks=(
            *remarks,
            "Training only post-processes private labels, so it spends nothing more.",
            *(() if most is None else (cost_to_users(most, used, rows),)),
        ),
        again=("randomizes again and ", ""),
    )


# ``method: {kind: lp_mst}``: multi-stage training (Deep learning with label DP, Algorithm 3).
#
# The examples are split into T parts without reading labels. Stage t randomizes the labels of part
# t, each exactly once, with the predictions of the previous stage's model as priors. Then it trains
# a new model on all private labels so far. The first stage has a uniform prior, with which
# RRWithPrior is randomized response. Private labels are written to disk before a step uses them.
#
# Measured on ten classes of images with two stages (``benchmarks/notes/training-on-sets.md``): 38
# to 42 points behind sets in closed form at ε = 0.5, and level with them at ε = 2.

STAGE = "stage_of_example"


@dataclass(frozen=True)
class _Stage:
    """A stage of a run.

    Attributes:
        truth: [n] the true classes.
        stage_of: [n] the stage, 1 … T, that randomizes each label.
        number: of this stage.
        private: [n] the labels that are private so far; −1 of all others.
    """

    setting: Setting
    truth: NDArray[np.int32]
    stage_of: NDArray[np.uint8]
    number: int
    private: NDArray[np.int32]


class LpMstBuilder(LabelNoiseBuilder[LpMst]):
    """Builds the method from a config whose method is ``lp_mst``."""

    def drawn(self, setting: Setting, whole: Setting) -> Arrays:
        """The split, and the labels of stage 1 by randomized response."""
        truth = true_classes(setting)
        stage_of = split(self._sizes(len(truth)), self.loaded.config.training.seed)
        return {STAGE: stage_of, KEPT: self._randomizer(setting).randomize(truth[stage_of == 1])}

    def trained(self, setting: Setting, kept: Arrays) -> Stepped:
        """The first stage, which leads to the others."""
        stage_of, truth = kept[STAGE], true_classes(setting)
        private = np.full(len(truth), -1, np.int32)
        private[stage_of == 1] = kept[KEPT]
        return self._trained_on(_Stage(setting, truth, stage_of, 1, private), kept)

    def _later(self, before: _Stage, params: Params, stored: Stored | None) -> Stepped:
        """Stage t > 1: RRWithPrior with the predictions of the last model, unless it is stored."""
        setting, number = before.setting, before.number + 1
        train, rows = setting.dataset.train, np.flatnonzero(before.stage_of == number)
        if stored is None:
            prior = softmax(
                predict(setting.model, params, train.take(rows)), self.method.temperature
            )
            labels = self._randomizer(setting).randomize(before.truth[rows], prior)
        else:
            labels = stored[KEPT]
        private = before.private.copy()
        private[rows] = labels
        return self._trained_on(replace(before, number=number, private=private), {KEPT: labels})

    def _trained_on(self, stage: _Stage, keep: Arrays) -> Stepped:
        rows = np.flatnonzero(stage.stage_of <= stage.number)
        dataset = stage.setting.dataset
        subset = replace(dataset, train=dataset.train.take(rows))
        method = minibatch_method(
            replace(stage.setting, dataset=subset),
            stage.private[rows],
            self._statement(stage),
            mixup=self.method.mixup,
            keep=keep,
        )
        if stage.number == self.method.stages:
            return method
        return replace(method, later=partial(self._later, stage))

    def _randomizer(self, setting: Setting) -> RRWithRowPriors:
        return RRWithRowPriors(setting.loss.task.outputs, exact(self.method.epsilon))

    def _sizes(self, n: int) -> list[int]:
        """Examples of every stage. Raises ConfigError if one is empty, or the first too small."""
        bounds = np.round(np.cumsum([0.0, *self.method.shares]) * n).astype(int)
        bounds[-1] = n
        sizes = [int(size) for size in np.diff(bounds)]
        if min(sizes) < 1:
            reason = f"{len(sizes)} stages leave one without any of the {n:,} examples"
            raise self.loaded.error(("method", "stages"), reason)
        self.loaded.require_batch(sizes[0], "examples of the first stage")
        return sizes

    def _statement(self, stage: _Stage) -> Statement:
        n, stages, epsilon = len(stage.truth), self.method.stages, self.method.epsilon
        return statement(
            stage.setting,
            epsilon=epsilon,
            mechanism=(
                f"{n:,} labels were split over {stages} stages without reading them, and each "
                f"was randomized exactly once with RRWithPrior, ε = {written(epsilon)}; the prior "
                "of a stage is the model that the stages before it trained on private labels"
            ),
            details={
                "epsilon_label": epsilon,
                "stages": stages,
                "labels_of_stages": np.bincount(stage.stage_of)[1:].tolist(),
                "temperature": self.method.temperature,
                "word_bits": WORD_BITS,
                "classes": stage.setting.loss.task.outputs,
            },
            remarks=("The models of all stages are covered, not only the last.",),
        )


def split(sizes: list[int], seed: int) -> NDArray[np.uint8]:
    """[n] the stage 1 … T of each example: a random split of these sizes; it reads no label."""
    stages = np.repeat(np.arange(1, len(sizes) + 1, dtype=np.uint8), sizes)
    return np.random.default_rng(seed).permutation(stages)


def softmax(logits: NDArray[Any], temperature: float) -> NDArray[np.float64]:
    """[n, K] probabilities; rows of logits that are not finite become NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = logits.astype(np.float64) / temperature
        weights: NDArray[np.float64] = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
    return weights


# ``method: {kind: alibi}``: Laplace noise on one-hot labels and their posterior as soft labels.
#
# With the noisy entries x̂ in lattice steps, Pr[x̂ | class c] ∝ L_c = e^(ε·x̂_c/S)
# (``randomize.py``), and the posterior under a prior p is p_c·L_c/Σ p·L. Malek et al. (2021) use
# the model's current predictions as prior, without a gradient through them. The cross-entropy with
# that posterior has the same gradient as −ln Σ_c p_c·L_c, the negative log-likelihood of the noisy
# labels. This is what is minimised here, so that early stopping has a loss to watch. All of this
# post-processes x̂.
#
# That loss is nearly flat: noisy labels keep only a share of what true labels say (``information``;
# 1/10 at ε = 1), so at a learning rate that suits true labels a model hardly moves in a few epochs.
# Its gradients are therefore divided by that share. Steps of Adam do not depend on it.
#
# Measured on ten classes of images (``benchmarks/notes/training-on-sets.md``): 11 to 13 points
# behind sets in closed form at ε = 0.5, and ahead of them by 0.5 to 0.9 at ε = 2.


class AlibiBuilder(LabelNoiseBuilder[Alibi]):
    """Builds the method from a config whose method is ``alibi``."""

    def drawn(self, setting: Setting, whole: Setting) -> Arrays:
        """Noisy one-hot labels."""
        randomizer, classes = NoisyOneHot(exact(self.method.epsilon)), setting.loss.task.outputs
        return {KEPT: randomizer.randomize(true_classes(setting), classes)}

    def trained(self, setting: Setting, kept: Arrays) -> Stepped:
        """Minibatches on noisy labels, or on their posterior."""
        method, noisy = self.method, kept[KEPT]
        uniform, epsilon = method.prior == "uniform", jnp.float32(method.epsilon)

        def per_example(outputs: jax.Array, x: jax.Array) -> jax.Array:
            return noisy_label_loss(outputs, x, epsilon)

        return minibatch_method(
            setting,
            posterior(noisy, method.epsilon) if uniform else noisy,
            _statement(setting, method),
            per_example=None if uniform else per_example,
            mixup=method.mixup,
            information=1.0 if uniform else information(method.epsilon),
            keep=kept,
        )


def information(epsilon: float) -> float:
    """The share of what true labels say that noisy ones keep: of two classes, which decide alone
    how their own entries are drawn."""
    zero = np.array(NoisyOneHot(exact(epsilon)).weights) / (1 << WORD_BITS)
    pairs = np.outer(zero[::-1], zero)  # the entries of the class and of the other
    return kept_information(np.stack([pairs.ravel(), pairs.T.ravel()]))


def noisy_label_loss(outputs: jax.Array, noisy: jax.Array, epsilon: jax.Array) -> jax.Array:
    """[b] −ln Σ_c softmax(outputs)_c·L_c, up to a constant, for noisy entries [b, K] in steps."""
    return likelihood_loss(outputs, noisy.astype(jnp.float32) * (epsilon / jnp.float32(STEPS)))


def posterior(noisy: NDArray[np.uint8], epsilon: float) -> NDArray[np.float32]:
    """[n, K] Pr[class | noisy entries] under a uniform prior."""
    return softmax(noisy, STEPS / epsilon).astype(np.float32)


def _statement(setting: Setting, method: Alibi) -> Statement:
    n, classes = setting.dataset.train.rows, setting.loss.task.outputs
    return statement(
        setting,
        epsilon=method.epsilon,
        mechanism=(
            f"each of {n:,} labels was written as {classes} entries 0 and 1, and discrete Laplace "
            f"noise of scale 2/ε = {2 / method.epsilon:.6g} was added to each entry, once; a label "
            f"changes two entries by 1 and spends ε = {written(method.epsilon)}"
        ),
        details={
            "epsilon_label": method.epsilon,
            "l1_sensitivity": 2,
            "noise_scale": 2 / method.epsilon,
            "lattice_steps_per_unit": STEPS,
            "word_bits": WORD_BITS,
            "classes": classes,
            "prior": method.prior,
        },
        released="the noisy one-hot labels",
    )
