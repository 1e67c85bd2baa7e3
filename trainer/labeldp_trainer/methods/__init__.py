"""Methods: how labels are protected while a model is trained, and the one list of them.

It holds texts only, so that no method imports another. Whoever adds a method adds its config, a
file here, and a line below. What exists to be compared with the papers stands in ``published``.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.methods.method import MethodBuilder
from labeldp_trainer.run import RunFolder

_BUILDERS = {
    "one_release": "one_release.OneReleaseBuilder",
    "privatized": "privatized.PrivatizedBuilder",
    "dp_sgd": "central.builder.CentralBuilder",
    "none": "none.NoneBuilder",
    "labeldp_pro": "central.builder.CentralBuilder",
    "lp_mst": "published.lp_mst.LpMstBuilder",
    "alibi": "published.alibi.AlibiBuilder",
    "clusters": "published.clusters.ClustersBuilder",
    "pate": "published.pate.builder.PateBuilder",
}


def open_method(
    loaded: LoadedConfig, folder: RunFolder | None = None, release: Path | None = None
) -> MethodBuilder[Any]:
    """The builder of the method that a config names.

    ``folder`` is that of a run to go on with; ``release`` a file to fit, in place of a new one.
    Raises InputError.
    """
    module, _, name = _BUILDERS[loaded.config.method.kind].rpartition(".")
    made = getattr(import_module(f"{__name__}.{module}"), name)
    builder: MethodBuilder[Any] = made(loaded, loaded.config.method)
    builder.begin(folder, release)
    return builder
