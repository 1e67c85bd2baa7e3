"""What the methods have in common that randomize class labels themselves: checks and statements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.base import UserLevel
from labeldp_trainer.methods.method import Setting
from labeldp_trainer.methods.statement import (
    ADJACENCY,
    SEVERAL_LABELS,
    TEST_LABELS,
    Statement,
    another_run,
    written,
)
from labeldp_trainer.methods.users import user_adjacency
from labeldp_trainer.randomize import exact

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
    """The promise of a run in which every label was randomized exactly once, with fresh words.

    ``epsilon`` is that of a label; for a user it is that of all labels that are used (group
    privacy, Theorem 7 (f)).
    """
    method, rows = setting.loaded.config.method, setting.dataset.train.rows
    most = method.max_examples_per_user if isinstance(method, UserLevel) else None
    several = SEVERAL_LABELS
    if most is not None:
        several = (
            f"At most {most:,} labels of a user were used, {rows:,} in all: ε is {most:,} times "
            "that of a label (group privacy)."
        )
    promised = float(exact(epsilon) * (most or 1))
    return Statement(
        method=method.kind,
        epsilon=promised,
        delta=0.0,
        mechanism=mechanism,
        details={
            **details,
            "labels": rows,
            "unit": "label" if most is None else "user",
            "max_examples_per_user": most,
        },
        released=(released, "the parameters", "metrics on the private labels"),
        secret=("the true labels",),
        not_covered=() if setting.dataset.test is None else (TEST_LABELS,),
        remarks=(
            *remarks,
            "Training only post-processes private labels and spends nothing more, however long it "
            "runs.",
            several,
            another_run(f"ε = {written(promised)}", doing="randomizes again and "),
        ),
        adjacency=ADJACENCY if most is None else user_adjacency(most),
    )
