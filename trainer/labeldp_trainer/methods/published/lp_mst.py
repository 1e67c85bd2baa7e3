"""``method: {kind: lp_mst}``: multi-stage training (Deep learning with label DP, Algorithm 3).

The examples are split into T sets without a look at labels. Stage t randomizes the labels of set t,
each exactly once, with the predictions of the last stage's model as priors, and trains a fresh
model on all labels that are private so far. The first stage has a uniform prior, with which
RRWithPrior is randomized response. Private labels are on the disk before a step uses them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.config import LpMst
from labeldp_trainer.evaluation import predict
from labeldp_trainer.methods.kept import require_inside, require_kept, unfit
from labeldp_trainer.methods.method import Setting, Stored
from labeldp_trainer.methods.minibatch import minibatch_method
from labeldp_trainer.methods.published.label_noise import (
    KEPT,
    ClassBuilder,
    require_mixable,
    statement,
    true_classes,
)
from labeldp_trainer.methods.statement import Statement, written
from labeldp_trainer.methods.stepped import Stepped
from labeldp_trainer.methods.users import limited_to_users
from labeldp_trainer.models import Params
from labeldp_trainer.randomize import WORD_BITS, RRWithRowPriors, exact

STAGE = "stage_of_example"
Labels = NDArray[np.int32]


class LpMstBuilder(ClassBuilder[LpMst]):
    """Builds the method from a config whose method is ``lp_mst``."""

    def build(self, setting: Setting) -> Stepped:
        """The first stage, which leads to the others. Raises InputError."""
        method = self.method
        require_mixable(setting, method.mixup)
        setting = limited_to_users(setting)
        truth = true_classes(setting)
        sizes = self._sizes(len(truth))
        if setting.stored is None:
            stage_of = split(sizes, self.loaded.config.training.seed)
        else:
            stage_of = self._stored_split(setting, sizes)
        randomizer = RRWithRowPriors(setting.loss.task.outputs, exact(method.epsilon))
        stages = _Stages(setting, method, truth, stage_of, randomizer, sizes)
        return stages.first(setting.stored)

    def _stored_split(self, setting: Setting, sizes: list[int]) -> NDArray[np.uint8]:
        """The stage of each example in the interrupted run. Raises RunFolderError."""
        stored, source = setting.stored, setting.dataset.train.source
        assert stored is not None
        expected = {STAGE: ("u", (sum(sizes),)), KEPT: ("i", (sizes[0],))}
        require_kept(stored, expected, source)
        if np.bincount(stored[STAGE], minlength=len(sizes) + 1).tolist() != [0, *sizes]:
            raise unfit(source)
        require_inside(stored[KEPT], 0, setting.loss.task.outputs, source)
        return stored[STAGE]

    def _sizes(self, n: int) -> list[int]:
        """Examples of every stage. Raises ConfigError if one is empty, or the first too small."""
        bounds = np.round(np.cumsum([0.0, *self.method.shares]) * n).astype(int)
        bounds[-1] = n
        sizes = [int(size) for size in np.diff(bounds)]
        if min(sizes) < 1:
            reason = f"{len(sizes)} leave a stage without any of the {n:,} examples"
            raise self.loaded.error(("method", "stages"), reason)
        self.loaded.require_batch(sizes[0], "examples of the first stage")
        return sizes


@dataclass(frozen=True)
class _Stages:
    """All that the stages of a run share.

    Attributes:
        truth: [n] the true classes.
        stage_of: [n] the stage, 1 … T, that randomizes each label.
        sizes: [T] examples of each stage.
    """

    setting: Setting
    method: LpMst
    truth: Labels
    stage_of: NDArray[np.uint8]
    randomizer: RRWithRowPriors
    sizes: list[int]

    def first(self, stored: Stored | None) -> Stepped:
        """Stage 1: randomized response."""
        mine = self.stage_of == 1
        private = np.full(len(self.truth), -1, np.int32)
        private[mine] = (
            self.randomizer.randomize(self.truth[mine]) if stored is None else stored[KEPT]
        )
        return self._trained_on(1, private, {STAGE: self.stage_of, KEPT: private[mine]})

    def later(self, stage: int, before: Labels, params: Params, stored: Stored | None) -> Stepped:
        """Stage t > 1: RRWithPrior with the predictions of the last model, unless it is stored."""
        rows = np.flatnonzero(self.stage_of == stage)
        private = before.copy()
        if stored is None:
            logits = predict(self.setting.model, params, self.setting.dataset.train.take(rows))
            prior = softmax(logits, self.method.temperature)
            private[rows] = self.randomizer.randomize(self.truth[rows], prior)
        else:
            source = self.setting.dataset.train.source
            require_kept(stored, {KEPT: ("i", (len(rows),))}, source)
            require_inside(stored[KEPT], 0, self.setting.loss.task.outputs, source)
            private[rows] = stored[KEPT]
        return self._trained_on(stage, private, {KEPT: private[rows]})

    def _trained_on(self, stage: int, private: Labels, keep: dict[str, NDArray[Any]]) -> Stepped:
        rows = np.flatnonzero(self.stage_of <= stage)
        dataset = self.setting.dataset
        subset = replace(dataset, train=dataset.train.take(rows))
        method = minibatch_method(
            replace(self.setting, dataset=subset),
            private[rows],
            self._statement(),
            mixup=self.method.mixup,
            keep=keep,
        )
        if stage == len(self.sizes):
            return method
        return replace(method, later=partial(self.later, stage + 1, private))

    def _statement(self) -> Statement:
        n, stages, epsilon = len(self.truth), len(self.sizes), self.method.epsilon
        return statement(
            self.setting,
            epsilon=epsilon,
            mechanism=(
                f"{n:,} labels were split over {stages} stages without a look at them, and each "
                f"was randomized exactly once with RRWithPrior, ε = {written(epsilon)}; the prior "
                "of a stage is the model that the stages before it trained on private labels"
            ),
            details={
                "epsilon_label": epsilon,
                "stages": stages,
                "labels_of_stages": self.sizes,
                "temperature": self.method.temperature,
                "word_bits": WORD_BITS,
                "classes": self.setting.loss.task.outputs,
            },
            remarks=("The models of all stages are covered, not only the last.",),
        )


def split(sizes: list[int], seed: int) -> NDArray[np.uint8]:
    """[n] the stage 1 … T of each example: a random split of these sizes that sees no label."""
    stages = np.repeat(np.arange(1, len(sizes) + 1, dtype=np.uint8), sizes)
    return np.random.default_rng(seed).permutation(stages)


def softmax(logits: NDArray[np.float32], temperature: float) -> NDArray[np.float64]:
    """[n, K] probabilities; rows of logits that are not finite become NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = logits.astype(np.float64) / temperature
        weights: NDArray[np.float64] = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
    return weights
