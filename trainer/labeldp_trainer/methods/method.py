"""The interface of a method: its promise, what it must store first, and how it fits a model.

A method is built once, from the config and the data. The code that runs it knows nothing else.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np
from jaxtyping import Float64, Int32
from numpy.typing import NDArray

from labeldp_compile.toolkit import Strict
from labeldp_trainer.coefficients import FILE as COEFFICIENTS
from labeldp_trainer.coefficients import KeptCoefficients
from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.data import TrueLabels
from labeldp_trainer.config.representation import Steps, silent
from labeldp_trainer.data import DataPart, Dataset
from labeldp_trainer.data.labels import class_labels, label_numbers, require_declared
from labeldp_trainer.data.users import UserBound, UserRows, rows_of_users
from labeldp_trainer.losses import Loss, mean_metrics
from labeldp_trainer.methods.statement import Statement
from labeldp_trainer.models import Model, Params
from labeldp_trainer.one_release.rows import Users, user_counts
from labeldp_trainer.run import RunFolder
from labeldp_trainer.run.folder import Line, write_json

if TYPE_CHECKING:  # it imports JAX
    from labeldp_trainer.representations import Representation

Stored = Mapping[str, NDArray[Any]]
TestArrays = tuple[Any, Any] | None
"""The test features as a model sees them, and their targets."""


@dataclass(frozen=True)
class Setting:
    """Everything that a method is built from.

    Attributes:
        loaded: the config.
        dataset: the data as models see them, with the label columns that the method asked for.
        model: passed by the user or built from the config.
        loss: the loss with its task.
        stored: the ``keep`` of the same run before it was interrupted, or None in a new run.
        representation: the map from features to what models see, if there is one.
        original: the data before that map.
        steps: called with the progress of a representation.
    """

    loaded: LoadedConfig
    dataset: Dataset
    model: Model
    loss: Loss
    stored: Stored | None
    representation: Representation | None = None
    original: Dataset | None = None
    steps: Steps = silent

    @property
    def spectrum(self) -> Float64[np.ndarray, " p"] | None:
        """The eigenvalues if the features are principal components, otherwise None."""
        return None if self.representation is None else self.representation.spectrum

    @property
    def groups(self) -> Int32[np.ndarray, " p"] | None:
        """The representations that columns are from if several are joined, otherwise None."""
        return None if self.representation is None else self.representation.groups


@dataclass(frozen=True)
class TrainingRun:
    """A run that is ready to start: what it must keep is on disk.

    Attributes:
        setting: what the method was built from.
        folder: the run folder.
        params: initial parameters.
        tests: the test part.
        progress: called with the metrics of every epoch.
    """

    setting: Setting
    folder: RunFolder
    params: Params
    tests: TestArrays
    progress: Callable[[Line], None]

    def tested(self, params: Params) -> Line:
        """The test metrics of a model in closed form; none without a test part."""
        if self.tests is None:
            return {}
        means = mean_metrics(self.setting.model, self.setting.loss, params, *self.tests)
        return {f"test_{name}": value for name, value in means.items()}


@dataclass(frozen=True)
class Fitted:
    """The result of a run.

    Attributes:
        params: the final parameters; with early stopping those of least training loss.
        model: its ``apply`` takes the parameters.
        metrics: the final metrics; names of test metrics start with ``test_``.
        notes: warnings from the test set, or from what was learned.
        facts: further entries of ``result.json``.
    """

    params: Params
    model: Model
    metrics: Line
    notes: tuple[str, ...] = ()
    facts: Line = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A way to fit a model.

    Attributes:
        statement: the privacy promise.
        keep: host arrays that the run folder must hold before the run starts, so that a resumed
            run spends nothing again. A builder gets them back as ``Setting.stored``.
        files: further files of the folder, by name.
        notes: warnings for the user.
        repeats_noise: whether repeated steps add the same secret noise. Repeated steps must then
            give the same bits, because two sums with the same noise would disclose labels. So
            the run resumes only on the same devices and with the same packages.
    """

    statement: Statement
    keep: Stored = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    repeats_noise: bool = False

    @abstractmethod
    def fit(self, run: TrainingRun) -> Fitted:
        """The model. Raises InputError."""

    def machine(self, setting: Setting) -> dict[str, Any]:
        """For ``run.json``: where it is computed. JAX's devices are for networks."""
        del setting
        return {"device": "cpu: numpy", "devices": 1}


@dataclass(frozen=True, kw_only=True)
class ClosedForm(Method):
    """A linear model that is fitted to sums over all rows, without steps.

    Attributes:
        solve: returns the parameters of ``models.Linear``; it post-processes what is kept.
        coefficients: the same of what ``labeldp runs --coefficients`` shows; None if vectors are
            not linear in the features.
    """

    solve: Callable[[], Params]
    coefficients: Callable[[], KeptCoefficients | None] = lambda: None

    def fit(self, run: TrainingRun) -> Fitted:
        """The solution. Raises InputError."""
        params, found = self.solve(), self.coefficients()
        if found is not None:
            write_json(run.folder.path / COEFFICIENTS, found.model_dump())
        return Fitted(params, run.setting.model, run.tested(params))


C = TypeVar("C", bound=Strict)


class MethodBuilder(Generic[C]):
    """A method before the data are read.

    Attributes:
        loaded: the config.
        method: its part ``method``.
        columns: the columns that it needs from the training part besides features.
        classes: the classes, if it knows them, for example from a certificate.
    """

    classes: tuple[int | str, ...] | None = None

    def __init__(self, loaded: LoadedConfig, method: C) -> None:
        """Read the config alone. Raises InputError."""
        self.loaded, self.method = loaded, method
        users = loaded.config.user_column
        self.columns = (loaded.config.data.label, *(() if users is None else (users,)))

    def begin(self, folder: RunFolder | None, release: Path | None) -> None:
        """Resume an interrupted run, or use a given release.

        Raises InputError.
        """
        del folder
        if release is not None:
            raise self.loaded.error(("method", "kind"), "--from-release needs method one_release")

    def build(self, setting: Setting) -> Method:
        """The method. Raises InputError."""
        raise NotImplementedError


# The users of a run, and their rows that take part.


def user_facts(setting: Setting) -> dict[str, str]:
    """For ``run.json``: a digest of the users, who are public and decide which rows take part."""
    train = limited_to_users(setting).dataset.train
    users = users_of(setting.loaded, train)
    return {} if users is None else {"users_sha256": users.sha256}


def users_of(loaded: LoadedConfig, train: DataPart) -> Users | None:
    """What a release says of the users of rows that take part; None if each label is on its own."""
    bound = UserBound.of(loaded)
    if train.whole is not None or bound is None:
        return None if train.whole is None else train.whole.users
    assert train.owners is not None and train.places is not None
    return Users.of(bound.column, bound.most, user_counts(train.owners, train.places))


def user_rows(loaded: LoadedConfig, train: DataPart) -> UserRows | None:
    """Rows by user, limited as the config says; None if each label is protected on its own.

    The choice is a function of the public user column, the places of the rows and the public seed.
    """
    owners, bound = train.owners, UserBound.of(loaded)
    if owners is None or bound is None:
        return None
    most = min(bound.most, int(np.bincount(owners).max()))
    return rows_of_users(owners, most, bound.seed, train.places)


def used_rows(setting: Setting) -> NDArray[np.int64]:
    """The rows that take part: in their order in the file, or those of a user after one another,
    of users with few rows first."""
    train = setting.dataset.train
    own = user_rows(setting.loaded, train)
    if own is None:
        return np.arange(train.rows)
    order = np.argsort(own.present.sum(axis=1), kind="stable")
    return own.rows[order][own.present[order]]


def limited_to_users(setting: Setting) -> Setting:
    """The setting with at most the allowed rows of each user. Raises InputError."""
    loaded, train = setting.loaded, setting.dataset.train
    if loaded.config.user_column is None:
        return setting
    part = train.take(used_rows(setting))
    loaded.require_batch(part.rows, "examples that remain after limiting rows per user")
    return dataclasses.replace(setting, dataset=dataclasses.replace(setting.dataset, train=part))


# The true labels of a run, for the methods that protect them.


def require_label_type(setting: Setting) -> None:
    """Raise DataError if the declared type of the label column, which is public, fits no label."""
    train, label = setting.dataset.train, setting.loaded.config.data.label
    require_declared(train.columns[label], setting.loss.task.classes, train.source, label)


def true_classes(setting: Setting) -> Int32[np.ndarray, " n"]:
    """The class of each of n rows; the default, or the first one, for all that are none."""
    classes, default = setting.loss.task.classes, _default(setting)
    assert classes is not None and not isinstance(default, float)
    return class_labels(_column(setting), classes, default)


def true_numbers(setting: Setting, low: float, high: float) -> Float64[np.ndarray, " n"]:
    """The numbers of n rows in [low, high]. What is none becomes the default, or the middle."""
    default = _default(setting)
    assert not isinstance(default, str)
    return label_numbers(_column(setting), low, high, default)


def _column(setting: Setting) -> object:
    return setting.dataset.train.columns[setting.loaded.config.data.label]


def _default(setting: Setting) -> int | str | float | None:
    return cast("TrueLabels", setting.loaded.config.method).default
