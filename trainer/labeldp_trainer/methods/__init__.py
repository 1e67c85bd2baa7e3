"""The list of methods: how labels are protected while a model is trained.

It holds names only, so that no method imports another. To add a method, add its config, a file here
and a line below. Methods that exist for comparison with papers are in ``published``.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.methods.method import MethodBuilder
from labeldp_trainer.run import RunFolder

_BUILDERS = {
    "staged_release": "staged_release.StagedReleaseBuilder",
    "one_release": "one_release.OneReleaseBuilder",
    "privatized": "privatized.PrivatizedBuilder",
    "dp_sgd": "central.CentralBuilder",
    "none": "closed_form.NoneBuilder",
    "labeldp_pro": "central.CentralBuilder",
    "lp_mst": "published.label_noise.LpMstBuilder",
    "alibi": "published.label_noise.AlibiBuilder",
    "clusters": "published.clusters.ClustersBuilder",
    "pate": "published.pate.PateBuilder",
}


def open_method(
    loaded: LoadedConfig, folder: RunFolder | None = None, release: Path | None = None
) -> MethodBuilder[Any]:
    """The builder of the method that a config names.

    ``folder`` is the run to resume. ``release`` is a file to fit instead of a new release.
    Raises InputError.
    """
    module, _, name = _BUILDERS[loaded.config.method.kind].rpartition(".")
    made = getattr(import_module(f"{__name__}.{module}"), name)
    builder: MethodBuilder[Any] = made(loaded, loaded.config.method)
    builder.begin(folder, release)
    return builder
