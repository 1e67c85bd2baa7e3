"""``method: {kind: none}``: the true labels, without privacy."""

from __future__ import annotations

from typing import Any

import numpy as np

from labeldp_trainer.config import NoMethod
from labeldp_trainer.data.coded import Coded
from labeldp_trainer.methods.closed_form import solve_labels
from labeldp_trainer.methods.interactions import known_labels_method
from labeldp_trainer.methods.method import ClosedForm, Method, MethodBuilder, Setting
from labeldp_trainer.methods.minibatch import minibatch_method
from labeldp_trainer.methods.statement import Statement

_LEAST_SHARE = 1e-3  # of a class
STATEMENT = Statement(
    method="none",
    epsilon=None,
    delta=0.0,
    mechanism="the model was trained on the true labels",
    secret=("the labels", "the parameters and all metrics, which depend on the labels"),
)


class NoneBuilder(MethodBuilder[NoMethod]):
    """Builds the method without privacy."""

    def build(self, setting: Setting) -> Method:
        """Plain minibatches, or the closed form. Raises DataError if a label cannot be used."""
        train, label = setting.dataset.train, self.loaded.config.data.label
        targets = setting.loss.task.targets(train.columns[label], train.source, label)
        if self.loaded.config.interactions is not None:
            return _interactions(setting, targets)
        if not self.loaded.config.closed_form:
            return minibatch_method(setting, targets, STATEMENT)
        ends = None
        if setting.loss.task.classes is None:
            ends = float(targets.min()), float(targets.max())
        return ClosedForm(solve=lambda: solve_labels(setting, targets, ends), statement=STATEMENT)


def _interactions(setting: Setting, targets: Any) -> Method:
    """The model of ``staged_release``, without noise."""
    classes = setting.loss.task.classes
    if classes is None:
        coded, shares = Coded.numbers(np.asarray(targets, np.float64)), None
        ends = float(targets.min()), float(targets.max())
    else:
        coded, ends = Coded.one_hot(np.asarray(targets, np.int32), len(classes)), None
        shares = np.bincount(targets, minlength=len(classes)) / len(targets)
        shares = np.maximum(shares, _LEAST_SHARE) / np.maximum(shares, _LEAST_SHARE).sum()
    return known_labels_method(setting, coded, ends, shares=shares, extra=0.0, statement=STATEMENT)
