"""From a YAML file to a validated config, or to one message that names file, line and key."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from labeldp_compile.yaml_model import Document
from labeldp_compile.yaml_tree import KeyPath, YamlSource
from labeldp_trainer.config.central import DpSgd, LabelDpPro
from labeldp_trainer.config.data import TableData
from labeldp_trainer.config.method import Privatized
from labeldp_trainer.config.model import Config
from labeldp_trainer.errors import ConfigError

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
    """

    config: Config
    text: str
    source: str
    directory: Path
    yaml: YamlSource

    @property
    def digest(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def path(self, name: str) -> Path:
        """A path of the config."""
        return self.directory / name

    def error(self, key: KeyPath, message: str) -> ConfigError:
        """An error that names file, line and key."""
        where = ".".join(map(str, key))
        return ConfigError(f"{self.source}:{self.yaml.line(key)}: {where}: {message}")


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
    _check(loaded)
    return loaded


def _check(loaded: LoadedConfig) -> None:
    """The rules that look at several parts."""
    config = loaded.config
    if config.loss != "cross_entropy":
        if config.data.classes is not None:
            raise loaded.error(("data", "classes"), "only loss: cross_entropy has classes")
        if config.method.kind == "privatized" and config.method.debiased:
            reason = "is for loss: cross_entropy; for regression compile with goal: training"
            raise loaded.error(("method", "debiased"), reason)
    if config.data.kind != "table" and config.method.kind == "privatized":
        for key in ("column", "id_column"):
            if getattr(config.method, key) is not None and config.data.kind == "idx":
                raise loaded.error(("method", key), "idx files have no columns")
        if config.method.private_column is not None and config.data.kind == "idx":
            raise loaded.error(("method", "private_column"), "idx files have no columns")
    user_column = getattr(config.method, "user_column", None)
    if user_column is not None and config.data.kind == "idx":
        raise loaded.error(("method", "user_column"), "idx files have no columns")
    _check_labels(loaded)
    if isinstance(config.method, DpSgd | LabelDpPro):
        if config.training.early_stopping is not None:
            reason = f"method {config.method.kind} has no training loss that may be looked at"
            raise loaded.error(("training", "early_stopping"), reason)
        _check_label_range(loaded, config.method)


def _check_labels(loaded: LoadedConfig) -> None:
    """No column of true labels may be taken for something public."""
    data, method = loaded.config.data, loaded.config.method
    column = method.column if isinstance(method, Privatized) else None
    for key, reason in (
        ("user_column", "users must be public"),
        ("id_column", "ids must be public"),
    ):
        if getattr(method, key, None) in {data.label, column} - {None}:
            raise loaded.error(("method", key), f"is the label: {reason}")
    if isinstance(data, TableData) and column in (*data.numeric, *data.categorical):
        raise loaded.error(("method", "column"), "is also a feature: true labels are none")


def _check_label_range(loaded: LoadedConfig, method: DpSgd | LabelDpPro) -> None:
    key, loss = ("method", "label_range"), loaded.config.loss
    needed = "label-free clipping and denoisers look at the gradients of all labels"
    if loss == "cross_entropy":
        if method.label_range is not None:
            raise loaded.error(key, "is for regression: the labels of cross_entropy are classes")
    elif not method.needs_labels:
        if method.label_range is not None:
            raise loaded.error(key, "is for clipping: label_free and for denoisers")
    elif loss == "absolute":
        reason = "is not affine in the label: use squared or poisson"
        raise loaded.error(("loss",), f"{needed}; the gradient of absolute {reason}")
    elif method.label_range is None:
        raise loaded.error(key, f"{needed}: give the two ends of the labels, [low, high]")
