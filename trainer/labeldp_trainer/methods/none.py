"""``method: {kind: none}``: the true labels, without privacy."""

from labeldp_trainer.config import NoMethod
from labeldp_trainer.methods.closed_form import coded_targets, solve_labels
from labeldp_trainer.methods.interactions import known_labels_method
from labeldp_trainer.methods.method import ClosedForm, Method, MethodBuilder, Setting
from labeldp_trainer.methods.statement import Statement

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
        if not self.loaded.config.closed_form:
            from labeldp_trainer.methods.minibatch import minibatch_method  # noqa: PLC0415

            return minibatch_method(setting, targets, STATEMENT)
        ends = None
        if setting.loss.task.classes is None:
            ends = float(targets.min()), float(targets.max())
        if self.loaded.config.interactions is not None:
            coded, shares = coded_targets(setting, targets)
            return known_labels_method(
                setting, coded, ends, shares=shares, extra=0.0, statement=STATEMENT
            )
        return ClosedForm(solve=lambda: solve_labels(setting, targets, ends), statement=STATEMENT)
