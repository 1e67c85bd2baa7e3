"""Training configs: the models, and the way from a file to them."""

from labeldp_trainer.config.central import DpSgd, LabelDpPro
from labeldp_trainer.config.load import LoadedConfig, json_schema, load_config, parse_config
from labeldp_trainer.config.method import (
    Alibi,
    Clusters,
    LpMst,
    NoMethod,
    OneRelease,
    Pate,
    Privatized,
    StagedRelease,
)
from labeldp_trainer.config.model import Config

__all__ = [
    "Alibi",
    "Clusters",
    "Config",
    "DpSgd",
    "LabelDpPro",
    "LoadedConfig",
    "LpMst",
    "NoMethod",
    "OneRelease",
    "Pate",
    "Privatized",
    "StagedRelease",
    "json_schema",
    "load_config",
    "parse_config",
]
