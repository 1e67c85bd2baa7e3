"""``labeldp train --verify-release``: a release against the features that a config names."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from labeldp_trainer.config import LoadedConfig, OneRelease
from labeldp_trainer.data import Dataset
from labeldp_trainer.losses import Loss
from labeldp_trainer.methods import Setting, open_method
from labeldp_trainer.methods.one_release import public_rows
from labeldp_trainer.methods.users import limited_to_users
from labeldp_trainer.models import build_model
from labeldp_trainer.one_release.check import Check, checks
from labeldp_trainer.one_release.release import read_release
from labeldp_trainer.representation.kind import Steps, silent
from labeldp_trainer.sharding import Devices
from labeldp_trainer.training import read, seen


def verify_release(loaded: LoadedConfig, path: Path, steps: Steps = silent) -> list[Check]:
    """All checks of a release; the representation is computed again, and no label is read.

    Raises InputError.
    """
    method = loaded.config.method
    if not isinstance(method, OneRelease):
        raise loaded.error(("method", "kind"), "expected one_release: releases are its alone")
    release = read_release(path)
    with TemporaryDirectory() as empty:  # no run lies there whose vectors might be believed
        nowhere = Path(empty) / "run"
        builder = open_method(loaded)
        features, loss = read(loaded, builder, labels=())
        dataset, representation = seen(loaded, features, nowhere, steps)
    spectrum = None if representation is None else representation.spectrum
    setting = limited_to_users(_setting(loaded, dataset, loss, spectrum))
    return list(checks(release, public_rows(setting), method, loss.task.classes))


def _setting(loaded: LoadedConfig, dataset: Dataset, loss: Loss, spectrum: Any) -> Setting:
    model = build_model(loaded, dataset.shape, loss.task.outputs)
    devices = Devices.for_batch(1)
    return Setting(loaded, dataset, model, loss, devices, None, spectrum)
