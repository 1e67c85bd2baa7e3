"""Reads a YAML file as a validated config. Errors name the file, the line and the key."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from labeldp_compile.toolkit import Document, InputError, KeyPath, YamlSource
from labeldp_trainer.config.data import (
    NoisySum,
    NpzData,
    PairsData,
    TableData,
    TrueLabels,
    features_of,
)
from labeldp_trainer.config.method import (
    HEADS,
    MOST_CLASSES,
    Central,
    NoMethod,
    OneRelease,
    Pate,
    Privatized,
    StagedRelease,
)
from labeldp_trainer.config.model import CLOSED_FORMS, LINEAR_ONLY, OF_IMAGES, Config
from labeldp_trainer.config.representation import TEST, given_vectors
from labeldp_trainer.errors import ConfigError

Misfit = tuple[KeyPath, str]
Rule = tuple[bool, str, str]
"""Whether the rule is broken, the key, and the message."""
_CONFIG = Document("config", Config, ConfigError)


@dataclass(frozen=True)
class LoadedConfig:
    """A config, with what error messages about it need.

    Attributes:
        config: the validated config.
        text: the YAML text.
        source: names the text in messages.
        directory: where relative paths in the config start.
        yaml: the lines of its keys.
    """

    config: Config
    text: str
    source: str
    directory: Path
    yaml: YamlSource

    def suited(self, *, images: bool) -> LoadedConfig:
        """With the default representation of images, if an archive turns out to hold images."""
        config = self.config
        chosen = "representation" in self.yaml.data or config.representation is None
        if not images or chosen or not isinstance(config.data, NpzData):
            return self
        return replace(self, config=config.model_copy(update={"representation": OF_IMAGES}))

    @property
    def digest(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def path(self, name: str) -> Path:
        """The path that the config calls ``name``."""
        return self.directory / name

    def error(self, key: KeyPath, message: str) -> InputError:
        """An error that names the file, the line and the key."""
        return self.errors([(key, message)])

    def require_batch(self, rows: int, what: str) -> None:
        """Raise ConfigError if a batch has more examples than there are rows."""
        batch = self.config.training.batch_size
        if batch > rows:
            reason = f"{batch:,} is larger than the {rows:,} {what}"
            raise self.error(("training", "batch_size"), reason)

    def errors(self, found: Sequence[tuple[KeyPath, str]]) -> InputError:
        """One error for several keys: the first is the message, the others are its notes."""
        return _CONFIG.refusal(self.source, self.yaml, found)


def json_schema() -> str:
    """The JSON Schema of a config, for editors."""
    return _CONFIG.json_schema("labeldp training config")


def load_config(path: Path) -> LoadedConfig:
    """Read and validate a config file. Raises ConfigError."""
    text, _ = _CONFIG.read(path)
    return parse_config(text, str(path), path.parent)


def parse_config(text: str, source: str = "config", directory: Path | None = None) -> LoadedConfig:
    """Validate the text of a config. Its relative paths start in ``directory``.

    Raises ConfigError.
    """
    config, yaml = _CONFIG.parse(text, source)
    loaded = LoadedConfig(config, text, source, directory or Path(), yaml)
    if found := list(_misfits(config)):
        raise loaded.errors(found)
    return loaded


def _misfits(config: Config) -> Iterator[Misfit]:
    """The broken rules that concern several parts of the config."""
    parts = (_data_rules, _label_rules, _representation_rules, _form_rules, _method_rules)
    for rules in parts:
        for applies, key, reason in rules(config):
            if applies:
                yield tuple(key.split(".")), reason


def _data_rules(config: Config) -> Iterator[Rule]:
    data, method = config.data, config.method
    if config.loss != "cross_entropy":
        listed = data.classes is not None and not isinstance(data, PairsData)
        yield listed, "data.classes", "classes need loss: cross_entropy"
        reason = "needs loss: cross_entropy; for a regression, compile the spec with goal: training"
        yield bool(getattr(method, "correction", None)), "method.correction", reason
    factors = data.factors if isinstance(data, TableData) else {}
    reason = "is for counts; use loss: poisson"
    yield "exposure" in factors and config.loss != "poisson", "data.exposure", reason
    reason = "needs a model of interactions, such as that of method staged_release"
    for key in factors:
        yield config.interactions is None, f"data.{key}", reason
    if isinstance(data, PairsData):
        other = not isinstance(method, OneRelease) or method.goal == "coefficients"
        yield other, "method", "pairs are learned by method one_release"
        given = getattr(method, "default", None) is not None
        yield given, "method.default", "an unknown preference is a tie; remove this key"
        reason = "pairs are a choice of two; use loss: cross_entropy"
        yield config.loss != "cross_entropy", "loss", reason
    for name in ("column", "private_column", "user_column"):
        given = getattr(method, name, None) is not None
        yield given and data.kind == "idx", f"method.{name}", "idx files have no columns"


def _label_rules(config: Config) -> Iterator[Rule]:
    """No column of true labels may be used where public data are expected."""
    data, method, column = config.data, config.method, getattr(config.method, "column", None)
    labels, public = {data.label, column} - {None}, features_of(data)
    users = getattr(method, "user_column", None)
    yield users in labels, "method.user_column", "is the label; users must be public"
    yield column in public, "method.column", "is also a feature; true labels cannot be features"
    is_feature = not isinstance(data, TableData) and data.label in public
    yield is_feature, "data.features", "is the label; features must be public"
    vectors = given_vectors(config.representation)
    reason = "is the label; vectors must be public"
    yield getattr(vectors, "array", None) in labels, "representation.array", reason


def _representation_rules(config: Config) -> Iterator[Rule]:
    """A representation must match the kind of data."""
    data, found = config.data, config.representation
    key, is_table, tested = "representation", isinstance(data, TableData), data.test is not None
    if found is None:
        return
    at = f"{key}.of" if found.members else f"{key}.kind"
    for each in found.whole:
        reason = f"{each.kind} needs images; for a table use splines"
        yield is_table and each.needs == "images", at, reason
        reason = f"{each.kind} needs a table; data.kind is {data.kind}"
        yield not is_table and each.needs == "table", at, reason
        reason = f"differences are for pairs, and pairs need them; data.kind is {data.kind}"
        yield (each.needs == "pairs") != isinstance(data, PairsData), at, reason
    file = given_vectors(found)
    if file is not None:
        at = f"{key}.test" if file is found else f"{key}.of"
        reason = "this key is missing; it is needed because data.test is given"
        yield tested and file.test is None, at, reason if file is found else f"test: {reason}"
        yield (not tested and file.test is not None, at, "needs data.test, which is missing")
    if unlabelled := getattr(found, "unlabelled", ()):
        reason = "test means the test features, but data.test is missing"
        yield not tested and TEST in unlabelled, f"{key}.unlabelled", reason
        reason = "must be empty or test, because the vectors are given in files"
        yield file is not None and set(unlabelled) != {TEST}, f"{key}.unlabelled", reason
    reason = "must be true for a closed form; remove this key"
    yield config.closed_form and not getattr(found, "whiten", True), f"{key}.whiten", reason


def _form_rules(config: Config) -> Iterator[Rule]:
    """Training by steps needs model, optimizer and training. A closed form takes none of them."""
    given, method = config.model_fields_set, config.method
    if config.interactions is not None:
        yield from _interaction_rules(config)
    elif isinstance(method, OneRelease | Pate):
        for key in ("model", "optimizer", "training"):
            reason = f"method {method.kind} fits a linear model in closed form; remove this key"
            yield key in given, key, reason
    elif config.closed_form:
        reason = "absolute has no closed form; add model, optimizer and training"
        yield config.loss == "absolute", "loss", reason
        reason = (
            "a closed form always removes the bias; remove this key, or add model, optimizer and "
            "training"
        )
        biased = getattr(method, "correction", None) in ("none", "forward")
        yield biased, "method.correction", reason
    else:
        hint = " (for the closed form, remove model, too)"
        for key in ("optimizer", "training"):
            reason = f"this key is missing{hint * (method.kind in CLOSED_FORMS)}"
            yield key not in given, key, reason


def _interaction_rules(config: Config) -> Iterator[Rule]:
    """A model of interactions is fitted by stages, to columns of a table."""
    given, method = config.model_fields_set, config.method
    staged = isinstance(method, StagedRelease)
    what = f"method {method.kind}" if staged else "model interactions"
    keys = ("optimizer", "training", "representation", *(("model",) if staged else ()))
    for key in keys:
        reason = f"{what} fits its own model of a table's columns; remove this key"
        yield key in given, key, reason
    table = isinstance(config.data, TableData)
    reason = f"{what} needs a table; data.kind is {config.data.kind}"
    yield not table, "method.kind" if staged else "model.kind", reason
    fits = isinstance(method, StagedRelease | NoMethod | Privatized)
    reason = f"interactions needs method staged_release, privatized or none; it is {method.kind}"
    yield not fits, "model.kind", reason
    absolute = config.loss == "absolute" and not staged  # which _release_rules refuses
    yield absolute, "loss", "absolute has no closed form; use squared"
    biased = getattr(method, "correction", None) in ("none", "forward")
    yield biased, "method.correction", "a closed form always removes the bias; remove this key"


def _method_rules(config: Config) -> Iterator[Rule]:
    method, classes = config.method, config.loss == "cross_entropy"
    if isinstance(method, TrueLabels):
        yield from _default_rules(config, method)
    if isinstance(method, NoisySum):
        reason = "is for regression; cross_entropy has classes"
        yield classes and method.label_range is not None, "method.label_range", reason
    if isinstance(method, OneRelease | StagedRelease):
        yield from _release_rules(config, method)
    if isinstance(method, OneRelease) and method.goal == "coefficients":
        reason = f"coefficients needs representation: {{kind: pca}}, {LINEAR_ONLY}"
        yield not config.linear_in_features, "method.goal", reason
        some = getattr(config.representation, "components", None) not in (None, "all")
        yield some, "representation.components", "goal: coefficients needs all; remove this key"
    if isinstance(method, Pate):
        reason = "method pate needs loss: cross_entropy"
        yield not classes and config.data.classes is None, "loss", reason
        too_many = len(config.data.class_list or ()) > MOST_CLASSES
        reason = f"method pate takes at most {MOST_CLASSES:,} classes; use one_release"
        yield too_many, "data.classes", reason
    if isinstance(method, Central):
        stops = config.training.early_stopping is not None
        reason = (
            f"method {method.kind} cannot use the training loss, which is secret; remove this key"
        )
        yield stops, "training.early_stopping", reason
        yield from _range_rules(config.loss, method)


def _default_rules(config: Config, method: TrueLabels) -> Iterator[Rule]:
    """A label that is no class or no number becomes the default, which can be one."""
    default, listed = method.default, config.data.class_list
    if config.loss == "cross_entropy":
        # needed before any label is read
        reason = "this key is missing; cross_entropy needs a list of classes, or their number K"
        yield listed is None, "data.classes", reason
        known = default is None or (not isinstance(default, float) and default in (listed or ()))
        yield listed is not None and not known, "method.default", "is not one of the classes"
        return
    yield isinstance(default, str), "method.default", "expected a number"
    low, high = getattr(method, "label_range", None) or (-math.inf, math.inf)
    beyond = isinstance(default, int | float) and not low <= default <= high
    yield beyond, "method.default", "is outside label_range"


def _release_rules(config: Config, method: OneRelease | StagedRelease) -> Iterator[Rule]:
    loss, ends = config.loss, method.label_range
    fit = HEADS.get(loss, ())
    reason = "absolute has no closed form; use squared, poisson or cross_entropy"
    yield loss == "absolute", "loss", reason
    if isinstance(method, OneRelease):
        reason = f"loss {loss} takes {' or '.join(fit)}"
        yield bool(fit) and method.head not in (None, *fit), "method.head", reason
    if loss == "cross_entropy":
        return
    reason = "missing: give the smallest and largest label, [low, high], or list data.classes"
    yield ends is None and config.data.classes is None, "method.label_range", reason
    if ends is not None:
        reason = "must not be negative: the labels of loss: poisson are counts"
        yield loss == "poisson" and ends[0] < 0, "method.label_range", reason


def _range_rules(loss: str, method: Central) -> Iterator[Rule]:
    if loss == "cross_entropy":
        return
    key, given = "method.label_range", method.label_range is not None
    reason = "needs a denoiser"
    yield given and not method.needs_labels, key, reason
    if method.needs_labels:
        needed = "denoisers use the gradients of all labels"
        reason = "is not affine in the label; use squared or poisson"
        reason = f"{needed}. The gradient of absolute {reason}"
        yield loss == "absolute", "loss", reason
        missing = not given and loss != "absolute"
        yield missing, key, f"{needed}; give the smallest and largest label, [low, high]"
