"""From a YAML file to a validated config, or to messages that name file, line and key."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from labeldp_compile.errors import InputError
from labeldp_compile.yaml_model import Document
from labeldp_compile.yaml_source import KeyPath, YamlSource
from labeldp_trainer.config.base import NoisySum
from labeldp_trainer.config.central import Central
from labeldp_trainer.config.data import DataConfig, NpzData, TableData
from labeldp_trainer.config.method import HEADS, MOST_CLASSES, OneRelease, Pate
from labeldp_trainer.config.model import CLOSED_FORMS, Config
from labeldp_trainer.config.representation import TEST, FromFile
from labeldp_trainer.errors import ConfigError

Misfit = tuple[KeyPath, str]
Rule = tuple[bool, str, str]
"""Whether it applies, the key that it is about, and what is wrong."""
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
    """The rules that look at several parts, which apply."""
    parts = (_data_rules, _label_rules, _representation_rules, _form_rules, _method_rules)
    for rules in parts:
        for applies, key, reason in rules(config):
            if applies:
                yield tuple(key.split(".")), reason


def _data_rules(config: Config) -> Iterator[Rule]:
    data, method = config.data, config.method
    if config.loss != "cross_entropy":
        yield data.classes is not None, "data.classes", "only loss: cross_entropy has classes"
        for name in ("debiased", "correction"):
            reason = "is for loss: cross_entropy; for regression compile with goal: training"
            yield bool(getattr(method, name, None)), f"method.{name}", reason
    for name in ("column", "id_column", "private_column", "user_column"):
        given = getattr(method, name, None) is not None
        yield given and data.kind == "idx", f"method.{name}", "idx files have no columns"


def _label_rules(config: Config) -> Iterator[Rule]:
    """No column of true labels may be taken for something public."""
    data, method, column = config.data, config.method, getattr(config.method, "column", None)
    labels, public = {data.label, column} - {None}, features_of(data)
    for name, what in (("user_column", "users"), ("id_column", "ids")):
        reason = f"is the label: {what} must be public"
        yield getattr(method, name, None) in labels, f"method.{name}", reason
    yield column in public, "method.column", "is also a feature: true labels are none"
    is_feature = not isinstance(data, TableData) and data.label in public
    yield is_feature, "data.features", "is the label: features are public"
    beside = {
        "representation": config.representation,
        "method.embeddings": getattr(method, "embeddings", None),
    }
    for key, vectors in beside.items():  # a row for each of the data
        reason = "is the label: the vectors of a row are public"
        yield getattr(vectors, "array", None) in labels, f"{key}.array", reason


def features_of(data: DataConfig) -> tuple[str, ...]:
    """The columns or the array that are public; idx files have a file of their own for them."""
    if isinstance(data, TableData):
        return (*data.numeric, *data.categorical)
    return (data.features,) if isinstance(data, NpzData) else ()


def _representation_rules(config: Config) -> Iterator[Rule]:
    """A representation must be one for data of this kind."""
    data, found = config.data, config.representation
    key, is_table, tested = "representation", isinstance(data, TableData), data.test is not None
    if found is None:
        return
    reason = "patches is for images: for tables there are splines"
    yield is_table and found.kind == "patches", f"{key}.kind", reason
    reason = f"splines is for tables, not for data of kind {data.kind}"
    yield not is_table and found.kind == "splines", f"{key}.kind", reason
    if isinstance(found, FromFile):
        reason = "this key is missing: data.test has rows, too"
        yield tested and found.test is None, f"{key}.test", reason
        yield not tested and found.test is not None, f"{key}.test", "there is no data.test"
    else:
        reason = "test stands for the test features, and there is no data.test"
        yield not tested and TEST in found.unlabelled, f"{key}.unlabelled", reason
    reason = "a closed form needs whitened vectors: leave it out"
    yield config.closed_form and not found.whiten, f"{key}.whiten", reason


def _form_rules(config: Config) -> Iterator[Rule]:
    """Steps need model, optimizer and training; a closed form needs none of them."""
    given, method = config.model_fields_set, config.method
    if isinstance(method, OneRelease | Pate):
        for key in ("model", "optimizer", "training"):
            reason = f"method {method.kind} fits a linear model in closed form: leave it out"
            yield key in given, key, reason
    elif config.closed_form:
        reason = "absolute has no closed form: give model, optimizer and training"
        yield config.loss == "absolute", "loss", reason
        reason = "a closed form takes the bias out of sums: leave it out, or train a model by steps"
        biased = getattr(method, "correction", None) in ("none", "forward")
        yield biased, "method.correction", reason
    else:
        hint = " (or leave out model, too, for the closed form)"
        for key in ("optimizer", "training"):
            reason = f"this key is missing{hint * (method.kind in CLOSED_FORMS)}"
            yield key not in given, key, reason
    yield (
        config.refine is not None and not isinstance(method, Pate),
        "refine",
        "only the student of method pate may be a network: leave it out, and for a network take "
        "method privatized or dp_sgd with model, optimizer and training",
    )


def _method_rules(config: Config) -> Iterator[Rule]:
    method, classes = config.method, config.loss == "cross_entropy"
    if isinstance(method, OneRelease | Pate) and classes:
        # Needed before any label is seen; and what is no class becomes one of them.
        listed, default = config.data.class_list, method.default
        reason = "cross_entropy needs the classes: a list, or K"
        yield listed is None, "data.classes", reason
        known = default is None or (not isinstance(default, float) and default in (listed or ()))
        yield listed is not None and not known, "method.default", "is none of the classes"
    if isinstance(method, NoisySum):
        reason = "is for regression: the labels of cross_entropy are classes"
        yield classes and method.label_range is not None, "method.label_range", reason
    if isinstance(method, OneRelease):
        yield from _release_rules(config.loss, method)
    if isinstance(method, Pate):
        yield not classes, "loss", "method pate is for classes: it needs cross_entropy"
        too_many = len(config.data.class_list or ()) > MOST_CLASSES
        reason = f"method pate takes at most {MOST_CLASSES:,}: take one_release"
        yield too_many, "data.classes", reason
    if isinstance(method, Central):
        stops = config.training.early_stopping is not None
        reason = f"method {method.kind} has no training loss that may be looked at"
        yield stops, "training.early_stopping", reason
        yield from _range_rules(config.loss, method)


def _release_rules(loss: str, method: OneRelease) -> Iterator[Rule]:
    fit, ends, default = HEADS.get(loss, ()), method.label_range, method.default
    reason = "absolute has no closed form: use squared, poisson or cross_entropy"
    yield loss == "absolute", "loss", reason
    reason = f"loss {loss} takes {' or '.join(fit)}"
    yield bool(fit) and method.head not in (None, *fit), "method.head", reason
    if loss == "cross_entropy":
        return
    reason = "this key is missing: give the two ends of the labels, [low, high]"
    yield ends is None, "method.label_range", reason
    if ends is not None:
        reason = "the labels of loss: poisson are counts, from 0 on"
        yield loss == "poisson" and ends[0] < 0, "method.label_range", reason
        yield isinstance(default, str), "method.default", "expected a number"
        beyond = isinstance(default, int | float) and not ends[0] <= default <= ends[1]
        yield beyond, "method.default", "lies outside label_range"


def _range_rules(loss: str, method: Central) -> Iterator[Rule]:
    if loss == "cross_entropy":
        return
    key, given = "method.label_range", method.label_range is not None
    reason = "is for clipping: label_free and for denoisers"
    yield given and not method.needs_labels, key, reason
    if method.needs_labels:
        needed = "label-free clipping and denoisers look at the gradients of all labels"
        reason = "is not affine in the label: use squared or poisson"
        reason = f"{needed}; the gradient of absolute {reason}"
        yield loss == "absolute", "loss", reason
        missing = not given and loss != "absolute"
        yield missing, key, f"{needed}: give the two ends of the labels, [low, high]"
