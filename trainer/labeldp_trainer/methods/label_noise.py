"""What the methods have in common that randomize class labels themselves: checks and statements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.methods.method import Setting
from labeldp_trainer.methods.statement import TEST_LABELS, Statement, written

KEPT = "private_labels"


def require_classes(loaded: LoadedConfig) -> None:
    """Raise ConfigError unless the loss is for classification."""
    if loaded.config.loss != "cross_entropy":
        reason = f"method {loaded.config.method.kind} is for classes: it needs cross_entropy"
        raise loaded.error(("loss",), reason)


def require_mixable(setting: Setting, mixup: float | None) -> None:
    """Raise ConfigError if mixup would mix the codes of categories."""
    if mixup is not None and setting.dataset.shape.vocabularies:
        reason = "cannot mix categorical columns: leave it out, or use numeric features"
        raise setting.loaded.error(("method", "mixup"), reason)


def true_classes(setting: Setting) -> NDArray[np.int32]:
    """[n] the true labels as indices of classes. Raises DataError."""
    train, label = setting.dataset.train, setting.loaded.config.data.label
    classes: NDArray[np.int32] = setting.loss.task.targets(
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
    """The promise of a run in which every label was randomized exactly once, with fresh words."""
    return Statement(
        method=setting.loaded.config.method.kind,
        epsilon=epsilon,
        delta=0.0,
        mechanism=mechanism,
        details={**details, "labels": setting.dataset.train.rows},
        released=(released, "the parameters", "metrics on the private labels"),
        secret=("the true labels",),
        not_covered=() if setting.dataset.test is None else (TEST_LABELS,),
        remarks=(
            *remarks,
            "Training only post-processes private labels and spends nothing more, however long it "
            "runs.",
            "A person with several labels pays for each of them.",
            f"Starting another run randomizes again and spends ε = {written(epsilon)} again; "
            "resuming this one does not.",
        ),
    )
