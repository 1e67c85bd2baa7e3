"""Shared by methods that randomize labels themselves, once, and train on the result."""

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from numpy.typing import NDArray

from labeldp_trainer.config import Alibi, Clusters, LoadedConfig, LpMst
from labeldp_trainer.methods.method import Fits, MethodBuilder, Setting, require_kept
from labeldp_trainer.methods.statement import Statement, cost_to_users, protected
from labeldp_trainer.methods.stepped import Stepped
from labeldp_trainer.methods.true_labels import require_label_type
from labeldp_trainer.methods.users import limited_to_users
from labeldp_trainer.randomize import epsilon_up, exact

KEPT = "private_labels"
Arrays = Mapping[str, NDArray[Any]]
L = TypeVar("L", bound=Alibi | LpMst | Clusters)


class LabelNoiseBuilder(MethodBuilder[L]):
    """Builds a method that draws private labels here, unless an interrupted run has stored them.

    A method defines what it draws, how stored draws are recognised, and how it trains on them.
    """

    for_classes: ClassVar[bool] = True

    def __init__(self, loaded: LoadedConfig, method: L) -> None:
        """Raises ConfigError if the loss is not for classes."""
        super().__init__(loaded, method)
        if self.for_classes and loaded.config.loss != "cross_entropy":
            reason = f"method {loaded.config.method.kind} needs loss: cross_entropy"
            raise loaded.error(("loss",), reason)

    def build(self, setting: Setting) -> Stepped:
        """Steps on private labels of the rows that take part. Raises InputError."""
        if self.method.mixup is not None and setting.dataset.shape.vocabularies:
            reason = "cannot mix categorical columns; remove this key, or use only numeric features"
            raise self.loaded.error(("method", "mixup"), reason)
        require_label_type(setting)
        whole, setting = setting, limited_to_users(setting)
        if setting.stored is None:
            return self.trained(setting, self.drawn(setting, whole))
        source = setting.dataset.train.source
        require_kept(setting.stored, self.expected(setting, setting.stored), source)
        return self.trained(setting, setting.stored)

    def drawn(self, setting: Setting, whole: Setting) -> Arrays:
        """Private labels, and what goes with them; ``whole`` has all rows."""
        raise NotImplementedError

    def expected(self, setting: Setting, stored: Arrays) -> Mapping[str, Fits]:
        """What ``drawn`` returns; sizes that it chooses freely are taken from ``stored``."""
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
