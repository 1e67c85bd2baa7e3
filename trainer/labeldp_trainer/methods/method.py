"""What a method is: its promise, what must be kept before it begins, and how it fits a model.

A method is built once, from the config and the data. What runs it knows nothing else about it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.base import Strict
from labeldp_trainer.data import Dataset
from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.evaluation import make_evaluation
from labeldp_trainer.losses import Loss
from labeldp_trainer.methods.statement import Statement
from labeldp_trainer.models import Model, Params
from labeldp_trainer.representation import Representation
from labeldp_trainer.representation.kind import Steps, silent
from labeldp_trainer.run import RunFolder
from labeldp_trainer.run.metrics import Line
from labeldp_trainer.sharding import Devices

Stored = Mapping[str, NDArray[Any]]
TestArrays = tuple[Any, Any] | None
"""Features of the test part as a model sees them, and targets."""


@dataclass(frozen=True)
class Setting:
    """What a method is built from.

    Attributes:
        loaded: the config.
        dataset: the data as models see them, with the label columns that the method asked for.
        model: of the user, or from the config.
        loss: with its task.
        devices: the devices to use.
        stored: the ``keep`` of the same run before it was interrupted, or None in a new run.
        representation: the map from features to what models see, if there is one.
        original: the data before it.
        steps: told how far a representation is.
    """

    loaded: LoadedConfig
    dataset: Dataset
    model: Model
    loss: Loss
    devices: Devices
    stored: Stored | None
    representation: Representation | None = None
    original: Dataset | None = None
    steps: Steps = silent

    @property
    def spectrum(self) -> Float64[np.ndarray, " p"] | None:
        """Of the principal components that the features are, if they are."""
        return None if self.representation is None else self.representation.spectrum


@dataclass(frozen=True)
class TrainingRun:
    """A run that may begin: what it must keep is on the disk.

    Attributes:
        setting: what the method was built from.
        folder: of the run.
        params: fresh ones.
        tests: the test part.
        progress: called with the metrics of every epoch.
    """

    setting: Setting
    folder: RunFolder
    params: Params
    tests: TestArrays
    progress: Callable[[Line], None]

    def tester(self) -> Callable[[Params], Line]:
        """A function from parameters to test metrics."""
        evaluate = make_evaluation(self.setting.model, self.setting.loss)

        def test(params: Params) -> Line:
            means = {} if self.tests is None else evaluate(params, *self.tests)
            return {f"test_{name}": float(value) for name, value in means.items()}

        return test


@dataclass(frozen=True)
class Fitted:
    """What a run ends with.

    Attributes:
        params: the final parameters; with early stopping those of least private training loss.
        model: whose ``apply`` takes them.
        metrics: the final metrics, those of the test set with ``test_`` before their names.
        notes: sentences for the user that the test set gives.
    """

    params: Params
    model: Model
    metrics: Line
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A way to fit a model.

    Attributes:
        statement: what is promised.
        keep: host arrays that the run folder must hold before the run begins, so that a resumed
            run spends nothing again; a builder gets them back as ``Setting.stored``.
        files: what the folder must hold besides, by name.
        notes: sentences for the user.
        repeats_noise: whether steps that are done again add the same secret noise. They must then
            give the same bits, or two sums with one noise would be out: the run is resumed only on
            the same kind and number of devices and with the same packages.
    """

    statement: Statement
    keep: Stored = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    repeats_noise: bool = False

    @abstractmethod
    def fit(self, run: TrainingRun) -> Fitted:
        """The model. Raises InputError."""


@dataclass(frozen=True, kw_only=True)
class ClosedForm(Method):
    """A linear model, fitted to sums over all rows without steps.

    Attributes:
        solve: the parameters of ``models.Linear``; post-processing of what is kept.
    """

    solve: Callable[[], Params]

    def fit(self, run: TrainingRun) -> Fitted:
        """The solution. Raises InputError."""
        params = self.solve()
        return Fitted(params, run.setting.model, run.tester()(params))


C = TypeVar("C", bound=Strict)


class MethodBuilder(Generic[C]):
    """A method before the data are read.

    Attributes:
        loaded: the config.
        method: the part of it that says how labels are protected.
        columns: label columns that it needs of the training part, and those that go with them.
        classes: that it knows, from a certificate for instance.
    """

    classes: tuple[int | str, ...] | None = None

    def __init__(self, loaded: LoadedConfig, method: C) -> None:
        """Look at the config alone. Raises InputError."""
        self.loaded, self.method = loaded, method
        users = loaded.config.user_column
        self.columns = (loaded.config.data.label, *(() if users is None else (users,)))

    def begin(self, folder: RunFolder | None, release: Path | None) -> None:
        """Go on with a run that was interrupted, or with a release that was given.

        Raises InputError.
        """
        del folder
        if release is not None:
            raise self.loaded.error(("method", "kind"), "a release is fitted by method one_release")

    def build(self, setting: Setting) -> Method:
        """The method. Raises InputError."""
        raise NotImplementedError


class Fits(NamedTuple):
    """Arrays of a shape, whose dtype is of one of the kinds (as "iu").

    With ``ends`` (a, b) all entries are at least a and below b.
    """

    kinds: str
    shape: tuple[int, ...]
    ends: tuple[float, float] | None = None

    def holds(self, array: NDArray[Any]) -> bool:
        """Whether it is one of them."""
        if array.dtype.kind not in self.kinds or array.shape != self.shape:
            return False
        return self.ends is None or bool(((array >= self.ends[0]) & (array < self.ends[1])).all())


def require_kept(stored: Stored, expected: Mapping[str, Fits], source: str) -> None:
    """Raise RunFolderError unless these are the arrays that a run of this config has kept.

    An index beyond an array does not fail under JAX but takes its last entry: private labels of
    fewer rows would train without a word. ``source`` is in the message.
    """
    if set(stored) != set(expected) or not all(
        fits.holds(stored[name]) for name, fits in expected.items()
    ):
        raise unfit(source)


def unfit(source: str) -> RunFolderError:
    """What the run has kept is not of these rows and this config."""
    return RunFolderError(
        f"{source}: the run was started with other rows, or its kept.npz is damaged: start another "
        "run"
    )
