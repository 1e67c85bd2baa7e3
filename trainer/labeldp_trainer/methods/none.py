"""``method: {kind: none}``: train on the true labels."""

from __future__ import annotations

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.methods.method import Method, Setting
from labeldp_trainer.methods.minibatch import minibatch_method
from labeldp_trainer.methods.statement import Statement

STATEMENT = Statement(
    method="none",
    epsilon=None,
    delta=0.0,
    mechanism="the model was trained on the true labels",
    secret=("the labels", "the parameters and all metrics, which depend on the labels"),
)


class NoneBuilder:
    """Builds the method without privacy."""

    def __init__(self, loaded: LoadedConfig) -> None:
        """Keep the config."""
        self._label = loaded.config.data.label
        self.columns: tuple[str, ...] = (self._label,)
        self.classes: tuple[int | str, ...] | None = None

    def build(self, setting: Setting) -> Method:
        """Plain minibatches. Raises DataError if a label is missing or unknown."""
        train = setting.dataset.train
        values = train.columns[self._label]
        targets = setting.loss.task.targets(values, train.source, self._label)
        return minibatch_method(setting, targets, STATEMENT)
