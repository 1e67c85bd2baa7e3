"""Private labels in the tools that people already use: scikit-learn, LightGBM, XGBoost, PyTorch.

Everything here takes an artifact and private labels, and never a true one. So nothing spends
privacy: it is post-processing. Read in this order: ``private_labels.py`` (what an artifact says of
a column of private labels), ``classifier.py`` and ``regressor.py`` (estimators of scikit-learn
around any other), ``losses.py`` with ``boosting.py`` and ``torch_losses.py`` (losses for libraries
that take one), and ``presets.py`` (starting values for boosting on noisy labels).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labeldp_learn.boosting import boosting_objective
    from labeldp_learn.classifier import PrivateLabelClassifier
    from labeldp_learn.errors import PrivateLabelError
    from labeldp_learn.evaluation import Measured, calibration, evaluate
    from labeldp_learn.losses import (
        BinaryForwardLogLoss,
        ForwardLogLoss,
        UnbiasedPoissonLoss,
        UnbiasedSquaredLoss,
    )
    from labeldp_learn.presets import BoostingPreset, boosting_preset
    from labeldp_learn.private_labels import PrivateLabels, Probabilities
    from labeldp_learn.regressor import PrivateLabelRegressor
    from labeldp_learn.scoring import scorer

__all__ = [
    "BinaryForwardLogLoss",
    "BoostingPreset",
    "ForwardLogLoss",
    "Measured",
    "PrivateLabelClassifier",
    "PrivateLabelError",
    "PrivateLabelRegressor",
    "PrivateLabels",
    "Probabilities",
    "UnbiasedPoissonLoss",
    "UnbiasedSquaredLoss",
    "boosting_objective",
    "boosting_preset",
    "calibration",
    "evaluate",
    "scorer",
]
_HOMES = {
    "boosting": ("boosting_objective",),
    "classifier": ("PrivateLabelClassifier",),
    "errors": ("PrivateLabelError",),
    "evaluation": ("Measured", "calibration", "evaluate"),
    "losses": (
        *("BinaryForwardLogLoss", "ForwardLogLoss", "UnbiasedPoissonLoss", "UnbiasedSquaredLoss"),
    ),
    "presets": ("BoostingPreset", "boosting_preset"),
    "private_labels": ("PrivateLabels", "Probabilities"),
    "regressor": ("PrivateLabelRegressor",),
    "scoring": ("scorer",),
}


def __getattr__(name: str) -> Any:
    """The public names, loaded when they are used."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
