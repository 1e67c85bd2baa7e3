"""What the methods have in common that randomize class labels themselves: checks and statements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Int32

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.methods.method import C, MethodBuilder, Setting
from labeldp_trainer.methods.statement import (
    Statement,
    another_run,
    by_group_privacy,
    protected,
    written,
)
from labeldp_trainer.randomize import exact

KEPT = "private_labels"


class ClassBuilder(MethodBuilder[C]):
    """Builds a method that randomizes the labels of a classification itself."""

    def __init__(self, loaded: LoadedConfig, method: C) -> None:
        """Raises ConfigError if the loss is not for classes."""
        super().__init__(loaded, method)
        if loaded.config.loss != "cross_entropy":
            reason = f"method {loaded.config.method.kind} is for classes: it needs cross_entropy"
            raise loaded.error(("loss",), reason)


def require_mixable(setting: Setting, mixup: float | None) -> None:
    """Raise ConfigError if mixup would mix the codes of categories."""
    if mixup is not None and setting.dataset.shape.vocabularies:
        reason = "cannot mix categorical columns: leave it out, or use numeric features"
        raise setting.loaded.error(("method", "mixup"), reason)


def true_classes(setting: Setting) -> Int32[np.ndarray, " n"]:
    """[n] the true labels as indices of classes. Raises DataError."""
    train, label = setting.dataset.train, setting.loaded.config.data.label
    classes: Int32[np.ndarray, " n"] = setting.loss.task.targets(
        train.columns[label], train.source, label
    )
    return classes


def statement(
    setting: Setting,
    *,
    epsilon: float,
    mechanism: str,
    details: Mapping[str, Any],
    released: str = "the private labels",
    remarks: tuple[str, ...] = (),
) -> Statement:
    """The promise of a run in which every label was randomized exactly once, with fresh words.

    ``epsilon`` is that of a label; for a user it is that of all labels that are used (group
    privacy, Theorem 7 (f)). ``setting`` is that of the rows that take part.
    """
    config, used = setting.loaded.config, setting.dataset.train.rows
    most = config.examples_per_user
    rows = used if setting.original is None else setting.original.train.rows
    promised = float(exact(epsilon) * (most or 1))
    return protected(
        config,
        epsilon=promised,
        mechanism=mechanism,
        details={**details, "labels": used},
        released=(released, "the parameters", "metrics on the private labels"),
        remarks=(
            *remarks,
            "Training only post-processes private labels and spends nothing more, however long it "
            "runs.",
            *(() if most is None else (by_group_privacy(most, used, rows),)),
            another_run(f"ε = {written(promised)}", doing="randomizes again and "),
        ),
    )
