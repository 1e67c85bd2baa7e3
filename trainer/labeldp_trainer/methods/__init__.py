"""Methods: how labels are protected while a model is trained."""

from collections.abc import Callable

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.methods.alibi import AlibiBuilder
from labeldp_trainer.methods.central import CentralBuilder
from labeldp_trainer.methods.clusters import ClustersBuilder
from labeldp_trainer.methods.lp_mst import LpMstBuilder
from labeldp_trainer.methods.method import Method, MethodBuilder, Setting, Solved
from labeldp_trainer.methods.minibatch import NoneBuilder
from labeldp_trainer.methods.one_release import OneReleaseBuilder
from labeldp_trainer.methods.pate import PateBuilder
from labeldp_trainer.methods.privatized import PrivatizedBuilder
from labeldp_trainer.methods.statement import Statement

__all__ = ["Method", "MethodBuilder", "Setting", "Solved", "Statement", "open_method"]

_BUILDERS: dict[str, Callable[[LoadedConfig], MethodBuilder]] = {
    "alibi": AlibiBuilder,
    "clusters": ClustersBuilder,
    "lp_mst": LpMstBuilder,
    "dp_sgd": CentralBuilder,
    "labeldp_pro": CentralBuilder,
    "none": NoneBuilder,
    "one_release": OneReleaseBuilder,
    "pate": PateBuilder,
    "privatized": PrivatizedBuilder,
}


def open_method(loaded: LoadedConfig) -> MethodBuilder:
    """The builder of the method that a config names. Raises InputError."""
    return _BUILDERS[loaded.config.method.kind](loaded)
