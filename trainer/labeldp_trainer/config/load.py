"""From a YAML file to a validated config, or to messages that name file, line and key."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from labeldp_compile.errors import InputError
from labeldp_compile.yaml_model import Document
from labeldp_compile.yaml_source import KeyPath, YamlSource
from labeldp_trainer.config.central import DpSgd, LabelDpPro
from labeldp_trainer.config.data import DataConfig, NpzData, TableData
from labeldp_trainer.config.method import Clusters, Privatized
from labeldp_trainer.config.model import CLOSED_FORMS, Config
from labeldp_trainer.config.one_release import HEADS, OneRelease
from labeldp_trainer.config.pate import MOST_CLASSES, Pate
from labeldp_trainer.config.representation import TEST, FromFile
from labeldp_trainer.errors import ConfigError

Misfit = tuple[KeyPath, str]
_CONFIG = Document("config", Config, ConfigError)


@dataclass(frozen=True)
class LoadedConfig:
    """A config, and what messages about it need.

    Attributes:
        config: the validated config.
        text: what was read.
        source: names the text in messages.
        directory: what relative paths in it start from.
        yaml: the lines of its keys.
        within: the part whose keys ``config`` has at its top, in ``final``.
    """

    config: Config
    text: str
    source: str
    directory: Path
    yaml: YamlSource
    within: KeyPath = ()

    @property
    def final(self) -> LoadedConfig:
        """The same for the model that a run ends with: with ``refine``, that part's network, which
        sees features and no representation of them.
        """
        refine = self.config.refine
        if refine is None:
            return self
        own = {"model": refine.model, "optimizer": refine.optimizer, "training": refine.training}
        config = self.config.model_copy(update={**own, "representation": None})
        return replace(self, config=config, within=("refine",))

    @property
    def digest(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def path(self, name: str) -> Path:
        """A path of the config."""
        return self.directory / name

    def error(self, key: KeyPath, message: str) -> InputError:
        """An error that names file, line and key."""
        return self.errors([(key, message)])

    def require_batch(self, rows: int, what: str) -> None:
        """Raise ConfigError unless a batch has no more examples than there are rows."""
        batch = self.config.training.batch_size
        if batch > rows:
            reason = f"{batch:,} is larger than the {rows:,} {what}"
            raise self.error(("training", "batch_size"), reason)

    def errors(self, found: Sequence[tuple[KeyPath, str]]) -> InputError:
        """The same of several keys: the first is the message, the others are its notes."""
        whole = [((*self.within, *key), reason) for key, reason in found]
        return _CONFIG.refusal(self.source, self.yaml, whole)


def json_schema() -> str:
    """The JSON Schema of a config, for editors; the same for the same models."""
    return _CONFIG.json_schema("labeldp training config")


def load_config(path: Path) -> LoadedConfig:
    """Read and validate a config file. Raises ConfigError."""
    text, _ = _CONFIG.read(path)
    return parse_config(text, str(path), path.parent)


def parse_config(text: str, source: str = "config", directory: Path | None = None) -> LoadedConfig:
    """Validate the text of a config, whose relative paths start from ``directory``.

    Raises ConfigError.
    """
    config, yaml = _CONFIG.parse(text, source)
    loaded = LoadedConfig(config, text, source, directory or Path(), yaml)
    if found := list(_misfits(config)):
        raise loaded.errors(found)
    return loaded


def _misfits(config: Config) -> Iterator[Misfit]:
    """The rules that look at several parts."""
    if config.loss != "cross_entropy":
        if config.data.classes is not None:
            yield ("data", "classes"), "only loss: cross_entropy has classes"
        if config.method.kind == "privatized":
            given = {"debiased": config.method.debiased, "correction": config.method.correction}
            for key in (key for key, value in given.items() if value):
                reason = "is for loss: cross_entropy; for regression compile with goal: training"
                yield ("method", key), reason
    if config.data.kind != "table" and config.method.kind == "privatized":
        for key in ("column", "id_column"):
            if getattr(config.method, key) is not None and config.data.kind == "idx":
                yield ("method", key), "idx files have no columns"
        if config.method.private_column is not None and config.data.kind == "idx":
            yield ("method", "private_column"), "idx files have no columns"
    user_column = getattr(config.method, "user_column", None)
    if user_column is not None and config.data.kind == "idx":
        yield ("method", "user_column"), "idx files have no columns"
    yield from _label_misfits(config)
    yield from _representation_misfits(config)
    yield from _form_misfits(config)
    if config.refine is not None and not isinstance(config.method, Pate):
        yield (
            ("refine",),
            "only the student of method pate may be a network: leave it out, and for a network "
            "take method privatized or dp_sgd with model, optimizer and training",
        )
    if isinstance(config.method, DpSgd | LabelDpPro):
        if config.training.early_stopping is not None:
            reason = f"method {config.method.kind} has no training loss that may be looked at"
            yield ("training", "early_stopping"), reason
        yield from _range_misfits(config.loss, config.method)


def _form_misfits(config: Config) -> Iterator[Misfit]:
    """Steps need model, optimizer and training; a closed form needs none of them."""
    given, method = config.model_fields_set, config.method
    if isinstance(method, OneRelease | Pate):
        for key in ("model", "optimizer", "training"):
            if key in given:
                yield (
                    (key,),
                    f"method {method.kind} fits a linear model in closed form: leave it out",
                )
        if isinstance(method, OneRelease):
            yield from _release_misfits(config, method)
        else:
            yield from _vote_misfits(config, method)
    elif not config.closed_form:
        for key in ("optimizer", "training"):
            if key not in given:
                hint = " (or leave out model, too, for the closed form)"
                yield (key,), f"this key is missing{hint * (method.kind in CLOSED_FORMS)}"
    elif config.loss == "absolute":
        yield ("loss",), "absolute has no closed form: give model, optimizer and training"
    elif isinstance(method, Privatized) and method.correction in ("none", "forward"):
        reason = "a closed form takes the bias out of sums: leave it out, or train a model by steps"
        yield ("method", "correction"), reason
    if config.closed_form and config.representation and not config.representation.whiten:
        yield ("representation", "whiten"), "a closed form needs whitened vectors: leave it out"


def _release_misfits(config: Config, method: OneRelease) -> Iterator[Misfit]:
    key = ("method", "label_range")
    fit = HEADS.get(config.loss, ())
    if config.loss == "absolute":
        yield ("loss",), "absolute has no closed form: use squared, poisson or cross_entropy"
    elif method.head is not None and method.head not in fit:
        yield ("method", "head"), f"loss {config.loss} takes {' or '.join(fit)}"
    if config.loss == "cross_entropy":
        if method.label_range is not None:
            yield key, "is for regression: the labels of cross_entropy are classes"
        yield from _class_misfits(config, method)
    elif method.label_range is None:
        yield key, "this key is missing: give the two ends of the labels, [low, high]"
    elif config.loss == "poisson" and method.label_range[0] < 0:
        yield key, "the labels of loss: poisson are counts, from 0 on"
    elif isinstance(method.default, str):
        yield ("method", "default"), "expected a number"
    elif method.default is not None and not (
        method.label_range[0] <= method.default <= method.label_range[1]
    ):
        yield ("method", "default"), "lies outside label_range"


def _vote_misfits(config: Config, method: Pate) -> Iterator[Misfit]:
    if config.loss != "cross_entropy":
        yield ("loss",), "method pate is for classes: it needs cross_entropy"
    else:
        yield from _class_misfits(config, method)
    if len(config.data.class_list or ()) > MOST_CLASSES:
        reason = f"method pate takes at most {MOST_CLASSES:,}: take one_release"
        yield ("data", "classes"), reason


def _class_misfits(config: Config, method: OneRelease | Pate) -> Iterator[Misfit]:
    """Classes are needed before any label is seen, and what is none becomes one of them."""
    default, classes = method.default, config.data.class_list
    if classes is None:
        yield ("data", "classes"), "cross_entropy needs the classes: a list, or K"
    elif default is not None and (isinstance(default, float) or default not in classes):
        yield ("method", "default"), "is none of the classes"


def _label_misfits(config: Config) -> Iterator[Misfit]:
    """No column of true labels may be taken for something public."""
    data, method = config.data, config.method
    column = method.column if isinstance(method, Privatized) else None
    for key, reason in (
        ("user_column", "users must be public"),
        ("id_column", "ids must be public"),
    ):
        if getattr(method, key, None) in {data.label, column} - {None}:
            yield ("method", key), f"is the label: {reason}"
    if column in features_of(data):
        yield ("method", "column"), "is also a feature: true labels are none"
    if not isinstance(data, TableData) and data.label in features_of(data):
        yield ("data", "features"), "is the label: features are public"
    for place, name in _vectors(config):
        if name in {data.label, column}:
            yield place, "is the label: the vectors of a row are public"


def features_of(data: DataConfig) -> tuple[str, ...]:
    """The columns or the array that are public; idx files have a file of their own for them."""
    if isinstance(data, TableData):
        return (*data.numeric, *data.categorical)
    return (data.features,) if isinstance(data, NpzData) else ()


def _vectors(config: Config) -> Iterator[tuple[KeyPath, str]]:
    """The arrays that stand beside the data, a row for each of theirs."""
    if isinstance(config.representation, FromFile):
        yield ("representation", "array"), config.representation.array
    if isinstance(config.method, Clusters) and config.method.embeddings is not None:
        yield ("method", "embeddings", "array"), config.method.embeddings.array


def _representation_misfits(config: Config) -> Iterator[Misfit]:
    """A representation must be one for data of this kind."""
    data, found = config.data, config.representation
    if found is None:
        return
    key = ("representation",)
    if isinstance(data, TableData) and found.kind == "patches":
        yield (*key, "kind"), "patches is for images: for tables there are splines"
    if not isinstance(data, TableData) and found.kind == "splines":
        yield (*key, "kind"), f"splines is for tables, not for data of kind {data.kind}"
    if isinstance(found, FromFile):
        if found.test is None and data.test is not None:
            yield (*key, "test"), "this key is missing: data.test has rows, too"
        if found.test is not None and data.test is None:
            yield (*key, "test"), "there is no data.test"
    elif TEST in found.unlabelled and data.test is None:
        yield (*key, "unlabelled"), "test stands for the test features, and there is no data.test"


def _range_misfits(loss: str, method: DpSgd | LabelDpPro) -> Iterator[Misfit]:
    key = ("method", "label_range")
    needed = "label-free clipping and denoisers look at the gradients of all labels"
    if loss == "cross_entropy":
        if method.label_range is not None:
            yield key, "is for regression: the labels of cross_entropy are classes"
    elif not method.needs_labels:
        if method.label_range is not None:
            yield key, "is for clipping: label_free and for denoisers"
    elif loss == "absolute":
        reason = "is not affine in the label: use squared or poisson"
        yield ("loss",), f"{needed}; the gradient of absolute {reason}"
    elif method.label_range is None:
        yield key, f"{needed}: give the two ends of the labels, [low, high]"
